"""Optional values.

`or` and `orValue` evaluate their argument only when it is needed: that is for the caller. What is here has both.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from fairlead.cel.values.equality import map_key, type_of
from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.value_types import NONE, Nothing, Some, TypeName

Optional = Some | Nothing

_NEVER_ZERO: Final = (Some, Nothing, TypeName)


def optional_of(value: object) -> Some:
    """Wrap a value."""
    return Some(value)


def optional_of_non_zero_value(value: object) -> Optional:
    """Wrap a value, or nothing if it is the zero value of its type."""
    return NONE if is_zero(value) else Some(value)


def optional_none() -> Nothing:
    """Make an optional without a value."""
    return NONE


def optional_has_value(optional: Optional) -> bool:
    """Decide whether there is a value."""
    if isinstance(optional, Some):
        return True
    return False if optional is NONE else _no_overload("hasValue", optional)


def optional_value(optional: Optional) -> Any:
    """Get the value."""
    if isinstance(optional, Some):
        return optional.value
    if optional is NONE:
        raise CelError(Kind.NO_VALUE, "optional.none() dereference")
    return _no_overload("value", optional)


def optional_or_optional(optional: Optional, other: Optional) -> Optional:
    """Get the first that has a value, else the second."""
    if isinstance(optional, Some):
        return optional
    if optional is NONE and isinstance(other, Optional):
        return other
    return _no_overload("or", optional)


def optional_or_value_value(optional: Optional, default: Any) -> Any:
    """Get the value, else a default."""
    if isinstance(optional, Some):
        return optional.value
    return default if optional is NONE else _no_overload("orValue", optional)


def list_optindex_optional_int(values: Sequence[Any], index: int) -> Optional:
    """Get an element, if there is one at the index."""
    return Some(values[index]) if 0 <= index < len(values) else NONE


def map_optindex_optional_value(entries: Mapping[Any, Any], key: object) -> Optional:
    """Get the value of a key, if there is one; what cannot be a key has none."""
    try:
        return Some(entries[map_key(key)])
    except (KeyError, CelError):
        return NONE


def optional_optindex_optional_value(optional: Optional, key: object) -> Optional:
    """Get an element of the list or map in an optional, if there is all that."""
    if not isinstance(optional, Some):
        return NONE
    if isinstance(optional.value, dict):
        return map_optindex_optional_value(optional.value, key)
    if isinstance(optional.value, list | tuple) and key.__class__ is int:
        return list_optindex_optional_int(optional.value, key)
    return _no_overload("_[?_]", optional)


def select_optional_field(container: object, name: str) -> Optional:
    """Get an entry of a map, or of a map in an optional, if there is one; fields of messages are not for here."""
    if isinstance(container, Some):
        container = container.value
    elif container is NONE:
        return NONE
    if isinstance(container, dict):
        return Some(container[name]) if name in container else NONE
    return _no_overload("_[?_]", container)


def is_zero(value: object) -> bool:
    """Decide whether a value is the zero value of its type: that of timestamps is the epoch."""
    if isinstance(value, _NEVER_ZERO):
        return False
    return value is None or not value


def _no_overload(name: str, value: object) -> NoReturn:
    raise CelError(Kind.NO_OVERLOAD, f"No matching overloads found : {name}({type_of(value)})")
