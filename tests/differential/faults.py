"""Faults to put into the lowering, one at a time: each has to be found."""

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from fairlead.cel.functions import maths
from fairlead.cel.lowering import context, field_access, lowerer, macros, operators, optional_access
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, all_of, any_of, attribute, compare, const, index, method, native
from fairlead.cel.syntax.ast import Call, Const, Select
from fairlead.cel.values.value_types import UINT_MAX, UInt

Fault = Callable[[], Any]


def _without_absorbing(lo: Context, left: Any, right: Any, *, conjunction: bool) -> Out:
    lo.block += left[1] + right[1]
    return Out((all_of if conjunction else any_of)(left[0].expr, right[0].expr), raises=True)


def _there_if_not_zero(_lo: Context, held: ast.expr, _message: str, field: str) -> ast.expr:
    return compare(ast.BoolOp(ast.Or(), [attribute(held, field), const(None)]), ast.IsNot(), const(None))


def _any_index(lo: Context, node: Call) -> Out:
    if lo.type_of(node.args[0]).name == "list" and lo.type_of(node.args[1]).name == "int":
        held, key = lo.natives(node.args)
        return Out(index(held.expr, key.expr), raises=True)
    return field_access.element_of(lo, node)


def _wrapping(lo: Context, node: Call, kind: str) -> Out:
    if kind != "uint":
        return _arithmetic(lo, node, kind)
    left, right = lo.natives(node.args)
    sign = {"_+_": ast.Add(), "_-_": ast.Sub(), "_*_": ast.Mult()}[node.function]
    wrapped = ast.BinOp(ast.BinOp(left.expr, sign, right.expr), ast.BitAnd(), const(UINT_MAX))
    return Out(lo.call(UInt, wrapped), raises=left.raises or right.raises)


def _nan_equals_itself(lo: Context, node: Call) -> Out:
    if {lo.type_of(arg).name for arg in node.args} == {"double"}:
        left, right = lo.sequence(node.args)
        made = lo.call(_same_double if node.function == "_==_" else _other_double, left.expr, right.expr)
        return Out(made, left.raises or right.raises)
    return operators.equals(lo, node)


def _floor(left: int, right: int) -> int:
    return maths.divide_int(left, right) if right == 0 else left // right


def _same_double(left: float, right: float) -> bool:
    return left == right or (left != left and right != right)


def _other_double(left: float, right: float) -> bool:
    return not _same_double(left, right)


def _escaped(lo: Context, node: Const) -> Out:
    text = node.value
    return Out(const(text.replace("\n", "\\n"))) if isinstance(text, str) else _constant(lo, node)


def _default_of_key(lo: Context, node: Select) -> Out:
    if lo.type_of(node.operand).name == "map" and not node.test_only:
        return Out(method(native(lo.lower(node.operand)).expr, "get", const(node.field), const(0)), raises=True)
    return _select(lo, node)


def _lost_default(lo: Context, node: Call) -> Out:
    return optional_access.value(lo, Call(node.id, node.function, node.args[:1]))


_arithmetic, _constant, _select = operators._arithmetic, lowerer.constant, field_access.select_field


@contextmanager
def _special(name: str, function: Callable[[Context, Any], Out]) -> Iterator[None]:
    with patch.dict(operators._SPECIAL, {name: function}):
        yield


@contextmanager
def _steps(number: int) -> Iterator[None]:
    with patch.object(context, "MAX_STEPS", number), patch.object(macros, "MAX_STEPS", number):
        yield


FAULTS: Mapping[str, Fault] = {
    "the check for overflow is gone": lambda: patch.multiple(operators, INT_MIN=-(1 << 99), INT_MAX=1 << 99),
    "&& and || do not absorb errors": lambda: patch.object(operators, "_absorbing", _without_absorbing),
    "has() is false for a zero value": lambda: patch.object(field_access, "has_field", _there_if_not_zero),
    "the last error is kept and not the first": lambda: patch.object(Context, "catch_first", Context.catch_last),
    "a negative index counts from the end": lambda: _special("_[_]", _any_index),
    "uints wrap around": lambda: patch.object(operators, "_arithmetic", _wrapping),
    "NaN equals itself": lambda: _special("_==_", _nan_equals_itself),
    "division rounds down": lambda: patch.dict(operators._OWN, {"divide_int64": _floor}),
    "newlines in texts are escaped": lambda: patch.object(lowerer, "constant", _escaped),
    "one step more is allowed": lambda: _steps(10_000),
    "a missing key has a default": lambda: patch.object(field_access, "select_field", _default_of_key),
    "the default of an optional is lost": lambda: _special("orValue", _lost_default),
}
