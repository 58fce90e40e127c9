"""Secrets and certificates: in a file that is read again when it became another, or written out where it is named."""

import base64
import binascii
import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairlead.kube.errors import AccessError


class SecretSource(Protocol):
    """Bytes, and where they are from."""

    @property
    def file(self) -> str:
        """The file to mend when they are no good."""

    @property
    def field(self) -> str:
        """The field in it, or the field that names it."""

    def read(self) -> bytes:
        """As they are now. The same bytes are the same object."""


@dataclass(frozen=True, slots=True)
class InlineSecret:
    """Bytes that are written in the file itself."""

    file: str
    field: str
    data: bytes = dataclasses.field(repr=False)

    def read(self) -> bytes:
        """As they were written."""
        return self.data


@dataclass(slots=True)
class FileSecret:
    """A file. Tokens and certificates of a pod are replaced while it runs, by way of links: a look tells, cheaply."""

    path: Path
    field: str
    cure: str
    _seen: tuple[int, int, int] | None = None
    _data: bytes = dataclasses.field(default=b"", repr=False)

    @property
    def file(self) -> str:
        """Its name."""
        return str(self.path)

    def read(self) -> bytes:
        """What is in it now; what was in it, if it is just being replaced."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  a third of the time of Path's, for each request
            seen = found.st_ino, found.st_mtime_ns, found.st_size
            if seen != self._seen and (data := self.path.read_bytes().strip()):
                self._seen = seen
                self._data = self._data if data == self._data else data
        except OSError as error:
            if not self._data:
                raise AccessError(self.file, self.field, (error.strerror or str(error)).lower(), self.cure) from error
        if not self._data:
            raise AccessError(self.file, self.field, "is empty", self.cure)
        return self._data


def inline_secret(file: str, field: str, text: str) -> InlineSecret:
    """What a field holds in base64."""
    try:
        return InlineSecret(
            file, field, base64.b64decode("".join(text.split()), validate=True)
        )  # it may have several lines
    except (binascii.Error, ValueError) as error:
        raise AccessError(file, field, "is not base64", "encode the PEM file with `base64 -w0`") from error
