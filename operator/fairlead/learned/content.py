"""Text of learned state, as a ConfigMap has it: at most 400 KiB, and numbers in full, because they are added to."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct

from fairlead.documents import FORMAT, Document, Format
from fairlead.learned.demands import AMOUNT_MAX, NO_DEMANDS, Demands, newest
from fairlead.learned.pair import IDS_MAX, NO_MARK, Mark, OutcomeSums, written
from fairlead.learned.pairs import NO_PAIRS, Key, Meaning, Pairs, rank
from fairlead.learned.published_pairs import PublishedPairs, TimeS, read_pairs

VERSION: Final = 1
BYTES_MAX: Final = 400 << 10
PAIRS: Final = "pairs"
PODS: Final = "pods"


class Written(NamedTuple):
    """Data of a ConfigMap, and what it says."""

    data: Mapping[str, str]
    pairs: Pairs = NO_PAIRS
    demands: Demands = NO_DEMANDS


Content: TypeAlias = Pairs | Demands


class _Version(Struct):
    v: Annotated[int, Meta(ge=1)]


class _WirePod(Struct, array_like=True, gc=False, frozen=True, forbid_unknown_fields=True):
    created: TimeS
    uid: str
    amounts: tuple[Annotated[float, Meta(ge=0, le=AMOUNT_MAX)], ...]


class _WirePods(Struct):
    v: int
    pods: list[_WirePod]


_versions: Final = msgspec.json.Decoder(_Version)
_pods: Final = msgspec.json.Decoder(_WirePods)
_BEGIN: Final = f'{{"v":{VERSION},'
_write: Final = msgspec.json.Encoder().encode
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)


def pairs_in(content: Content | None) -> Pairs | None:
    """Return pairs; None for what is no pairs, and so cannot be read by a rule that learns outcomes."""
    return content if content is not None and _is_of(content, OutcomeSums) else None  # type: ignore[return-value]


def demands_in(content: Content | None) -> Demands:
    """Return demands; none for what is no demands."""
    return content if content is not None and _is_of(content, tuple) else NO_DEMANDS  # type: ignore[return-value]


def _is_of(content: Content, kind: type) -> bool:
    """Return whether content is of a kind, which all of it is, or is empty."""
    if isinstance(content, PublishedPairs):
        return kind is OutcomeSums
    return all(isinstance(one, kind) for one in islice(content.values(), 1))


def read(where: str, data: Mapping[str, str], rv: str) -> Document[Content]:
    """Read the data of a ConfigMap; what a newer version of Fairlead wrote, or what cannot be read, is left alone."""
    text = data.get(PODS) or data.get(PAIRS, "")
    try:
        version = VERSION if text.startswith(_BEGIN) else _versions.decode(text).v
    except _UNREADABLE:
        version = VERSION
    return STATE.read_data(where, data, {FORMAT: str(version)}, rv)


def _decode(data: Mapping[str, str]) -> Content:
    try:
        return _pods_of(data[PODS]) if PODS in data else read_pairs(data.get(PAIRS, ""))
    except _UNREADABLE as error:
        raise ValueError(error) from None


def _pods_of(text: str) -> Demands:
    found = {(one.created, one.uid): one.amounts for one in _pods.decode(text).pods}
    if len({*map(len, found.values())}) > 1:
        raise ValueError("pods have different numbers of resources")
    return found


def encode_pairs(pairs: Pairs, meaning: Meaning, now: int, limit: int = BYTES_MAX) -> Written:
    """Write a shard, and return what was written: without old ids, and without what would make it too large.

    The oldest ids go first, then the pairs that are nearest to the prior.
    """
    kept = _with_ids(pairs)
    if len(text := _pairs_text(kept)) <= limit:
        return Written({PAIRS: text.decode()}, kept)
    marks = sorted((mark for pair in kept.values() for mark in pair.marks), reverse=True)
    number = _most(len(marks) - 1, lambda ids: len(_pairs_text(_with_ids(kept, marks[ids]))) <= limit)
    if number is not None:
        kept = _with_ids(kept, marks[number])
        return Written({PAIRS: _pairs_text(kept).decode()}, kept)
    bare = _with_ids(kept, marks[0]) if marks else kept
    ranked = sorted(bare, key=lambda key: rank(key, bare[key], meaning, now), reverse=True)
    number = _most(len(ranked), lambda first: len(_pairs_text({key: bare[key] for key in ranked[:first]})) <= limit)
    kept = {key: bare[key] for key in ranked[: number or 0]}
    return Written({PAIRS: _pairs_text(kept).decode()}, kept)


def encode_demands(demands: Demands, samples: int, limit: int = BYTES_MAX) -> Written:
    """Write the demands of the newest pods, and return what was written: fewer, if they would be too large."""
    kept = newest(demands, samples)
    if len(text := _pods_text(kept)) > limit:
        number = _most(samples - 1, lambda most: len(_pods_text(newest(kept, most))) <= limit)
        kept = newest(kept, number or 0)
        text = _pods_text(kept)
    return Written({PODS: text.decode()}, demands=kept)


def _pairs_text(pairs: Pairs) -> bytes:
    types: dict[tuple[str, str], int] = {}
    rows = [
        (
            node,
            types.setdefault((kind, pair.namespace), len(types)),
            pair.rewards,
            pair.weight,
            pair.at,
            pair.left_out,
            Raw(pair.marks_text),
        )
        for (kind, node), pair in sorted(pairs.items())
    ]
    return _write({"v": VERSION, "types": list(types), "pairs": rows})


def _pods_text(demands: Demands) -> bytes:
    rows = [(created, uid, amounts) for (created, uid), amounts in sorted(demands.items())]
    return _write({"v": VERSION, "pods": rows})


def _with_ids(pairs: Pairs, after: Mark = NO_MARK) -> dict[Key, OutcomeSums]:
    return {key: written(pair, IDS_MAX, after) for key, pair in pairs.items()}


def _most(most: int, fits: Callable[[int], bool]) -> int | None:
    """Return the greatest number up to `most` that fits, None if not even 0 does; what fits less fits, too."""
    if most < 0 or not fits(0):
        return None
    if fits(most):
        return most
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


STATE: Final[Format[Content]] = Format(
    "what a rule has learned", _decode, "delete it, and its rule learns from the beginning", VERSION, BYTES_MAX
)
