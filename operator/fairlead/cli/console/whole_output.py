"""Output that is written as a whole or not at all: long lists for programs, and files."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TextIO

import msgspec

_IN_MEMORY: Final = 64 << 20


class ListWriter:
    """Writer of an object with one long list, which need not fit in memory; its other fields come last."""

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
        """Add an item to the list."""
        if self._is_json:
            start = ",\n" if self._count else f'{{"{self._name}": [\n'
            self._file.write(start + msgspec.json.encode(item).decode())
        else:
            start = "" if self._count else f"{self._name}:\n"
            self._file.write(start + _yaml([msgspec.json.decode(msgspec.json.encode(item))]))
        self._count += 1

    def end(self, out: TextIO, rest: Mapping[str, Any]) -> None:
        """Add the other fields and write everything."""
        if self._is_json:
            start = "\n]" if self._count else f'{{"{self._name}": []'
            parts = [f',\n"{name}": {msgspec.json.encode(value).decode()}' for name, value in rest.items()]
            self._file.write(f"{start}{''.join(parts)}}}\n")
        else:
            self._file.write(("" if self._count else f"{self._name}: []\n") + _yaml(dict(rest)))
        self._file.seek(0)
        shutil.copyfileobj(self._file, out)


def _yaml(value: Any) -> str:
    from fairlead.yaml_output import to_yaml

    return to_yaml(value)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file by renaming, so that no reader sees a part of it. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the umask, which can be read only by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found
