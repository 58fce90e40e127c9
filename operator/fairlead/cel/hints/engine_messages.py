"""Messages of the engine, taken apart: the only place that reads its English.

The engine reports errors of the parser and the checker as text and nothing else. Each pattern is pinned by a test that
provokes the message, so that an update of the engine cannot change one unnoticed. A message that fits no pattern
reaches the user as the engine wrote it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fairlead.cel.syntax.ast import DYN, OPTIONAL, Type
from fairlead.cel.values.schema import PACKAGE

_READ_AT_MOST: Final = 32
_ERROR: Final = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?=\n \| |\nERROR: |\Z| \[[A-Z_]+\]\Z)", re.DOTALL)
TOO_DEEP: Final = "recursion"
FOLLOW_UP: Final = "*error*"
"""The type of a part that has an error of its own."""
SYNTAX: Final = "Syntax error: "
UNDECLARED: Final = re.compile(r"undeclared reference to '\.?(.*)' \(in container")
UNDEFINED_FIELD: Final = re.compile(r"undefined field '(.*)' not found in struct '(.*)'")
NO_OVERLOAD: Final = re.compile(r"found no matching overload for '([^']*+)' applied to '\((.*)\)'", re.DOTALL)
NO_FIELDS: Final = re.compile(r"expression of type '(.*)' cannot be the operand of a select operation", re.DOTALL)
RESERVED: Final = re.compile(r"reserved identifier: (\w+)")
NO_FIELD_IN_HAS: Final = re.compile(r"has\(\) argument must be a field selection")
LITERAL: Final = re.compile(r"invalid (\w+) literal")
MACRO_VARIABLE: Final = re.compile(r"(\w+)\(\) .*variable name must be a simple identifier")

_TYPES: Final = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "null_type": "null",
    "optional": OPTIONAL,
}
_SHOWN: Final = {
    OPTIONAL: "optional",
    "Quantity": "quantity",
    "net.IP": "IP address",
    "net.CIDR": "CIDR",
    "Semver": "version",
    "PlacedPod": "pod on the node",
    "dyn": "any type",
}


@dataclass(frozen=True, slots=True)
class EngineMessage:
    """One error: its offset in code points, and the engine's sentence."""

    at: int
    text: str


def engine_messages(error: str, source: str) -> list[EngineMessage]:
    """Return the first errors, without those that only follow from another one."""
    return [
        EngineMessage(_offset(source, int(found[1]), int(found[2])), found[3])
        for found in islice(_ERROR.finditer(error), _READ_AT_MOST)
        if int(found[1]) > 0 and FOLLOW_UP not in found[3]
    ]


def _offset(source: str, line: int, column: int) -> int:
    lines = source.split("\n")
    return min(sum(len(one) + 1 for one in lines[: line - 1]) + column - 1, len(source))


def read_types(text: str) -> list[Type]:
    """Return the types of a list such as `string, map(string, double)`, with messages by their short name."""
    return list(_types(iter(re.findall(r"[\w.%*]+|[()]", text))))


def _types(parts: Iterator[str]) -> Iterator[Type]:
    name = ""
    for part in parts:
        if part == "(":
            params = tuple(_types(parts))
            yield DYN if name == DYN.name else Type(name, params)
            name = ""
            continue
        if name:
            yield Type(name)
        if part == ")":
            return
        name = "dyn" if part.startswith("T%") else _TYPES.get(part, part.removeprefix(f"{PACKAGE}."))
    if name:
        yield Type(name)


def show_type(type_: Type) -> str:
    """Return a type as users know it, such as `list(string)`."""
    name = type_.name.removeprefix(f"{PACKAGE}.")
    params = ", ".join(map(show_type, type_.params)) if DYN not in type_.params else ""
    return f"{_SHOWN.get(name, name)}({params})" if params else _SHOWN.get(name, name)
