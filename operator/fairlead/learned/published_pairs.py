"""Pairs of a shard as they were published: all is read, to see what is unreadable, and as much is kept as is used.

A replica that only answers needs the sums of each pair. The rest, which a leader counts by, stays in the text, and is
read when it is asked for: an object for each mark would cost as much as all that is answered from.
"""

from collections import defaultdict
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from fairlead.learned.pair import NO_MARK, OutcomeSums, Sums
from fairlead.learned.pairs import Key, Pairs

TimeS = Annotated[int, Meta(ge=0, le=1 << 40)]
"""Time in seconds since 1970, as text has it."""
_Sum = Annotated[float, Meta(ge=0, le=1e12)]
ByType: TypeAlias = Mapping[str, Mapping[str, Sums]]
_MORE: Final = 1 + 1e-9


class _Mark(Struct, array_like=True, gc=False, frozen=True, forbid_unknown_fields=True):
    at: TimeS
    id: str


class PublishedSums(Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Row of a pair; its marks are dropped once they were seen to be right.

    No row and no mark is an object of the collector: with tuples it would walk them several times while they are read.
    """

    node: str
    type: Annotated[int, Meta(ge=0)]
    rewards: _Sum
    weight: _Sum
    at: TimeS
    left_out: _Mark
    marks: tuple[_Mark, ...]


class _Wire(Struct):
    v: int
    types: list[tuple[str, str]]
    pairs: list[PublishedSums]


_text_of: Final = msgspec.json.Encoder().encode
_read: Final = msgspec.json.Decoder(_Wire).decode
_UNKEPT: Final = _Mark(*NO_MARK)


class PublishedPairs(Mapping[Key, OutcomeSums]):
    """Pairs of a shard: by type and node, as tables have them, and whole by key once that is asked for."""

    __slots__ = ("_kinds", "_rows", "_text", "_whole")

    def __init__(self, text: str, kinds: Sequence[str], rows: Sequence[PublishedSums]) -> None:
        self._text, self._kinds, self._rows = text, kinds, rows
        self._whole: Pairs | None = None

    def __repr__(self) -> str:
        return f"PublishedPairs({self.by_type()!r})"

    def __len__(self) -> int:
        return len(self._rows)

    def by_type(self) -> ByType:
        """Return the sums by type and node: made anew, because to keep it takes a third of a megabyte a rule."""
        found: dict[str, dict[str, Sums]] = {}
        of_types = [found.setdefault(kind, {}) for kind in self._kinds]
        for row in self._rows:
            of_types[row.type][row.node] = row
        return found

    def __iter__(self) -> Iterator[Key]:
        return iter(self._pairs)

    def __getitem__(self, key: Key, /) -> OutcomeSums:
        return self._pairs[key]

    def items(self) -> ItemsView[Key, OutcomeSums]:
        """Return keys and sums."""
        return self._pairs.items()

    @property
    def _pairs(self) -> Pairs:
        if self._whole is None:
            self._whole, self._text = _whole(self._text), ""
        return self._whole


def by_type(pairs: Pairs) -> ByType:
    """Return the sums of pairs by type and node."""
    if isinstance(pairs, PublishedPairs):
        return pairs.by_type()
    found: dict[str, dict[str, Sums]] = defaultdict(dict)
    for (kind, node), one in pairs.items():
        found[kind][node] = one
    return found


def read_pairs(text: str) -> Pairs:
    """Read pairs. Raises ValueError, or what msgspec raises."""
    wire = _read(text)
    if not wire.pairs:
        return {}
    kinds = [kind for kind, _ in wire.types]
    for row in wire.pairs:
        if row.type >= len(kinds):
            raise ValueError(f"a pair is of type {row.type}, of {len(kinds)} types")
        if row.rewards > row.weight * _MORE:
            raise ValueError("the rewards of a pair are more than its weight")
        row.left_out, row.marks = _UNKEPT, ()
    pairs = PublishedPairs(text, kinds, wire.pairs)
    if sum(map(len, pairs.by_type().values())) < len(pairs):
        raise ValueError("a pair is there twice")
    return pairs


def _whole(text: str) -> Pairs:
    wire = _read(text)
    return {
        (wire.types[row.type][0], row.node): OutcomeSums(
            row.rewards,
            row.weight,
            row.at,
            wire.types[row.type][1],
            (row.left_out.at, row.left_out.id),
            _text_of(row.marks),
        )
        for row in wire.pairs
    }
