"""Messages of the schema for the engine: protobuf descriptors, and objects converted to them."""

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2

from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.values.errors import Abort, Kind
from fairlead.cel.values.schema import PACKAGE, element, messages
from fairlead.cel.values.structs import is_present
from fairlead.time_units import SECOND_NS

_TEXT_FIELD: Final = "canonical"
"""The only field of the messages of opaque types."""

FieldTree: TypeAlias = Mapping[str, "FieldTree"] | None
"""The fields of a message or keys of a map to convert, each with those below it; None means all."""

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[Mapping[str, int]] = {
    "string": _Field.TYPE_STRING,
    "int": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
    "double": _Field.TYPE_DOUBLE,
}
# `dyn` is Any, which unpacks to an int or a string; Value would make every number a double.
_WELL_KNOWN: Final[Mapping[str, str]] = {"timestamp": ".google.protobuf.Timestamp", "dyn": ".google.protobuf.Any"}


@cache
def pool() -> descriptor_pool.DescriptorPool:
    """Return the descriptors of all messages."""
    made = descriptor_pool.DescriptorPool()
    for module in (any_pb2, timestamp_pb2, wrappers_pb2):
        made.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="kubernetes.proto", package=PACKAGE, syntax="proto3")
    file.dependency.extend(module.DESCRIPTOR.name for module in (any_pb2, timestamp_pb2))
    for name, fields in messages().items():
        message = file.message_type.add(name=name)
        for number, (field, type_) in enumerate(fields.items(), start=1):
            _add_field(message, field, type_, number)
    made.AddSerializedFile(file.SerializeToString())
    for name in OPAQUE:
        package, _, short = name.rpartition(".")
        opaque = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=package, syntax="proto3")
        text = opaque.message_type.add(name=short).field.add(name=_TEXT_FIELD, number=1)
        text.type, text.label = _Field.TYPE_STRING, _Field.LABEL_OPTIONAL
        made.AddSerializedFile(opaque.SerializeToString())
    return made


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, type_: str, number: int) -> None:
    field = message.field.add(name=name, json_name=name, number=number, label=_Field.LABEL_OPTIONAL)
    inner = element(type_)
    if inner is None:
        _set_type(field, type_)
        if type_ in _SCALARS:  # presence
            message.oneof_decl.add(name=f"_{name}")
            field.oneof_index = len(message.oneof_decl) - 1
            field.proto3_optional = True
        return
    field.label = _Field.LABEL_REPEATED
    if type_.startswith("list"):
        _set_type(field, inner)
        return
    entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    _set_type(entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL), inner)
    field.type = _Field.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{message.name}.{entry.name}"


def _set_type(field: descriptor_pb2.FieldDescriptorProto, type_: str) -> None:
    if type_ in _SCALARS:
        field.type = _SCALARS[type_]  # type: ignore[assignment]
    else:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = _WELL_KNOWN.get(type_, f".{PACKAGE}.{type_}")


@cache
def message_class(name: str) -> Any:  # a class made at run time
    """Return the class of the engine's objects of a message."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))


def opaque_message(type_: str, text: str) -> Any:
    """Return a value of an opaque type for the engine."""
    return message_class(type_)(**{_TEXT_FIELD: text})


def opaque_text(message: Any) -> str:
    """Return the text of the engine's value of an opaque type."""
    return str(getattr(message, _TEXT_FIELD))


TEXT_MAX: Final = 1_024
"""Characters of a text that an expression on the engine may read."""
ELEMENTS_MAX: Final = 128
"""Elements of a list, or entries of a map."""
TOO_MUCH_TO_READ: Final = (
    f"a text is longer than a rule on the engine may read, {TEXT_MAX} characters",
    f"there are more elements than a rule on the engine may read, {ELEMENTS_MAX}",
    "an object has more fields than a rule on the engine may read",
)


@dataclass(slots=True)
class ReadBudget:
    """Amount that an expression on the engine may still read: the engine itself counts only loop steps."""

    left: int = 2_000

    def take(self, value: object) -> None:
        """Count a value before it is converted. Raises Abort if it is too large."""
        self.left -= 1
        if isinstance(value, str) and len(value) > TEXT_MAX:
            raise Abort(Kind.COST, TOO_MUCH_TO_READ[0])
        if not isinstance(value, str) and isinstance(value, Sized) and len(value) > ELEMENTS_MAX:
            raise Abort(Kind.COST, TOO_MUCH_TO_READ[1])
        if self.left < 0:
            raise Abort(Kind.COST, TOO_MUCH_TO_READ[2])


def to_engine(name: str, value: object, needed: FieldTree = None, budget: ReadBudget | None = None) -> Any:
    """Convert a struct of `structs` to the engine's object; only the needed fields, since each takes time."""
    made = message_class(f"{PACKAGE}.{name}")()
    _fill(made, name, value, needed, budget)
    return made


def _fill(target: Any, name: str, value: object, needed: FieldTree, budget: ReadBudget | None) -> None:
    fields = messages()[name]
    for field in fields if needed is None else needed:
        type_ = fields[field]
        held = getattr(value, field)
        if not is_present(held, type_):
            continue
        if budget is not None and (needed is None or needed[field] is None):
            budget.take(held)
        below = None if needed is None else needed[field]
        inner = element(type_)
        if type_ in _SCALARS:
            setattr(target, field, held)
        elif inner is None:
            _fill_one(getattr(target, field), type_, held, below, budget)
        elif type_.startswith("list"):
            _fill_list(getattr(target, field), inner, held, budget)
        else:
            keys = held if below is None else [key for key in below if key in held]
            _fill_map(getattr(target, field), inner, {key: held[key] for key in keys}, budget)


def _fill_one(target: Any, type_: str, value: Any, needed: FieldTree, budget: ReadBudget | None) -> None:
    if type_ == "timestamp":
        target.seconds, target.nanos = divmod(value, SECOND_NS)
    elif type_ == "dyn":
        wrap = wrappers_pb2.Int64Value if isinstance(value, int) else wrappers_pb2.StringValue
        packed = any_pb2.Any()
        packed.Pack(wrap(value=value))
        target.MergeFromString(packed.SerializeToString())  # classes of two descriptor pools do not mix
    else:
        target.SetInParent()
        _fill(target, type_, value, needed, budget)


def _fill_list(target: Any, type_: str, values: Any, budget: ReadBudget | None) -> None:
    if budget is not None:
        budget.take(values)
        for value in values:
            budget.take(value)
    if type_ in _SCALARS:
        target.extend(values)
        return
    for value in values:
        _fill_one(target.add(), type_, value, None, budget)


def _fill_map(target: Any, type_: str, values: Mapping[str, Any], budget: ReadBudget | None) -> None:
    if budget is not None:
        budget.take(values)
        for value in values.values():
            budget.take(value)
    if type_ in _SCALARS:
        target.update(values)
        return
    for key, value in values.items():
        _fill_one(target[key], type_, value, None, budget)


def timestamp(value: int) -> Any:
    """Return a timestamp for the engine, exact to the nanosecond."""
    seconds, nanos = divmod(value, SECOND_NS)
    return timestamp_pb2.Timestamp(seconds=seconds, nanos=nanos)
