"""Reading of names, fields and elements."""

import ast
from typing import Final

from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.analysis.sizes import is_annotations
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, any_of, attribute, compare, const, either, index, load, native, walrus
from fairlead.cel.syntax.ast import DYN, OPTIONAL, Call, Const, Ident, Node, Select, Type
from fairlead.cel.values.errors import CelError, Kind, NotLoweredError
from fairlead.cel.values.meter import ANNOTATION_MAX, TOO_LONG
from fairlead.cel.values.schema import PACKAGE, element, messages
from fairlead.cel.values.structs import NO_INT, NO_TEXT, empty
from fairlead.cel.values.value_types import Timestamp, TypeName

_EPOCH: Final = Timestamp(0)


def no_element(at: int) -> object:
    """Raise CelError for an index outside of its list."""
    raise CelError(Kind.INDEX, f"no element {at}")


def absent_number(field: str) -> object:
    """Raise CelError for an absent field of type `dyn`, which has no zero value."""
    raise CelError(Kind.NO_VALUE, f"{field} is absent")


def too_long() -> object:
    """Raise CelError for an annotation that is longer than rules may read."""
    raise CelError(Kind.ARGUMENT, TOO_LONG)


def readable(lo: Context, holder: Node, value: ast.expr) -> ast.expr:
    """Write an element of a map; an annotation that is too long raises."""
    if not is_annotations(holder):
        return value
    found = lo.fresh()
    size = ast.Call(load("len"), [walrus(found, value)], [])
    return either(compare(size, ast.LtE(), const(ANNOTATION_MAX)), load(found), lo.call(too_long))


def name(lo: Context, node: Ident) -> Out:
    """Write the value of a name. Raises NotLoweredError for an unknown one."""
    if node.name in lo.bound:
        return lo.bound[node.name]
    full = lo.checked.names.get(node.id, node.name)
    if full.startswith(VARIABLES):
        return lo.variable(full.removeprefix(VARIABLES))
    if full in lo.roots:
        return Out(lo.roots[full])
    if (
        lo.type_of(node).name == "type" and full != DYN.name
    ):  # which the engine's checker knows and its runtime does not
        return Out(lo.ref(TypeName(full)))
    raise NotLoweredError(full)


def message_of(type_: Type) -> str | None:
    """Return the schema's name of a message type; None for any other type."""
    package, _, short = type_.name.partition(".")
    return short if package == PACKAGE and short in messages() else None


def read_field(lo: Context, operand: ast.expr, message: str, field: str) -> Out:
    """Write a field of a message, or its zero value if it is absent."""
    value = attribute(operand, field)
    type_ = messages()[message][field]
    match type_:
        case "bool":
            return Out(compare(value, ast.Is(), const(value=True)))
        case "string":
            return Out(any_of(value, const("")))
        case "int":
            return Out(any_of(value, const(0)))
        case "timestamp":
            return Out(any_of(value, lo.ref(_EPOCH)))
        case "dyn":
            temp = lo.fresh()
            is_present = compare(walrus(temp, value), ast.IsNot(), const(None))
            return Out(either(is_present, load(temp), lo.call(absent_number, const(field))), raises=True)
    if type_.startswith("map<"):
        return Out(any_of(value, load("EMPTY")))
    return Out(value)


def has_field(lo: Context, operand: ast.expr, message: str, field: str) -> ast.expr:
    """Write a test that is true if a field of a message is present."""
    value = attribute(operand, field)
    type_ = messages()[message][field]
    match type_:
        case "string":
            return compare(value, ast.IsNot(), lo.ref(NO_TEXT))
        case "int":
            return compare(value, ast.IsNot(), lo.ref(NO_INT))
        case "bool" | "timestamp" | "dyn":
            return compare(value, ast.IsNot(), const(None))
    if element(type_) is not None:
        return compare(ast.Call(load("len"), [value], []), ast.NotEq(), const(0))
    return compare(value, ast.IsNot(), lo.ref(empty(type_)))


def select_field(lo: Context, node: Select) -> Out:
    """Write `operand.field` or `has(operand.field)`."""
    held = lo.lower(node.operand)
    if message := message_of(lo.type_of(node.operand)):
        if node.test_only:
            return Out(has_field(lo, held.expr, message, node.field), held.raises)
        found = read_field(lo, held.expr, message, node.field)
        return Out(found.expr, held.raises or found.raises)
    held = native(held)
    if node.test_only:
        return Out(compare(const(node.field), ast.In(), held.expr), held.raises)
    return Out(readable(lo, node.operand, index(held.expr, const(node.field))), raises=True)


def element_of(lo: Context, node: Call) -> Out:
    """Write `list[i]` or `map[key]`."""
    holder, key_node = node.args
    type_ = lo.type_of(holder)
    if type_.name == OPTIONAL:
        raise NotLoweredError("the engine takes the error of a bad index into an optional for a value")
    if type_.name == "map":
        held, key = lo.natives(node.args)
        return Out(readable(lo, holder, index(held.expr, lo.key(key_node, key))), raises=True)
    held, key = lo.sequence(node.args)
    if isinstance(key_node, Const) and isinstance(key_node.value, int) and key_node.value >= 0:
        return Out(index(held.expr, key.expr), raises=True)
    at = lo.fresh()
    held = lo.spill(held)
    size = ast.Call(load("len"), [held.expr], [])
    inside = ast.Compare(const(0), [ast.LtE(), ast.Lt()], [walrus(at, key.expr), size])
    return Out(either(inside, index(held.expr, load(at)), lo.call(no_element, load(at))), raises=True)
