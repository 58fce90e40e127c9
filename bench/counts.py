"""Counts of the instructions and cache lines of calls, by callgrind: `python -m bench.counts`, a quarter of a minute.

No noise touches them, so that they are a check, too: `counts.toml` keeps what was counted by version of Python, and a
call that does more than that and some room fails it. Builds of one version differ by up to a fifth in instructions:
how many a reference takes, which is nothing of Fairlead's, tells how much of that is the build.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench import callgrind
from bench.callgrind import Counts
from testbed import cache

KEPT: Final = Path(__file__).with_name("counts.toml")
MODULE: Final = "bench.counted_calls"
REFERENCE: Final = "reference"
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
ROOM: Final = 5
LINES_ROOM: Final = 10
"""Percent that may be added. Where things lie in memory moves instructions by half a percent, lines by some."""
RAISE: Final = (
    "If the call is meant to do more, `.venv/bin/python -m bench.counts --write` keeps what is counted now in "
    "bench/counts.toml; commit that file, and say in the message what the work is for"
)
_HEAD: Final = """\
# Instructions and cache lines of one call, by version of Python, as `python -m bench.counts --write` counts them.
# `room` is what instructions may grow by, in percent; lines may grow by 10. It is 13 where only a build with
# profile-guided optimization was counted, as others need more for calls than the reference tells.
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """Counts that were kept for a version of Python."""

    calls: Mapping[str, Counts]
    room: int = ROOM


@dataclass(frozen=True, slots=True)
class Bound:
    """A count of a call, and what it may come to."""

    call: str
    what: str
    count: int
    kept: int
    """Count that was kept; of instructions, as this build of Python needs them."""
    limit: int

    @property
    def is_exceeded(self) -> bool:
        """Report whether the call does more than it may."""
        return self.count > self.limit

    def __str__(self) -> str:
        change = f"{100 * (self.count / self.kept - 1):+.1f} %"
        state = ": exceeded" if self.is_exceeded else ""
        return f"{self.call}: {self.count:,} {self.what.replace('_', ' ')}, {change}; limit {self.limit:,}{state}"


def bounds(counted: Mapping[str, Counts], kept: Kept) -> Iterator[Bound]:
    """Yield all counts with their limits; those of instructions grow with the reference."""
    build = counted[REFERENCE].instructions / kept.calls[REFERENCE].instructions
    for call, counts in counted.items():
        if call == REFERENCE:
            continue
        for what, count in asdict(counts).items():
            is_scaled = what == "instructions"
            before = asdict(kept.calls[call])[what] * (build if is_scaled else 1)
            room = kept.room if is_scaled else LINES_ROOM
            yield Bound(call, what, count, round(before), round(before * (1 + room / 100)))


def read(file: Path = KEPT) -> dict[str, Kept]:
    """Return what is kept, by version of Python."""
    parts: dict[str, dict[str, Any]] = tomllib.loads(file.read_text())
    return {
        version: Kept({call: Counts(**counts) for call, counts in part["calls"].items()}, part.get("room", ROOM))
        for version, part in parts.items()
    }


def write(kept: Mapping[str, Kept], file: Path = KEPT) -> None:
    """Keep counts."""
    lines = [_HEAD]
    for version, part in sorted(kept.items(), key=lambda item: tuple(map(int, item[0].split(".")))):
        lines.append(f'["{version}"]\nroom = {part.room}\n\n["{version}".calls]\n')
        for call, counts in part.calls.items():
            each = ", ".join(f"{what} = {count}" for what, count in asdict(counts).items())
            lines.append(f'"{call}" = {{ {each} }}\n')
        lines.append("\n")
    cache.write(file, "".join(lines).rstrip("\n") + "\n")


def check(counted: Mapping[str, Counts], kept: Kept | None) -> list[str]:
    """Return what is wrong, and at the end what to do about it; nothing if no call does more than it may."""
    if kept is None:
        return [f"no counts are kept for Python {PYTHON}", RAISE]
    if counted.keys() != kept.calls.keys():
        return [f"kept are {', '.join(kept.calls)}; counted were {', '.join(counted)}", RAISE]
    exceeded = [str(one) for one in bounds(counted, kept) if one.is_exceeded]
    return [*exceeded, RAISE] if exceeded else []


def main() -> int:
    """Count and print; 1 if a call does more than it may."""
    parser = argparse.ArgumentParser(prog="bench.counts", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"keep the counts for Python {PYTHON}")
    given = parser.parse_args()
    if why := callgrind.obstacle():
        parser.error(why)
    counted, kept = callgrind.run(MODULE), read()
    own = kept.get(PYTHON)
    if given.write:
        kept[PYTHON] = own = Kept(counted, ROOM if own is None else own.room)
        write(kept)
    wrong = check(counted, own)
    if own is None or counted.keys() != own.calls.keys():
        print(*counted.items(), sep="\n")
    else:
        print(*bounds(counted, own), sep="\n")
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
