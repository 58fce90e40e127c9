"""Types of what `flatten` returns.

The checker types every `flatten()` as a list of dyn, with which nothing is lowered. An element of a list of lists has
the type of that list flattened, so the checker is asked about the same text with `[0]` in the place of `.flatten()`.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cel_expr_python import cel

from fairlead.cel.syntax.ast import DYN, Call, Checked, Node, Type, children, walk
from fairlead.cel.syntax.ast_decode import decode_steps
from fairlead.cooperative import Steps

_FLATTEN: Final = re.compile(r"\.\s*flatten\s*(?=\(\s*(\)))")
_FLATTENED: Final = Type("list", (DYN,))
_CHECKS_MAX: Final = 3
"""Calls on one another whose types are found; each takes one more check of the text."""


def flatten_types_steps(text: str, checked: Checked, engine: cel.Env) -> Steps[Checked]:
    """Return an expression with the types of its calls of `flatten()`, and those that follow from them.

    It is returned unchanged if they are known only at run time. There are pauses.
    """
    for _ in range(_CHECKS_MAX):
        if not (places := _places(text, checked)):
            break
        for start, end in places:
            text = f"{text[:start]}{'[0]':>{end - start}}{text[end:]}"
        try:
            serialized = engine.compile(text).serialize()
        except RuntimeError:  # such as a comparison with a value of another type, which is no error with dyn
            return checked
        twin = yield from decode_steps(serialized)
        pairs = [*_pairs(checked.root, twin.root)]
        types = {one.id: twin.types[other.id] for one, other in pairs if other.id in twin.types}
        overloads = {
            one.id: twin.overloads[other.id]
            for one, other in pairs
            if other.id in twin.overloads and not _is_flatten(one)
        }
        checked = replace(checked, types={**checked.types, **types}, overloads={**checked.overloads, **overloads})
    return checked


def _is_flatten(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "flatten" and len(node.args) == 1


def _places(text: str, checked: Checked) -> set[tuple[int, int]]:
    """Return where the calls stand whose type the checker has not found, though their lists are of lists."""
    calls = {match.end(): (match.start(), match.end(1)) for match in _FLATTEN.finditer(text)}
    found = set[tuple[int, int]]()
    if not calls:
        return found
    for node in walk(checked.root):
        if isinstance(node, Call) and _is_flatten(node) and checked.type_of(node) == _FLATTENED:
            match checked.type_of(node.args[0]):
                case Type(params=(Type(name="list", params=(item,)),)) if item != DYN:
                    found.update(filter(None, [calls.get(checked.positions.get(node.id, 0))]))
    return found


def _pairs(first: Node, second: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the nodes of two trees of the same shape; the one with `[0]` also has its index."""
    yield first, second
    for mine, its in zip(children(first), children(second), strict=False):
        yield from _pairs(mine, its)
