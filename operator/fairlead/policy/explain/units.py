"""Units of the parts of an expression, as far as they follow from the names of resources."""

from typing import Final

from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.syntax.ast import Call, Const, Node
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.explain.explanation import Unit

_IN_BYTES: Final = ("memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_COMPARISONS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_"})


def is_in_bytes(resource: str) -> bool:
    """Return whether amounts of a resource are counted in bytes."""
    return resource in _IN_BYTES or resource.startswith(_HUGE_PAGES)


def unit_of(node: Node, of: CompiledExpression) -> Unit:
    """Return the unit of the value of a part of an expression; "" if it has none, or if none can be told."""
    name = of.expression.checked.names.get(node.id, "")
    if name.startswith(VARIABLES) and (variable := of.variables.get(name.removeprefix(VARIABLES))) is not None:
        return unit_of(variable.expression.checked.root, variable)
    match node:
        case Call(function="_[_]" | "_[?_]", args=(_, Const(value=str(resource)))):
            return "bytes" if is_in_bytes(resource) else ""
        case Call(function="orValue" | "_?_:_" | "_+_" | "_-_", args=args):
            return "bytes" if any(unit_of(one, of) for one in args) else ""
        case Call(function="_*_", args=args) if sum(unit_of(one, of) == "bytes" for one in args) == 1:
            return "bytes"
    return ""


def compared_unit(node: Node, of: CompiledExpression) -> Unit:
    """Return the unit of both sides of a comparison."""
    match node:
        case Call(function=function, args=args) if function in _COMPARISONS:
            return "bytes" if any(unit_of(one, of) for one in args) else ""
    return ""
