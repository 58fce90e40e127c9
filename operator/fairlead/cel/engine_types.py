"""The same messages as the engine wants them: protobuf descriptors, and objects converted for it."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2, wrappers_pb2

from fairlead.cel.messages import is_present
from fairlead.cel.schema import PACKAGE, element, messages
from fairlead.cel.values import Timestamp

QUANTITY: Final = f"{PACKAGE}.Quantity"
_QUANTITY_FIELD: Final = "canonical"

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final[Mapping[str, int]] = {
    "string": _Field.TYPE_STRING,
    "int": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
    "double": _Field.TYPE_DOUBLE,
}
# `dyn` is Any, because that unpacks to an int or a string; Value would make every number a double.
_WELL_KNOWN: Final[Mapping[str, str]] = {"timestamp": ".google.protobuf.Timestamp", "dyn": ".google.protobuf.Any"}


@cache
def pool() -> descriptor_pool.DescriptorPool:
    """Descriptors of all messages."""
    made = descriptor_pool.DescriptorPool()
    for known in (any_pb2, timestamp_pb2, wrappers_pb2):
        made.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="kubernetes.proto", package=PACKAGE, syntax="proto3")
    file.dependency.extend(known.DESCRIPTOR.name for known in (any_pb2, timestamp_pb2))
    for name, fields in messages().items():
        message = file.message_type.add(name=name)
        for number, (field, type_) in enumerate(fields.items(), start=1):
            _add_field(message, field, type_, number)
    quantity = file.message_type.add(name="Quantity")
    quantity.field.add(name=_QUANTITY_FIELD, number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    made.AddSerializedFile(file.SerializeToString())
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
    """The class of the engine's objects of this message."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def quantity_message(canonical: str) -> Any:
    """A quantity for the engine."""
    return message_class("Quantity")(**{_QUANTITY_FIELD: canonical})


def quantity_text(message: Any) -> str:
    """The canonical text of the engine's quantity."""
    return str(getattr(message, _QUANTITY_FIELD))


def to_engine(name: str, value: object) -> Any:
    """A struct of `messages` as the engine's object."""
    made = message_class(name)()
    for field, type_ in messages()[name].items():
        held = getattr(value, field)
        if not is_present(held, type_):
            continue
        inner = element(type_)
        if inner is None:
            if type_ in _SCALARS:
                setattr(made, field, held)
            else:
                getattr(made, field).MergeFromString(_serialized(type_, held))
        elif type_.startswith("list"):
            if inner in _SCALARS:
                getattr(made, field).extend(held)
            else:
                for item in held:
                    getattr(made, field).add().MergeFromString(_serialized(inner, item))
        elif inner in _SCALARS:
            getattr(made, field).update(held)
        else:
            for key, item in held.items():
                getattr(made, field)[key].MergeFromString(_serialized(inner, item))
    return made


def _serialized(type_: str, value: Any) -> bytes:
    """Bytes, because classes of two descriptor pools do not mix."""
    if isinstance(value, Timestamp):
        return bytes(timestamp(value).SerializeToString())
    if type_ == "dyn":
        packed = any_pb2.Any()
        packed.Pack(
            wrappers_pb2.Int64Value(value=value) if isinstance(value, int) else wrappers_pb2.StringValue(value=value)
        )
        return packed.SerializeToString()
    return bytes(to_engine(type_, value).SerializeToString())


def timestamp(value: int) -> Any:
    """A timestamp for the engine, to the nanosecond."""
    seconds, nanos = divmod(value, 1_000_000_000)
    return timestamp_pb2.Timestamp(seconds=seconds, nanos=nanos)
