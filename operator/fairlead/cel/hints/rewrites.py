"""Expressions written another way: the parts that hints are made of."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.syntax.ast import (
    Call,
    Comprehension,
    Const,
    Ident,
    ListExpr,
    Node,
    Select,
    StructEntry,
    StructExpr,
    Type,
)
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.cel.values.schema import messages

_LONGEST: Final = 120
NUMBERS: Final = frozenset({"int", "uint", "double"})
ARITHMETIC: Final = frozenset({"_+_", "_-_", "_*_", "_/_"})
_ZEROS: Final = {"string": "''", "int": "0", "uint": "0u", "double": "0.0", "bool": "false", "list": "[]", "map": "{}"}
_AMOUNTS: Final = ("allocatable", "capacity", "requests", "limits")  # maps of the API whose values are quantities
Operand = tuple[Node, Type]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A hint that changes an expression: the sentence, and the code that takes the place of a part.

    It is offered only if the checker finds less to fault in the expression with it. Code differs from what the sentence
    shows only where that has `...`.
    """

    hint: str
    code: str
    part: Node | tuple[int, int]
    """A part of the tree, or the start and the end of a part of the text."""
    is_name: bool = False
    """True if it only corrects a name: the engine could not judge what holds the unknown one, and may do so now."""


Hints = Iterator["Rewriting | str"]
"""Hints for a fault, the best first. A text is advice that shows nothing to copy, or only a form."""


def write(code: str, part: Node, more: str = "", *, before: str = "", shown: str = "") -> Iterator[Rewriting]:
    """Yield the hint to write this in place of a part; none if there is nothing to write."""
    if code:
        made = shown or code
        yield Rewriting(f"{before}write `{made if len(made) <= _LONGEST else '...'}`{more}", code, part)


def substitute(root: Node, part: Node, code: str) -> str:
    """Return the text of an expression with one part written another way."""
    return text(_substituted(root, part.id, Ident(part.id, code if code.isalnum() else f"({code})")))


def _substituted(node: Node, id_: int, by: Node) -> Node:
    if node.id == id_:
        return by
    match node:
        case Select(operand=operand):
            return replace(node, operand=_substituted(operand, id_, by))
        case Call(args=args):
            return replace(node, args=tuple(_substituted(arg, id_, by) for arg in args))
        case ListExpr(elements=elements):
            return replace(node, elements=tuple(_substituted(element, id_, by) for element in elements))
        case StructExpr(entries=entries):
            return replace(node, entries=tuple(_entry(entry, id_, by) for entry in entries))
        case Comprehension():
            parts = {
                name: _substituted(getattr(node, name), id_, by)
                for name in ("range", "init", "condition", "step", "result")
            }
            return replace(node, **parts)  # type: ignore[arg-type]
    return node


def _entry(entry: StructEntry, id_: int, by: Node) -> StructEntry:
    key = _substituted(entry.key, id_, by) if isinstance(entry.key, Node) else entry.key
    return StructEntry(key, _substituted(entry.value, id_, by), entry.optional)


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


def in_text(item: Node, node: Node) -> str:
    """Return the test for an item of a text: a name is not in a list because a longer one is."""
    if isinstance(item, Const) or not is_free_text(node):
        return f"{operand_text(node)}.contains({text(item)})"
    return f"{text(item)} in {operand_text(node)}.split(',')"


def exists(node: Node, condition: str) -> str:
    """Return a test whether an item `x` of a list fulfils a condition."""
    return f"{operand_text(node)}.exists(x, {condition})"


def key_of_items(list_type: Type) -> str:
    """Return the field that tells the items of a list apart; "" if they are no objects."""
    fields = messages().get(list_type.params[0].name, {}) if list_type.params else {}
    return next((name for name in ("name", "key", "type") if fields.get(name) == "string"), "")


def is_amount(node: Node) -> bool:
    """Return whether a string of the API is a quantity."""
    match node:
        case Call(
            function="orValue" | "value", args=(Call(function="_[?_]" | "_?._", args=(Select(field=field), _)), *_)
        ):
            return field in _AMOUNTS
        case Select(operand=Select(field=field)) | Call(function="_[_]", args=(Select(field=field), _)):
            return field in _AMOUNTS
    return False


def is_free_text(node: Node) -> bool:
    """Return whether a string may hold a number or a list: labels and annotations may, names may not."""
    match node:
        case Select(operand=Select(field="labels" | "annotations")):
            return True
    return not isinstance(node, Select | Const)


def as_one_number(left: Node, first: Type, right: Node, second: Type) -> Iterator[Rewriting]:
    """Yield the operand that is no double as one, if the other is."""
    if {first.name, second.name} <= NUMBERS and "double" in (first.name, second.name):
        part, type_ = (right, second) if first.name == "double" else (left, first)
        yield from write(as_double(part, type_), part)


METHODS: Final = {">": "isGreaterThan", "<": "isLessThan", "+": "add", "-": "sub"}
"""Methods of quantities and versions for operators."""


def _lenient(node: Node) -> str:
    """Return an operand; a version that is computed is read with its `v`, as nodes have it."""
    match node:
        case Call(function="semver", args=(version,)) if not isinstance(version, Const):
            return f"semver({text(version)}, true)"
    return operand_text(node)


def by_methods(sign: str, call: Call, left: Operand, right: Operand, *, of: str) -> Iterator[Rewriting]:
    """Rewrite an operator of a quantity or a version as a call of a method."""
    (node, one), (other, two) = left, right
    target = _lenient(node) if one.name == of else f"{of.lower()}({text(node)})"
    argument = _lenient(other) if two.name in (of, "int") else f"{of.lower()}({text(other)})"
    if sign in METHODS:
        return write(f"{target}.{METHODS[sign]}({argument})", call)
    return write(f"{target}.compareTo({argument}) {sign} 0", call)


def as_doubles(sign: str, whole: Node, left: Operand, right: Operand) -> Iterator[Rewriting]:
    """Yield the operation with both operands as doubles, or only the operand that has to change."""
    one, other = as_double(*left), as_double(*right)
    if left[1].name == "double":
        yield from write(other, right[0])
    elif right[1].name == "double":
        yield from write(one, left[0])
    elif one and other:
        yield from write(f"{one} {sign} {other}", whole)


def in_doubles(node: Node) -> str:
    """Return arithmetic with all its whole numbers as doubles: a cause can be in each of them."""
    match node:
        case Call(function=function, args=(left, right)) if function in ARITHMETIC:
            inner = [
                f"({in_doubles(side)})" if _binds_less(side, function, at) else in_doubles(side)
                for at, side in enumerate((left, right))
            ]
            return f"{inner[0]} {function.strip('_')} {inner[1]}"
        case Const(value=bool()):
            return text(node)
        case Const(value=int()):
            return f"{text(node).removesuffix('u')}.0"
        case Call(function="size" | "int"):
            return f"double({text(node)})"
    return operand_text(node)


def _binds_less(side: Node, function: str, at: int) -> bool:
    """Report whether an operand needs brackets."""
    if not (isinstance(side, Call) and side.function in ARITHMETIC):
        return False
    sums = ("_+_", "_-_")
    if side.function in sums:
        return function not in sums or (at == 1 and function == "_-_")
    return at == 1 and function == "_/_"


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
    is_numeric = type_.name in ("int", "uint") or (type_.name == "string" and is_free_text(node))
    return f"double({text(node)})" if is_numeric else ""
