"""Decoder of expressions from the bytes of the engine's protobuf messages."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from fairlead.cel.syntax.ast import (
    DYN,
    Call,
    Checked,
    Comprehension,
    Const,
    Ident,
    ListExpr,
    Node,
    Select,
    StructEntry,
    StructExpr,
    Type,
)
from fairlead.cel.values.value_types import UInt
from fairlead.cooperative import Steps, finish, seldom

_PRIMITIVES: Final = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}


_WELL_KNOWN: Final = {1: "dyn", 2: "timestamp", 3: "duration"}


def decode(serialized: bytes) -> Checked:
    """Read what `Expression.serialize()` wrote: an Any that holds a CheckedExpr."""
    return finish(decode_steps(serialized))


def decode_steps(serialized: bytes) -> Steps[Checked]:
    """Do what `decode` does, with pauses."""
    return seldom(_decoded(serialized))


def decode_parsed_steps(serialized: bytes) -> Steps[Checked]:
    """Read an expression that was not checked (an Any that holds a ParsedExpr), with pauses; it has no types."""
    return seldom(_decoded_parsed(serialized))


def _decoded_parsed(serialized: bytes) -> Steps[Checked]:
    parts = dict(_fields(_last(_fields(serialized), 2, b"")))
    root = yield from _expr(parts[2])
    return Checked(root, {}, {}, {}, (yield from _positions(parts.get(3, b""))))


def _positions(source_info: bytes) -> Steps[dict[int, int]]:
    found: dict[int, int] = {}
    for part, entry in _fields(source_info):
        if part == 4:
            yield
            at = dict(_scalars(entry))
            found[at.get(1, 0)] = at.get(2, 0)
    return found


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
                positions = yield from _positions(value)
    if root is None:
        raise ValueError("a checked expression without an expression")
    return Checked(root, types, names, overloads, positions)


@lru_cache(maxsize=1024)
def _and_another(overloads: Sequence[str], name: bytes) -> Sequence[str]:
    """Return the overloads with one more, cached: an expression calls one function often."""
    return (*overloads, name.decode())


def _expr(data: bytes) -> Steps[Node]:
    """Read an expression, pausing at each expression below it."""
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
                entries = list[StructEntry]()
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


def _struct_entry(data: bytes) -> Steps[StructEntry]:
    parts = dict(_fields(data))
    key: Node | str = parts[2].decode() if 2 in parts else (yield from _expr(parts[3]))
    return StructEntry(key, (yield from _expr(parts[4])), bool(dict(_scalars(data)).get(5, 0)))


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
    """Yield a repeated number, packed or not."""
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
    """Return the fields of a message; tags and lengths of one byte, as nearly all are, are read inline."""
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
