"""Operators and functions, as Python's own or calls of ours. An operand that raises is absorbed if another decides."""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from fairlead.cel.functions import maths, metered
from fairlead.cel.functions.overloads import FUNCTIONS, LEFT_TO_THE_ENGINE, PATTERN_METHODS
from fairlead.cel.functions.regex import compile_pattern, compile_units
from fairlead.cel.lowering import field_access, optional_access
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import (
    Out,
    Statements,
    all_of,
    any_of,
    any_raises,
    compare,
    const,
    either,
    load,
    negate,
    walrus,
)
from fairlead.cel.syntax.ast import Call, Const
from fairlead.cel.values import equality
from fairlead.cel.values.errors import CelError, NotLoweredError
from fairlead.cel.values.meter import Meter
from fairlead.cel.values.value_types import INT_MAX, INT_MIN, UINT_MAX, UInt

_COUNTED: Final = PATTERN_METHODS["regex_replace_string_string_string_int"]
"""The method that does not look at its pattern if its count is 0."""


def pattern_call(lo: Context, node: Call, overload: str) -> Out:
    """Write a call of a function of a text and a pattern."""
    text, pattern, *rest = node.args
    if not isinstance(pattern, Const):
        if lo.estimate is None:
            raise NotLoweredError("a pattern that is not a constant")
        args = [arg.expr for arg in lo.sequence(node.args)]
        return Out(lo.call(_computed(PATTERN_METHODS[overload]), load("m"), *args), raises=True)
    args = [arg.expr for arg in lo.sequence([text, *rest])]
    function = _method(str(pattern.value), PATTERN_METHODS[overload])
    if lo.estimate is None:
        return Out(lo.call(function, *args), raises=True)
    return Out(ast.Call(lo.ref(function), args, [ast.keyword("meter", load("m"))]), raises=True)


@cache
def _computed(method: str) -> Callable[..., object]:
    """Return a function that compiles its pattern at each call, and pays for that."""

    def call(meter: Meter, text: object, pattern: str, *rest: object) -> object:
        if method == _COUNTED and rest[-1] == 0:
            return text
        meter.once(pattern, compile_units(pattern))
        return getattr(compile_pattern(pattern), method)(text, *rest, meter=meter)

    return call


def _method(text: str, method: str) -> Callable[..., object]:
    """Return the method of the compiled pattern; one that raises if it is no pattern."""
    try:
        function: Callable[..., object] = getattr(compile_pattern(text), method)
    except CelError as error:
        kind, message = error.kind, error.message

        def function(*arguments: object, meter: Meter | None = None) -> object:  # noqa: ARG001 - as the others
            if method == _COUNTED and arguments[-1] == 0:
                return arguments[0]
            raise CelError(kind, message)

    return function


_NATIVE: Final = frozenset({"int", "uint", "bool", "string", "bytes", "timestamp", "duration", "type"})
"""Types whose values Python's `==` and `in` compare as the language does."""
_TEXTS: Final = frozenset({"string", "bytes"})
_SIGNS: Final[Mapping[str, tuple[type[ast.cmpop], Callable[[Any, Any], Any]]]] = {
    "_<_": (ast.Lt, operator.lt),
    "_<=_": (ast.LtE, operator.le),
    "_>_": (ast.Gt, operator.gt),
    "_>=_": (ast.GtE, operator.ge),
}


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


_ARITHMETIC: Final[Mapping[str, type[ast.operator]]] = {"_+_": ast.Add, "_-_": ast.Sub, "_*_": ast.Mult}
_SPECIAL: Final[Mapping[str, Callable[[Context, Call], Out]]] = {
    "_&&_": lambda lo, node: junction(lo, node, conjunction=True),
    "_||_": lambda lo, node: junction(lo, node, conjunction=False),
    "!_": negation,
    "_?_:_": conditional,
    "_[_]": field_access.element_of,
    "_==_": equals,
    "_!=_": equals,
    "@in": membership,
    **dict.fromkeys(_SIGNS, order),
    **optional_access.FUNCTIONS,
}
_OWN: Final[Mapping[str, Callable[..., object]]] = {
    "divide_int64": maths.divide_int,
    "modulo_int64": maths.modulo_int,
    "negate_int64": maths.negate_int,
    "divide_uint64": maths.divide_uint,
    "modulo_uint64": maths.modulo_uint,
    "divide_double": maths.divide_double,
}
_NEVER_RAISE: Final = frozenset({"type", "contains_string", "bool_to_string", "int64_to_string"})
_SIZES: Final = frozenset({"size_list", "list_size", "size_map", "map_size", "size_string", "string_size"})


def call(lo: Context, node: Call) -> Out:
    """Write a call of an operator or a function."""
    if special := _SPECIAL.get(node.function):
        return special(lo, node)
    overload, *others = lo.checked.overloads.get(node.id, ()) or ("",)
    if others:
        raise NotLoweredError(f"{node.function} of a value whose type is known only at run time")
    if overload in PATTERN_METHODS:
        return pattern_call(lo, node, overload)
    return _of_overload(lo, node, overload)


def _of_overload(lo: Context, node: Call, overload: str) -> Out:
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
    made = lo.paying(function, *(arg.expr for arg in args))
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
    return Out(either(fits, result, lo.call(maths.overflow)), raises=True)
