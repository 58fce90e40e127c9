"""`==`, `<` and `in`: native where Python's operators are those of the language."""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fairlead.cel.functions import metered
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, any_raises, compare, load, negate
from fairlead.cel.syntax.ast import Call
from fairlead.cel.values import equality
from fairlead.cel.values.meter import Meter

_NATIVE: Final = frozenset({"int", "uint", "bool", "string", "bytes", "timestamp", "duration", "type"})
"""Types on two values of which Python's `==` and `in` are those of the language."""
_TEXTS: Final = frozenset({"string", "bytes"})
_SIGNS: Final[Mapping[str, tuple[type[ast.cmpop], Callable[[Any, Any], Any]]]] = {
    "_<_": (ast.Lt, operator.lt),
    "_<=_": (ast.LtE, operator.le),
    "_>_": (ast.Gt, operator.gt),
    "_>=_": (ast.GtE, operator.ge),
}
ORDER: Final = frozenset(_SIGNS)


def order(lo: Context, node: Call) -> Out:
    """Write `left < right`, and the other operators of order."""
    sign, function = _SIGNS[node.function]
    left, right = lo.natives(node.args)
    if lo.type_of(node.args[0]).name in _TEXTS and lo.is_long(*node.args):
        return Out(lo.call(metered.ordered_texts, load("m"), lo.ref(function), left.expr, right.expr), raises=True)
    return Out(compare(left.expr, sign(), right.expr), any_raises(left, right))


def equals(lo: Context, node: Call) -> Out:
    """Write `left == right` or `left != right`."""
    one, other = (lo.type_of(arg) for arg in node.args)
    same: ast.cmpop = ast.Eq() if node.function == "_==_" else ast.NotEq()
    if one == other and (one.name in _NATIVE or one.name == "double"):
        left, right = lo.natives(node.args)
        if one.name in _TEXTS and lo.is_long(*node.args):
            made = lo.call(metered.equal_texts, load("m"), left.expr, right.expr)
            return Out(made if node.function == "_==_" else negate(made), raises=True)
        return Out(compare(left.expr, same, right.expr), any_raises(left, right))
    left, right = lo.sequence(node.args)
    made = lo.paying(equality.equal, left.expr, right.expr)
    return Out(made if node.function == "_==_" else negate(made), any_raises(left, right))


def membership(lo: Context, node: Call) -> Out:
    """Write `item in list` or `key in map`."""
    item_type, type_ = (lo.type_of(arg) for arg in node.args)
    item, held = lo.natives(node.args)
    if type_.name == "map":
        return Out(compare(lo.key(node.args[0], item), ast.In(), held.expr), any_raises(item, held))
    if item_type.name in _NATIVE:
        if lo.estimate is not None:
            return Out(lo.call(metered.among, load("m"), item.expr, held.expr), raises=True)
        return Out(compare(item.expr, ast.In(), held.expr), any_raises(item, held))
    if lo.estimate is not None:
        return Out(lo.call(_is_in_paying, load("m"), item.expr, held.expr), raises=True)
    return Out(lo.call(_is_in, item.expr, held.expr), any_raises(item, held))


def _is_in(item: object, values: Sequence[object]) -> bool:
    """Return whether a list has an element that equals a value."""
    return equality.contains(values, item)


def _is_in_paying(meter: Meter, item: object, values: Sequence[object]) -> bool:
    """Pay for the comparisons, then return whether a list has an element that equals a value."""
    metered.look(meter, item, values)
    return equality.contains(values, item)
