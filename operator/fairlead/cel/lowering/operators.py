"""Operators and functions: by the overload that the checker chose."""

import ast
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.cel.checked import DYN, Call, Type
from fairlead.cel.errors import CelError, Kind
from fairlead.cel.functions.equality import equal
from fairlead.cel.functions.table import FUNCTIONS
from fairlead.cel.lowering import access, logic, optionals
from fairlead.cel.lowering.builder import NotLoweredError, Out, any_raises, compare, const, either, load, negate, walrus
from fairlead.cel.lowering.context import Context
from fairlead.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

# Python's own `==`, `<` and `in` are those of the language on values of one of these types.
_NATIVE: Final = frozenset({"int", "uint", "bool", "string", "bytes", "timestamp", "duration", "null", "type"})
_COMPARE: Final[Mapping[str, type[ast.cmpop]]] = {"_<_": ast.Lt, "_<=_": ast.LtE, "_>_": ast.Gt, "_>=_": ast.GtE}
_ARITHMETIC: Final[Mapping[str, type[ast.operator]]] = {"_+_": ast.Add, "_-_": ast.Sub, "_*_": ast.Mult}
_SPECIAL: Final[Mapping[str, Callable[[Context, Call], Out]]] = {
    "_&&_": lambda lo, node: logic.junction(lo, node, conjunction=True),
    "_||_": lambda lo, node: logic.junction(lo, node, conjunction=False),
    "!_": logic.negation,
    "_?_:_": logic.conditional,
    "_[_]": access.element_of,
    "_?._": optionals.boxed,
    "_[?_]": optionals.boxed,
}
_BY_OVERLOAD: Final[Mapping[str, Callable[[Context, Call], Out]]] = {
    "optional_hasValue": optionals.has_value,
    "optional_value": optionals.value,
    "optional_orValue_value": optionals.or_value,
    "optional_or_optional": optionals.or_optional,
}


def call(lo: Context, node: Call) -> Out:
    """A call of an operator or a function."""
    if special := _SPECIAL.get(node.function):
        return special(lo, node)
    overloads = lo.checked.overloads.get(node.id, ())
    if len(overloads) == 1 and (by_overload := _BY_OVERLOAD.get(overloads[0])):
        return by_overload(lo, node)
    if node.function in ("_==_", "_!=_"):
        return _equality(lo, node)
    if node.function == "@in":
        return _membership(lo, node)
    if len(overloads) != 1 or any(lo.type_of(arg) == DYN for arg in node.args):
        raise NotLoweredError(f"{node.function} of a value whose type is known only when it is there")
    return _of_known_types(lo, node, overloads[0])


def _of_known_types(lo: Context, node: Call, overload: str) -> Out:
    kinds = [lo.type_of(arg).name for arg in node.args]
    if node.function in _COMPARE and kinds[0] == kinds[1]:
        left, right = lo.sequence(node.args)
        return Out(compare(left.expr, _COMPARE[node.function](), right.expr), any_raises(left, right))
    if node.function in _ARITHMETIC and kinds[0] == kinds[1] and kinds[0] in ("int", "uint", "double"):
        return _arithmetic(lo, node, kinds[0])
    if node.function == "_+_" and kinds[0] in ("string", "bytes"):
        left, right = lo.sequence(node.args)
        return Out(ast.BinOp(left.expr, ast.Add(), right.expr), any_raises(left, right))
    if node.function == "_+_" and kinds[0] == "list":
        left, right = lo.sequence(node.args)
        both: list[ast.expr] = [ast.Starred(side.expr, ast.Load()) for side in (left, right)]
        return Out(ast.List(both, ast.Load()), any_raises(left, right))
    if overload == "negate_double":
        (value,) = lo.sequence(node.args)
        return Out(ast.UnaryOp(ast.USub(), value.expr), value.raises)
    if overload in ("size_list", "list_size", "size_map", "map_size", "size_string", "string_size"):
        (value,) = lo.sequence(node.args)
        return Out(ast.Call(load("len"), [value.expr], []), value.raises)
    if overload in ("starts_with_string", "ends_with_string"):
        text, part = lo.sequence(node.args)
        name = "startswith" if overload == "starts_with_string" else "endswith"
        return Out(ast.Call(ast.Attribute(text.expr, name, ast.Load()), [part.expr], []), any_raises(text, part))
    if overload in _OWN:
        return Out(lo.call(_OWN[overload], *(arg.expr for arg in lo.sequence(node.args))), raises=True)
    if overload in FUNCTIONS:
        return Out(lo.call(FUNCTIONS[overload], *(arg.expr for arg in lo.sequence(node.args))), raises=True)
    raise NotLoweredError(overload)


