"""`cel.bind` and the macros made of it: a value is computed when it is first used, if it is."""

import ast
from typing import Final

from fairlead.cel.checked import Comprehension, Ident, walk
from fairlead.cel.lowering.builder import Out, Statements, compare, load
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
