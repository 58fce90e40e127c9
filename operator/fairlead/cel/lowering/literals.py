"""Constants, lists and maps that are written out."""

import ast
from collections.abc import Sequence
from typing import Final

from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, any_raises, const
from fairlead.cel.syntax.ast import DYN, Const, ListExpr, Node, StructExpr
from fairlead.cel.values.equality import map_key
from fairlead.cel.values.errors import Abort, CelError, Kind, NotLoweredError
from fairlead.cel.values.value_types import NONE, UInt

_KEYS: Final = ("string", "int", "uint", "bool")


def constant(lo: Context, node: Const) -> Out:
    """A literal."""
    if isinstance(node.value, UInt):
        return Out(lo.ref(node.value))
    return Out(const(node.value))


def list_of(lo: Context, node: ListExpr) -> Out:
    """`[a, ?b]`."""
    parts = lo.sequence(node.elements)
    elements: list[ast.expr] = [
        ast.Starred(lo.call(listed, part.expr), ast.Load()) if at in node.optional else part.expr
        for at, part in enumerate(parts)
    ]
    return Out(ast.List(elements, ast.Load()), any_raises(*parts))


def listed(optional: object) -> Sequence[object]:
    """The elements that an optional adds to a list."""
    return () if optional is NONE else (optional.value,)  # type: ignore[attr-defined]


def map_of(lo: Context, node: StructExpr) -> Out:
    """`{key: value, ?key: value}`."""
    if node.message:
        raise NotLoweredError(f"an object of type {node.message}")
    keys = [entry.key for entry in node.entries if isinstance(entry.key, Node)]
    if _integers_may_meet(lo, keys):
        raise NotLoweredError("a map in which an int and a uint may be equal keys")
    parts = lo.sequence([part for entry, key in zip(node.entries, keys, strict=True) for part in (key, entry.value)])
    made_keys = [lo.key(key, part) for key, part in zip(keys, parts[::2], strict=True)]
    values = [part.expr for part in parts[1::2]]
    texts = {key.value for key in keys if isinstance(key, Const) and isinstance(key.value, str)}
    if len(texts) == len(keys) and not any(entry.optional for entry in node.entries):
        return Out(ast.Dict(list(made_keys), values), any_raises(*parts))
    flags = const(tuple(entry.optional for entry in node.entries))
    made = lo.call(make_map, ast.Tuple(made_keys, ast.Load()), ast.Tuple(values, ast.Load()), flags)
    known = all(lo.type_of(key).name in _KEYS for key in keys)
    return Out(made, any_raises(*parts) or not known or lo.may_abort(node))


def _integers_may_meet(lo: Context, keys: Sequence[Node]) -> bool:
    """For the engine 1 and 1u are two keys; in a dict they are one."""
    types = [lo.type_of(key) for key in keys]
    unknown = types.count(DYN)
    ints, uints = (sum(type_.name == name for type_ in types) for name in ("int", "uint"))
    return (ints and uints) or unknown > 1 or (unknown and (ints or uints))  # type: ignore[return-value]


def make_map(keys: Sequence[object], values: Sequence[object], optional: Sequence[bool]) -> dict[object, object]:
    """Make a map whose keys may meet, or may be none."""
    made: dict[object, object] = {}
    for given, value, maybe in zip(keys, values, optional, strict=True):
        if given.__class__ is float:  # looks keys up, and is none
            raise CelError(Kind.NO_OVERLOAD, "no such overload: a double as the key of a map")
        key = map_key(given)
        if maybe and value is NONE:
            continue
        if key in made:
            raise Abort(Kind.DUPLICATE_KEY, f"the key {key!r} stands twice in a map")
        made[key] = value.value if maybe else value  # type: ignore[attr-defined]
    return made
