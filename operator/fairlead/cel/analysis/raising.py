"""Parts of an expression that may raise, whatever their operands do."""

from collections.abc import Collection
from typing import Final

from fairlead.cel.syntax.ast import Call, Node, Select

JUNCTIONS: Final = frozenset({"_&&_", "_||_"})
_NEVER_RAISE: Final = frozenset(
    {*JUNCTIONS, "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "@not_strictly_false", "size"}
    | {"_[?_]", "_?._", "or", "orValue", "hasValue", "optional.of", "optional.none", "dyn", "type"}
    | {"contains", "startsWith", "endsWith"}
)
"""Of operands whose types are known."""
_ADDED: Final = frozenset({"string", "bytes", "list", "double"})
"""Types that never overflow."""


def raises_itself(node: Node, types: Collection[str]) -> bool:
    """Return whether a call or a selection may raise, by the types that its operands are known to have."""
    match node:
        case Select(test_only=False):
            return not {*types}.isdisjoint(("map", "dyn"))
        case Call(function=function):
            never = function in _NEVER_RAISE or (function == "_+_" and {*types} <= _ADDED)
            return not never or "dyn" in types
    return False
