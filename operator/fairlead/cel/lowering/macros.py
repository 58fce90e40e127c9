"""Macros: folds for the engine, loops here. They are recognised by their shape, since users cannot write a fold.

An error inside a loop does not end it: the engine continues with the error as the accumulator, and counts the steps.
Which error remains at the end depends on the macro: the first for `exists`, `all` and `map`, the last for macros that
filter.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import (
    MAX_STEPS,
    Out,
    Statements,
    all_of,
    compare,
    const,
    either,
    load,
    method,
    native,
    negate,
    over_limit,
)
from fairlead.cel.syntax.ast import Call, Comprehension, Const, Ident, ListExpr, Node, Type, walk
from fairlead.cel.values.errors import NotLoweredError
from fairlead.cel.values.meter import STEP


@dataclass(frozen=True, slots=True)
class _Loop:
    """A `for` whose body is being written."""

    id: int
    target: ast.expr
    items: ast.expr
    iterator: str
    """The variable of the iterator, if a loop that ends early has to know whether elements are left; else ""."""
    names: Mapping[str, Out]
    raises: bool


def _open_loop(lo: Context, node: Comprehension, *, may_end_early: bool = False) -> _Loop:
    """Lower the range and bind the elements.

    The engine counts a step when it takes an element, and only then evaluates whether the loop continues: a loop that
    ends early has counted one step more than it made, unless no element was left.
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
        items = either(compare(size, ast.LtE(), const(MAX_STEPS)), items, lo.call(_limited, items, allowed))
    iterator = ""
    if may_end_early and not lo.single_loop:
        iterator = lo.fresh("s")
        lo.assign(iterator, lo.call(iter, items))
        items = load(iterator)
    return _Loop(node.id, target, items, iterator, names, held.raises)


def _close_loop(lo: Context, loop: _Loop, body: Statements) -> None:
    """Write the loop around its body."""
    body = [*lo.entering(loop.id, [name.expr for name in loop.names.values()]), *body]
    lo.block.append(ast.For(loop.target, loop.items, body or [ast.Pass()], []))


def _end_early(lo: Context, loop: _Loop) -> None:
    """Write the code that leaves the loop."""
    if loop.iterator:
        is_left = compare(lo.call(next, load(loop.iterator), lo.ref(_loop_end)), ast.IsNot(), lo.ref(_loop_end))
        with lo.inside() as count:
            lo.count_step()
        lo.branch(is_left, count)
    lo.block.append(ast.Break())


def _loop_end() -> None:
    """Stand for the end of an iterator."""


def _items(lo: Context, value: ast.expr, type_: Type, *, pairs: bool) -> ast.expr:
    if not pairs:
        return value
    return lo.call(enumerate, value) if type_.name == "list" else method(value, "items")


def _limited(items: Iterable[object], allowed: int) -> Iterator[object]:
    """Yield as many items as the budget allows, then raise Abort."""
    yield from islice(items, allowed)
    over_limit()


class Unset:
    """Marker of a value that is not computed yet."""


UNSET: Final = Unset()


def bind(lo: Context, node: Comprehension) -> Out:
    """Write `cel.bind(name, value, expression)`."""
    if not any(isinstance(part, Ident) and part.name == node.accumulator for part in walk(node.result)):
        return lo.lower(node.result)
    with lo.inside() as block:
        value = lo.lower(node.init)
    if not value.raises and not lo.has_loop(node.init):
        lo.block += block
        bound = lo.spill(value)
    else:
        bound = _lazily(lo, value, block, counts=lo.has_loop(node.init) and not lo.single_loop)
    with lo.binding({node.accumulator: bound}):
        return lo.lower(node.result)


def _lazily(lo: Context, value: Out, block: Statements, *, counts: bool) -> Out:
    """Write a value as a function that computes it at the first call; an error is kept too."""
    lo.counts = lo.counts or counts
    kept, error, function = lo.fresh("v"), lo.fresh("e"), lo.fresh("lazy")
    lo.assign(kept, lo.ref(UNSET))
    lo.assign(error, const(None))
    with lo.inside() as compute:
        compute += block
        lo.assign(kept, value.expr)
    with lo.inside() as body:
        body.append(ast.Nonlocal([kept, error, *([lo.counter] if counts else [])]))
        with lo.inside() as first:
            if value.raises:
                lo.catch_first(compute, error)
            else:
                first += compute
        unset = compare(load(kept), ast.Is(), lo.ref(UNSET))
        lo.branch(all_of(unset, compare(load(error), ast.Is(), const(None))), first)
        if value.raises:
            lo.raise_kept(error)
        body.append(ast.Return(load(kept)))
    none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    lo.block.append(ast.FunctionDef(function, none, body, []))
    return Out(ast.Call(load(function), [], []), value.raises)


