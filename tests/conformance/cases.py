"""Test cases of CEL's specification, read with the descriptors that its Go module carries."""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    struct_pb2,
    text_format,
    timestamp_pb2,
    wrappers_pb2,
)

from testbed import cel_spec

_WELL_KNOWN: Final = (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
_DESCRIPTOR: Final = re.compile(r'^const file_\w+_rawDesc = "" \+\n((?:\t".*"(?: \+)?\n)+)', re.MULTILINE)
_PART: Final = re.compile(r'\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))|([^"\\]+)')
_ESCAPES: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34}


@dataclass(frozen=True, slots=True)
class SpecCase:
    """A test case, and its name: file, section, name, and a number if the section has that name more than once."""

    name: str
    message: Any


def read_cases() -> Iterator[SpecCase]:
    """Read all cases of the specification."""
    file_class = message_factory.GetMessageClass(
        _pool().FindMessageTypeByName("cel.expr.conformance.test.SimpleTestFile")
    )
    for path in cel_spec.data():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # protobuf decodes `\?` in a way that Python gives up
            file: Any = text_format.Parse(path.read_text(), file_class(), descriptor_pool=_pool())
        for section in file.section:
            seen = Counter[str]()
            for test in section.test:
                seen[test.name] += 1
                again = f"#{seen[test.name]}" if seen[test.name] > 1 else ""
                yield SpecCase(f"{path.stem}/{section.name}/{test.name}{again}", test)


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    """Return the descriptors of the specification's messages: Go's generated code has each as one string."""
    files = [module.DESCRIPTOR.serialized_pb for module in _WELL_KNOWN]
    for path in cel_spec.folder().rglob("*.pb.go"):
        files += [b"".join(map(_unquoted, text.splitlines())) for text in _DESCRIPTOR.findall(path.read_text())]
    parsed = {file.name: file for file in map(descriptor_pb2.FileDescriptorProto.FromString, files)}
    made = descriptor_pool.DescriptorPool()
    for name in TopologicalSorter({name: file.dependency for name, file in parsed.items()}).static_order():
        made.AddSerializedFile(parsed[name].SerializeToString())
    return made


def _unquoted(line: str) -> bytes:
    """Read one of Go's quoted strings."""
    made = b""
    for match in _PART.finditer(line.strip().removesuffix("+").strip()[1:-1]):
        byte, short, long, escaped, plain = match.groups()
        if byte:
            made += bytes([int(byte, 16)])
        elif short or long:
            made += chr(int(short or long, 16)).encode()
        else:
            made += plain.encode() if plain else bytes([_ESCAPES[escaped]])
    return made