def _arithmetic(lo: Context, node: Call, kind: str) -> Out:
    left, right = lo.sequence(node.args)
    made: ast.expr = ast.BinOp(left.expr, _ARITHMETIC[node.function](), right.expr)
    if kind == "double":
        return Out(made, any_raises(left, right))
    low, high = (INT_MIN, INT_MAX) if kind == "int" else (0, UINT_MAX)
    name = lo.fresh()
    fits = ast.Compare(const(low), [ast.LtE(), ast.LtE()], [walrus(name, made), const(high)])
    result: ast.expr = load(name) if kind == "int" else ast.Call(lo.ref(UInt), [load(name)], [])
    return Out(either(fits, result, lo.call(overflow)), raises=True)


def _equality(lo: Context, node: Call) -> Out:
    left, right = lo.sequence(node.args)
    one, other = (lo.type_of(arg) for arg in node.args)
    may_raise = any_raises(left, right)
    if one == other and (_is_native(one) or one.name == "double"):
        same: ast.cmpop = ast.Eq() if node.function == "_==_" else ast.NotEq()
        return Out(compare(left.expr, same, right.expr), may_raise)
    made = lo.call(equal, left.expr, right.expr)
    return Out(made if node.function == "_==_" else negate(made), may_raise)


def _is_native(type_: Type) -> bool:
    return type_.name in _NATIVE


def _membership(lo: Context, node: Call) -> Out:
    item, held = lo.sequence(node.args)
    item_type, type_ = (lo.type_of(arg) for arg in node.args)
    may_raise = any_raises(item, held)
    if type_.name == "map" and type_.params[0] == item_type and item_type.name in ("string", "int", "uint", "bool"):
        return Out(compare(access.map_key(lo, item.expr, item_type), ast.In(), held.expr), may_raise)
    if type_.name == "list" and type_.params[0] == item_type and _is_native(item_type):
        return Out(compare(item.expr, ast.In(), held.expr), may_raise)
    if type_.name == "list":
        return Out(lo.call(contains, item.expr, held.expr), may_raise)
    raise NotLoweredError(f"`in` {type_}")


def contains(item: object, held: object) -> bool:
    """`in` a list whose elements Python compares otherwise."""
    return any(equal(item, other) for other in held)  # type: ignore[attr-defined]


def overflow() -> object:
    """A result that has no room in 64 bits."""
    raise CelError(Kind.OVERFLOW, "integer overflow")


def divide_int(left: int, right: int) -> int:
    """`/`: towards zero."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "divide by zero")
    if right == -1:
        return negate_int(left)
    return left // right if (left < 0) == (right < 0) else -(-left // right)


def modulo_int(left: int, right: int) -> int:
    """`%`: has the sign of the left side."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "modulus by zero")
    if right == -1 and left == INT_MIN:
        raise CelError(Kind.OVERFLOW, "integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negate_int(value: int) -> int:
    """`-x`."""
    if value == INT_MIN:
        raise CelError(Kind.OVERFLOW, "integer overflow")
    return -value


def divide_uint(left: int, right: int) -> UInt:
    """`/` without a sign."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "divide by zero")
    return UInt(left // right)


def modulo_uint(left: int, right: int) -> UInt:
    """`%` without a sign."""
    if right == 0:
        raise CelError(Kind.DIVIDE_BY_ZERO, "modulus by zero")
    return UInt(left % right)


def divide_double(left: float, right: float) -> float:
    """`/` as IEEE has it."""
    try:
        return left / right
    except ZeroDivisionError:
        if left != left or left == 0.0:  # noqa: PLR0124 - NaN
            return float("nan")
        positive = (left > 0) == (str(right)[0] != "-")
        return float("inf") if positive else float("-inf")


_OWN: Final[Mapping[str, Callable[..., object]]] = {
    "divide_int64": divide_int,
    "modulo_int64": modulo_int,
    "negate_int64": negate_int,
    "divide_uint64": divide_uint,
    "modulo_uint64": modulo_uint,
    "divide_double": divide_double,
}
