"""What all loops share: what they go through, the names that they bind, the steps that they count."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import (
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
from fairlead.cel.syntax.ast import Comprehension, Type
from fairlead.cel.values.meter import STEP


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` whose body is being written."""

    id: int
    target: ast.expr
    items: ast.expr
    iterator: str  # its name, if a loop that ends early asks what is left
    names: Mapping[str, Out]
    raises: bool


def open_loop(lo: Context, node: Comprehension, *, may_end_early: bool = False) -> Loop:
    """Lower the range, name the elements.

    The engine counts a step when it takes an element, and only then asks whether the loop goes on: one that ends early
    has counted one more than it went through, unless nothing was left.
    """
    type_ = lo.type_of(node.range)
    held = native(lo.lower(node.range))
    if lo.estimate is not None:
        held = lo.spill(held)
        weight = STEP + sum(lo.estimate.weight(lo.checked, part) for part in (node.condition, node.step))
        lo.block.append(ast.Expr(method(load("m"), "loop", held.expr, const(weight))))
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
        allowed = const(MAX_STEPS - 1 if may_end_early else MAX_STEPS)
        items = either(compare(size, ast.LtE(), const(MAX_STEPS)), items, lo.call(limited, items, allowed))
    iterator = ""
    if may_end_early and not lo.single_loop:
        iterator = lo.fresh("s")
        lo.assign(iterator, lo.call(iter, items))
        items = load(iterator)
    return Loop(node.id, target, items, iterator, names, held.raises)


def close_loop(lo: Context, loop: Loop, body: Statements) -> None:
    """Write the loop around its body."""
    body = [*lo.entering(loop.id, [name.expr for name in loop.names.values()]), *body]
    lo.block.append(ast.For(loop.target, loop.items, body or [ast.Pass()], []))


def end_early(lo: Context, loop: Loop) -> None:
    """Write what leaves the loop."""
    if loop.iterator:
        left = compare(lo.call(next, load(loop.iterator), lo.ref(loop_end)), ast.IsNot(), lo.ref(loop_end))
        with lo.inside() as count:
            lo.count_step()
        lo.branch(left, count)
    lo.block.append(ast.Break())


def loop_end() -> None:
    """Stand for what comes after the last element."""


def _items(lo: Context, held: ast.expr, type_: Type, *, pairs: bool) -> ast.expr:
    if not pairs:
        return held
    return lo.call(enumerate, held) if type_.name == "list" else method(held, "items")


def limited(items: Iterable[object], allowed: int) -> Iterator[object]:
    """Pass on the items that the budget allows."""
    yield from islice(items, allowed)
    over_limit()
