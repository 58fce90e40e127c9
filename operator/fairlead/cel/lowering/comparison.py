"""`==`, `<` and `in`: native where Python's are those of the language."""

import ast
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.cel.checked import Call, Type
from fairlead.cel.functions import equality
from fairlead.cel.lowering import access, dynamic
from fairlead.cel.lowering.builder import Out, any_raises, compare, negate
from fairlead.cel.lowering.context import Context

# Python's own operators are those of the language on two values of one of these types.
_NATIVE: Final = frozenset({"int", "uint", "bool", "string", "bytes", "timestamp", "duration", "null", "type"})
_ORDERED: Final = _NATIVE - {"null", "type"} | {"double"}
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_SIGNS: Final[Mapping[str, tuple[type[ast.cmpop], Callable[[object, object], bool]]]] = {
    "_<_": (ast.Lt, equality.less),
    "_<=_": (ast.LtE, equality.less_equal),
    "_>_": (ast.Gt, equality.greater),
    "_>=_": (ast.GtE, equality.greater_equal),
}
ORDER: Final = frozenset(_SIGNS)


def order(lo: Context, node: Call) -> Out:
    """`left < right` and the like."""
    one, other = (lo.type_of(arg) for arg in node.args)
    sign, function = _SIGNS[node.function]
    left, right = lo.natives(node.args) if one == other and one.name in _ORDERED else lo.sequence(node.args)
    if one == other and one.name in _ORDERED:
        return Out(compare(left.expr, sign(), right.expr), any_raises(left, right))
    known = one.name in _NUMBERS and other.name in _NUMBERS
    return Out(lo.call(function, left.expr, right.expr), any_raises(left, right) or not known)


def equals(lo: Context, node: Call) -> Out:
    """`left == right`, `left != right`."""
    one, other = (lo.type_of(arg) for arg in node.args)
    same: ast.cmpop = ast.Eq() if node.function == "_==_" else ast.NotEq()
    if one == other and (_is_native(one) or one.name == "double"):
        left, right = lo.natives(node.args)
        return Out(compare(left.expr, same, right.expr), any_raises(left, right))
    left, right = lo.sequence(node.args)
    made = lo.call(equality.equal, left.expr, right.expr)
    return Out(made if node.function == "_==_" else negate(made), any_raises(left, right))


def membership(lo: Context, node: Call) -> Out:
    """`item in list`, `key in map`."""
    item_type, type_ = (lo.type_of(arg) for arg in node.args)
    has_native_key = access.is_native_key(type_, item_type)
    if has_native_key or (type_.name == "list" and type_.params[0] == item_type and _is_native(item_type)):
        item, held = lo.natives(node.args)
        key = access.map_key(lo, item.expr, item_type) if has_native_key else item.expr
        return Out(compare(key, ast.In(), held.expr), any_raises(item, held))
    item, held = lo.sequence(node.args)
    return Out(lo.call(dynamic.is_in, item.expr, held.expr), any_raises(item, held) or type_.name != "list")


def _is_native(type_: Type) -> bool:
    return type_.name in _NATIVE
