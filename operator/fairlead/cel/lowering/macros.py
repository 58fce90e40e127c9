"""The macros: folds by the engine, loops here. Known by their shape, since nobody can write another fold.

What raises inside a loop does not end it: the engine goes on with an error as the accumulator, and so do the steps
that it counts. Which error is left at the end depends on the macro: for `exists`, `all` and `map` it is the first, for
what filters the last.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fairlead.cel.checked import Call, Comprehension, Const, Ident, ListExpr, Node, StructExpr, Type, walk
from fairlead.cel.errors import Abort, Kind
from fairlead.cel.lowering import access, logic
from fairlead.cel.lowering.builder import (
    MAX_STEPS,
    NotLoweredError,
    Out,
    Statements,
    all_of,
    compare,
    const,
    either,
    load,
    method,
    negate,
    over_limit,
)
from fairlead.cel.lowering.context import Context, has_loop
from fairlead.cel.values import BoolKey


def fold(lo: Context, node: Comprehension) -> Out:
    """A macro."""
    match node:
        case Comprehension(range=ListExpr(elements=()), condition=Const(value=False)):
            return _bind(lo, node)
        case Comprehension(step=Call(function="_||_", args=(_, predicate)), init=Const(value=False)):
            return _quantifier(lo, node, predicate, universal=False)
        case Comprehension(step=Call(function="_&&_", args=(_, predicate)), init=Const(value=True)):
            return _quantifier(lo, node, predicate, universal=True)
        case Comprehension(step=Call(function="_?_:_", args=(predicate, _, _)), init=Const(value=0)):
            return _exactly_one(lo, node, predicate)
        case Comprehension(step=Call(function="_?_:_", args=(predicate, step, _)), init=ListExpr() | StructExpr()):
            return _collect(lo, node, step, predicate)
        case Comprehension(init=ListExpr() | StructExpr()):
            return _collect(lo, node, node.step, None)
    raise NotLoweredError("a fold of a kind that no macro makes")


def _bind(lo: Context, node: Comprehension) -> Out:
    """`cel.bind(name, value, expression)`: the value is computed when it is first used, if it is."""
    uses = sum(isinstance(part, Ident) and part.name == node.accumulator for part in walk(node.result))
    if not uses:
        return lo.lower(node.result)
    with lo.inside() as block:
        value = lo.lower(node.init)
    if not value.raises and not has_loop(node.init):
        lo.block += block
        bound = lo.spill(value)
    else:
        bound = _lazily(lo, value, block)
    with lo.binding({node.accumulator: bound}):
        return lo.lower(node.result)


def _lazily(lo: Context, value: Out, block: Statements) -> Out:
    """A value behind a function that computes it once."""
    kept, function = lo.fresh("v"), lo.fresh("lazy")
    lo.assign(kept, lo.ref(UNSET))
    with lo.inside() as compute:
        compute += block
        lo.assign(kept, value.expr)
    unset = compare(load(kept), ast.Is(), lo.ref(UNSET))
    body: Statements = [ast.Nonlocal(sorted({kept, *([lo.counter] if lo.counts else [])}))]
    body += [ast.If(unset, compute, []), ast.Return(load(kept))]
    none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    lo.block.append(ast.FunctionDef(function, none, body, []))
    return Out(ast.Call(load(function), [], []), value.raises)


class Unset:
    """A value that was not computed yet."""


UNSET: Final = Unset()


def limited(items: Iterable[object]) -> Iterator[object]:
    """The items that the budget allows."""
    yield from islice(items, MAX_STEPS)
    over_limit()


def keys_of(held: Mapping[object, object]) -> list[object]:
    """The keys of a map, bools among them."""
    return [key.value if isinstance(key, BoolKey) else key for key in held]


def items_of(held: Mapping[object, object]) -> list[tuple[object, object]]:
    """The entries of a map, bools among the keys."""
    return list(zip(keys_of(held), held.values(), strict=True))


@dataclass(frozen=True, slots=True)
class _Loop:
    """A `for` whose body is being written."""

    target: ast.expr
    items: ast.expr
    names: Mapping[str, Out]
    raises: bool


def _open(lo: Context, node: Comprehension) -> _Loop:
    """Lower the range, name the elements."""
    type_ = lo.type_of(node.range)
    held = lo.spill(lo.lower(node.range))
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
    return _Loop(target, items, names, held.raises)


def _items(lo: Context, held: ast.expr, type_: Type, *, pairs: bool) -> ast.expr:
    if type_.name == "list":
        return lo.call(enumerate, held) if pairs else held
    if type_.name != "map":
        raise NotLoweredError(f"a loop over {type_}")
    if type_.params[0].name in ("string", "int", "uint"):
        return method(held, "items") if pairs else held
    return lo.call(items_of if pairs else keys_of, held)


def _close(lo: Context, loop: _Loop, body: Statements) -> None:
    lo.block.append(ast.For(loop.target, loop.items, body or [ast.Pass()], []))


def _quantifier(lo: Context, node: Comprehension, predicate_node: Node, *, universal: bool) -> Out:
    """`all`, `exists`: the first element that decides ends the loop, errors before it are forgotten."""
    loop = _open(lo, node)
    result = lo.fresh("r")
    lo.assign(result, const(universal))
    with lo.inside() as test, lo.binding(loop.names):
        predicate = logic.operand(lo, predicate_node)
    decided = negate(predicate.expr) if universal else predicate.expr
    found: Statements = [ast.Assign([ast.Name(result, ast.Store())], const(not universal)), ast.Break()]
    error = lo.fresh("e")
    if predicate.raises:
        lo.assign(error, const(None))
    with lo.inside() as body:
        if not lo.single_loop:
            lo.count_step()
        if predicate.raises:
            name = lo.fresh("p")
            with lo.inside() as risky:
                risky += test
                lo.assign(name, decided)
            lo.catch_first(risky, error, [ast.Continue()])
            lo.branch(load(name), found)
        else:
            lo.block += test
            lo.branch(decided, found)
    _close(lo, loop, body)
    if predicate.raises:
        undecided = load(result) if universal else negate(load(result))
        kept = compare(load(error), ast.IsNot(), const(None))
        lo.branch(all_of(undecided, kept), [ast.Raise(load(error), None)])
    return Out(load(result), loop.raises or predicate.raises)


def _exactly_one(lo: Context, node: Comprehension, predicate_node: Node) -> Out:
    """`exists_one`: every element is asked."""
    loop = _open(lo, node)
    count, error = lo.fresh("r"), lo.fresh("e")
    lo.assign(count, const(0))
    with lo.inside() as test, lo.binding(loop.names):
        predicate = logic.operand(lo, predicate_node)
    more: Statements = [ast.AugAssign(ast.Name(count, ast.Store()), ast.Add(), const(1))]
    if predicate.raises:
        lo.assign(error, const(None))
    with lo.inside() as body:
        if not lo.single_loop:
            lo.count_step()
        with lo.inside() as risky:
            risky += test
            lo.branch(predicate.expr, more)
        if predicate.raises:
            lo.catch_last(risky, error)
        else:
            lo.block += risky
    _close(lo, loop, body)
    if predicate.raises:
        lo.raise_kept(error)
    return Out(compare(load(count), ast.Eq(), const(1)), loop.raises or predicate.raises)


def _collect(lo: Context, node: Comprehension, step: Node, predicate_node: Node | None) -> Out:
    """`map`, `filter`, `transformList`, `transformMap` and the like."""
    loop = _open(lo, node)
    result, error = lo.fresh("r"), lo.fresh("e")
    lo.assign(result, ast.List([], ast.Load()) if isinstance(node.init, ListExpr) else ast.Dict([], []))
    with lo.binding(loop.names):
        with lo.inside() as add:
            added = _added(lo, step, result)
        with lo.inside() as test:
            predicate = logic.operand(lo, predicate_node) if predicate_node else Out(const(True))
    may_raise = added or predicate.raises
    if may_raise:
        lo.assign(error, const(None))
    with lo.inside() as body:
        if not lo.single_loop:
            lo.count_step()
        guarded = add
        if added:
            with lo.inside() as guarded:
                lo.catch_first(add, error)
        if predicate_node is None:
            lo.block += guarded
        elif not predicate.raises:
            lo.block += test
            lo.branch(predicate.expr, guarded)
        else:
            name = lo.fresh("p")
            with lo.inside() as risky:
                risky += test
                lo.assign(name, predicate.expr)
            lo.catch_last(risky, error, [ast.Continue()])
            lo.branch(load(name), guarded)
    _close(lo, loop, body)
    if may_raise:
        lo.raise_kept(error)
    return Out(load(result), loop.raises or may_raise)


def _added(lo: Context, step: Node, result: str) -> bool:
    """Write how one element is added; says whether it may raise."""
    match step:
        case Call(function="_+_", args=(_, ListExpr(elements=(element,)))):
            out = lo.lower(element)
            lo.block.append(ast.Expr(method(load(result), "append", out.expr)))
            return out.raises
        case Call(function="cel.@mapInsert", args=(_, key, value)):
            made_key, made = lo.sequence([key, value])
            key_expr = access.map_key(lo, made_key.expr, lo.type_of(key))
            lo.block.append(ast.Expr(lo.call(insert, load(result), key_expr, made.expr)))
            return True
        case Call(function="cel.@mapInsert", args=(_, entries)):
            out = lo.lower(entries)
            lo.block.append(ast.Expr(lo.call(insert_all, load(result), out.expr)))
            return True
    raise NotLoweredError("a fold of a kind that no macro makes")


def insert(held: dict[object, object], key: object, value: object) -> None:
    """An entry that must be new."""
    if key in held:
        raise Abort(Kind.DUPLICATE_KEY, f"the key {key!r} comes twice")
    held[key] = value


def insert_all(held: dict[object, object], entries: Mapping[object, object]) -> None:
    """Entries that must be new."""
    for key, value in entries.items():
        insert(held, key, value)
