"""Leaves of the logic of an expression: true or false by themselves, and not by `&&`, `||`, `!`, `?:` or a macro."""

from collections.abc import Iterator

from fairlead.cel.checked import Call, Checked, Comprehension, Const, Ident, Node, children
from fairlead.cel.lowering.analysis import VARIABLES
from fairlead.cel.lowering.inference import BOOL
from fairlead.cel.lowering.trace import is_loop

_LOGIC = frozenset({"_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false"})


def is_leaf(checked: Checked, node: Node) -> bool:
    """Whether explanations may flip the value of this node."""
    if checked.type_of(node) != BOOL or isinstance(node, Const | Comprehension):
        return False
    if isinstance(node, Ident):
        return checked.names.get(node.id, "").startswith(VARIABLES)
    return not (isinstance(node, Call) and node.function in _LOGIC)


def leaves(checked: Checked) -> Iterator[Node]:
    """The outermost leaves, in the order of the text; what stands inside of macros among them."""
    yield from _below(checked, checked.root)


def _below(checked: Checked, node: Node) -> Iterator[Node]:
    if is_leaf(checked, node):
        yield node
        return
    parts = (node.range, node.step) if is_loop(node) else children(node)  # the rest of a loop is its macro's own
    for child in parts:
        yield from _below(checked, child)
