"""What happens to values whose type is only known when they are there."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final, NoReturn

from msgspec import Struct

from fairlead.cel.functions.metered import look
from fairlead.cel.functions.metered import metered as pays
from fairlead.cel.functions.quantity import Quantity
from fairlead.cel.lowering.dynamic_overloads import signatures
from fairlead.cel.values.equality import contains, map_key, type_of
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.meter import STEPS_MAX, Meter
from fairlead.cel.values.schema import messages
from fairlead.cel.values.structs import is_present, zero
from fairlead.cel.values.value_types import (
    INT_MAX,
    INT_MIN,
    NONE,
    BoolKey,
    Duration,
    Nothing,
    Some,
    Timestamp,
    TypeName,
    UInt,
)

KINDS: Final[Mapping[type, str]] = {
    bool: "b",
    int: "i",
    UInt: "u",
    float: "d",
    str: "s",
    bytes: "y",
    type(None): "n",
    list: "l",
    tuple: "l",
    dict: "m",
    Timestamp: "T",
    Duration: "D",
    TypeName: "t",
    Some: "o",
    Nothing: "o",
    Quantity: "Q",
}
_INTEGERS: Final = frozenset({int, UInt})
_ITERATED: Final = STEPS_MAX + 2
"""So many elements show that a loop goes too far."""


def no_overload(name: str, *values: object) -> NoReturn:
    """Refuse values that a function does not take."""
    raise CelError(Kind.NO_OVERLOAD, f"no such overload: {name}({', '.join(map(type_of, values))})")


@cache
def function(name: str) -> Callable[..., object]:
    """The function of this name for arguments of any types."""
    by_kinds = signatures()[name]

    def call(*arguments: object) -> object:
        kinds = "".join([KINDS.get(argument.__class__) or _kind(argument) for argument in arguments])
        found = by_kinds.get(kinds)
        return no_overload(name, *arguments) if found is None else found(*arguments)

    return call


@cache
def metered_function(name: str) -> Callable[..., object]:
    """The same, which takes a meter first and pays for the work."""
    by_kinds = {kinds: pays(found) for kinds, found in signatures()[name].items()}

    def call(meter: Meter, *arguments: object) -> object:
        kinds = "".join([KINDS.get(argument.__class__) or _kind(argument) for argument in arguments])
        found = by_kinds.get(kinds)
        return no_overload(name, *arguments) if found is None else found(meter, *arguments)

    return call


def _kind(value: object) -> str:
    """Of a class that is not listed: a map of a class of its own, or a message."""
    return "m" if isinstance(value, dict) else "M"


def read(message: Struct, field: str) -> object:
    """A field of a message; its zero value if it is absent."""
    type_ = _field_type(message, field)
    value = getattr(message, field)
    if is_present(value, type_):
        return value
    if type_ == "dyn":
        raise CelError(Kind.NO_VALUE, f"{field} is absent")
    return zero(type_)


def _field_type(message: Struct, field: str) -> str:
    name = type(message).__name__
    if field not in messages()[name]:
        raise CelError(Kind.NO_SUCH_KEY, f"{name} has no field {field}")
    return messages()[name][field]


def select_dynamic(value: Any, field: str) -> object:
    """`value.field`."""
    if isinstance(value, dict):
        return value[field]
    if isinstance(value, Struct):
        return read(value, field)
    if isinstance(value, Some | Nothing):
        return field_of_optional(value, field)
    return no_overload("select", value)


def has(value: Any, field: str) -> bool:
    """`has(value.field)`, also of an optional."""
    if isinstance(value, Some | Nothing):
        return _has_in_optional(value, field)
    if isinstance(value, dict):
        return field in value
    if isinstance(value, Struct):
        return is_present(getattr(value, field, None), _field_type(value, field))
    return no_overload("has", value)


def dynamic_index(held: Any, key: object) -> object:
    """`held[key]`."""
    if isinstance(held, dict):
        return held[map_key(key)]
    if isinstance(held, list | tuple):
        at = _list_index(key)
        if not 0 <= at < len(held):
            raise CelError(Kind.INDEX, f"index {at} of a list of {len(held)}")
        return held[at]
    if held is NONE:
        return NONE
    if isinstance(held, Some):
        return _index_optional(held.value, key)
    return no_overload("_[_]", held, key)


def _index_optional(held: Any, key: object) -> Some | Nothing:
    """`optional[key]`: where it fails the engine has an optional of the error; here it is the error."""
    try:
        return Some(dynamic_index(held, key))
    except KeyError:
        return NONE
    except CelError as error:
        return error_in_optional(error)


def error_in_optional(error: CelError) -> NoReturn:
    """Where the engine goes on with it."""
    raise CelError(error.kind, f"{error.message}, looked for in an optional") from None


def _list_index(key: Any) -> int:
    """Numbers of any type are taken if they are whole."""
    if key.__class__ in _INTEGERS and key <= INT_MAX:
        return int(key)
    if key.__class__ is float and key.is_integer() and INT_MIN <= key <= INT_MAX:
        return int(key)
    return no_overload("_[_]", key)


def optional_field(held: Any, field: str) -> Some | Nothing:
    """`held.?field`, also of an optional; the engine gives up where a message can have no such field."""
    if isinstance(held, Nothing):
        return held
    value = held.value if isinstance(held, Some) else held
    if isinstance(value, dict):
        return Some(value[field]) if field in value else NONE
    if isinstance(value, Struct):
        try:
            type_ = _field_type(value, field)
        except CelError as error:
            raise Abort(error.kind, error.message) from None
        found = getattr(value, field)
        return Some(found) if is_present(found, type_) else NONE
    return no_overload("_?._", value)


def field_of_optional(held: Some | Nothing, field: str) -> Some | Nothing:
    """`optional.field`: as `.?field`, but the engine gives up on whatever has no fields."""
    try:
        return optional_field(held, field)
    except CelError as error:
        raise Abort(error.kind, error.message) from None


def _has_in_optional(held: Some | Nothing, field: str) -> bool:
    """`has(optional.field)`: here it is the other way round."""
    if isinstance(held, Some) and isinstance(held.value, Struct):
        return has(held.value, field)
    return field_of_optional(held, field) is not NONE


def optional_element(held: Any, key: object) -> Some | Nothing:
    """`held[?key]`, also of an optional."""
    if isinstance(held, Nothing):
        return held
    value = held.value if isinstance(held, Some) else held
    if isinstance(value, dict):
        try:
            return Some(value[map_key(key)])
        except (KeyError, CelError):
            return NONE
    if isinstance(value, list | tuple) and isinstance(key, int) and key.__class__ is int:
        return Some(value[key]) if 0 <= key < len(value) else NONE
    return no_overload("_[?_]", held, key)


def is_in(item: object, held: Any) -> bool:
    """`item in held`."""
    if isinstance(held, list | tuple):
        return contains(held, item)
    if isinstance(held, dict):
        if KINDS.get(item.__class__, "M") not in "bisud":
            return no_overload("@in", item, held)
        return map_key(item) in held
    return no_overload("@in", item, held)


def is_in_paying(meter: Meter, item: object, held: Any) -> bool:
    """The same, paying for it."""
    look(meter, item, held)
    return is_in(item, held)


def keys_of(held: Mapping[object, object]) -> list[object]:
    """The keys of a map, bools among them; no more than a loop may go through."""
    return [key.value if isinstance(key, BoolKey) else key for key in islice(held, _ITERATED)]


def items_of(held: Mapping[object, object]) -> list[tuple[object, object]]:
    """The entries of a map, bools among the keys."""
    return list(zip(keys_of(held), held.values(), strict=False))


def sized(held: Any) -> Any:
    """What a loop over a value goes through, as it is: a list or a map."""
    return held if isinstance(held, list | tuple | dict) else no_overload("<iter_range>", held)


def iterated(held: Any) -> Iterable[object]:
    """What a loop over a value goes through; a list, so that it has a length."""
    if isinstance(held, list | tuple):
        return held
    return keys_of(held) if isinstance(held, dict) else no_overload("<iter_range>", held)


def iterated_pairs(held: Any) -> list[tuple[object, object]]:
    """What a loop with two variables over a value goes through."""
    if isinstance(held, list | tuple):
        return list(enumerate(islice(held, _ITERATED)))
    return items_of(held) if isinstance(held, dict) else no_overload("<iter_range>", held)


def as_bool(value: object) -> bool:
    """What an operator of logic takes."""
    if value is True or value is False:
        return value
    return no_overload("_&&_", value)


def is_no_bool(value: object) -> bool:
    """Whether a value is none that an operator of logic takes."""
    return value is not True and value is not False


def as_optional(value: object) -> Some | Nothing:
    """What a function of optionals takes."""
    return value if isinstance(value, Some | Nothing) else no_overload("optional", value)
