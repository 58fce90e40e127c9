"""The engine's environment, and what comes out of it."""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cel_expr_python import cel

from fairlead.cel.engine.evaluate import kind_of
from fairlead.cel.engine.protobuf import opaque_text
from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.value_types import Duration, Nothing, Some, Timestamp, TypeName, UInt

EXTENSIONS = ("lists", "sets", "two-var-comprehensions", "regex", "math", "strings", "optional", "bindings", "encoders")

_MICROSECOND_NS = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPE_NAMES = {
    "NULL": "null_type",
    "TIMESTAMP": "google.protobuf.Timestamp",
    "DURATION": "google.protobuf.Duration",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an expression, in a form whose equality tells types, signs of zero and NaN apart."""

    value: str = ""
    error: Kind | None = None
    aborted: bool = False


@functools.cache
def environment() -> Any:
    """Make the environment once."""
    listed = "".join(f"- name: {name}\n" for name in EXTENSIONS)
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(f"name: x\nextensions:\n{listed}"),
        variables={"d": cel.Type.DYN, "l": cel.Type.List(cel.Type.DYN), "m": cel.Type.Map(cel.Type.DYN, cel.Type.DYN)},
    )


def ask(expression: str, env: Any = None) -> Outcome:
    """Evaluate on the engine."""
    compiled = (env or environment()).compile(expression)
    try:
        result = compiled.eval(data={})
    except (RuntimeError, ValueError, MemoryError) as error:
        return Outcome(error=kind_of(str(error)), aborted=True)
    if result.type() == cel.Type.ERROR:
        return Outcome(error=kind_of(str(result.value())))
    return Outcome(value=describe(_decode(result)))


def outcome_of(function: Callable[..., object], *arguments: object) -> Outcome:
    """Evaluate here."""
    try:
        return Outcome(value=describe(function(*arguments)))
    except CelError as error:
        return Outcome(error=error.kind)
    except Abort as error:
        return Outcome(error=error.kind, aborted=True)


def describe(value: object) -> str:
    """Write a value so that equal text means the same value of the same type."""
    match value:
        case float():
            sign = "-" if math.copysign(1, value) < 0 else ""
            return f"float {sign}{abs(value)!r}"
        case list() | tuple():
            return "[" + ", ".join(map(describe, value)) + "]"
        case dict():
            # The engine's Python maps do not tell keys of int and uint apart.
            entries = {_plain_key(key): describe(element) for key, element in value.items()}
            return "{" + ", ".join(f"{key!r}: {entries[key]}" for key in sorted(entries, key=repr)) + "}"
        case Some():
            return f"Some({describe(value.value)})"
        case Nothing():
            return "None()"
    return f"{type(value).__name__} {value!r}"


def overloads_of(expression: str, env: Any = None) -> set[str]:
    """List the ids of the overloads that the checker has chosen."""
    return set(_overloads((env or environment()).compile(expression).serialize()))


def _plain_key(key: object) -> object:
    return int(key) if isinstance(key, UInt) else key


def _decode(result: Any) -> object:
    name, value = result.type().name(), result.value()
    if name == "UINT":
        return UInt(value)
    if name == "BYTES":
        return bytes(value)
    if name.startswith("LIST"):
        return [_decode(element) for element in value]
    if name.startswith("MAP"):
        return {key: _decode(element) for key, element in value.items()}
    if name == "TIMESTAMP":
        return Timestamp((value - _EPOCH) // timedelta(microseconds=1) * _MICROSECOND_NS)
    if name == "DURATION":
        return Duration(value // timedelta(microseconds=1) * _MICROSECOND_NS)
    if name == "TYPE":
        type_name = value.name()
        return TypeName(_TYPE_NAMES.get(type_name, type_name.partition("<")[0].lower()))
    if name in OPAQUE:
        return OPAQUE[name].read(opaque_text(value))
    return value


def _overloads(serialized: bytes) -> Iterator[str]:
    """Walk Any.value > CheckedExpr.reference_map > Reference.overload_id."""
    for checked in _fields(serialized, 2):
        for entry in _fields(checked, 2):
            for reference in _fields(entry, 2):
                for overload in _fields(reference, 3):
                    yield overload.decode()


def _fields(message: bytes, wanted: int) -> Iterator[bytes]:
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(message):
        tag = varint()
        if tag & 7 == 0:
            varint()
        else:
            length = varint() if tag & 7 == 2 else {1: 8, 5: 4}[tag & 7]
            if tag & 7 == 2 and tag >> 3 == wanted:
                yield message[position : position + length]
            position += length
