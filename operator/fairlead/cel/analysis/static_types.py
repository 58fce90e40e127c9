"""Types that lowered code may rely on: the checker's, where it knows one.

Where `dyn` stands anywhere in an expression, the checker's types are promises about expressions and not about values:
`[1] + dyn(['a'])` is a list of int to it. Such an expression runs on the engine, and so does one with a `null` that may
stand for a message. Bounds of cost have to hold there too: they rely on `known_type`.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final

from fairlead.cel.syntax.ast import DYN, OPTIONAL, Call, Checked, Const, ListExpr, Node, Select, StructExpr, Type
from fairlead.cel.values.errors import NotLoweredError

BOOL: Final = Type("bool")
EQUALITY: Final = frozenset({"_==_", "_!=_"})
"""Operators whose operands may be of any type."""
JUNCTIONS: Final = frozenset({"_&&_", "_||_"})
_SCALARS: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "type", "null"}
)
_OF_OPERANDS: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_?_:_", "_[_]", "value", "orValue", "reverse"}
    | {f"math.{name}" for name in ("@max", "@min", "abs", "sign", "bitAnd", "bitOr", "bitXor", "bitNot")}
    | {"math.bitShiftLeft", "math.bitShiftRight"}
)
"""Functions whose results have the types of their operands."""
_NEVER_RAISE: Final = frozenset(
    {*JUNCTIONS, "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "@not_strictly_false", "size"}
    | {"_[?_]", "_?._", "or", "orValue", "hasValue", "optional.of", "optional.none", "dyn", "type"}
    | {"contains", "startsWith", "endsWith"}
)
"""Functions that never raise for operands of known types."""
_NEVER_OVERFLOW: Final = frozenset({"string", "bytes", "list", "double"})
_KEYS: Final = frozenset({"string", "int", "uint"})


@lru_cache(4096)
def unknown_type(type_: Type) -> str:
    """Return why values of a type may not be what it says; "" if they are."""
    match type_:
        case Type(name="type"):
            return ""
        case Type(name="dyn" | "wrapper"):
            return "a value whose type is known only at run time"
        case Type(name="null"):
            return "null, other than compared"
        case Type(name="map", params=(key, _)) if key.name not in _KEYS and key.name != "dyn":
            return f"a map with keys of type {key.name}"
        case Type(name=name, params=(content,)) if name == content.name == OPTIONAL:
            return "an optional in an optional"
    return next(filter(None, map(unknown_type, type_.params)), "")


def require_static_type(checked: Checked, node: Node, *, compared: bool) -> None:
    """Raise NotLoweredError if values of a node need not have the type that the checker gives it.

    An operand of `==` may also be `null`, or a field of the API that is a number or a text.
    """
    why = unknown_type(checked.type_of(node))
    if not why:
        return
    match node:
        case ListExpr(elements=()) | StructExpr(message="", entries=()) | Call(function="optional.none"):
            return
        case Const(value=value) if compared or value is not None:
            return
        case Select(operand=operand, test_only=False) if compared and "." in checked.type_of(operand).name:
            return
    raise NotLoweredError(why)


def is_known(type_: Type) -> bool:
    """Return whether there is no `dyn` in a type."""
    return type_ != DYN and all(map(is_known, type_.params))


def known_type(checked: Checked, node: Node, parts: Sequence[Type]) -> Type:
    """Return the type that a value is known to have, by those of its parts; DYN if the checker only promises one."""
    static = checked.type_of(node)
    if is_known(static) and all(map(is_known, parts)):
        return static
    match node:
        case Const():
            return Type("string")  # the field of `.?field`, which has no type
        case ListExpr():
            return Type("list", (DYN,))
        case Call(function=function) if function not in _OF_OPERANDS and static.name in _SCALARS:
            return static
    return DYN


def raises_itself(node: Node, types: Collection[str]) -> bool:
    """Return whether a call or a selection may raise, by the types that its operands are known to have."""
    match node:
        case Select(test_only=False):
            return not {*types}.isdisjoint(("map", "dyn"))
        case Call(function=function):
            never = function in _NEVER_RAISE or (function == "_+_" and {*types} <= _NEVER_OVERFLOW)
            return not never or "dyn" in types
    return False
