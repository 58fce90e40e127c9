"""Types that lowered code may rely on: the checker's, where it knows one.

Where `dyn` stands anywhere in an expression, the checker's types are promises about expressions and not about values:
`[1] + dyn(['a'])` is a list of int to it. Such an expression runs on the engine, and so does one with a `null` that may
stand for a message.
"""

from functools import lru_cache
from typing import Final

from fairlead.cel.syntax.ast import OPTIONAL, Call, Checked, Const, ListExpr, Node, Select, StructExpr, Type
from fairlead.cel.values.errors import NotLoweredError

BOOL: Final = Type("bool")
INT: Final = Type("int")
EQUALITY: Final = frozenset({"_==_", "_!=_"})
"""Operators whose operands may be of any type."""
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
