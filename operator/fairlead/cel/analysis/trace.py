"""What an evaluation tells of itself: the value of every part, and of what stands in a loop for each element."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.analysis.static_types import BOOL
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, children

Place: TypeAlias = tuple[int, ...]
"""The id of an expression, then the positions of the elements of the loops around it, from the outermost on."""


def is_loop(node: Node) -> TypeGuard[Comprehension]:
    """Whether a fold goes through elements: `cel.bind` is one that does not."""
    match node:
        case Comprehension(range=ListExpr(elements=()), condition=Const(value=False)):
            return False
    return isinstance(node, Comprehension)


def loops_around(root: Node) -> Mapping[int, Place]:
    """For every expression the loops in whose body it stands, from the outermost on."""
    found: dict[int, Place] = {}
    left: list[tuple[Node, Place]] = [(root, ())]
    while left:
        node, around = left.pop()
        found[node.id] = around
        for child in children(node):
            is_body = is_loop(node) and child is node.step
            left.append((child, (*around, node.id) if is_body else around))
    return found


@dataclass(slots=True)
class Trace:
    """The values of one evaluation."""

    around: Mapping[int, Place]
    values: dict[Place, object] = field(default_factory=dict)
    elements: dict[Place, list[tuple[object, ...]]] = field(default_factory=dict)
    """Those that a loop came to: the element or key; of two variables both."""
    _position: dict[int, int] = field(default_factory=dict)

    def record(self, id_: int, value: object) -> object:
        """Be told a value."""
        self.values[self._place(id_)] = value
        return value

    def enter(self, loop: int, *element: object) -> None:
        """Be told that a loop came to its next element."""
        seen = self.elements.setdefault(self._place(loop), [])
        self._position[loop] = len(seen)
        seen.append(element)

    def _place(self, id_: int) -> Place:
        return id_, *[self._position[loop] for loop in self.around[id_]]
