"""Representation of CEL values in Python.

| CEL | Python |
| --- | --- |
| int, double, bool, string, bytes, null | int, float, bool, str, bytes, None: exactly these classes |
| uint | `UInt` |
| timestamp, duration | `Timestamp`, `Duration`: nanoseconds, since the epoch or signed |
| list | list or tuple, never changed once made |
| map | dict, never changed once made; a key that is a bool is a `BoolKey` (for Python `True == 1`) |
| optional | `Some` or `NONE` |
| type | `TypeName` |
| message | a struct of `structs` |

The subclasses of int make comparisons of one type native; arithmetic on them gives plain ints, which are wrapped again.
Only the class of a value of type `dyn` is ever looked at.
"""

from typing import Final

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
UINT_MAX: Final = (1 << 64) - 1


class UInt(int):
    """Unsigned 64-bit integer."""

    __slots__ = ()


class Timestamp(int):
    """Nanoseconds since the epoch, from year 1 to year 9999."""

    __slots__ = ()


class Duration(int):
    """Nanoseconds, signed."""

    __slots__ = ()


class TypeName(str):
    """Type as a value."""

    __slots__ = ()


class Some:
    """Optional with a value."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"optional.of({self.value!r})"


class Nothing:
    """Optional without a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "optional.none()"


NONE: Final = Nothing()
