"""Trace of an evaluation: the value of every part; of parts inside loops, the value for each element."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from fairlead.cel.syntax.ast import Comprehension, Const, ListExpr, Node, children

Place: TypeAlias = tuple[int, ...]
"""The id of an expression, then the positions of the elements of the loops around it, outermost first."""


def is_loop(node: Node) -> TypeGuard[Comprehension]:
    """Return whether a fold is a loop; `cel.bind` is a fold without one."""
    match node:
        case Comprehension(range=ListExpr(elements=()), condition=Const(value=False)):
            return False
    return isinstance(node, Comprehension)


def loops_around(root: Node) -> Mapping[int, Place]:
    """Return for every expression the loops in whose body it stands, outermost first."""
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
class ValueTrace:
    """The values of one evaluation."""

    around: Mapping[int, Place]
    values: dict[Place, object] = field(default_factory=dict)
    elements: dict[Place, list[tuple[object, ...]]] = field(default_factory=dict)
    """The elements or keys that a loop reached; of two variables both."""
    _position: dict[int, int] = field(default_factory=dict)

    def record(self, id_: int, value: object) -> object:
        """Store a value, and return it."""
        self.values[self._place(id_)] = value
        return value

    def enter(self, loop: int, *element: object) -> None:
        """Store that a loop has reached its next element."""
        reached = self.elements.setdefault(self._place(loop), [])
        self._position[loop] = len(reached)
        reached.append(element)

    def _place(self, id_: int) -> Place:
        return id_, *[self._position[loop] for loop in self.around[id_]]
