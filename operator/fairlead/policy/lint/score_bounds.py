"""Between which numbers a score lies, as far as that is known without evaluating it on anything."""

import math
from collections.abc import Callable
from typing import Final

from fairlead.cel.syntax.ast import Const, Ident, ListExpr, Select
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.symbolic import Term, TooLargeError, term_of

Range = tuple[float, float]

ANYTHING: Final[Range] = (-math.inf, math.inf)
_FROM_0: Final[Range] = (0.0, math.inf)
_BYTES: Final[Range] = (float(1 << 28), math.inf)  # what nodes have, and nearly always what is free or requested
_OF_BYTES: Final = ("memory", "ephemeral-storage")
_AMOUNTS: Final = ("free", "requested", "allocatable", "request")
_SHARES: Final = ("free", "requested")


def bounds(compiled: CompiledExpression) -> Range:
    """The least and the most that it gives, for nearly every node."""
    try:
        return _range(term_of(compiled))
    except TooLargeError:
        return ANYTHING


def _range(term: Term) -> Range:
    if isinstance(term.node, Const):
        value = term.node.value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return (float(value), float(value)) if is_number else ANYTHING  # type: ignore[arg-type]
    if (amount := _amount(term)) is not None:
        what, resource = amount
        return _BYTES if resource in _OF_BYTES and what != "request" else _FROM_0
    if _is_share(term):
        return 0.0, 1.0
    function = term.function
    if function == "size":
        return _FROM_0
    if (found := term.args(*_EXTREMES)) and isinstance(found[0].node, ListExpr):
        return _EXTREMES[function](*(_range(found[0].at(one)) for one in found[0].node.elements))
    if chosen := term.args("_?_:_"):
        return _either(*map(_range, chosen[1:]))
    if function in _OPERATORS:
        return _OPERATORS[function](*map(_range, term.args(function)))
    return ANYTHING


def _amount(term: Term) -> tuple[str, str] | None:
    """What is read of the node's amounts, and of which resource."""
    if found := term.args("orValue"):
        default = found[1].constant()
        is_small = isinstance(default, int | float) and default >= 0
        return ("request", "") if is_small and _amount(found[0]) is not None else None
    match term.node:
        case Select(operand=holder, field=key, test_only=False):
            return _of(term.at(holder), key)
    if (found := term.args("_[_]", "_[?_]", "_?._")) and isinstance(found[1].node, Const):
        return _of(found[0], str(found[1].node.value))
    return None


def _of(holder: Term, key: str) -> tuple[str, str] | None:
    name = holder.checked.names.get(holder.node.id, "") if isinstance(holder.node, Ident) else ""
    return (name, key) if name in _AMOUNTS else None


def _is_share(term: Term) -> bool:
    """Whether it is a part of what the node has."""
    if not (sides := term.args("_/_")):
        return False
    part, whole = map(_amount, sides)
    return part is not None and whole is not None and part[0] in _SHARES and whole == ("allocatable", part[1])


def _either(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), max(one[1], other[1])


def _same(one: Range) -> Range:
    return one


def _sum(one: Range, other: Range) -> Range:
    return one[0] + other[0], one[1] + other[1]


def _negative(one: Range) -> Range:
    return -one[1], -one[0]


def _product(one: Range, other: Range) -> Range:
    # Zero times infinity is zero here: the infinity stands for numbers without a limit.
    products = [0.0 if 0.0 in (a, b) else a * b for a in one for b in other]
    return min(products), max(products)


def _quotient(one: Range, other: Range) -> Range:
    if other[0] <= 0.0 <= other[1]:
        return ANYTHING
    return _product(one, (1.0 / other[1], 1.0 / other[0]))


def _least(*given: Range) -> Range:
    return min(low for low, _ in given), min(high for _, high in given)


def _greatest(*given: Range) -> Range:
    return max(low for low, _ in given), max(high for _, high in given)


_EXTREMES: Final[dict[str, Callable[..., Range]]] = {"math.@max": _greatest, "math.@min": _least}
_OPERATORS: Final[dict[str, Callable[..., Range]]] = {
    "-_": _negative,
    "_+_": _sum,
    "_-_": lambda one, other: _sum(one, _negative(other)),
    "_*_": _product,
    "_/_": _quotient,
    "double": _same,
    "int": _same,
    **_EXTREMES,
}
