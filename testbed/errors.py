"""Errors, worded so that a person can act on them."""

from collections.abc import Iterable
from pathlib import Path

TAIL_LINES = 12
_TAIL_BYTES = 16_384


class ClusterError(Exception):
    """A failure of the testbed: what failed, the last lines of its log, and the next thing to do."""

    def __init__(self, what: str, *, log: Path | None = None, cure: str = "") -> None:
        self.what = what
        self.cure = cure
        lines = [what]
        if log is not None:
            lines.append(f"  the last lines of {log}:")
            lines += [f"    {line}" for line in tail(log)] or ["    (empty)"]
        if cure:
            lines.append(f"  next: {cure}")
        super().__init__("\n".join(lines))


def tail(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log, of however large a file; none where there is no file."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-lines:]


def sentence(parts: Iterable[str]) -> str:
    """`a, b and c`."""
    *head, last = [*parts] or ["nothing"]
    return f"{', '.join(head)} and {last}" if head else last
