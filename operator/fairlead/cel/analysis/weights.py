"""Least costs of the parts of an expression, whatever they read, for each step of a loop around them."""

from collections.abc import Collection
from typing import Final

from fairlead.cel.analysis.function_costs import FUNCTION_COSTS
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.analysis.sizes import NUMBERS, TEXTS
from fairlead.cel.analysis.text_costs import CALL, CONSTANT, WRITTEN
from fairlead.cel.functions.extensions import CIDR, IP, SEMVER
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, StructExpr, walk
from fairlead.cel.values.meter import STEP

_OPERATORS: Final = frozenset(
    {"_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_"}
    | {"_*_", "_[_]", "_[?_]", "_?._", "@in", "size", "orValue", "or", "value", "hasValue"}
)
_ITEM: Final = 2
"""Cost of an element of a list literal."""
_ENTRY: Final = 30
"""Cost of an entry of a map literal."""
_OF_ZERO: Final = 800
"""Cost of finding out whether an object has any field."""
_OPTIONAL: Final = 20
"""Cost of a lookup that gives an optional, or of making a uint, beside that of any operator."""
_OF_TIMES: Final = 60
"""Cost of an operator on times, beside that of any operator."""
_OF_VERSIONS: Final = 300
"""Cost of comparing two versions with many identifiers, beside that of comparing two quantities."""
_ORDERS: Final = frozenset({"isGreaterThan", "isLessThan", "compareTo"})
_ARITHMETIC: Final = frozenset({"_+_", "_-_", "_*_"})
_OF_TIME: Final = frozenset({"timestamp", "duration"})
_PLAIN: Final = NUMBERS | TEXTS | {"list", "map"}


def own_weight(node: Node, for_types: int) -> int:
    """Return the cost of a part without its own parts; `for_types` is that of a call for the types of its operands."""
    match node:
        case Const():
            return 0
        case Call(function=function):
            return CONSTANT.get(function, STEP if function in _OPERATORS else CALL) + for_types
        case ListExpr(elements=elements):
            return CALL + _ITEM * len(elements)
        case StructExpr(entries=entries):
            return CALL + _ENTRY * len(entries)
        case Comprehension():
            return CALL
    return STEP


def weight_for_types(node: Call, types: Collection[str]) -> int:
    """Return the cost of a call for the types of its operands."""
    if node.function == "string" and {*types} & {*_OF_TIME, "double"}:
        return 2 * _OF_TIMES
    if node.function == "string" and {*types} & {IP, CIDR}:
        return WRITTEN
    if SEMVER in types and node.function in _ORDERS:
        return _OF_VERSIONS
    if node.function == "optional.ofNonZeroValue":
        return 0 if {*types} <= _PLAIN else _OF_ZERO
    if node.function in _ARITHMETIC and {*types} & _OF_TIME:
        return _OF_TIMES
    if "uint" in types and node.function in _ARITHMETIC:
        return _OPTIONAL
    return _OPTIONAL if node.function in ("_[?_]", "_?._") else 0


def depends_on_data(checked: Checked, node: Node) -> bool:
    """Return whether the cost of a part depends on the objects that it reads."""
    for part in walk(node):
        match part:
            case Comprehension() | Call(function="_+_" | "_==_" | "_!=_" | "@in"):
                return True
            case Call(function=function) if function in FUNCTION_COSTS and function not in _OPERATORS:
                return True
            case Ident() if checked.names.get(part.id, "").startswith(VARIABLES):
                return True
    return False
