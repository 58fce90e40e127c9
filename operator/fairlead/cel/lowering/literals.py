"""Literals: constants, lists and maps."""

import ast
from collections.abc import Sequence

from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, any_raises, const
from fairlead.cel.syntax.ast import Const, ListExpr, Node, StructExpr
from fairlead.cel.values.errors import Abort, Kind, NotLoweredError
from fairlead.cel.values.value_types import NONE, UInt


def constant(lo: Context, node: Const) -> Out:
    """Write a constant."""
    if isinstance(node.value, UInt):
        return Out(lo.ref(node.value))
    return Out(const(node.value))


def list_of(lo: Context, node: ListExpr) -> Out:
    """Write `[a, ?b]`."""
    parts = lo.sequence(node.elements)
    elements: list[ast.expr] = [
        ast.Starred(lo.call(listed, part.expr), ast.Load()) if at in node.optional else part.expr
        for at, part in enumerate(parts)
    ]
    return Out(ast.List(elements, ast.Load()), any_raises(*parts))


def listed(optional: object) -> Sequence[object]:
    """Return the elements that an optional adds to a list."""
    return () if optional is NONE else (optional.value,)  # type: ignore[attr-defined]


def map_of(lo: Context, node: StructExpr) -> Out:
    """Write `{key: value, ?key: value}`."""
    if node.message:
        raise NotLoweredError(f"an object of type {node.message}")
    keys = [entry.key for entry in node.entries if isinstance(entry.key, Node)]
    parts = lo.sequence([part for entry, key in zip(node.entries, keys, strict=True) for part in (key, entry.value)])
    made_keys = [lo.key(key, part) for key, part in zip(keys, parts[::2], strict=True)]
    values = [part.expr for part in parts[1::2]]
    texts = {key.value for key in keys if isinstance(key, Const) and isinstance(key.value, str)}
    if len(texts) == len(keys) and not any(entry.optional for entry in node.entries):
        return Out(ast.Dict(list(made_keys), values), any_raises(*parts))
    flags = const(tuple(entry.optional for entry in node.entries))
    made = lo.call(make_map, ast.Tuple(made_keys, ast.Load()), ast.Tuple(values, ast.Load()), flags)
    return Out(made, any_raises(*parts) or lo.may_abort(node))


def make_map(keys: Sequence[object], values: Sequence[object], optional: Sequence[bool]) -> dict[object, object]:
    """Make a map of which keys may be equal or values absent. Raises Abort for a key that stands twice."""
    made: dict[object, object] = {}
    for key, value, is_optional in zip(keys, values, optional, strict=True):
        if is_optional and value is NONE:
            continue
        if key in made:
            raise Abort(Kind.DUPLICATE_KEY, f"the key {key!r} stands twice in a map")
        made[key] = value.value if is_optional else value  # type: ignore[attr-defined]
    return made
