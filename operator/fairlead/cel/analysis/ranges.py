"""Ranges of numbers: between which bounds the value of an expression lies, and what it is an amount of.

An amount that a node has, requests or has left is a share of what is allocatable there: `free['memory']` is 0 to 1 of
the node's memory, and `free['memory'] / allocatable['memory']` is a number from 0 to 1 whatever the node. What is not
known has no bounds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Final

from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.syntax.ast import Call, Checked, Const, Ident, Node, Select

_OF_ALLOCATABLE: Final = frozenset({"free", "requested", "allocatable"})
_QUANTITIES: Final = frozenset({"allocatable", "capacity", "requests", "limits"})
"""Fields of the API that hold quantities by the name of the resource."""
_ENTRIES: Final = ("_[_]", "_[?_]", "_?._")
_SAME: Final = frozenset({"double", "int", "uint", "value", "asApproximateFloat", "asInteger", "quantity"})
_ROUNDED: Final = ("math.ceil", "math.floor", "math.round", "math.trunc")
_DEEPEST: Final = 60
OF_TIME: Final[Mapping[str, tuple[int, int]]] = {
    "getDate": (1, 31),
    "getDayOfMonth": (0, 30),
    "getDayOfWeek": (0, 6),
    "getDayOfYear": (0, 365),
    "getHours": (0, 23),
    "getMilliseconds": (0, 999),
    "getMinutes": (0, 59),
    "getMonth": (0, 11),
    "getSeconds": (0, 59),
}
"""Least and greatest values of the parts of a time."""
_NAMES: Final = ("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_")


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number; of an amount, as shares of what a node has of the resource."""

    low: float = -inf
    high: float = inf
    resource: str = ""
    """Resource of an amount; "" for a number that is none."""

    @property
    def is_known(self) -> bool:
        """Report whether both bounds are known."""
        return -inf < self.low and self.high < inf

    def joined(self, other: "Range") -> "Range":
        """Return the range of a value that is in one of two ranges."""
        resource = self.resource or other.resource
        if self.resource != other.resource and not (_is_zero(self) or _is_zero(other)):
            return UNKNOWN
        return Range(min(self.low, other.low), max(self.high, other.high), resource)


UNKNOWN: Final = Range()
_COUNT: Final = Range(0, inf)


def _is_zero(range_: Range) -> bool:
    return range_.low == range_.high == 0


@dataclass(slots=True)
class Ranges:
    """Ranges of the parts of one expression and of the policy's variables that it uses."""

    variables: Mapping[str, Checked]
    _done: dict[tuple[int, int], Range] = field(default_factory=dict)

    def of(self, checked: Checked, node: Node, deep: int = 0) -> Range:
        """Return the range of a part."""
        key = id(checked), node.id
        if key not in self._done:
            self._done[key] = self._found(checked, node, deep) if deep < _DEEPEST else UNKNOWN
        return self._done[key]

    def _found(self, checked: Checked, node: Node, deep: int) -> Range:
        match node:
            case Const(value=bool()):
                return UNKNOWN
            case Const(value=int() | float() as value):
                return Range(value, value)
            case Ident():
                name = checked.names.get(node.id, "")
                if name.startswith(VARIABLES):
                    inner = self.variables[name.removeprefix(VARIABLES)]
                    return self.of(inner, inner.root, deep + 1)
            case Select(operand=held, field=key, test_only=False):
                return _entry(checked, held, key)
            case Call(function=function, args=(held, Const(value=str(key)))) if function in _ENTRIES:
                return _entry(checked, held, key)
            case Call(function="size"):
                return _COUNT
            case Call(function=function, args=(time, *_)) if function in OF_TIME:
                if checked.type_of(time).name == "timestamp":  # those of a duration have no greatest value
                    return Range(*OF_TIME[function])
            case Call():
                return self._call(checked, node, deep + 1)
        return UNKNOWN

    def _call(self, checked: Checked, node: Call, deep: int) -> Range:
        def of(at: int) -> Range:
            return self.of(checked, node.args[at], deep)

        match node.function, len(node.args):
            case ("_?_:_", 3):
                return of(1).joined(of(2))
            case ("orValue", 2):
                return of(0).joined(of(1))
            case ("-_", 1):
                one = of(0)
                return Range(-one.high, -one.low, one.resource)
            case (name, 1) if name in _SAME:
                return of(0)
            case (name, 1) if name in _ROUNDED:
                one = of(0)
                return one if one.resource else Range(one.low - 1, one.high + 1)
            case ("math.abs", 1):
                one = of(0)
                return Range(max(one.low, -one.high, 0), max(-one.low, one.high), one.resource)
            case ("math.@max" | "math.@min" as name, 2):
                return _extreme(name, of(0), of(1))
            case (name, 2) if name in _ARITHMETIC:
                return _ARITHMETIC[name](of(0), of(1))
        return UNKNOWN


def _entry(checked: Checked, node: Node, key: str) -> Range:
    """Return the range of an amount that is read from a map."""
    match node:
        case Ident() if checked.names.get(node.id) in _OF_ALLOCATABLE:
            low = 1 if checked.names[node.id] == "allocatable" else 0
            return Range(low, 1, key)
        case Ident() if checked.names.get(node.id) == "request":
            return Range(0, 1, key)
        case Select(field=name) if name in _QUANTITIES:
            return Range(1 if name in ("allocatable", "capacity") else 0, 1, key)
    return UNKNOWN


def in_bytes(resource: str) -> bool:
    """Report whether amounts of a resource are bytes."""
    return resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-")


def _sum(first: Range, second: Range) -> Range:
    for many, few in ((first, second), (second, first)):
        if in_bytes(many.resource) and not in_bytes(few.resource) and (few.resource or few.is_known):
            return many  # bytes are so many that nothing else in a sum counts
    if first.resource == second.resource or _is_zero(first) or _is_zero(second):
        return Range(first.low + second.low, first.high + second.high, first.resource or second.resource)
    return UNKNOWN


def _difference(first: Range, second: Range) -> Range:
    return _sum(first, Range(-second.high, -second.low, second.resource))


def _product(first: Range, second: Range) -> Range:
    if first.resource and second.resource:
        return UNKNOWN
    ends = [_times(a, b) for a in (first.low, first.high) for b in (second.low, second.high)]
    return Range(min(ends), max(ends), first.resource or second.resource)


def _times(first: float, second: float) -> float:
    made = first * second
    return 0.0 if isnan(made) else made


def _quotient(first: Range, second: Range) -> Range:
    if second.resource and second.resource != first.resource:
        return UNKNOWN
    resource = "" if second.resource else first.resource
    if second.low <= 0 <= second.high:
        return Range(0 if first.low >= 0 and second.low >= 0 else -inf, inf, resource)
    ends = [a / b if abs(b) != inf else 0.0 for a in (first.low, first.high) for b in (second.low, second.high)]
    return Range(min(ends), max(ends), resource)


def _extreme(name: str, first: Range, second: Range) -> Range:
    choose = max if name == "math.@max" else min
    if first.resource != second.resource and not (_is_zero(first) or _is_zero(second)):
        return UNKNOWN
    return Range(choose(first.low, second.low), choose(first.high, second.high), first.resource or second.resource)


_ARITHMETIC: Final[Mapping[str, Callable[[Range, Range], Range]]] = {
    "_+_": _sum,
    "_-_": _difference,
    "_*_": _product,
    "_/_": _quotient,
}


def operands(node: Node) -> Sequence[Node]:
    """Return the two sides of a comparison; none for other parts."""
    return node.args if isinstance(node, Call) and node.function in _NAMES else ()
