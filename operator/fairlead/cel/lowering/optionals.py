"""Optionals: mostly never made. `labels[?'a'].orValue('b')` is a lookup with a default.

An optional that is only asked for its value is lowered *bare*: the value itself, or `NONE`. Where it is kept (in a
list, as a result, in another optional) it is boxed. An optional of an optional is always boxed, since its value may be
`NONE`.
"""

import ast

from fairlead.cel.checked import DYN, OPTIONAL, Call, Const, Node, Select, Type
from fairlead.cel.errors import CelError, Kind
from fairlead.cel.lowering import access
from fairlead.cel.lowering.builder import (
    NotLoweredError,
    Out,
    any_raises,
    attribute,
    compare,
    const,
    either,
    index,
    load,
    method,
    walrus,
)
from fairlead.cel.lowering.context import Context
from fairlead.cel.values import NONE

_NONE = load("NONE")


def no_value() -> object:
    """`value()` of an empty optional."""
    raise CelError(Kind.NO_VALUE, "optional.none() has no value")


def _inner(lo: Context, node: Node) -> Type:
    type_ = lo.type_of(node)
    return type_.params[0] if type_.params else DYN


def is_bare(lo: Context, node: Node) -> bool:
    """Whether this optional can be lowered without its box."""
    if _inner(lo, node).name in (OPTIONAL, DYN.name):
        return False
    match node:
        case Call(function="_?._" | "_[?_]"):
            return True
        case Select(operand=operand, test_only=False):
            return lo.type_of(operand).name == OPTIONAL
    return False


def bare(lo: Context, node: Node) -> Out:
    """The value of an optional, or NONE."""
    if not is_bare(lo, node):
        boxed = lo.lower(node)
        name = lo.fresh()
        empty = compare(walrus(name, boxed.expr), ast.Is(), _NONE)
        return Out(either(empty, _NONE, attribute(load(name), "value")), boxed.raises)
    match node:
        case Call(args=(operand, Const(value=str(field))), function="_?._"):
            return _field(lo, operand, field)
        case Call(args=(operand, key)):
            return _element(lo, operand, key)
        case Select(operand=operand, field=field):
            return _field(lo, operand, field)
    raise NotLoweredError("an optional")


def _start(lo: Context, operand: Node) -> tuple[Out, Type, bool]:
    """What is looked into, its type, and whether it may be missing itself."""
    type_ = lo.type_of(operand)
    if type_.name != OPTIONAL:
        return lo.lower(operand), type_, False
    inner = _inner(lo, operand)
    if inner.name == OPTIONAL:
        raise NotLoweredError("an optional of an optional")
    return bare(lo, operand), inner, True


def _unless_missing(name: str, value: ast.expr, *, maybe: bool) -> ast.expr:
    return either(compare(load(name), ast.Is(), _NONE), _NONE, value) if maybe else value


def _field(lo: Context, operand: Node, field: str) -> Out:
    start, type_, maybe = _start(lo, operand)
    held = lo.fresh()
    lo.assign(held, start.expr)
    if message := access.message_of(type_):
        found = access.read_field(lo, load(held), message, field)
        there = access.has_field(lo, load(held), message, field)
        return Out(_unless_missing(held, either(there, found.expr, _NONE), maybe=maybe), start.raises)
    if type_.name == "map":
        return Out(_unless_missing(held, method(load(held), "get", const(field), _NONE), maybe=maybe), start.raises)
    raise NotLoweredError(f"an optional field of {type_}")


def _element(lo: Context, operand: Node, key_node: Node) -> Out:
    type_ = lo.type_of(operand)
    if type_.name != OPTIONAL:
        start, key = lo.sequence([operand, key_node])
        maybe = False
    else:
        start, type_, maybe = _start(lo, operand)
        start = lo.spill(start)
        key = lo.lower(key_node)
    found = _looked_up(lo, start, key, type_, lo.type_of(key_node), maybe=maybe)
    return Out(found, any_raises(start, key))


