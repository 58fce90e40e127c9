"""Trace of an evaluation: the value of every part; of parts inside loops, the value for each element."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.analysis.static_types import BOOL
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, children

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
class Trace:
    """Trace of one evaluation. Leaves in `force` are not evaluated but have the value in there.

    `at` maps loops to positions: a leaf is forced only while those of its loops that are in `at` are at these elements.
    """

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


_LOGIC = frozenset({"_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false"})


def is_leaf(checked: Checked, node: Node) -> bool:
    """Return whether explanations may flip the value of a node: a bool that is no logic, constant or macro."""
    if checked.type_of(node) != BOOL or isinstance(node, Const | Comprehension):
        return False
    if isinstance(node, Ident):
        return checked.names.get(node.id, "").startswith(VARIABLES)
    return not (isinstance(node, Call) and node.function in _LOGIC)


def leaves(checked: Checked) -> Iterator[Node]:
    """Yield the outermost leaves in the order of the text, those inside macros too."""
    yield from _below(checked, checked.root)


def _below(checked: Checked, node: Node) -> Iterator[Node]:
    if is_leaf(checked, node):
        yield node
        return
    parts = (node.range, node.step) if is_loop(node) else children(node)  # the other parts are the macro's own
    for child in parts:
        yield from _below(checked, child)
