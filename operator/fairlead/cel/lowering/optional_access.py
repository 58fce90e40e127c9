"""Optionals, most of which never exist: `labels[?'a'].orValue('b')` is a lookup with a default.

An optional whose value is read at once is lowered *bare*: the value itself, or `NONE`. One that is stored (in a list,
as a result, in a variable) is boxed: `Some` or `NONE`.
"""

import ast
from collections.abc import Callable, Mapping
from typing import Final

from fairlead.cel.analysis.sizes import is_annotations
from fairlead.cel.lowering import field_access
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import (
    Out,
    all_of,
    any_of,
    any_raises,
    attribute,
    compare,
    const,
    either,
    index,
    load,
    method,
    native,
    walrus,
)
from fairlead.cel.syntax.ast import OPTIONAL, Call, Const, Node, Select, Type
from fairlead.cel.values.errors import CelError, Kind
from fairlead.cel.values.meter import ANNOTATION_MAX
from fairlead.cel.values.value_types import NONE, Nothing, Some, TypeName

_NONE: Final = load("NONE")


def no_value() -> object:
    """Raise CelError for `value()` of an empty optional."""
    raise CelError(Kind.NO_VALUE, "optional.none() has no value")


def non_zero(value: object) -> Some | Nothing:
    """Return an optional of a value, or of nothing if it is the zero value of its type."""
    is_zero = (value is None or not value) and not isinstance(value, TypeName)
    return NONE if is_zero else Some(value)


def _is_access(lo: Context, node: Node) -> bool:
    """Return whether an optional is a field or an element that is looked up where it stands."""
    match node:
        case Select(operand=operand):
            return lo.type_of(operand).name == OPTIONAL  # else it is an optional that is an entry of a map
        case Call(function="_?._" | "_[?_]"):
            return True
    return False


def _looked_into(lo: Context, operand: Node) -> Type:
    """Return the type of the value that is looked into, out of its optional."""
    type_ = lo.type_of(operand)
    return type_.params[0] if type_.name == OPTIONAL else type_


def bare(lo: Context, node: Node) -> Out:
    """Write the value of an optional, or NONE."""
    match node:
        case _ if not _is_access(lo, node):
            out = lo.lower(node)
            name = lo.fresh()
            empty = compare(walrus(name, out.expr), ast.Is(), _NONE)
            return Out(either(empty, _NONE, attribute(load(name), "value")), out.raises)
        case Call(args=(operand, Const(value=str(field))), function="_?._") | Select(operand=operand, field=field):
            return lo.traced(node, _field(lo, operand, field))
        case Call(args=(operand, key)):
            return lo.traced(node, _element(lo, operand, key))
    raise AssertionError(node)


def _start(lo: Context, operand: Node) -> tuple[Out, bool]:
    """Write the value that is looked into; return it, and whether it may be missing itself."""
    if lo.type_of(operand).name == OPTIONAL:
        return bare(lo, operand), True
    return native(lo.lower(operand)), False


def _unless_missing(text: str, value: ast.expr, *, maybe: bool) -> ast.expr:
    return either(compare(load(text), ast.Is(), _NONE), _NONE, value) if maybe else value


def _get(lo: Context, holder: Node, code: Out, key: ast.expr) -> Out:
    """Write an element of a map, or NONE; an annotation that is too long raises."""
    get = method(code.expr, "get", key, _NONE)
    if not is_annotations(holder):
        return Out(get, code.raises)
    name = lo.fresh()
    missing = compare(walrus(name, get), ast.Is(), _NONE)
    short = compare(ast.Call(load("len"), [load(name)], []), ast.LtE(), const(ANNOTATION_MAX))
    return Out(either(any_of(missing, short), load(name), lo.call(field_access.too_long)), raises=True)


def _field(lo: Context, operand: Node, field: str) -> Out:
    type_ = _looked_into(lo, operand)
    start, maybe = _start(lo, operand)
    if (message := field_access.message_of(type_)) is None and not maybe:
        return _get(lo, operand, start, const(field))
    held = lo.fresh()
    lo.assign(held, start.expr)
    if message is None:
        found = _get(lo, operand, Out(load(held), start.raises), const(field))
        return Out(_unless_missing(held, found.expr, maybe=maybe), found.raises)
    is_present = field_access.has_field(lo, load(held), message, field)
    return Out(
        _unless_missing(held, either(is_present, attribute(load(held), field), _NONE), maybe=maybe), start.raises
    )


