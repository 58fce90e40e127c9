"""Files into what looks at them."""

from collections.abc import Sequence

from fairlead.cli.checks import Checker
from fairlead.cli.files import BYTES_MAX, files


def read_into(checker: Checker, names: Sequence[str]) -> tuple[list[str], bool]:
    """What there is to note about files that hold nothing, and whether one cannot be read."""
    notes, unreadable = list[str](), False
    for file in files([*names]):
        if file.unreadable:
            checker.refuse(file.name, f"cannot be read: {file.unreadable}")
            unreadable = True
        elif file.empty:
            notes.append(f"{file.name}: {file.empty}")
        elif file.too_large:
            checker.refuse(file.name, f"the file is larger than {BYTES_MAX >> 20} MiB", "split it")
        else:
            checker.check(file.name, file.data)
    return notes, unreadable
