"""Sources of secrets and certificates: a file that is read again when it changes, or inline data."""

import base64
import binascii
import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairlead.kube.errors import AccessError


class SecretSource(Protocol):
    """Source of a secret; `file` and `field` say where it comes from."""

    @property
    def file(self) -> str:
        """File to fix if the secret is unusable."""

    @property
    def field(self) -> str:
        """Field in that file, or the field that names it."""

    def read(self) -> bytes:
        """Return the current bytes; the same object if they did not change. Raises AccessError."""


@dataclass(frozen=True, slots=True)
class InlineSecret:
    """Bytes written in the kubeconfig itself."""

    file: str
    field: str
    data: bytes = dataclasses.field(repr=False)

    def read(self) -> bytes:
        """Return the bytes."""
        return self.data


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


def inline_secret(file: str, field: str, text: str) -> InlineSecret:
    """Return the decoded contents of a base64 field. Raises AccessError."""
    try:
        return InlineSecret(
            file, field, base64.b64decode("".join(text.split()), validate=True)
        )  # may have several lines
    except (binascii.Error, ValueError) as error:
        raise AccessError(file, field, "is not base64", "encode the PEM file with `base64 -w0`") from error
