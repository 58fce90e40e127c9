"""`==`, `<` and `in`: native where Python's are those of the language."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.cel.functions import metered
from fairlead.cel.lowering import dynamic, field_access
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, any_raises, compare, load, negate
from fairlead.cel.syntax.ast import Call, Type
from fairlead.cel.values import equality

# Python's own operators are those of the language on two values of one of these types.
_NATIVE: Final = frozenset({"int", "uint", "bool", "string", "bytes", "timestamp", "duration", "null", "type"})
_ORDERED: Final = _NATIVE - {"null", "type"} | {"double"}
_TEXTS: Final = frozenset({"string", "bytes"})
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_SIGNS: Final[Mapping[str, tuple[type[ast.cmpop], Callable[[object, object], bool]]]] = {
    "_<_": (ast.Lt, equality.less),
    "_<=_": (ast.LtE, equality.less_equal),
    "_>_": (ast.Gt, equality.greater),
    "_>=_": (ast.GtE, equality.greater_equal),
}
ORDER: Final = frozenset(_SIGNS)
_NATIVE_SIGNS: Final = {"_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge}


def order(lo: Context, node: Call) -> Out:
    """`left < right` and the like."""
    one, other = (lo.type_of(arg) for arg in node.args)
    sign, function = _SIGNS[node.function]
    left, right = lo.natives(node.args) if one == other and one.name in _ORDERED else lo.sequence(node.args)
    if one == other and one.name in _TEXTS and lo.is_long(*node.args):
        native = lo.ref(_NATIVE_SIGNS[node.function])
        return Out(lo.call(metered.ordered_texts, load("m"), native, left.expr, right.expr), raises=True)
    if one == other and one.name in _ORDERED:
        return Out(compare(left.expr, sign(), right.expr), any_raises(left, right))
    known = one.name in _NUMBERS and other.name in _NUMBERS
    return Out(lo.paying(function, left.expr, right.expr), any_raises(left, right) or not known)


def equals(lo: Context, node: Call) -> Out:
    """`left == right`, `left != right`."""
    one, other = (lo.type_of(arg) for arg in node.args)
    same: ast.cmpop = ast.Eq() if node.function == "_==_" else ast.NotEq()
    if one == other and (_is_native(one) or one.name == "double"):
        left, right = lo.natives(node.args)
        if one.name in _TEXTS and lo.is_long(*node.args):
            made = lo.call(metered.equal_texts, load("m"), left.expr, right.expr)
            return Out(made if node.function == "_==_" else negate(made), raises=True)
        return Out(compare(left.expr, same, right.expr), any_raises(left, right))
    left, right = lo.sequence(node.args)
    made = lo.paying(equality.equal, left.expr, right.expr)
    return Out(made if node.function == "_==_" else negate(made), any_raises(left, right))


def membership(lo: Context, node: Call) -> Out:
    """`item in list`, `key in map`."""
    item_type, type_ = (lo.type_of(arg) for arg in node.args)
    has_native_key = field_access.is_native_key(type_, item_type)
    if has_native_key or (type_.name == "list" and type_.params[0] == item_type and _is_native(item_type)):
        item, held = lo.natives(node.args)
        if not has_native_key and lo.estimate is not None:
            return Out(lo.call(metered.among, load("m"), item.expr, held.expr), raises=True)
        key = field_access.native_key(lo, lo.key(node.args[0], item), item_type) if has_native_key else item.expr
        return Out(compare(key, ast.In(), held.expr), any_raises(item, held))
    item, held = lo.sequence(node.args)
    if lo.estimate is not None:
        return Out(lo.call(dynamic.is_in_paying, load("m"), item.expr, held.expr), raises=True)
    return Out(lo.call(dynamic.is_in, item.expr, held.expr), any_raises(item, held) or type_.name != "list")


def _is_native(type_: Type) -> bool:
    return type_.name in _NATIVE
