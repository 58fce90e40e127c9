"""Output of commands: tables and progress for people, JSON and YAML for programs."""

import io
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

if TYPE_CHECKING:
    import argparse

TABLE: Final = "table"
_RESET: Final = "\x1b[0m"
_GAP: Final = "   "


WIDE: Final = "wide"
"""The table with more rows or columns."""


def add_output(parser: "argparse.ArgumentParser", *choices: str) -> None:
    """Add the option for the output format; the first choice is the default."""
    which = choices or (TABLE, "json", "yaml")
    parser.add_argument(
        "-o",
        "--output",
        choices=which,
        default=which[0],
        metavar="|".join(which),
        help="output format (default: %(default)s)",
    )


def serialize(value: Any, output: str) -> str:
    """Return plain data as JSON or YAML, the same bytes for the same data."""
    written = _without_non_finite(value)
    if output == "json":
        return json.dumps(written, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
    from fairlead.yaml_output import to_yaml

    return to_yaml(json.loads(json.dumps(written)))


def _without_non_finite(value: Any) -> Any:
    """Return plain data in which numbers that JSON does not have are the texts that kubectl and protobuf write."""
    match value:
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: _without_non_finite(one) for key, one in value.items()}
        case list() | tuple():
            return [_without_non_finite(one) for one in value]
    return value


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as aligned lines, the first of them the head, without trailing blanks."""
    shown = [[clean(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]


def clean(text: str) -> str:
    """Return a text with all control characters escaped, so that a terminal obeys none."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def paint(text: str, colour: str, is_wanted: bool) -> str:  # noqa: FBT001 - it is about the text
    """Return a text in a colour, if wanted."""
    return f"{colour}{text}{_RESET}" if is_wanted else text


def pluralize(count: int, text: str, more: str = "") -> str:
    """Return a number with its noun: `1 node`, `2 nodes`."""
    return f"{count:,} {text if count == 1 else more or f'{text}s'}"


def output() -> TextIO:
    """Return standard output, with characters it cannot encode escaped; a dummy if it is closed."""
    return io.StringIO() if sys.stdout is None else _for_all(sys.stdout)


def errors() -> TextIO:
    """Return standard error, with characters it cannot encode escaped; a dummy if it is closed."""
    return io.StringIO() if sys.stderr is None else _for_all(sys.stderr)


def complain(command: str, text: str) -> None:
    """Print one line on standard error."""
    print(f"{command}: {clean(text)}", file=errors(), flush=True)


def wants_colour(out: TextIO) -> bool:
    """Return whether a stream is a terminal whose user wants colours."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _for_all(out: TextIO) -> TextIO:
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="backslashreplace")
    return out


T = TypeVar("T")
PATIENCE_S: Final = 0.5
"""Work that takes no longer than this shows no progress."""
LINE_S: Final = 10.0
"""Time between two lines of progress where there is no terminal, as in CI."""
_EACH_S: Final = 0.1
_WIDTH: Final = 30
_ERASE: Final = "\r\x1b[K"


def with_progress(what: str, items: Iterable[T], out: TextIO | None = None) -> Iterator[T]:
    """Yield the items and show progress on standard error: a line that is erased at the end, or one every 10 s."""
    err = sys.stderr if out is None else out
    if err is None:
        yield from items
        return
    is_terminal = err.isatty()
    patience_s, each_s = (PATIENCE_S, _EACH_S) if is_terminal else (LINE_S, LINE_S)
    begin = last = time.monotonic()
    total, is_there = len(items) if isinstance(items, Sized) else 0, False
    try:
        for done, item in enumerate(items):
            now = time.monotonic()
            if now - begin > patience_s and now - last > each_s:
                _show(err, _said(what, done, total, now - begin), (done, total) if is_terminal else None)
                last, is_there = now, is_terminal
            yield item
    finally:
        if is_there:
            err.write(_ERASE)
            err.flush()


def _show(err: TextIO, text: str, bar: tuple[int, int] | None) -> None:
    """Write a line that takes the place of the last one, with a bar, or another one."""
    if bar is None:
        print(f"fairlead: {text}", file=err, flush=True)
    else:
        err.write(f"\r{_bar(*bar)}{text}\x1b[K")
        err.flush()


def _said(what: str, done: int, total: int, took_s: float) -> str:
    return f"{done:,} of {total:,} {what}, {_left(done, total, took_s)}" if total else f"{done:,} {what}"


def _bar(done: int, total: int) -> str:
    full = _WIDTH * done // total if total else 0
    return f"[{'#' * full}{'.' * (_WIDTH - full)}] " if total else ""


def _left(done: int, total: int, took_s: float) -> str:
    return f"{took_s / done * (total - done):.0f} s to go" if done else "this may take a while"