def _element(lo: Context, operand: Node, key_node: Node) -> Out:
    type_ = _looked_into(lo, operand)
    if lo.type_of(operand).name == OPTIONAL:
        always = lo.is_always_evaluated(operand), lo.is_always_evaluated(key_node)
        start, key = lo.in_order([lambda: bare(lo, operand), lambda: lo.lower(key_node)], always)
        maybe = True
    else:
        start, key = lo.natives([operand, key_node])
        maybe = False
    made_key = lo.key(key_node, key)
    may_raise = any_raises(start, key)
    if type_.name == "map" and not maybe:
        return _get(lo, operand, Out(start.expr, may_raise), made_key)
    held, at = lo.fresh(), lo.fresh()
    lo.assign(held, start.expr)
    lo.assign(at, made_key)
    if type_.name == "map":
        found = _get(lo, operand, Out(load(held), may_raise), load(at))
        return Out(_unless_missing(held, found.expr, maybe=maybe), found.raises)
    size = ast.Call(load("len"), [load(held)], [])
    inside = ast.Compare(const(0), [ast.LtE(), ast.Lt()], [load(at), size])
    return Out(_unless_missing(held, either(inside, index(load(held), load(at)), _NONE), maybe=maybe), may_raise)


def boxed(lo: Context, node: Node) -> Out:
    """Write `a.?b` or `a[?b]` as an optional."""
    out = bare(lo, node)
    name = lo.fresh()
    empty = compare(walrus(name, out.expr), ast.Is(), _NONE)
    some = ast.Call(load("Some"), [load(name)], [])
    return Out(either(empty, _NONE, some), out.raises)


def select_optional(lo: Context, node: Select) -> Out:
    """Write a field of an optional, which is an optional too, or `has()` of it."""
    if not node.test_only:
        return boxed(lo, node)
    out = lo.spill(bare(lo, node.operand))
    has_value = compare(out.expr, ast.IsNot(), _NONE)
    if message := field_access.message_of(_looked_into(lo, node.operand)):
        return Out(all_of(has_value, field_access.has_field(lo, out.expr, message, node.field)), out.raises)
    return Out(all_of(has_value, compare(const(node.field), ast.In(), out.expr)), out.raises)


def has_value(lo: Context, node: Call) -> Out:
    """Write `x.hasValue()`."""
    (optional,) = node.args
    out = bare(lo, optional) if _is_access(lo, optional) else lo.lower(optional)
    return Out(compare(out.expr, ast.IsNot(), _NONE), out.raises)


def value(lo: Context, node: Call) -> Out:
    """Write `x.value()`."""
    (optional,) = node.args
    out = bare(lo, optional)
    name = lo.fresh()
    has_value = compare(walrus(name, out.expr), ast.IsNot(), _NONE)
    return Out(either(has_value, load(name), lo.call(no_value)), raises=True)


def or_value(lo: Context, node: Call) -> Out:
    """Write `x.orValue(default)`; the default is evaluated only if it is needed."""
    optional, default_node = node.args
    out = bare(lo, optional)
    with lo.inside() as block:
        default = lo.lower(default_node)
    if not block and not default.raises and _is_get(out.expr):
        get = out.expr
        return Out(ast.Call(get.func, [get.args[0], default.expr], []), out.raises)  # type: ignore[attr-defined]
    name = lo.fresh()
    lo.assign(name, out.expr)
    missing = compare(load(name), ast.Is(), _NONE)
    return _chosen(lo, missing, (default, block), Out(load(name), out.raises))


def _chosen(lo: Context, missing: ast.expr, other: tuple[Out, list[ast.stmt]], code: Out) -> Out:
    out, block = other
    may_raise = any_raises(code, out)
    if not block:
        return Out(either(missing, out.expr, code.expr), may_raise)
    name = lo.fresh()
    block.append(ast.Assign([ast.Name(name, ast.Store())], out.expr))
    lo.branch(missing, block, [ast.Assign([ast.Name(name, ast.Store())], code.expr)])
    return Out(load(name), may_raise)


def _is_get(expr: ast.expr) -> bool:
    match expr:
        case ast.Call(func=ast.Attribute(attr="get"), args=[_, ast.Name(id="NONE")]):
            return True
    return False


def or_optional(lo: Context, node: Call) -> Out:
    """Write `x.or(y)`; the second is evaluated only if it is needed."""
    first = lo.spill(lo.lower(node.args[0]))
    with lo.inside() as block:
        second = lo.lower(node.args[1])
    return _chosen(lo, compare(first.expr, ast.Is(), _NONE), (second, block), first)


def of(lo: Context, node: Call) -> Out:
    """Write `optional.of(x)`."""
    (content,) = lo.sequence(node.args)
    return Out(ast.Call(load("Some"), [content.expr], []), content.raises)


def of_non_zero(lo: Context, node: Call) -> Out:
    """Write `optional.ofNonZeroValue(x)`."""
    (content,) = lo.sequence(node.args)
    return Out(lo.call(non_zero, content.expr), content.raises)


def none(_lo: Context, _node: Call) -> Out:
    """Write `optional.none()`."""
    return Out(_NONE)


FUNCTIONS: Final[Mapping[str, Callable[[Context, Call], Out]]] = {
    "_?._": boxed,
    "_[?_]": boxed,
    "hasValue": has_value,
    "value": value,
    "orValue": or_value,
    "or": or_optional,
    "optional.of": of,
    "optional.ofNonZeroValue": of_non_zero,
    "optional.none": none,
}
