"""Base of the models of other projects' objects, and what their values have in common."""

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.params import Params
from fairlead.api.parse import show_value
from fairlead.api.values import Quantity
from fairlead.cel.functions.quantity import NANO, parse
from fairlead.cel.functions.time_text import string_to_duration
from fairlead.cel.values.errors import CelError
from fairlead.time_units import SECOND_NS

_QUANTITY_END = 10**9
_QUANTITY: TypeAdapter[str] = TypeAdapter(Quantity)


def _unquoted(value: object) -> object:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


NumberOrText = Annotated[float, BeforeValidator(_unquoted)]
"""Number, also in quotes: some versions of an API take the one, some the other."""


def _written_out(value: object) -> object:
    if isinstance(value, float):
        return str(plain_number(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


QuantityOrNumber = Annotated[str, BeforeValidator(_written_out)]
"""Quantity as text, which may be written as a number."""


class Foreign(Params):
    """Base of objects of other projects. Fields that are not read are kept, so that a comment can name them."""

    model_config = ConfigDict(extra="allow")
    list_keys: ClassVar[tuple[str, ...]] = ()

    @property
    def unread(self) -> list[str]:
        """Names of the fields that are not read."""
        return sorted(self.model_extra or ())

    def _duplicates(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Allow duplicates, as these projects do."""
        return iter(())


class ObjectHead(Foreign):
    """Fields that every object has, of which nothing is imported."""

    api_version: str = ""
    kind: str = ""


def one_error(path: FieldPath, message: str, hint: str = "") -> InvalidObjectError:
    """Return the exception for one field."""
    return InvalidObjectError([FieldError(path, message, hint)])


def below(path: FieldPath, invalid: InvalidObjectError) -> InvalidObjectError:
    """Return the errors of a part of an object, with paths of the whole."""
    return InvalidObjectError(FieldError((*path, *one.path), one.message, one.hint) for one in invalid.errors)


def go_duration_s(text: str, path: FieldPath) -> int:
    """Return the seconds of a duration in Go's form, rounded up. Raises InvalidObjectError."""
    try:
        found = int(string_to_duration(text))
    except CelError:
        found = -1
    if found < 0:
        raise one_error(path, f"{show_value(text)} is not a duration", "write one such as 90s, 5m or 1h30m")
    return -(-found // SECOND_NS)


def quantity_text(text: str, path: FieldPath) -> str:
    """Return a quantity of Kubernetes as policies take it. Raises InvalidObjectError."""
    try:
        found = parse(text)
        if found is None:
            raise one_error(path, f"{show_value(text)} is not a quantity", "write one such as 1, 500m or 1Gi")
        whole, nano = divmod(found.nano, NANO)
    except CelError:
        whole, nano = _QUANTITY_END, 0
    if not 0 <= whole < _QUANTITY_END:
        raise one_error(
            path, f"{show_value(text)} is out of the range from 0 to {_QUANTITY_END - 1:,} that a rule takes"
        )
    try:
        return str(_QUANTITY.validate_python(text))
    except ValidationError:  # a form that policies do not take, such as 1e3
        return f"{whole}.{nano:09}".rstrip("0").rstrip(".")


def plain_number(value: float) -> int | float:
    """Return a whole number as an int, which is how people write it."""
    return int(value) if math.isfinite(value) and value.is_integer() else value


def join_names(names: Iterable[str]) -> str:
    """Return names in one phrase."""
    return ", ".join(names)
