"""A fault of the engine, in which the lowering does not follow it.

The engine keeps the variables of macros in numbered slots, and neighbours in a tree share theirs. `exists` and `all`
that end early leave an element in a slot; a `cel.bind` (also that of `sortBy` and `optMap`) that comes after finds the
slot taken and takes what is there for its own value: `[5, 6].exists(y, true) ? cel.bind(z, 1, z) : 0` is 5.
Differences of expressions in which this may have happened are counted apart.
"""

from fairlead.cel.checked import Call, Comprehension, ListExpr, Node, children


def may_share_slots(root: Node) -> bool:
    """Whether a quantifier and a binding stand beside each other."""
    return _below(root)[2]


def _below(node: Node) -> tuple[bool, bool, bool]:
    """Whether there is a quantifier, a binding, and a pair of them."""
    parts = [_below(child) for child in children(node)]
    pair = any(part[2] for part in parts) or any(
        one[0] and other[1] for one in parts for other in parts if one is not other
    )
    quantifier, binding = any(part[0] for part in parts), any(part[1] for part in parts)
    if isinstance(node, Comprehension):
        if isinstance(node.range, ListExpr) and not node.range.elements:
            binding = True
        elif isinstance(node.step, Call) and node.step.function in ("_||_", "_&&_"):
            quantifier = True
    return quantifier, binding, pair
