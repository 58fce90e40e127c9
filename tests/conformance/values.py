"""Values and types of the specification's messages in the form that Fairlead has them."""

from typing import Any, Final

from google.protobuf import duration_pb2, timestamp_pb2

from fairlead.cel.syntax.ast import DYN, Type
from fairlead.cel.values.value_types import Duration, Timestamp, TypeName, UInt

SECOND: Final = 1_000_000_000
_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "dyn", 2: "timestamp", 3: "duration"}
_TIMES: Final = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}


class NotOursError(Exception):
    """A value or a type that no rule can have, such as a message of the specification's own."""


def value_of(message: Any) -> object:
    """Convert a cel.expr.Value."""
    held = getattr(message, kind := str(message.WhichOneof("kind")))
    match kind:
        case "null_value":
            return None
        case "uint64_value":
            return UInt(held)
        case "type_value":
            return TypeName(held)
        case "list_value":
            return [value_of(each) for each in held.values]
        case "map_value":
            return {value_of(entry.key): value_of(entry.value) for entry in held.entries}
        case "object_value":
            return _time_of(held)
        case "enum_value":
            raise NotOursError(f"an enum: {held.type}")
    return held


def _time_of(packed: Any) -> object:
    name = packed.type_url.rpartition("/")[2]
    for class_, made in ((timestamp_pb2.Timestamp, Timestamp), (duration_pb2.Duration, Duration)):
        if name == class_.DESCRIPTOR.full_name:
            time = class_.FromString(packed.value)
            return made(time.seconds * SECOND + time.nanos)
    raise NotOursError(f"a message: {name}")


def type_of(message: Any) -> Type:
    """Convert a cel.expr.Type."""
    held = getattr(message, kind := str(message.WhichOneof("type_kind")))
    match kind:
        case "dyn":
            return DYN
        case "null":
            return Type("null")
        case "primitive":
            return Type(_PRIMITIVES[held])
        case "well_known":
            return Type(_WELL_KNOWN[held])
        case "list_type":
            return Type("list", (type_of(held.elem_type),))
        case "map_type":
            return Type("map", (type_of(held.key_type), type_of(held.value_type)))
        case "abstract_type":
            return Type(held.name, tuple(map(type_of, held.parameter_types)))
        case "type":
            return Type("type", (type_of(held),) if held.WhichOneof("type_kind") else ())
        case "message_type" if held in _TIMES:
            return Type(_TIMES[held])
    raise NotOursError(f"a type: {kind} {held}".strip())
