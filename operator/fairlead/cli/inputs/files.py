"""Files named on the command line, read up to a size limit."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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


def files(names: Sequence[str], bytes_max: int = BYTES_MAX) -> Iterator[File]:
    """Yield the named files and those in the named directories, each once."""
    seen: set[str] = set()
    for name in names:
        if name == STDIN:
            if STDIN not in seen:
                seen.add(STDIN)
                yield _read_stdin(bytes_max)
            continue
        unread: list[OSError] = []
        found = list(_below(name, unread)) if name and Path(name).is_dir() else [name]
        yield from (File(str(error.filename), unreadable=_said(error)) for error in unread)
        if not found and not unread:
            yield File(name, empty="this directory has no file that ends in .yaml, .yml or .json")
        for one in found:
            real = os.path.realpath(one)
            if real not in seen:
                seen.add(real)
                yield _read(one, bytes_max)


def _below(directory: str, unread: list[OSError]) -> Iterator[str]:
    """Yield the files of a directory in order, without hidden directories; links never lead to one twice."""
    walked: set[str] = set()
    for where, directories, names in os.walk(directory, onerror=unread.append, followlinks=True):
        real = os.path.realpath(where)
        if real in walked:
            directories.clear()
            continue
        walked.add(real)
        directories[:] = sorted(one for one in directories if not one.startswith("."))
        for name in sorted(names):
            path = Path(where, name)
            if name.lower().endswith(_ENDINGS) and (path.is_file() or not path.exists()):  # a dangling link is reported
                yield str(path)


def _read(name: str, bytes_max: int) -> File:
    if not name:
        return File(name, unreadable="the file name is empty")
    try:
        with Path(name).open("rb") as file:
            data = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:
        return File(name, unreadable=_said(error))
    return File(name, data, too_large=len(data) > bytes_max)


def _read_stdin(bytes_max: int) -> File:
    try:
        data = sys.stdin.buffer.read(bytes_max + 1)
    except OSError as error:
        return File(STDIN, unreadable=_said(error))
    return File("<stdin>", data, too_large=len(data) > bytes_max)


def _said(error: OSError | ValueError) -> str:
    said = error.strerror if isinstance(error, OSError) else None
    return (said or str(error)).lower()


def read_into(checker: Checker, names: Sequence[str]) -> tuple[list[str], bool]:
    """Check the named files; return notes on directories without files, and whether a file cannot be read."""
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
