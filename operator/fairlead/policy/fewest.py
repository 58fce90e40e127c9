"""The fewest leaves to turn, reckoned from the logic around them: where there are too many sets of them to try each."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from fairlead.cel.checked import Call, Checked, Comprehension, Const, ListExpr, Node
from fairlead.cel.lowering.leaves import is_leaf
from fairlead.cel.lowering.trace import is_loop

Turned: TypeAlias = Mapping[int, bool]
"""Leaves, with what they are made to come to."""
_NONE: Final[Turned] = {}


def fewest(checked: Checked, node: Node, value: Callable[[Node], object], *, want: bool) -> Turned | None:
    """What to turn for an expression to come to this; None if nothing would do. A loop is taken for all its elements.

    A leaf whose value is no bool (it raised, or has several) has to be turned for either outcome.
    """

    def both(parts: Iterable[Node], *, want: bool) -> Turned | None:
        merged: dict[int, bool] = {}
        for part in parts:
            found = fewest(checked, part, value, want=want)
            if found is None:
                return None
            merged |= found
        return merged

    def one(ways: Iterable[Turned | None]) -> Turned | None:
        return min((way for way in ways if way is not None), key=len, default=None)

    if is_leaf(checked, node):
        return _NONE if value(node) is want else {node.id: want}
    match node:
        case Const():
            return _NONE if node.value is want else None
        case Call(function="!_", args=(inner,)):
            return fewest(checked, inner, value, want=not want)
        case Call(function="_&&_" | "_||_" as function, args=sides):
            if want is (function == "_&&_"):
                return both(sides, want=want)
            return one(fewest(checked, side, value, want=want) for side in sides)
        case Call(function="_?_:_", args=(test, *branches)):
            tests = (fewest(checked, test, value, want=chosen) for chosen in (True, False))
            results = (fewest(checked, branch, value, want=want) for branch in branches)
            return one(
                None if chosen is None or found is None else {**chosen, **found}
                for chosen, found in zip(tests, results, strict=True)
            )
        case Comprehension(step=Call(args=(first, second, *_)) as step) if is_loop(node):
            tested = first if step.function == "_?_:_" else second
            return fewest(checked, tested, value, want=want)
        case Comprehension(result=result, range=ListExpr()):
            return fewest(checked, result, value, want=want)
    return None
