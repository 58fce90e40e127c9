"""What all loops share: what they go through, the names that they bind, the steps that they count."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from fairlead.cel.checked import Comprehension, Type
from fairlead.cel.lowering import dynamic
from fairlead.cel.lowering.builder import (
    MAX_STEPS,
    Out,
    Statements,
    compare,
    const,
    either,
    load,
    method,
    native,
    over_limit,
)
from fairlead.cel.lowering.context import Context


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` whose body is being written."""

    target: ast.expr
    items: ast.expr
    names: Mapping[str, Out]
    raises: bool


def open_loop(lo: Context, node: Comprehension) -> Loop:
    """Lower the range, name the elements."""
    type_ = lo.type_of(node.range)
    lowered = native(lo.lower(node.range))
    held, known = _iterable(lo, lowered, type_, pairs=bool(node.variable2))
    held = lo.spill(held)
    first = lo.fresh("i")
    names = {node.variable: Out(load(first))}
    target: ast.expr = ast.Name(first, ast.Store())
    if node.variable2:
        second = lo.fresh("i")
        names[node.variable2] = Out(load(second))
        target = ast.Tuple([target, ast.Name(second, ast.Store())], ast.Store())
    items = _items(lo, held.expr, type_, pairs=bool(node.variable2))
    if lo.single_loop:
        size = ast.Call(load("len"), [held.expr], [])
        items = either(compare(size, ast.LtE(), const(MAX_STEPS)), items, lo.call(limited, items))
    return Loop(target, items, names, lowered.raises or not known)


def close_loop(lo: Context, loop: Loop, body: Statements) -> None:
    """Write the loop around its body."""
    lo.block.append(ast.For(loop.target, loop.items, body or [ast.Pass()], []))


def _iterable(lo: Context, held: Out, type_: Type, *, pairs: bool) -> tuple[Out, bool]:
    """Something that has a length; whether it surely can be gone through."""
    if type_.name == "list" or (type_.name == "map" and _has_plain_keys(type_)):
        return held, True
    if type_.name == "map":
        return Out(lo.call(dynamic.items_of if pairs else dynamic.keys_of, held.expr), held.raises), True
    return Out(lo.call(dynamic.iterated_pairs if pairs else dynamic.iterated, held.expr), raises=True), False


def _items(lo: Context, held: ast.expr, type_: Type, *, pairs: bool) -> ast.expr:
    if not pairs:
        return held
    if type_.name == "list":
        return lo.call(enumerate, held)
    return method(held, "items") if type_.name == "map" and _has_plain_keys(type_) else held


def _has_plain_keys(type_: Type) -> bool:
    return type_.params[0].name in ("string", "int", "uint")


def limited(items: Iterable[object]) -> Iterator[object]:
    """Pass on the items that the budget allows."""
    yield from islice(items, MAX_STEPS)
    over_limit()
