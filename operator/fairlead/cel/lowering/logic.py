"""`&&`, `||` and `?:`. An operand that raises is absorbed when the other one decides."""

import ast

from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, Statements, all_of, any_of, any_raises, const, either, load, negate
from fairlead.cel.syntax.ast import Call


def junction(lo: Context, node: Call, *, conjunction: bool) -> Out:
    """Write `left && right` or `left || right`."""
    with lo.inside() as left_block:
        left = lo.lower(node.args[0])
    with lo.inside() as right_block:
        right = lo.lower(node.args[1])
    if lo.absorbs(left.raises):
        return _absorbing(lo, (left, left_block), (right, right_block), conjunction=conjunction)
    lo.block += left_block
    if not right_block:
        join = all_of if conjunction else any_of
        return Out(join(left.expr, right.expr), any_raises(left, right))
    name = lo.fresh()
    lo.assign(name, left.expr)
    with lo.inside() as then:
        then += right_block
        lo.assign(name, right.expr)
    lo.branch(_undecided(name, conjunction=conjunction), then)
    return Out(load(name), any_raises(left, right))


def _absorbing(lo: Context, left: tuple[Out, Statements], right: tuple[Out, Statements], *, conjunction: bool) -> Out:
    """Write a junction whose left side may raise: the error stands only if the right side does not decide."""
    name, error = lo.fresh(), lo.fresh("e")
    lo.assign(error, const(None))
    with lo.inside() as first:
        first += left[1]
        lo.assign(name, left[0].expr)
    with lo.inside() as unknown:
        lo.assign(name, const(conjunction))
    lo.catch_last(first, error, unknown)
    with lo.inside() as second:
        with lo.inside() as body:
            body += right[1]
            lo.assign(name, right[0].expr)
        if right[0].raises:
            with lo.inside() as handler:
                lo.raise_kept(error)
                lo.block.append(ast.Raise(None, None))
            lo.guard(body, handler)
        else:
            second += body
        with lo.inside() as undecided:
            lo.raise_kept(error)
        lo.branch(_undecided(name, conjunction=conjunction), undecided)
    lo.branch(_undecided(name, conjunction=conjunction), second)
    return Out(load(name), raises=True)


def _undecided(name: str, *, conjunction: bool) -> ast.expr:
    return load(name) if conjunction else negate(load(name))


def negation(lo: Context, node: Call) -> Out:
    """Write `!value`."""
    value = lo.lower(node.args[0])
    return Out(negate(value.expr), value.raises)


def conditional(lo: Context, node: Call) -> Out:
    """Write `test ? then : otherwise`."""
    test = lo.lower(node.args[0])
    with lo.inside() as then_block:
        then = lo.lower(node.args[1])
    with lo.inside() as else_block:
        otherwise = lo.lower(node.args[2])
    may_raise = any_raises(test, then, otherwise)
    if not then_block and not else_block:
        return Out(either(test.expr, then.expr, otherwise.expr), may_raise)
    name = lo.fresh()
    for block, out in ((then_block, then), (else_block, otherwise)):
        block.append(ast.Assign([ast.Name(name, ast.Store())], out.expr))
    lo.branch(test.expr, then_block, else_block)
    return Out(load(name), may_raise)
