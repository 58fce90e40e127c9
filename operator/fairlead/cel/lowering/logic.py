"""`&&`, `||` and `?:`. An operand that raises is absorbed when the other one decides."""

import ast

from fairlead.cel.lowering import dynamic
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, Statements, all_of, any_of, any_raises, const, either, load, negate
from fairlead.cel.syntax.ast import DYN, Call, Node


def operand(lo: Context, node: Node) -> Out:
    """An operand of logic; only `dyn` may turn out not to be a bool."""
    out = lo.lower(node)
    if lo.type_of(node) == DYN:
        return Out(lo.call(dynamic.as_bool, out.expr), raises=True)
    return out


def junction(lo: Context, node: Call, *, conjunction: bool) -> Out:
    """`left && right`, or `left || right`."""
    may_be_anything = lo.type_of(node.args[0]) == DYN
    with lo.inside() as left_block:
        left = operand(lo, node.args[0]) if lo.optimistic else lo.lower(node.args[0])
    with lo.inside() as right_block:
        right = operand(lo, node.args[1])
    if lo.absorbs(left.raises or may_be_anything):
        sides = (left, left_block), (right, right_block)
        return _absorbing(lo, *sides, conjunction=conjunction, may_be_anything=may_be_anything)
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


def _absorbing(
    lo: Context,
    left: tuple[Out, Statements],
    right: tuple[Out, Statements],
    *,
    conjunction: bool,
    may_be_anything: bool,
) -> Out:
    """The left side may raise: the right side is asked all the same, and if it does not decide, the error stands.

    That a side is no bool is only said if neither of them raised.
    """
    name, error, no_bool = lo.fresh(), lo.fresh("e"), lo.fresh("b")
    lo.assign(error, const(None))
    with lo.inside() as first:
        first += left[1]
        lo.assign(name, left[0].expr)
    with lo.inside() as unknown:
        lo.assign(name, const(conjunction))
    if left[0].raises:
        lo.catch_last(first, error, unknown)
    else:
        lo.block += first
    if may_be_anything:
        lo.assign(no_bool, lo.call(dynamic.is_no_bool, load(name)))
        lo.branch(load(no_bool), [ast.Assign([ast.Name(name, ast.Store())], const(conjunction))])
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
            if may_be_anything:
                lo.branch(load(no_bool), [ast.Expr(lo.call(dynamic.no_overload, const("_&&_")))])
        lo.branch(_undecided(name, conjunction=conjunction), undecided)
    lo.branch(_undecided(name, conjunction=conjunction), second)
    return Out(load(name), raises=True)


def _undecided(name: str, *, conjunction: bool) -> ast.expr:
    return load(name) if conjunction else negate(load(name))


def negation(lo: Context, node: Call) -> Out:
    """`!value`."""
    value = operand(lo, node.args[0])
    return Out(negate(value.expr), value.raises)


def conditional(lo: Context, node: Call) -> Out:
    """`test ? then : otherwise`."""
    test = operand(lo, node.args[0])
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
