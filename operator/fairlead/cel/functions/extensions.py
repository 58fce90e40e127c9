"""Functions that the engine does not have: each is declared once, for its checker, its runtime and lowered code.

The functions of quantities have the names and operands of the Kubernetes CEL library.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fairlead.cel.functions import quantity

Function = Callable[..., Any]
Convert = Callable[[Any], Any]

INT: Final = "int"
DOUBLE: Final = "double"
STRING: Final = "string"
BOOL: Final = "bool"
QUANTITY: Final = quantity.Quantity.cel_type


@dataclass(frozen=True, slots=True)
class Declaration:
    """An overload of a function."""

    name: str
    overload_id: str
    parameters: tuple[str, ...]
    result: str
    is_member: bool
    implementation: Function

    def for_engine(self, *, to_message: Convert, from_message: Convert) -> Function:
        """Wrap the implementation for the engine, where quantities are messages.

        An exception becomes a CEL error with its text.
        """
        implementation, result = self.implementation, self.result
        messages = tuple(parameter == QUANTITY for parameter in self.parameters)
        if not any(messages) and result != QUANTITY:
            return implementation

        def call(*arguments: object) -> object:
            values = [from_message(a) if is_one else a for a, is_one in zip(arguments, messages, strict=True)]
            value = implementation(*values)
            return to_message(value) if result == QUANTITY else value

        return call


def exp(value: float) -> float:
    """Raise e to a power; infinity if the result is too large."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def log2(value: float) -> float:
    """Return the logarithm to base 2: minus infinity of zero, NaN below zero."""
    if value == 0:
        return -math.inf
    return math.log2(value) if not value < 0 else math.nan


def _member(name: str, overload_id: str, operands: tuple[str, ...], result: str, function: Function) -> Declaration:
    return Declaration(name, overload_id, (QUANTITY, *operands), result, is_member=True, implementation=function)


def _plain(name: str, overload_id: str, operand: str, result: str, function: Function) -> Declaration:
    return Declaration(name, overload_id, (operand,), result, is_member=False, implementation=function)


DECLARATIONS: Final = (
    _plain("exp", "exp_double", DOUBLE, DOUBLE, exp),
    _plain("log2", "log2_double", DOUBLE, DOUBLE, log2),
    _plain("quantity", "string_to_quantity", STRING, QUANTITY, quantity.quantity),
    _plain("isQuantity", "is_quantity_string", STRING, BOOL, quantity.is_quantity),
    _member("sign", "quantity_sign", (), INT, quantity.sign),
    _member("isInteger", "quantity_is_integer", (), BOOL, quantity.is_integer),
    _member("asInteger", "quantity_get_int", (), INT, quantity.as_integer),
    _member("asApproximateFloat", "quantity_get_float", (), DOUBLE, quantity.as_approximate_float),
    _member("add", "quantity_add", (QUANTITY,), QUANTITY, quantity.add),
    _member("add", "quantity_add_int", (INT,), QUANTITY, quantity.add_integer),
    _member("sub", "quantity_sub", (QUANTITY,), QUANTITY, quantity.sub),
    _member("sub", "quantity_sub_int", (INT,), QUANTITY, quantity.subtract_integer),
    _member("isGreaterThan", "quantity_is_greater_than", (QUANTITY,), BOOL, quantity.is_greater_than),
    _member("isLessThan", "quantity_is_less_than", (QUANTITY,), BOOL, quantity.is_less_than),
    _member("compareTo", "quantity_compare_to", (QUANTITY,), INT, quantity.compare_to),
)
