"""`cel.bind` and the macros made of it: a value is computed when it is first used, if it is."""

import ast
from typing import Final

from fairlead.cel.checked import Comprehension, Ident, walk
from fairlead.cel.lowering.builder import Out, Statements, all_of, compare, const, load
from fairlead.cel.lowering.context import Context


class Unset:
    """A value that was not computed yet."""


UNSET: Final = Unset()


def bind(lo: Context, node: Comprehension) -> Out:
    """`cel.bind(name, value, expression)`."""
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
    """A value behind a function that computes it once; an error is kept as well."""
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
