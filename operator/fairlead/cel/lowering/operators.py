"""Operators and functions: written out where the types are known, looked for by the arguments where they are not."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.cel.checked import DYN, Call
from fairlead.cel.functions.table import FUNCTIONS, LEFT_TO_THE_ENGINE, PATTERN_METHODS
from fairlead.cel.lowering import access, arithmetic, comparison, dynamic, logic, optionals, patterns
from fairlead.cel.lowering.builder import NotLoweredError, Out, any_raises, const, either, load, walrus
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.signatures import signatures
from fairlead.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_ARITHMETIC: Final[Mapping[str, type[ast.operator]]] = {"_+_": ast.Add, "_-_": ast.Sub, "_*_": ast.Mult}
_SPECIAL: Final[Mapping[str, Callable[[Context, Call], Out]]] = {
    "_&&_": lambda lo, node: logic.junction(lo, node, conjunction=True),
    "_||_": lambda lo, node: logic.junction(lo, node, conjunction=False),
    "!_": logic.negation,
    "_?_:_": logic.conditional,
    "_[_]": access.element_of,
    "_==_": comparison.equals,
    "_!=_": comparison.equals,
    "@in": comparison.membership,
    **dict.fromkeys(comparison.ORDER, comparison.order),
    **optionals.FUNCTIONS,
}
_OWN: Final[Mapping[str, Callable[..., object]]] = {
    "divide_int64": arithmetic.divide_int,
    "modulo_int64": arithmetic.modulo_int,
    "negate_int64": arithmetic.negate_int,
    "divide_uint64": arithmetic.divide_uint,
    "modulo_uint64": arithmetic.modulo_uint,
    "divide_double": arithmetic.divide_double,
}
_NEVER_RAISE: Final = frozenset({"to_dyn", "type", "contains_string", "bool_to_string", "int64_to_string"})
_SIZES: Final = frozenset({"size_list", "list_size", "size_map", "map_size", "size_string", "string_size"})


def call(lo: Context, node: Call) -> Out:
    """A call of an operator or a function."""
    if special := _SPECIAL.get(node.function):
        return special(lo, node)
    overloads = lo.checked.overloads.get(node.id, ())
    if overloads and overloads[0] in PATTERN_METHODS:
        return patterns.call(lo, node, overloads[0])
    if len(overloads) == 1 and (overloads[0] in ("to_dyn", "type") or all(lo.type_of(arg) != DYN for arg in node.args)):
        return _of_known_types(lo, node, overloads[0])
    if node.function not in signatures():
        raise NotLoweredError(f"{node.function} of a value whose type is only known when it is there")
    args = (arg.expr for arg in lo.sequence(node.args))
    if lo.estimate is not None:
        return Out(lo.call(dynamic.metered(node.function), load("m"), *args), raises=True)
    return Out(lo.call(dynamic.function(node.function), *args), raises=True)


def _of_known_types(lo: Context, node: Call, overload: str) -> Out:
    kinds = [lo.type_of(arg).name for arg in node.args]
    if node.function in _ARITHMETIC and kinds[0] == kinds[-1] and kinds[0] in ("int", "uint", "double") and kinds[1:]:
        return _arithmetic(lo, node, kinds[0])
    if overload in ("add_string", "add_bytes"):
        left, right = lo.natives(node.args)
        if lo.estimate is not None:
            return Out(lo.paying(operator.add, left.expr, right.expr), raises=True)
        return Out(ast.BinOp(left.expr, ast.Add(), right.expr), any_raises(left, right))
    if overload == "add_list":
        left, right = lo.sequence(node.args)
        if lo.estimate is not None:
            return Out(lo.paying(FUNCTIONS[overload], left.expr, right.expr), raises=True)
        both: list[ast.expr] = [ast.Starred(side.expr, ast.Load()) for side in (left, right)]
        return Out(ast.List(both, ast.Load()), any_raises(left, right))
    if overload == "negate_double":
        (value,) = lo.sequence(node.args)
        return Out(ast.UnaryOp(ast.USub(), value.expr), value.raises)
    if overload in _SIZES:
        (value,) = lo.natives(node.args)
        return Out(ast.Call(load("len"), [value.expr], []), value.raises)
    if overload in ("starts_with_string", "ends_with_string"):
        text, part = lo.natives(node.args)
        if lo.is_long(*node.args):
            return Out(lo.paying(FUNCTIONS[overload], text.expr, part.expr), raises=True)
        name = "startswith" if overload == "starts_with_string" else "endswith"
        return Out(ast.Call(ast.Attribute(text.expr, name, ast.Load()), [part.expr], []), any_raises(text, part))
    if overload in LEFT_TO_THE_ENGINE:
        raise NotLoweredError(f"{node.function}: {LEFT_TO_THE_ENGINE[overload]}")
    function = _OWN.get(overload) or FUNCTIONS.get(overload)
    if function is None:
        raise NotLoweredError(overload)
    args = lo.sequence(node.args)
    made = args[0].expr if overload == "to_dyn" else lo.paying(function, *(arg.expr for arg in args))
    return Out(made, any_raises(*args) or overload not in _NEVER_RAISE or (lo.estimate is not None))


def _arithmetic(lo: Context, node: Call, kind: str) -> Out:
    left, right = lo.natives(node.args)
    made: ast.expr = ast.BinOp(left.expr, _ARITHMETIC[node.function](), right.expr)
    if kind == "double":
        return Out(made, any_raises(left, right))
    low, high = (INT_MIN, INT_MAX) if kind == "int" else (0, UINT_MAX)
    name = lo.fresh()
    fits = ast.Compare(const(low), [ast.LtE(), ast.LtE()], [walrus(name, made), const(high)])
    result: ast.expr = load(name) if kind == "int" else ast.Call(lo.ref(UInt), [load(name)], [])
    return Out(either(fits, result, lo.call(arithmetic.overflow)), raises=True)
