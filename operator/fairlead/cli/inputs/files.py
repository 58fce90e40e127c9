"""Files named on the command line, read up to a size limit.

A pull request of a stranger may bring links and suites that name files of the machine that checks it. So no file is
read outside the trees of what the command line names: the repository that holds it, or the working directory.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead.cli.console.output import with_progress

if TYPE_CHECKING:
    from fairlead.cli.inputs.checker import Checker

BYTES_MAX: Final = 4 << 20
STDIN: Final = "-"
_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class File:
    """A file with its bytes, or with the reason why it cannot be read."""

    name: str
    data: bytes = b""
    unreadable: str = ""
    empty: str = ""
    """Message about a directory without suitable files."""
    too_large: bool = False
    outside: bool = False
    """True if it is unreadable because it is outside of the trees of what the command line names."""


class Trees:
    """Directories of which the files may be read, those of the names on a command line."""

    def __init__(self, names: Sequence[str]) -> None:
        roots = dict.fromkeys(root for name in names for root in _roots(name))
        self._roots: Final = [one for one in roots if roots.keys().isdisjoint(one.parents)]

    def fault(self, name: str) -> str:
        """Return why a path may not be read; "" if it may."""
        real = Path(os.path.realpath(name))
        if any(real.is_relative_to(root) for root in self._roots):
            return ""
        is_link = str(real) != os.path.abspath(name)  # noqa: PTH100 - its links must stay
        what = f"it leads to {real}," if is_link else "it is"
        return f"{what} outside of {', '.join(map(str, self._roots))}; to read it, name that path on the command line"


def _roots(name: str) -> Iterator[Path]:
    """Yield the directories that a name on the command line opens."""
    if (checkout := _checkout(name)) is not None:
        yield checkout
        return
    place = Path(os.path.realpath("." if name == STDIN else name))
    yield place
    working = Path.cwd().resolve()
    if place.is_relative_to(working) and working != Path(working.anchor):
        yield working
    else:
        yield place if place.is_dir() else place.parent


def _checkout(name: str) -> Path | None:
    """Return the repository that holds a path, which is not the one that a link in it leads to; None without one."""
    there = Path(os.path.abspath("here" if name == STDIN else name))  # noqa: PTH100 - its links must stay
    for path in (there, Path(os.path.realpath(there.parent), there.name)):
        for folder in (path, *path.parents):
            if not folder.is_symlink() and (folder / ".git").exists():
                return folder.resolve()
    return None


def files(names: Sequence[str], bytes_max: int = BYTES_MAX, trees: Trees | None = None) -> Iterator[File]:
    """Yield the named files and those in the named directories, each once; `trees` are those of the names."""
    trees = trees or Trees(names)
    seen: set[str] = set()
    for name in names:
        if name == STDIN:
            if STDIN not in seen:
                seen.add(STDIN)
                yield _read_stdin(bytes_max)
            continue
        unread: list[OSError] = []
        found = list(_below(name, unread, trees)) if name and _is_directory(name, trees) else [name]
        yield from (File(str(error.filename), unreadable=_said(error)) for error in unread)
        if not found and not unread:
            yield File(name, empty="this directory has no file that ends in .yaml, .yml or .json")
        for one in found:
            real = os.path.realpath(one)
            if real not in seen:
                seen.add(real)
                yield _read(one, bytes_max, trees)


def reads_once(name: str) -> bool:
    """Return whether a name is that of standard input or a pipe, which cannot be read again."""
    return name == STDIN or Path(name).is_fifo()


def _is_directory(name: str, trees: Trees) -> bool:
    return not trees.fault(name) and Path(name).is_dir()


def _below(directory: str, unread: list[OSError], trees: Trees) -> Iterator[str]:
    """Yield the files of a directory in order, without hidden directories; links never lead to one twice.

    A directory outside of the trees is yielded itself, to be refused.
    """
    walked: set[str] = set()
    for where, directories, names in os.walk(directory, onerror=unread.append, followlinks=True):
        real = os.path.realpath(where)
        if real in walked:
            directories.clear()
            continue
        walked.add(real)
        directories[:] = sorted(one for one in directories if not one.startswith("."))
        outside = [one for one in directories if trees.fault(str(Path(where, one)))]
        yield from (str(Path(where, one)) for one in outside)
        directories[:] = [one for one in directories if one not in outside]
        for name in sorted(names):
            path = Path(where, name)
            if name.lower().endswith(_ENDINGS) and (path.is_file() or not path.exists()):  # a dangling link is reported
                yield str(path)


def _read(name: str, bytes_max: int, trees: Trees) -> File:
    if not name:
        return File(name, unreadable="the file name is empty")
    try:
        if fault := trees.fault(name):
            return File(name, unreadable=fault, outside=True)
        with Path(name).open("rb") as file:
            data = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:
        return File(name, unreadable=_said(error))
    return File(name, data, too_large=len(data) > bytes_max)


def _read_stdin(bytes_max: int) -> File:
    if sys.stdin is None:
        return File(STDIN, unreadable="standard input is closed")
    try:
        data = sys.stdin.buffer.read(bytes_max + 1)
    except OSError as error:
        return File(STDIN, unreadable=_said(error))
    return File("<stdin>", data, too_large=len(data) > bytes_max)


def _said(error: OSError | ValueError) -> str:
    said = error.strerror if isinstance(error, OSError) else None
    return (said or str(error)).lower()


def read_into(checker: "Checker", names: Sequence[str]) -> tuple[list[str], bool]:
    """Check the named files; return notes on directories without files, and whether a file cannot be read."""
    notes, unreadable = list[str](), False
    for file in with_progress("files", files([*names])):
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
