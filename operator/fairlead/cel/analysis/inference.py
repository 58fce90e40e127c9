"""What a value surely is, from the facts upwards; whatever `dyn` has touched is `dyn`.

The checker's types are promises about expressions, not about values: `[1] + dyn(['a'])` is a list of int to it. Native
code needs to know better.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from fairlead.cel.syntax.ast import (
    DYN,
    OPTIONAL,
    Call,
    Checked,
    Comprehension,
    Const,
    ListExpr,
    Node,
    Select,
    StructExpr,
    Type,
)

NEVER: Final = Type("never")  # of the elements of an empty list
BOOL: Final = Type("bool")
INT: Final = Type("int")
_SCALARS: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "null", "timestamp", "duration", "type"}
)
_AS_THEIR_ARGUMENTS: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_[_]", "reverse", "math.@max", "math.@min", "math.abs", "math.sign"}
    | {f"math.bit{name}" for name in ("And", "Or", "Xor", "Not", "ShiftLeft", "ShiftRight")}
)
_KEEP_FIRST: Final = frozenset({"sort", "@sortByAssociatedKeys", "slice", "distinct", "reverse"})


def join(one: Type, other: Type) -> Type:
    """The type of a value that is of one of two types."""
    if one == other or other == NEVER:
        return one
    if one == NEVER:
        return other
    if one.name == other.name and one.params and len(one.params) == len(other.params):
        return Type(one.name, tuple(join(a, b) for a, b in zip(one.params, other.params, strict=True)))
    return DYN


def inferred_type(checked: Checked, node: Node, types: Sequence[Type]) -> Type:
    """The type of what is made of parts of these types."""
    static = checked.type_of(node)
    match node:
        case Const():
            return static
        case Select(test_only=test_only):
            return BOOL if test_only else _selected(checked, node, types[0], static)
        case ListExpr(optional=optional):
            parts = (_param(type_) if at in optional else type_ for at, type_ in enumerate(types))
            return Type("list", (reduce(join, parts, NEVER),))
        case StructExpr(message=""):
            values = (
                _param(type_) if entry.optional else type_
                for entry, type_ in zip(node.entries, types[1::2], strict=True)
            )
            return Type("map", (reduce(join, types[::2], NEVER), reduce(join, values, NEVER)))
        case Call():
            return _called(checked, node, types, static)
    return static


def _selected(checked: Checked, node: Select, operand: Type, static: Type) -> Type:
    if operand.name == "map":
        return operand.params[1]
    if operand.name == OPTIONAL:
        return Type(OPTIONAL, (_looked_up(operand, static),))
    return static if operand == checked.type_of(node.operand) else DYN


def _called(checked: Checked, node: Call, types: Sequence[Type], static: Type) -> Type:
    first = types[0] if types else DYN
    match node.function:
        case "_?_:_":
            return join(types[1], types[2])
        case "_[_]" if first.name in ("list", "map"):
            return first.params[-1]
        case "_[?_]" | "_?._":
            return Type(OPTIONAL, (_looked_up(first, static),))
        case "orValue":
            return join(_param(first), types[1]) if first.name == OPTIONAL else DYN
        case "or":
            return join(first, types[1]) if first.name == OPTIONAL else DYN
        case "value":
            return _param(first)
        case "optional.of" | "optional.ofNonZeroValue":
            return Type(OPTIONAL, (first,))
        case "optional.none":
            return Type(OPTIONAL, (NEVER,))
        case "_+_" if first.name == "list" and types[1].name == "list":
            return join(first, types[1])
        case name if name in _KEEP_FIRST and first.name in ("list", "string"):
            return first
    args = zip(types, node.args, strict=True)
    if all(type_ == checked.type_of(arg) and not hides(type_) for type_, arg in args):
        return static
    if node.function in _AS_THEIR_ARGUMENTS:
        return _weakened(static) if any(type_.name == static.name for type_ in types) else DYN
    return static if static.name in _SCALARS else _weakened(static)


def _looked_up(held: Type, static: Type) -> Type:
    if held.name == OPTIONAL:
        held = _param(held)
    if held.name in ("list", "map"):
        return held.params[-1]
    return DYN if held in (DYN, NEVER) or held.name == OPTIONAL else _param(static)


def _param(type_: Type) -> Type:
    return type_.params[0] if type_.name == OPTIONAL and type_.params else DYN


def hides(type_: Type) -> bool:
    """Whether there may be values in it whose type is not known."""
    return type_ in (DYN, NEVER) or any(map(hides, type_.params))


def _weakened(static: Type) -> Type:
    if static.name in ("list", "map", OPTIONAL):
        return Type(static.name, (DYN,) * len(static.params))
    return DYN


def elements(node: Comprehension, range_type: Type) -> Mapping[str, Type]:
    """What a loop binds that goes through a value of this type."""
    if range_type.name not in ("list", "map"):
        return {node.variable: DYN, node.variable2: DYN} if node.variable2 else {node.variable: DYN}
    if not node.variable2:
        return {node.variable: range_type.params[0]}
    first = INT if range_type.name == "list" else range_type.params[0]
    return {node.variable: first, node.variable2: range_type.params[-1]}
