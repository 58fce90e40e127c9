"""Expressions written another way: the parts that hints are made of."""

from math import isfinite
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.syntax.ast import Call, Const, Node, Select, Type
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cel.values.schema import messages

_LONGEST: Final = 120
NUMBERS: Final = frozenset({"int", "uint", "double"})
_ZEROS: Final = {"string": "''", "int": "0", "uint": "0u", "double": "0.0", "bool": "false", "list": "[]", "map": "{}"}
_AMOUNTS: Final = ("allocatable", "capacity", "requests", "limits")  # maps of the API whose values are quantities
Operand = tuple[Node, Type]


def write(made: str) -> str:
    """Return the hint to write this; "" if there is nothing to write."""
    return f"write `{made if len(made) <= _LONGEST else '...'}`" if made else ""


def presence(node: Node) -> str:
    """Return how to ask whether a field or a key is set; "" for other expressions."""
    match node:
        case Call(function="_[_]", args=(held, Const(value=str()) as key)):
            return f"{text(key)} in {text(held)}"
        case Select():
            return f"has({text(node)})"
    return ""


def read_as_optional(node: Node) -> str:
    """Return a field or a key as one that may be absent; "" for other expressions."""
    match node:
        case Select(operand=held, field=field):
            return f"{operand_text(held)}.?{field}"
        case Call(function="_[_]", args=(held, key)):
            return f"{operand_text(held)}[?{text(key)}]"
    return ""


def with_default(node: Node, type_: Type) -> str:
    """Return an optional with the zero value of its type as the default; "" if an object is optional."""
    zero = _ZEROS.get(type_.params[0].name)
    return f"{operand_text(node)}.orValue({zero})" if zero else ""


def exists(held: Node, condition: str) -> str:
    """Return a test whether an item `x` of a list fulfils a condition."""
    return f"{operand_text(held)}.exists(x, {condition})"


def key_of_items(list_type: Type) -> str:
    """Return the field that tells the items of a list apart; "" if they are no objects."""
    fields = messages().get(list_type.params[0].name, {}) if list_type.params else {}
    return next((name for name in ("name", "key", "type") if fields.get(name) == "string"), "")


def is_amount(node: Node) -> bool:
    """Return whether a string of the API is a quantity."""
    match node:
        case Select(operand=Select(field=field)) | Call(function="_[_]", args=(Select(field=field), _)):
            return field in _AMOUNTS
    return False


def as_one_number(left: Node, one: Type, right: Node, other: Type) -> str:
    """Return the operand that is no double as one, if the other is."""
    if {one.name, other.name} <= NUMBERS and "double" in (one.name, other.name):
        return as_double(right, other) if one.name == "double" else as_double(left, one)
    return ""


def as_doubles(sign: str, left: Operand, right: Operand) -> str:
    """Return the operation with both operands as doubles, or only the operand that has to change."""
    one, other = as_double(*left), as_double(*right)
    if "double" in (left[1].name, right[1].name):
        return other if left[1].name == "double" else one
    return f"{one} {sign} {other}" if one and other else ""


def as_double(node: Node, type_: Type) -> str:
    """Return an expression as a double; "" if it cannot be one."""
    match node, type_.name:
        case (_, "double"):
            return text(node)
        case (Const(), "int"):
            return f"{text(node)}.0"
        case (Call(function="_/_", args=(one, other)), "int"):  # a division of ints drops the rest
            return f"{as_double(one, type_)} / {as_double(other, type_)}"
        case (Const(value=str(amount)), "string"):
            number = to_float(amount)
            return repr(number) if number is not None and isfinite(number) else ""
        case (_, "string") if is_amount(node):
            return f"quantity({text(node)}).asApproximateFloat()"
        case (_, "Quantity"):
            return f"{operand_text(node)}.asApproximateFloat()"
    return f"double({text(node)})" if type_.name in ("int", "uint", "string") else ""
