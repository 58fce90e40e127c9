"""The checked expression that the engine serialises (cel.expr.CheckedExpr), as values of our own.

Read straight from the protobuf wire format: seven messages, of which nothing is ever written.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from fairlead.cel.pausing import Steps, finish, seldom
from fairlead.cel.values import UInt


@dataclass(frozen=True, slots=True)
class Type:
    """A type of the language: `list` and `map` and `optional_type` have parameters, messages are known by full name."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.params))}>" if self.params else self.name


DYN: Final = Type("dyn")
_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN: Final = {1: "dyn", 2: "timestamp", 3: "duration"}
OPTIONAL: Final = "optional_type"


@dataclass(frozen=True, slots=True)
class Node:
    """An expression; `id` leads to its type and its place."""

    id: int


@dataclass(frozen=True, slots=True)
class Const(Node):
    """A literal."""

    value: object


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """A name: a variable of the environment, one that a macro binds, or a type."""

    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`, or `has(operand.field)`."""

    operand: Node
    field: str
    test_only: bool


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function or an operator; `args` begin with the target if it is a member."""

    function: str
    args: tuple[Node, ...]
    member: bool = False


@dataclass(frozen=True, slots=True)
class ListExpr(Node):
    """A list literal; elements at `optional` places are optionals that may be absent."""

    elements: tuple[Node, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a map or message literal."""

    key: "Node | str"
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class StructExpr(Node):
    """A map literal, or a message literal if it has a name."""

    message: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """What the macros become: a fold."""

    variable: str
    variable2: str
    range: Node
    accumulator: str
    init: Node
    condition: Node
    step: Node
    result: Node


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked expression."""

    root: Node
    types: Mapping[int, Type]
    names: Mapping[int, str]  # identifiers as resolved, `variables.x` among them
    overloads: Mapping[int, Sequence[str]]
    positions: Mapping[int, int] = field(default_factory=dict)  # code points from the beginning

    def type_of(self, node: Node) -> Type:
        """The static type."""
        return self.types.get(node.id, DYN)


def children(node: Node) -> tuple[Node, ...]:
    """The expressions directly below, in order of evaluation."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.args
        case ListExpr():
            return node.elements
        case StructExpr():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value) if isinstance(part, Node))
        case Comprehension():
            return (node.range, node.init, node.condition, node.step, node.result)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """All expressions of a tree, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def decode(serialized: bytes) -> Checked:
    """Read what `Expression.serialize()` wrote: an Any that holds a CheckedExpr."""
    return finish(decode_steps(serialized))


def decode_steps(serialized: bytes) -> Steps[Checked]:
    """The same, pausing after so many nodes."""
    return seldom(_decoded(serialized))


def _decoded(serialized: bytes) -> Steps[Checked]:
    message = _last(_fields(serialized), 2, b"")
    types: dict[int, Type] = {}
    names: dict[int, str] = {}
    overloads: dict[int, Sequence[str]] = {}
    positions: dict[int, int] = {}
    root: Node | None = None
    for number, value in _fields(message):
        yield
        match number:
            case 2:
                key, reference = _entry(value)
                for part, text in _fields(reference):
                    if part == 1:
                        names[key] = text.decode()
                    elif part == 3:
                        overloads[key] = _and_another(overloads.get(key, ()), text)
            case 3:
                key, type_ = _entry(value)
                types[key] = _type(type_)
            case 4:
                root = yield from _expr(value)
            case 5:
                for part, entry in _fields(value):
                    if part == 4:
                        yield
                        at = dict(_scalars(entry))
                        positions[at.get(1, 0)] = at.get(2, 0)
    if root is None:
        raise ValueError("a checked expression without an expression")
    return Checked(root, types, names, overloads, positions)


@lru_cache(maxsize=1024)
def _and_another(overloads: Sequence[str], name: bytes) -> Sequence[str]:
    """The same for all calls of a function, of which an expression has many."""
    return (*overloads, name.decode())


def _expr(data: bytes) -> Steps[Node]:
    """An expression, pausing at each below it."""
    yield
    id_ = 0
    made: Node | None = None
    for number, value in _raw(data):
        if isinstance(value, int):
            id_ = value
            continue
        match number:
            case 3:
                made = Const(id_, _constant(value))
            case 4:
                made = Ident(id_, _last(_fields(value), 1, b"").decode())
            case 5:
                made = yield from _select(id_, value)
            case 6:
                parts = list(_fields(value))
                target = yield from _all(part for number, part in parts if number == 1)
                args = yield from _all(part for number, part in parts if number == 3)
                made = Call(id_, _last(parts, 2, b"").decode(), (*target, *args), bool(target))
            case 7:
                elements = yield from _all(part for number, part in _fields(value) if number == 1)
                made = ListExpr(id_, tuple(elements), frozenset(_packed(value, 2)))
            case 8:
                parts = list(_fields(value))
                entries = list[Entry]()
                for _, part in filter(lambda one: one[0] == 2, parts):
                    entries.append((yield from _struct_entry(part)))
                made = StructExpr(id_, _last(parts, 1, b"").decode(), tuple(entries))
            case 9:
                made = yield from _comprehension(id_, value)
    if made is None:
        raise ValueError("an expression of an unknown kind")
    return made


def _all(parts: Iterable[bytes]) -> Steps[list[Node]]:
    found = list[Node]()
    for part in parts:
        found.append((yield from _expr(part)))
    return found


def _select(id_: int, data: bytes) -> Steps[Select]:
    parts = list(_fields(data))
    test_only = dict(_scalars(data)).get(3, 0)
    operand = yield from _expr(_last(parts, 1, b""))
    return Select(id_, operand, _last(parts, 2, b"").decode(), bool(test_only))


def _struct_entry(data: bytes) -> Steps[Entry]:
    parts = dict(_fields(data))
    key: Node | str = parts[2].decode() if 2 in parts else (yield from _expr(parts[3]))
    return Entry(key, (yield from _expr(parts[4])), bool(dict(_scalars(data)).get(5, 0)))


def _comprehension(id_: int, data: bytes) -> Steps[Comprehension]:
    parts = dict(_fields(data))
    text = {number: parts.get(number, b"").decode() for number in (1, 3, 8)}
    range_, *fold = yield from _all(parts[number] for number in (2, 4, 5, 6, 7))
    return Comprehension(id_, text[1], text[8], range_, text[3], *fold)


def _constant(data: bytes) -> object:
    for number, value in _raw(data):
        match number, value:
            case 2, int():
                return bool(value)
            case 3, int():
                return value - (1 << 64) if value >> 63 else value
            case 4, int():
                return UInt(value)
            case 5, bytes():
                (double,) = struct.unpack("<d", value)
                return float(double)
            case 6, bytes():
                return value.decode()
            case 7, bytes():
                return value
    return None


@lru_cache(4096)
def _type(data: bytes) -> Type:
    for number, value in _raw(data):
        match number, value:
            case 2, _:
                return Type("null")
            case 3, int():
                return Type(_PRIMITIVES[value])
            case 4, int():
                return Type("wrapper", (Type(_PRIMITIVES[value]),))
            case 5, int():
                return Type(_WELL_KNOWN[value])
            case 6, bytes():
                return Type("list", (_type(_last(_fields(value), 1, b"")),))
            case 7, bytes():
                parts = dict(_fields(value))
                return Type("map", (_type(parts.get(1, b"")), _type(parts.get(2, b""))))
            case 9, bytes():
                return Type(value.decode())
            case 11, bytes():
                return Type("type", (_type(value),) if value else ())
            case 14, bytes():
                parts14 = list(_fields(value))
                params = tuple(_type(part) for n, part in parts14 if n == 2)
                return Type(_last(parts14, 1, b"").decode(), params)
    return DYN


def _entry(data: bytes) -> tuple[int, bytes]:
    parts = dict(_raw(data))
    return parts.get(1, 0), parts.get(2, b"")  # type: ignore[return-value]


def _last(parts: Sequence[tuple[int, bytes]], number: int, default: bytes) -> bytes:
    found = default
    for part, value in parts:
        if part == number:
            found = value
    return found


def _packed(data: bytes, number: int) -> Iterator[int]:
    """A repeated number, packed or not."""
    for part, value in _raw(data):
        if part != number:
            continue
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            item, at = _varint(value, at)
            yield item


def _fields(data: bytes) -> list[tuple[int, bytes]]:
    return [part for part in _raw(data) if part[1].__class__ is bytes]  # type: ignore[misc]


def _scalars(data: bytes) -> list[tuple[int, int]]:
    return [part for part in _raw(data) if part[1].__class__ is int]  # type: ignore[misc]


def _raw(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a message; lengths and tags of one byte, which nearly all are, are read on the spot."""
    at, size = 0, len(data)
    found: list[tuple[int, int | bytes]] = []
    while at < size:
        tag = data[at]
        at += 1
        if tag > 127:
            tag, at = _varint(data, at - 1)
        kind = tag & 7
        if kind == 1:
            found.append((tag >> 3, data[at : at + 8]))
            at += 8
            continue
        value = data[at]
        at += 1
        if value > 127:
            value, at = _varint(data, at - 1)
        if kind == 0:
            found.append((tag >> 3, value))
        elif kind == 2:
            found.append((tag >> 3, data[at : at + value]))
            at += value
        else:
            raise ValueError(f"wire type {kind}")
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
