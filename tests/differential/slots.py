"""A fault of the engine, in which the lowering does not follow it.

The engine keeps the variables of macros in numbered slots, and macros that stand beside each other share theirs.
`exists` and `all` that end early leave an element in a slot; a `cel.bind` (also that of `sortBy` and `optMap`) that
comes after finds the slot taken and takes what is there for its own value: `[5, 6].exists(y, true) ? cel.bind(z, 1, z)
: 0` is 5. Where both sides differ, the engine is asked once more with every macro in slots of its own: below as many
bindings that nobody uses as it takes. What it says then is what it should have said.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from fairlead.cel.syntax.ast_decode import _raw

Fields: TypeAlias = Sequence[tuple[int, "int | bytes"]]

# Numbers of fields of cel.expr.
_ID, _CONSTANT, _NAME, _STRUCT, _LIST, _FOLD = 2, 3, 4, 8, 7, 9
_BELOW = {5: (1,), 6: (1, 3), _LIST: (1,), _STRUCT: (2,), _FOLD: (2, 4, 5, 6, 7)}  # where expressions are in a kind
_IN_ENTRY = (3, 4)
_VARIABLE, _VARIABLE_2 = 1, 8
_UNUSED = b"#unused"


def apart(serialized: bytes) -> bytes:
    """A checked expression, an Any, every macro of which has slots of its own."""
    made = [(at, _checked(part) if at == 2 else part) for at, part in _raw(serialized)]  # type: ignore[arg-type]
    return _written(made)


def _checked(data: bytes) -> bytes:
    apart = _Apart()
    return _written([(at, apart.expression(part, 0) if at == 4 else part) for at, part in _raw(data)])  # type: ignore[arg-type]


@dataclass
class _Apart:
    free: int = 0  # the first slot that nobody has had
    ids: "count[int]" = field(default_factory=lambda: count(1_000_000))

    def expression(self, data: bytes, taken: int) -> bytes:
        """An expression within macros that have taken so many slots."""
        fields = _raw(data)
        unused, inside = 0, taken
        for kind, part in fields:
            if kind == _FOLD:
                unused = max(0, self.free - taken)
                inside = taken + unused + _slots(part)  # type: ignore[arg-type]
                self.free = inside
        made = _written([(kind, self.below(kind, part, inside)) for kind, part in fields])
        for _ in range(unused):
            made = self.with_unused(made)
        return made

    def below(self, kind: int, part: int | bytes, taken: int) -> int | bytes:
        if kind not in _BELOW or isinstance(part, int):
            return part
        inner = self.entry if kind == _STRUCT else self.expression
        return _written([(at, inner(one, taken) if at in _BELOW[kind] else one) for at, one in _raw(part)])  # type: ignore[arg-type]

    def entry(self, data: bytes, taken: int) -> bytes:
        return _written([(at, self.expression(one, taken) if at in _IN_ENTRY else one) for at, one in _raw(data)])  # type: ignore[arg-type]

    def with_unused(self, result: bytes) -> bytes:
        """`cel.bind(@unused, false, result)`, which takes a slot."""
        return self.node(
            _FOLD,
            [
                (_VARIABLE, _UNUSED),
                (2, self.node(_LIST, [])),
                (3, b"@unused"),
                (4, self.node(_CONSTANT, [(2, 0)])),
                (5, self.node(_CONSTANT, [(2, 0)])),
                (6, self.node(_NAME, [(1, b"@unused")])),
                (7, result),
            ],
        )

    def node(self, kind: int, fields: Fields) -> bytes:
        return _written([(_ID, next(self.ids)), (kind, _written(fields))])


def _slots(fold: bytes) -> int:
    """Its variables and what it accumulates; a binding has only that."""
    parts = dict(_raw(fold))
    if parts[_VARIABLE] == _UNUSED:
        return 1
    return 3 if _VARIABLE_2 in parts else 2


def _written(fields: Fields) -> bytes:
    made = bytearray()
    for number, part in fields:
        if isinstance(part, int):
            made += _varint(number << 3) + _varint(part)
        else:
            made += _varint(number << 3 | 2) + _varint(len(part)) + part
    return bytes(made)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)
