"""Values of CEL as people read them: numbers, strings, and lists of these."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.cel.functions.addresses import CIDR, IP
from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.functions.quantity import NANO, Quantity, canonical
from fairlead.cel.functions.semver import Semver
from fairlead.cel.functions.time_text import SECOND, timestamp_to_string
from fairlead.cel.syntax.ast import DYN, Type
from fairlead.cel.values.value_types import Duration, Nothing, Some, Timestamp, TypeName, UInt
from fairlead.policy.views.placed_pod import PlacedPod

LENGTH_MAX: Final = 10
"""Elements of a list that are shown; the rest is counted."""

_UNITS: Final = (("h", 3_600 * SECOND), ("m", 60 * SECOND), ("s", SECOND), ("ms", 10**6), ("us", 10**3), ("ns", 1))
_MILLI: Final = NANO // 1000
_SUFFIXES: Final = (
    ("", 1),
    *((f"{letter}i", 1024**power) for power, letter in enumerate("KMGTPE", start=1)),
    *((letter, 1000**power) for power, letter in enumerate("kMGTPE", start=1)),
)


def can_be_shown(value: object) -> bool:
    """Report whether a value can be shown; objects cannot, but their fields are parts of the expression."""
    if isinstance(value, list | tuple):
        return all(map(can_be_shown, value))
    if isinstance(value, Some):
        return can_be_shown(value.value)
    return isinstance(value, PlacedPod) or not isinstance(value, Struct | Mapping)


def format_value(value: object, type_: Type = DYN) -> object:
    """Return a value in a form that can be shown; the type tells times from plain numbers."""
    inner = type_.params[0] if type_.params else DYN
    if isinstance(value, Nothing):
        return None
    if isinstance(value, Some):
        return format_value(value.value, inner)
    match value:
        case list() | tuple():
            more = len(value) - LENGTH_MAX
            found = [format_value(each, inner) for each in value[:LENGTH_MAX]]
            return [*found, f"and {more} more"] if more > 0 else found
        case PlacedPod():
            return f"{value.namespace}/{value.name}"
        case Quantity():
            return _quantity(value)
        case IP() | CIDR() | Semver():
            return OPAQUE[value.cel_type].write(value)
        case int() if isinstance(value, Timestamp) or type_.name == "timestamp":
            return timestamp_to_string(value)
        case int() if isinstance(value, Duration):
            return _duration(value)
        case UInt():
            return int(value)
        case TypeName():
            return str(value)
    return value


def _duration(value: int) -> str:
    """Return a duration as expressions write it: `1h30m`."""
    parts, left = [], abs(value)
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return ("-" if value < 0 else "") + ("".join(parts) or "0s")


def _quantity(value: Quantity) -> str:
    """Return a quantity as Kubernetes writes it: `4Gi`, `500m`."""
    whole, rest = divmod(value.nano, NANO)
    if rest:
        return canonical(value) if rest % _MILLI else f"{value.nano // _MILLI}m"
    forms = [f"{whole // size}{suffix}" for suffix, size in _SUFFIXES if whole % size == 0]
    return min(forms, key=len)
