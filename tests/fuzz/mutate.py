"""Ways to break a body: its bytes, or the JSON that it is."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

Mutation = Callable[[Random, bytes], bytes]


class Token(str):
    """JSON that is written as it stands."""

    __slots__ = ()


class Pairs(list[list[Any]]):
    """An object, of which a key may be there twice."""


def mutated(random: Random, body: bytes) -> bytes:
    """The body after some mutations; now and then after none."""
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        body = random.choice(MUTATIONS)(random, body)
    return body


_TOKENS: Final = (
    *("null", "true", "false", "0", "-1", "1.5", "1e5", "5.0", '""', "[]", "{}", "[null]", '[""]', '{"":null}'),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400, "1e400", "-1e-400", "NaN"),
    *('"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\x"', '"\t"', '"\u2028"', '"n1"', '"web"'),
    *('"2026-01-01T00:00:00"', '"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59+23:59"', '"2026-02-30T00:00:00Z"'),
    *('"0001-01-01T00:00:00+23:59"', '"1Ei"', '"-5"', '"NaN"', '"inf"', '"' + "x" * 5000 + '"'),
)
_BYTES: Final = (
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"\n",
)
_KEYS: Final = (
    *("Pod", "Nodes", "NodeNames", "NodeNameToVictims", "NodeNameToMetaVictims", "Pods", "UID", "NumPDBViolations"),
    *("metadata", "spec", "status", "labels", "items", "name", "uid", "schedulerName", "", "\u212a", "\x00", "Error"),
)


def _flip(random: Random, body: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _truncate(random: Random, body: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    return random.choice((body[:at], body[at:]))


def _insert(random: Random, body: bytes) -> bytes:
    at = random.randrange(len(body) + 1)
    return body[:at] + random.choice(_BYTES) * random.choice((1, 1, 1, 2, 50)) + body[at:]


def _cut(random: Random, body: bytes) -> bytes:
    start = random.randrange(len(body) + 1)
    return body[:start] + body[start + random.choice((1, 2, 10, 100)) :]


def _repeat(random: Random, body: bytes) -> bytes:
    start = random.randrange(len(body) + 1)
    part = body[start : start + random.choice((1, 10, 100, 1000))]
    return body[:start] + part * random.choice((2, 3)) + body[start:]


def _deepen(random: Random, body: bytes) -> bytes:
    depth = random.choice((5, 50, 500, 5000))
    start, end = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[", b""), (b'{"Pod":', b"}")))
    at = random.choice((0, body.find(b":") + 1, body.rfind(b":") + 1))
    return body[:at] + start * depth + random.choice((body[at:], b"0")) + end * depth


def _on_json(change: Callable[[Random, list[tuple[Any, int]]], None]) -> Mutation:
    """A change of a value in its holder."""

    def mutation(random: Random, body: bytes) -> bytes:
        try:
            root = [json.loads(body, object_pairs_hook=_pairs, parse_int=Token, parse_float=Token)]
            change(random, list(_slots(root)))
            return _written(root[0]).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            return _flip(random, body)

    return mutation


def _pairs(found: list[tuple[str, Any]]) -> Pairs:
    return Pairs([list(pair) for pair in found])


def _slots(holder: list[Any]) -> Iterator[tuple[Any, int]]:
    """Every place that holds a value; of an object's pair it is the second."""
    if isinstance(holder, Pairs):
        for pair in holder:
            yield pair, 1
            if isinstance(pair[1], list):
                yield from _slots(pair[1])
        return
    for at, value in enumerate(holder):
        yield holder, at
        if isinstance(value, list):
            yield from _slots(value)


def _replace(random: Random, slots: list[tuple[Any, int]]) -> None:
    holder, at = random.choice(slots)
    holder[at] = Token(random.choice(_TOKENS))


def _swap(random: Random, slots: list[tuple[Any, int]]) -> None:
    (one, here), (other, there) = random.choice(slots), random.choice(slots)
    one[here] = Token(_written(other[there]))


def _wrap(random: Random, slots: list[tuple[Any, int]]) -> None:
    holder, at = random.choice(slots)
    inner, depth = _written(holder[at]), random.choice((1, 1, 2, 900))
    holder[at] = Token(
        "[" * depth + inner + "]" * depth if random.random() < 0.5 else '{"a":' * depth + inner + "}" * depth
    )


def _rename(random: Random, slots: list[tuple[Any, int]]) -> None:
    pairs = [holder for holder, _ in slots if len(holder) == 2 and holder[0].__class__ is str]
    if pairs:
        pair = random.choice(pairs)
        pair[0] = random.choice((pair[0].lower(), pair[0].upper(), pair[0].swapcase(), random.choice(_KEYS)))


def _double(random: Random, slots: list[tuple[Any, int]]) -> None:
    lists = [holder[at] for holder, at in slots if isinstance(holder[at], list) and holder[at]]
    if lists:
        chosen = random.choice(lists)
        one = random.choice(chosen)
        copy = [one[0], Token(random.choice(_TOKENS))] if isinstance(chosen, Pairs) and random.random() < 0.5 else one
        chosen.insert(random.randrange(len(chosen) + 1), copy)


def _drop(random: Random, slots: list[tuple[Any, int]]) -> None:
    lists = [holder[at] for holder, at in slots if isinstance(holder[at], list) and holder[at]]
    if lists:
        chosen = random.choice(lists)
        del chosen[random.randrange(len(chosen))]


def _written(value: Any) -> str:
    if isinstance(value, Token):
        return value
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{_written(one)}" for key, one in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


MUTATIONS: Final[tuple[Mutation, ...]] = (
    *(_flip, _truncate, _insert, _cut, _repeat, _deepen),
    *(_on_json(change) for change in (_replace, _replace, _replace, _swap, _wrap, _rename, _double, _drop)),
)
