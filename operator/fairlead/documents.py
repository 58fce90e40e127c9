"""Documents: state that Fairlead keeps in ConfigMaps, Secrets and ControllerRevisions, and reads in later versions.

A document says the version of its format. One that cannot be read, or that a newer version wrote, is left alone: it is
neither changed nor deleted, and its reader reports the fault. `kube.http.document_writer` writes them. Pure.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

FORMAT: Final = "fairlead.dev/format"
"""Annotation with the version of a document's format. Without it, the version is 1."""
BYTES_MAX: Final = 1 << 20
"""Most bytes of the data of a ConfigMap or Secret."""
_NAME_MAX: Final = 253
_ENDING: Final = 16  # hex digits
_HASH: Final = 32  # hex digits
T = TypeVar("T")


def document_name(prefix: str, subject: str) -> str:
    """Return the name of the object that has the document of a subject; a long one is cut, and ends with a hash."""
    name = prefix + subject
    if len(name) <= _NAME_MAX:
        return name
    return f"{name[: _NAME_MAX - _ENDING - 1].rstrip('-.')}-{subject_hash(subject)[:_ENDING]}"


def subject_hash(subject: str) -> str:
    """Return a hash for a subject whose text is no name of an object."""
    return hashlib.sha256(subject.encode()).hexdigest()[:_HASH]


class DocumentTooLargeError(ValueError):
    """Document that is larger than the API server takes."""


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """Version of a document, as it was read."""

    value: T | None = None
    """None if the document does not exist, or is left alone."""
    fault: str = ""
    """Reason why it is left alone, and what to do; "" if it can be read and written."""
    resource_version: str = ""
    """The only version that may be written over; "" if the document does not exist."""


@dataclass(frozen=True, slots=True)
class Format(Generic[T]):
    """Format of one kind of document."""

    what: str
    """What the document has, in messages."""
    decode: Callable[[Any], T]
    """Returns the value of an object's data. Raises ValueError."""
    remedy: str
    """What a user can do if the document cannot be read."""
    version: int = 1
    bytes_max: int = BYTES_MAX

    def read(self, obj: Mapping[str, Any] | None) -> Document[T]:
        """Return the document in an object; None is an object that does not exist."""
        if obj is None:
            return Document()
        metadata = obj["metadata"]
        return self.read_data(
            f"{obj.get('kind') or 'object'} {metadata['name']}",
            obj.get("data") or {},
            metadata.get("annotations") or {},
            metadata.get("resourceVersion") or "",
        )

    def read_data(self, where: str, data: Any, annotations: Mapping[str, str], resource_version: str) -> Document[T]:
        """Return the document of an object that exists, from its parts."""
        written = annotations.get(FORMAT, "1")
        if written != str(self.version) and not (written.isdecimal() and 0 < int(written) < self.version):
            why = f"has format {written[:20]!r}, and this version of Fairlead reads {self.version} at most"
            return self._left_alone(where, why, "upgrade Fairlead", resource_version)
        try:
            return Document(self.decode(data), resource_version=resource_version)
        except ValueError as error:
            return self._left_alone(where, f"cannot be read: {error}", "restore it", resource_version)

    def annotations(self) -> dict[str, str]:
        """Return the annotations of a document to write."""
        return {FORMAT: str(self.version)}

    def check_size(self, size: int) -> None:
        """Raise DocumentTooLargeError if a document has more bytes than may be written."""
        if size > self.bytes_max:
            raise DocumentTooLargeError(f"{self.what}: {size:,} bytes, and the API server takes {self.bytes_max:,}")

    def _left_alone(self, where: str, why: str, first: str, resource_version: str) -> Document[T]:
        fault = f"{where}, {self.what}, {why}; it is left alone: {first}, or {self.remedy}"
        return Document(fault=fault, resource_version=resource_version)
