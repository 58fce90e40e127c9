"""Constants, lists and maps that are written out."""

import ast
from collections.abc import Sequence

from fairlead.cel.checked import DYN, Const, ListExpr, StructExpr
from fairlead.cel.errors import Abort, Kind
from fairlead.cel.lowering import access
from fairlead.cel.lowering.builder import NotLoweredError, Out, any_raises, const
from fairlead.cel.lowering.context import Context
from fairlead.cel.values import NONE, UInt


def constant(lo: Context, node: Const) -> Out:
    """A literal."""
    if isinstance(node.value, UInt):
        return Out(lo.ref(node.value))
    return Out(const(node.value))


def list_of(lo: Context, node: ListExpr) -> Out:
    """`[a, ?b]`."""
    if not node.optional:
        parts = lo.sequence(node.elements)
        return Out(ast.List([part.expr for part in parts], ast.Load()), any_raises(*parts))
    parts = lo.sequence(node.elements)
    wrapped = [
        lo.call(listed, part.expr) if at in node.optional else ast.List([part.expr], ast.Load())
        for at, part in enumerate(parts)
    ]
    return Out(ast.List([ast.Starred(part, ast.Load()) for part in wrapped], ast.Load()), any_raises(*parts))


def listed(optional: object) -> Sequence[object]:
    """The elements that an optional adds to a list."""
    return () if optional is NONE else (optional.value,)  # type: ignore[attr-defined]


def map_of(lo: Context, node: StructExpr) -> Out:
    """`{key: value, ?key: value}`."""
    if node.message:
        raise NotLoweredError(f"an object of type {node.message}")
    keys = [entry.key for entry in node.entries if not isinstance(entry.key, str)]
    key_type = lo.type_of(node).params[0] if lo.type_of(node).params else DYN
    if key_type == DYN and keys:
        raise NotLoweredError("a map with keys of several types")
    parts = lo.sequence([part for entry, key in zip(node.entries, keys, strict=True) for part in (key, entry.value)])
    made_keys = [access.map_key(lo, part.expr, key_type) for part in parts[::2]]
    values = [part.expr for part in parts[1::2]]
    constants = [key.value for key in keys if isinstance(key, Const)]
    if len(set(constants)) == len(keys) and not any(entry.optional for entry in node.entries):
        return Out(ast.Dict(list(made_keys), values), any_raises(*parts))
    flags = const(tuple(entry.optional for entry in node.entries))
    made = lo.call(make_map, ast.Tuple(list(made_keys), ast.Load()), ast.Tuple(values, ast.Load()), flags)
    return Out(made, any_raises(*parts))


def make_map(keys: Sequence[object], values: Sequence[object], optional: Sequence[bool]) -> dict[object, object]:
    """A map whose keys may meet."""
    made: dict[object, object] = {}
    for key, value, maybe in zip(keys, values, optional, strict=True):
        if maybe and value is NONE:
            continue
        if key in made:
            raise Abort(Kind.DUPLICATE_KEY, f"the key {key!r} stands twice in a map")
        made[key] = value.value if maybe else value  # type: ignore[attr-defined]
    return made
