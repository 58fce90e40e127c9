"""Pairs of a rule: outcomes are counted into shards, each of which is published by itself; all are bounded together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace, nsmallest
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from msgspec import Struct

from fairlead.cooperative import Steps
from fairlead.learned.pair import NOTHING, WEIGHT_MIN, Observation, OutcomeSums, count, value

SHARDS: Final = 16
PAIRS_MAX: Final = 20_000

Key: TypeAlias = tuple[str, str]
"""Type, and key of the node's UID."""
Pairs: TypeAlias = Mapping[Key, OutcomeSums]
NO_PAIRS: Final[Pairs] = MappingProxyType({})


class Meaning(Struct, frozen=True):
    """Parameters of a rule by which outcomes are counted and bounded."""

    half_life_s: int
    prior: float = 1.0
    types: int = 100
    """Number of types that are kept."""
    pairs: int = PAIRS_MAX


class Merged(NamedTuple):
    """Pairs of a shard with more outcomes."""

    pairs: Pairs
    counted: int
    late: int


def shard_of(key: Key) -> int:
    """Return the number of the shard that a pair is in."""
    return crc32("\0".join(key).encode()) % SHARDS


def merge(pairs: Pairs, outcomes: Mapping[Key, Iterable[Observation]], meaning: Meaning, now: int) -> Merged:
    """Count outcomes into the pairs of a shard."""
    merged, counted, late = dict(pairs), 0, 0
    for key, each in outcomes.items():
        found = count(merged.get(key, NOTHING), each, meaning.half_life_s, now)
        if found.counted:
            merged[key] = found.pair
        counted, late = counted + found.counted, late + found.late
    return Merged(merged, counted, late)


def bound(shards: Sequence[Pairs], meaning: Meaning, now: int) -> Steps[list[Pairs]]:
    """Return the shards without the pairs that matter least, of those that are too many: with pauses."""
    half_life_s = meaning.half_life_s
    kept = list[Pairs]()
    for one in shards:
        kept.append({key: pair for key, pair in one.items() if pair.weight_at(now, half_life_s) >= WEIGHT_MIN})
        yield
    over = yield from _types_over(kept, meaning.types)
    if over:
        kept = [{key: pair for key, pair in one.items() if key[0] not in over} for one in kept]
    excess = sum(map(len, kept)) - meaning.pairs
    if excess > 0:
        ranked = list[tuple[tuple[float, float, Key], Key]]()
        for one in kept:
            ranked += [(rank(key, pair, meaning, now), key) for key, pair in one.items()]
            yield
        least = {key for _, key in nsmallest(excess, ranked)}
        kept = [{key: pair for key, pair in one.items() if key not in least} for one in kept]
        yield
    # A shard that is as it was stays the same object, so that it is not written.
    return [before if len(one) == len(before) else one for before, one in zip(shards, kept, strict=True)]


def rank(key: Key, pair: OutcomeSums, meaning: Meaning, now: int) -> tuple[float, float, Key]:
    """Return by what pairs are left out if they are too many, those first that are nearest to the prior."""
    half_life_s = meaning.half_life_s
    distance = abs(value(pair, meaning.prior, half_life_s, now) - meaning.prior)
    return distance, pair.weight_at(now, half_life_s), key


def _types_over(shards: Iterable[Pairs], most: int) -> Steps[set[str]]:
    """Return the types beyond the limit: the least recently updated ones of the namespace that has most."""
    newest: dict[str, tuple[int, str]] = {}
    for one in shards:
        for (kind, _), pair in one.items():
            found = pair.at, pair.namespace
            newest[kind] = max(found, newest.get(kind, found))
        yield
    over: set[str] = set()
    if len(newest) <= most:
        return over
    by_namespace: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for kind, (at, namespace) in newest.items():
        by_namespace[namespace].append((at, kind))
    for types in by_namespace.values():
        types.sort(reverse=True)
    largest = [(-len(types), namespace) for namespace, types in by_namespace.items()]
    heapify(largest)
    while len(newest) - len(over) > most:
        size, namespace = largest[0]
        over.add(by_namespace[namespace].pop()[1])
        heapreplace(largest, (size + 1, namespace))
    return over
