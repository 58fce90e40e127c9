"""Which lines of some modules were run. No tool for it is installed, and three modules need none."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any


@dataclass(slots=True)
class Reached:
    """Lines by file; those that run on import are taken as reached."""

    lines: dict[str, frozenset[int]]
    seen: dict[str, set[int]] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Of all lines."""
        return 1 - sum(map(len, self.missed.values())) / sum(map(len, self.lines.values()))

    @property
    def missed(self) -> dict[str, list[int]]:
        """Lines that were not run, by the name of the file."""
        return {Path(file).name: sorted(lines - self.seen.get(file, set())) for file, lines in self.lines.items()}


def reached(call: Callable[[], object], times: int, *modules: ModuleType) -> Reached:
    """What a call that is made many times runs of the functions of these modules."""
    files = [str(module.__file__) for module in modules]
    found = Reached({file: frozenset(_lines(file)) for file in files}, {file: set() for file in files})
    seen = found.seen

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            seen[frame.f_code.co_filename].add(frame.f_lineno)
        return on_line

    def on_call(frame: FrameType, *_: Any) -> Any:
        return on_line if frame.f_code.co_filename in seen else None

    before = sys.gettrace()
    try:
        for _ in range(times):
            sys.settrace(on_call)  # Python takes it away where a request is so deep that it cannot be called
            call()
    finally:
        sys.settrace(before)
    return found


def _lines(file: str) -> Iterator[int]:
    module = compile(Path(file).read_text(encoding="utf-8"), file, "exec")
    for code in _functions(module):
        for _, _, line in code.co_lines():
            if line is not None and line != code.co_firstlineno:
                yield line


def _functions(code: CodeType) -> Iterator[CodeType]:
    """All code that does not run on import: bodies of classes do."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_name == "__annotate__":
                continue  # since 3.14, and called by those that ask for annotations alone
            if "__qualname__" not in one.co_names or "__module__" not in one.co_names:
                yield one
            yield from _functions(one)
