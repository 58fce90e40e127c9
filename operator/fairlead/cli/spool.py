"""A long result for programs: nothing of it is written before all of it is there, and it need not fit in memory."""

import shutil
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, TextIO

import msgspec

_IN_MEMORY: Final = 64 << 20


class Spool:
    """An object with one long list, of which the rest comes last."""

    def __init__(self, output: str, name: str) -> None:
        self._is_json = output == "json"
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, mode="w+", encoding="utf-8", newline="")  # noqa: SIM115
        self._name = name
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, item: msgspec.Struct) -> None:
        """One more of the list."""
        if self._is_json:
            start = ",\n" if self._count else f'{{"{self._name}": [\n'
            self._file.write(start + msgspec.json.encode(item).decode())
        else:
            start = "" if self._count else f"{self._name}:\n"
            self._file.write(start + _yaml([msgspec.json.decode(msgspec.json.encode(item))]))
        self._count += 1

    def end(self, out: TextIO, rest: Mapping[str, Any]) -> None:
        """The rest, and out with it."""
        if self._is_json:
            start = "\n]" if self._count else f'{{"{self._name}": []'
            parts = [f',\n"{name}": {msgspec.json.encode(value).decode()}' for name, value in rest.items()]
            self._file.write(f"{start}{''.join(parts)}}}\n")
        else:
            self._file.write(("" if self._count else f"{self._name}: []\n") + _yaml(dict(rest)))
        self._file.seek(0)
        shutil.copyfileobj(self._file, out)


def _yaml(value: Any) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, width=120)
    return text
