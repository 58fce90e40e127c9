"""The reviewed list of cases that are not as the specification says, each under the reason."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).parents[1] / "data" / "cel" / "conformance.txt"


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A line of the list: a case, or all of a section or of a file that ends with `*`."""

    pattern: str
    difference: str
    """One of `run.REFUSED`, `run.ENGINE`, `run.BOTH`."""


def read_reviewed(text: str) -> Iterator[Reviewed]:
    """Read the lines under their headings: `[refused] The reason`."""
    difference = ""
    for line in text.splitlines():
        if line.startswith("["):
            difference = line[1:].partition("]")[0]
        elif line and not line.startswith("#"):
            yield Reviewed(line, difference)


def faults(reviewed: Collection[Reviewed], found: Mapping[str, str]) -> list[str]:
    """Compare the list with the differences of all cases, by their names; a sentence for each that is not as listed."""
    listed: dict[str, str] = {}
    made = []
    for line in reviewed:
        names = [name for name in found if fnmatchcase(name, line.pattern)]
        if not names:
            made.append(f"{line.pattern}: there is no such case any more")
        made += [f"{name}: listed twice" for name in names if name in listed]
        listed |= dict.fromkeys(names, line.difference)
    for name, difference in found.items():
        if difference != (wanted := listed.get(name, "")):
            made.append(f"{name}: listed as {wanted or 'in agreement'}, and is {difference or 'in agreement'}")
    return made
