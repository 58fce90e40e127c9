"""Base model of the custom resource, and checks that span several fields.

Each check is written twice: in CEL for the API server, and in Python for policies that are read offline. Both give the
same message, which one table of bad objects tests. Only Python has defaults of fields: the CRD has none, so that an
object stays as its owner wrote it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, Strict, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fairlead.api.field_docs import field_doc
from fairlead.api.values import VALIDATIONS, Expression, Identifier, ShortName

LIST_KEYS = "x-kubernetes-list-map-keys"
PRESERVED = "x-kubernetes-preserve-unknown-fields"

ITEMS = "[list]"
MAP = "[map]"
"""Tags of the forms of a field that takes a list or a map; a path does not have them."""

T = TypeVar("T")
Listed = Annotated[tuple[T, ...], Strict(strict=False)]
"""List type. Give it a `max_length`; objects in it are keyed by their model's `list_keys`, plain values are a set."""


class _Preserved:
    """Marker of maps that the API server stores as they are."""

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "object", PRESERVED: True}


AnyFields = Annotated[dict[str, Any], _Preserved()]
"""Map whose fields the CRD does not know."""


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """Check of an object that spans several fields."""

    rule: str
    """CEL rule for the API server; `self` is the object."""
    holds: Callable[[Any], bool]
    """The rule in Python."""
    message: str
    """The error, a colon, and a hint."""
    field: str = ""
    """The field to blame, spelt as in the object; empty: the object itself."""
    message_of: Callable[[Any], str] | None = None
    """Returns the message if it depends on the object."""
    message_rule: str = ""
    """`message_of` in CEL."""
    below: Callable[[Any], tuple[str | int, ...]] | None = None
    """Returns the path below the field, which only Python can tell."""

    @property
    def path(self) -> tuple[str, ...]:
        """Path of the field to blame."""
        return tuple(self.field.split(".")) if self.field else ()

    def marker(self) -> dict[str, str]:
        """Return the check as a rule of the CRD."""
        blame = {"fieldPath": f".{self.field}"} if self.field else {}
        text = {"messageExpression": self.message_rule} if self.message_rule else {}
        return {"rule": self.rule, "message": self.message} | text | blame

    def says(self, model: object) -> tuple[tuple[str | int, ...], str]:
        """Return the field and the message for an object that failed."""
        below = self.below(model) if self.below else ()
        return (*self.path, *below), self.message_of(model) if self.message_of else self.message


@dataclass(frozen=True, slots=True)
class Transition:
    """A forbidden change. Only the API server can reject it, because it knows the old object."""

    rule: str
    """CEL rule; `self` is the new object, `oldSelf` the old one."""
    message: str
    field: str

    def marker(self) -> dict[str, str]:
        """Return the change as a rule of the CRD."""
        return {
            "rule": self.rule,
            "message": self.message,
            "fieldPath": f".{self.field}",
            "reason": "FieldValueForbidden",
        }


class Params(BaseModel):
    """Base of every part of the custom resource and of the parameters of every strategy.

    Fields have snake_case names and camelCase aliases. The string under a field is its documentation.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
        defer_build=True,  # of all strategies and settings a command validates few
    )

    list_keys: ClassVar[tuple[str, ...]] = ("name",)
    """Fields that identify an item in a list of this model; empty: the list is atomic."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the checks that span fields of this model."""
        return ()

    @classmethod
    def transitions(cls) -> tuple[Transition, ...]:
        """Return the forbidden changes."""
        return ()

    @model_validator(mode="before")
    @classmethod
    def _as_the_api_server_reads(cls, value: object) -> object:
        """Drop nulls, also from maps, and read 2.0 as an integer, as the API server does; unknown fields stay."""
        if not isinstance(value, Mapping):
            return value
        types = {field.alias: field.annotation for field in cls.model_fields.values()}
        return {key: _read(one, types.get(key)) for key, one in value.items() if one is not None or key not in types}

    @model_validator(mode="after")
    def _checked(self) -> Self:
        broken = [check for check in self.checks() if not check.holds(self)]
        failed = [*self._duplicates(), *(check.says(self) for check in broken)]
        if failed:
            raise PydanticCustomError("failed_checks", "several fields do not fit together", {"failed": failed})
        return self

    def _duplicates(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, tuple):
                for index, key in find_duplicates(value):
                    yield (field.alias or name, index), f"{key} is a duplicate; list each only once"

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler.resolve_ref_schema(handler(schema))
        for name, field in cls.model_fields.items():
            if doc := field_doc(cls, name):
                found["properties"][field.alias]["description"] = doc
        found[LIST_KEYS] = [*cls.list_keys]
        markers = [check.marker() for check in cls.checks()] + [one.marker() for one in cls.transitions()]
        if markers:
            found[VALIDATIONS] = markers
        return found