def _looked_up(lo: Context, start: Out, key: Out, type_: Type, key_type: Type, *, maybe: bool) -> ast.expr:
    if type_.name == "map" and type_.params[0] != DYN:
        if not maybe:
            return method(start.expr, "get", access.map_key(lo, key.expr, key_type), _NONE)
        held = lo.fresh()
        get = method(load(held), "get", access.map_key(lo, key.expr, key_type), _NONE)
        lo.assign(held, start.expr)
        return _unless_missing(held, get, maybe=True)
    if type_.name == "list" and key_type.name == "int":
        held, at = lo.fresh(), lo.fresh()
        lo.assign(held, start.expr)
        lo.assign(at, key.expr)
        size = ast.Call(load("len"), [load(held)], [])
        inside = ast.Compare(const(0), [ast.LtE(), ast.Lt()], [load(at), size])
        return _unless_missing(held, either(inside, index(load(held), load(at)), _NONE), maybe=maybe)
    raise NotLoweredError(f"an optional element of {type_}")


def boxed(lo: Context, node: Node) -> Out:
    """An optional that is kept."""
    out = bare(lo, node)
    name = lo.fresh()
    empty = compare(walrus(name, out.expr), ast.Is(), _NONE)
    some = ast.Call(load("Some"), [load(name)], [])
    return Out(either(empty, _NONE, some), out.raises)


def select(lo: Context, node: Select) -> Out:
    """A field of an optional: an optional itself; `has()` of it."""
    if node.test_only:
        inner = _inner(lo, node.operand)
        if message := access.message_of(inner):
            held = lo.fresh()
            out = bare(lo, node.operand)
            lo.assign(held, out.expr)
            there = compare(load(held), ast.IsNot(), _NONE)
            return Out(
                ast.BoolOp(ast.And(), [there, access.has_field(lo, load(held), message, node.field)]), out.raises
            )
        raise NotLoweredError("has() of an optional")
    if not is_bare(lo, node):
        raise NotLoweredError("an optional of an optional")
    return boxed(lo, node)


def has_value(lo: Context, node: Call) -> Out:
    """`x.hasValue()`."""
    out = bare_or_boxed(lo, node.args[0])
    return Out(compare(out.expr, ast.IsNot(), _NONE), out.raises)


def bare_or_boxed(lo: Context, node: Node) -> Out:
    """Whichever is cheaper, where only being there matters."""
    return bare(lo, node) if is_bare(lo, node) else lo.lower(node)


def value(lo: Context, node: Call) -> Out:
    """`x.value()`."""
    if not is_bare(lo, node.args[0]):
        out = lo.lower(node.args[0])
        return Out(lo.call(unbox, out.expr), raises=True)
    out = bare(lo, node.args[0])
    name = lo.fresh()
    there = compare(walrus(name, out.expr), ast.IsNot(), _NONE)
    return Out(either(there, load(name), lo.call(no_value)), raises=True)


def unbox(optional: object) -> object:
    """The value of a boxed optional."""
    if optional is NONE:
        no_value()
    return optional.value  # type: ignore[attr-defined]


def or_value(lo: Context, node: Call) -> Out:
    """`x.orValue(default)`: the default is looked at only when it is needed."""
    optional, default_node = node.args
    out = bare(lo, optional) if _inner(lo, optional).name not in (OPTIONAL, DYN.name) else None
    if out is None:
        raise NotLoweredError("an optional of an optional")
    with lo.inside() as block:
        default = lo.lower(default_node)
    if not block and not default.raises and _is_get(out.expr):
        get = out.expr
        return Out(ast.Call(get.func, [get.args[0], default.expr], []), out.raises)  # type: ignore[attr-defined]
    name = lo.fresh()
    lo.assign(name, out.expr)
    missing = compare(load(name), ast.Is(), _NONE)
    may_raise = any_raises(out, default)
    if not block:
        return Out(either(missing, default.expr, load(name)), may_raise)
    block.append(ast.Assign([ast.Name(name, ast.Store())], default.expr))
    lo.branch(missing, block)
    return Out(load(name), may_raise)


def _is_get(expr: ast.expr) -> bool:
    match expr:
        case ast.Call(func=ast.Attribute(attr="get"), args=[_, ast.Name(id="NONE")]):
            return True
    return False


def or_optional(lo: Context, node: Call) -> Out:
    """`x.or(y)`."""
    first = lo.spill(lo.lower(node.args[0]))
    with lo.inside() as block:
        second = lo.lower(node.args[1])
    missing = compare(first.expr, ast.Is(), _NONE)
    may_raise = any_raises(first, second)
    if not block:
        return Out(either(missing, second.expr, first.expr), may_raise)
    name = lo.fresh()
    lo.assign(name, first.expr)
    block.append(ast.Assign([ast.Name(name, ast.Store())], second.expr))
    lo.branch(missing, block)
    return Out(load(name), may_raise)
