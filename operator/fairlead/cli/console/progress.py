"""How far something slow has got: one line on standard error, for people who wait at a terminal."""

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Final, Protocol, TextIO, TypeVar

T = TypeVar("T", covariant=True)
PATIENCE_S: Final = 0.5
"""Nothing is said of what takes no longer."""
_EACH_S: Final = 0.1
_WIDTH: Final = 30
_ERASE: Final = "\r\x1b[K"


class Several(Sized, Iterable[T], Protocol[T]):
    """What can be counted before it is gone through."""


def with_progress(what: str, items: Several[T], out: TextIO | None = None) -> Iterator[T]:
    """The same items, while a line says how many of them are done; it is gone at the end, whatever the end is."""
    err = sys.stderr if out is None else out
    if err is None or not err.isatty():
        yield from items
        return
    begin = last = time.monotonic()
    total, is_there = len(items), False
    try:
        for done, item in enumerate(items):
            now = time.monotonic()
            if now - begin > PATIENCE_S and now - last > _EACH_S:
                err.write(
                    f"\r{_bar(done, total)} {done:,} of {total:,} {what}, {_left(done, total, now - begin)}\x1b[K"
                )
                err.flush()
                last, is_there = now, True
            yield item
    finally:
        if is_there:
            err.write(_ERASE)
            err.flush()


def _bar(done: int, total: int) -> str:
    full = _WIDTH * done // total
    return f"[{'#' * full}{'.' * (_WIDTH - full)}]"


def _left(done: int, total: int, took_s: float) -> str:
    return f"{took_s / done * (total - done):.0f} s to go" if done else "this may take a while"