def _read(value: object, of: object) -> object:
    if isinstance(value, dict) and get_origin(of) is dict:
        return {key: one for key, one in value.items() if one is not None}
    if isinstance(value, float) and value.is_integer() and _is_int(of):
        return int(value)
    return value


def _is_int(of: object) -> bool:
    return of is int or (get_origin(of) in (UnionType, Union, Annotated) and any(_is_int(one) for one in get_args(of)))


def find_duplicates(items: tuple[object, ...]) -> Iterator[tuple[int, str]]:
    """Yield the index and the key of each duplicate in a list."""
    seen = set()
    for index, item in enumerate(items):
        if isinstance(item, Params):
            if not item.list_keys:
                return
            key = ", ".join(f"{key} {getattr(item, key)!r}" for key in item.list_keys)
        else:
            key = repr(item)
        if key in seen:
            yield index, key
        seen.add(key)


def exactly_one_of(*fields: str) -> FieldCheck:
    """Return a check that exactly one of these fields is set; names are spelt as in the object."""

    def found(model: Params) -> list[str]:
        given = {field.alias for name, field in type(model).model_fields.items() if getattr(model, name) is not None}
        return [name for name in fields if name in given]

    if len(fields) == 1:
        message = f"{fields[0]} is missing"
        return FieldCheck(f"has(self.{fields[0]})", lambda model: bool(found(model)), message)
    allowed = f"give exactly one of {', '.join(fields)}"
    each = "".join(f" + (has(self.{name}) ? ' {name}' : '')" for name in fields)
    none = " && ".join(f"!has(self.{name})" for name in fields)

    return FieldCheck(
        rule=" + ".join(f"(has(self.{name}) ? 1 : 0)" for name in fields) + " == 1",
        holds=lambda model: len(found(model)) == 1,
        message=allowed,
        message_of=lambda model: f"{allowed}; found {' '.join(found(model)) or 'none'}",
        message_rule=f"'{allowed}; found'{each} + ({none} ? ' none' : '')",
    )


class DataName(str):
    """Name of an entry of the policy's `data`; the compiler checks that the entry exists."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, handler.generate_schema(Identifier))


class PodText(str):
    """Expression of a pod that gives a text; the compiler compiles it."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, handler.generate_schema(Expression))


def pod_texts(value: Params) -> Iterator[tuple[str, tuple[str | int, ...], PodText]]:
    """Yield every expression of a pod in parameters, with its field and its path."""
    for name, field in type(value).model_fields.items():
        if isinstance(found := getattr(value, name), PodText):
            yield name, (field.alias or name,), found


class DeviceShareName(str):
    """Name of an entry of the policy's `binding.deviceShare`; the compiler checks that the entry exists."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        # With `devices.` before it, it is the name of an annotation, which has at most 63 characters.
        return core_schema.no_info_after_validator_function(cls, handler.generate_schema(ShortName))


def device_share_names(value: Params) -> Iterator[tuple[tuple[str | int, ...], DeviceShareName]]:
    """Yield every name of a device share in parameters, with its path."""
    for name, field in type(value).model_fields.items():
        if isinstance(found := getattr(value, name), DeviceShareName):
            yield (field.alias or name,), found


def data_names(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], DataName]]:
    """Yield every name of a data entry in parameters, with its path."""
    if isinstance(value, DataName):
        yield path, value
    elif isinstance(value, Params):
        for name, field in type(value).model_fields.items():
            yield from data_names(getattr(value, name), (*path, field.alias or name))
    elif isinstance(value, tuple):
        for index, one in enumerate(value):
            yield from data_names(one, (*path, index))
