"""Which variables an expression uses, through those of the policy that it names."""

from collections.abc import Collection, Mapping
from typing import Final

from fairlead.cel.checked import Checked, Comprehension, Const, Ident, Node, children

VARIABLES: Final = "variables."


def names_of(checked: Checked, node: Node) -> frozenset[str]:
    """The names that are free in an expression."""
    match node:
        case Ident():
            return frozenset({checked.names.get(node.id, node.name)})
        case Comprehension():
            inside = (names_of(checked, part) for part in (node.condition, node.step, node.result))
            outside = (names_of(checked, part) for part in (node.range, node.init))
            bound = {node.variable, node.variable2, node.accumulator}
            return (frozenset().union(*inside) - bound).union(*outside)
    return frozenset().union(*(names_of(checked, child) for child in children(node)))


def roots_of(checked: Checked, variables: Mapping[str, Checked], node: Node) -> frozenset[str]:
    """The free names of an expression, the policy's variables replaced by what they use."""
    found: set[str] = set()
    for name in names_of(checked, node):
        if name.startswith(VARIABLES):
            inner = variables[name.removeprefix(VARIABLES)]
            found |= roots_of(inner, variables, inner.root)
        else:
            found.add(name)
    return frozenset(found)


def hoistable(roots: Collection[str], node: Node, for_pod: Collection[str]) -> bool:
    """Whether an expression with these roots depends on the pod alone, and is worth a name."""
    if isinstance(node, Const) or (isinstance(node, Ident) and node.name in roots):
        return False
    return all(name in for_pod for name in roots)
