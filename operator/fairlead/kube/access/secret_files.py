"""A secret or certificate in a file that is read again when it changes."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

from fairlead.kube.errors import AccessError


@dataclass(slots=True)
class FileSecret:
    """A file that may be replaced, as a pod's tokens and certificates are; a stat call detects it cheaply."""

    path: Path
    field: str
    hint: str
    _seen: tuple[int, int, int] | None = None
    _data: bytes = dataclasses.field(default=b"", repr=False)

    @property
    def file(self) -> str:
        """Path of the file."""
        return str(self.path)

    def read(self) -> bytes:
        """Return its contents; the previous ones while it is being replaced. Raises AccessError."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  runs for each request, and Path.stat takes three times as long
            seen = found.st_ino, found.st_mtime_ns, found.st_size
            if seen != self._seen and (data := self.path.read_bytes().strip()):
                self._seen = seen
                self._data = self._data if data == self._data else data
        except OSError as error:
            if not self._data:
                raise AccessError(self.file, self.field, (error.strerror or str(error)).lower(), self.hint) from error
        if not self._data:
            raise AccessError(self.file, self.field, "is empty", self.hint)
        return self._data