def fold(lo: Context, node: Comprehension) -> Out:
    """Write a macro. Raises NotLoweredError for a fold that no macro makes."""
    match node:
        case Comprehension(range=ListExpr(elements=()), condition=Const(value=False)):
            return bind(lo, node)
        case Comprehension(step=Call(function="_||_", args=(_, predicate)), init=Const(value=False)):
            return _quantifier(lo, node, predicate, universal=False)
        case Comprehension(step=Call(function="_&&_", args=(_, predicate)), init=Const(value=True)):
            return _quantifier(lo, node, predicate, universal=True)
        case Comprehension(step=Call(function="_?_:_", args=(predicate, _, _)), init=Const(value=0)):
            return _exactly_one(lo, node, predicate)
        case Comprehension(step=Call(function="_?_:_", args=(predicate, step, _)), init=ListExpr()):
            return _collect(lo, node, step, predicate)
        case Comprehension(init=ListExpr()):
            return _collect(lo, node, node.step, None)
    raise NotLoweredError("a fold of a kind that no macro makes")


def _quantifier(lo: Context, node: Comprehension, predicate_node: Node, *, universal: bool) -> Out:
    """Write `all` or `exists`: the first element that decides ends the loop, and errors before it are dropped."""
    loop = _open_loop(lo, node, may_end_early=True)
    result = lo.fresh("r")
    lo.assign(result, const(universal))
    with lo.inside() as test, lo.binding(loop.names):
        predicate = lo.lower(predicate_node)
    decided = negate(predicate.expr) if universal else predicate.expr
    with lo.inside() as found:
        lo.assign(result, const(not universal))
        _end_early(lo, loop)
    error, absorbs = lo.fresh("e"), lo.absorbs(predicate.raises)
    if absorbs:
        lo.assign(error, const(None))
    with lo.inside() as body:
        if not lo.single_loop:
            lo.count_step()
        if absorbs:
            name = lo.fresh("p")
            with lo.inside() as risky:
                risky += test
                lo.assign(name, decided)
            lo.catch_first(risky, error, [ast.Continue()])
            lo.branch(load(name), found)
        else:
            lo.block += test
            lo.branch(decided, found)
    _close_loop(lo, loop, body)
    if absorbs:
        undecided = load(result) if universal else negate(load(result))
        kept = compare(load(error), ast.IsNot(), const(None))
        lo.branch(all_of(undecided, kept), [ast.Raise(load(error), None)])
    return Out(load(result), loop.raises or predicate.raises)


def _exactly_one(lo: Context, node: Comprehension, predicate_node: Node) -> Out:
    """Write `exists_one`, which evaluates every element."""
    loop = _open_loop(lo, node)
    count, error = lo.fresh("r"), lo.fresh("e")
    lo.assign(count, const(0))
    with lo.inside() as test, lo.binding(loop.names):
        predicate = lo.lower(predicate_node)
    more: Statements = [ast.AugAssign(ast.Name(count, ast.Store()), ast.Add(), const(1))]
    absorbs = lo.absorbs(predicate.raises)
    if absorbs:
        lo.assign(error, const(None))
    with lo.inside() as body:
        if not lo.single_loop:
            lo.count_step()
        with lo.inside() as risky:
            risky += test
            lo.branch(predicate.expr, more)
        if absorbs:
            lo.catch_last(risky, error)
        else:
            lo.block += risky
    _close_loop(lo, loop, body)
    if absorbs:
        lo.raise_kept(error)
    return Out(compare(load(count), ast.Eq(), const(1)), loop.raises or predicate.raises)


def _collect(lo: Context, node: Comprehension, step: Node, predicate_node: Node | None) -> Out:
    """Write `map`, `filter` or `transformList`."""
    loop = _open_loop(lo, node)
    result, error = lo.fresh("r"), lo.fresh("e")
    lo.assign(result, ast.List([], ast.Load()))
    with lo.binding(loop.names):
        with lo.inside() as add:
            added = _added(lo, step, result)
        with lo.inside() as test:
            predicate = lo.lower(predicate_node) if predicate_node else Out(const(value=True))
    may_raise = added or predicate.raises
    keeps_added, keeps_test = lo.absorbs(added), lo.absorbs(predicate.raises)
    if keeps_added or keeps_test:
        lo.assign(error, const(None))
    with lo.inside() as body:
        if not lo.single_loop:
            lo.count_step()
        guarded = add
        if keeps_added:
            with lo.inside() as guarded:
                lo.catch_first(add, error)
        if predicate_node is None:
            lo.block += guarded
        elif not keeps_test:
            lo.block += test
            lo.branch(predicate.expr, guarded)
        else:
            name = lo.fresh("p")
            with lo.inside() as risky:
                risky += test
                lo.assign(name, predicate.expr)
            lo.catch_last(risky, error, [ast.Continue()])
            lo.branch(load(name), guarded)
    _close_loop(lo, loop, body)
    if keeps_added or keeps_test:
        lo.raise_kept(error)
    return Out(load(result), loop.raises or may_raise)


def _added(lo: Context, step: Node, result: str) -> bool:
    """Write the code that adds one element; return whether it may raise."""
    match step:
        case Call(function="_+_", args=(_, ListExpr(elements=(element,)))):
            out = lo.lower(element)
            lo.block.append(ast.Expr(method(load(result), "append", out.expr)))
            return out.raises
    raise NotLoweredError("a fold of a kind that no macro makes")
