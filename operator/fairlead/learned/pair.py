"""Outcomes of pods of a type on a node, and the sums that are kept of them.

The value of a pair is the mean reward of its outcomes, in which an outcome weighs half after each half-life and the
prior counts as one that never ages. A sum has no order: outcomes that are heard late, twice, or by two leaders change
nothing, because a pair also keeps the ids of what was counted lately, and the newest of those that it left out.
"""

import hashlib
import math
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.time_units import SECOND_NS

IDS_MAX: Final = 256
IDS_KEPT_S: Final = 900
WEIGHT_MIN: Final = 0.005
"""Weight of an outcome, or of all outcomes of a pair, below which they change nothing that is seen."""
AHEAD_MAX_S: Final = 300
"""For so long a time may be ahead of the clock: nodes have clocks of their own."""
_HASH_BYTES: Final = 8
_EARLY_NS: Final = 10_000_000
"""For so long before its moment a score is computed again: the moment is not exact, and less so with many outcomes."""

Mark: TypeAlias = tuple[int, str]
"""Time of an outcome in seconds since 1970, and its id."""
NO_MARK: Final[Mark] = (0, "")
NO_MARKS: Final = b"[]"
_read_marks: Final = msgspec.json.Decoder(list[Mark]).decode
text_of: Final[Callable[[Sequence[Mark]], bytes]] = msgspec.json.Encoder().encode
"""Returns marks as a pair keeps them."""


class Observation(Struct, frozen=True):
    """Success or failure of a pod on a node, as one object told it."""

    type: str
    namespace: str
    """Namespace of the pod."""
    node: str
    """Key of the node's UID."""
    at: int
    """Time in seconds since 1970."""
    id: str
    reward: float
    listed: bool = False
    """True if a list brought it, which shows again what was counted long ago."""

    @property
    def mark(self) -> Mark:
        """Return its time and id."""
        return self.at, self.id


class Sums(Protocol):
    """Sums of the outcomes of a type on a node: all that a score is computed from."""

    @property
    def rewards(self) -> float: ...  # noqa: D102
    @property
    def weight(self) -> float: ...  # noqa: D102
    @property
    def at(self) -> int: ...  # noqa: D102


class OutcomeSums(Struct, frozen=True, gc=False):
    """Sums of the outcomes of a type on a node, and the outcomes that they have, as text until they are asked for."""

    rewards: float = 0.0
    """Sum of the weighted rewards, as of its newest outcome."""
    weight: float = 0.0
    """Sum of the weights, as of its newest outcome."""
    at: int = 0
    """Time of its newest outcome."""
    namespace: str = ""
    """Namespace of the pod of its newest outcome."""
    left_out: Mark = NO_MARK
    """Newest of the outcomes that were counted and have no mark any more."""
    marks_text: bytes = NO_MARKS
    """Outcomes that were counted, as `text_of` writes them."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Return the outcomes that were counted, in their order."""
        return () if self.marks_text == NO_MARKS else tuple(sorted(_read_marks(self.marks_text)))

    def weight_at(self, now: float, half_life_s: int) -> float:
        """Return the sum of the weights at a moment."""
        return self.weight * _share(now - self.at, half_life_s)


NOTHING: Final = OutcomeSums()


class LearnedOutcomes(NamedTuple):
    """Outcomes of the pods of a type on a node, as far as a rule has learned them."""

    type: str
    sums: Sums


class CountedOutcomes(NamedTuple):
    """Pair with more outcomes, and what became of these."""

    pair: OutcomeSums
    counted: int
    late: int
    """Outcomes that cannot be told from what was left out, without those of a list."""


class PairScore(NamedTuple):
    """Score of a pair in whole points, and when it changes next if there is no other outcome."""

    points: int
    until: int | None
    """Time in nanoseconds; None for never."""


def key_of(*parts: object) -> str:
    """Return a short key of a node's UID, or the id of an outcome."""
    text = "\0".join(map(str, parts)).encode()
    return urlsafe_b64encode(hashlib.blake2b(text, digest_size=_HASH_BYTES).digest()).rstrip(b"=").decode()


@lru_cache(1 << 15)
def node_key(uid: str) -> str:
    """Return the key of a node's UID."""
    return key_of(uid)


def time_of(at: int, now: int, *, listed: bool) -> int | None:
    """Return the time at which an outcome counts; None if it cannot be told, because a list has it too far ahead.

    What counts as of now has another time when it is seen again, later than its id is kept: who calls this remembers
    what a pod has told, in its first list, too, as long as the pod is there.
    """
    if at <= now + AHEAD_MAX_S:
        return at
    return None if listed else now


def count(pair: OutcomeSums, outcomes: Iterable[Observation], half_life_s: int, now: int) -> CountedOutcomes:
    """Count outcomes of a pair, each once. Their order does not matter."""
    known = pair.marks
    marks = {mark[1]: mark for mark in known}
    newest, counted, late = (known or (pair.left_out,))[-1], 0, 0
    for one in sorted(outcomes, key=lambda each: each.mark):
        if one.id in marks:
            continue
        if one.mark <= pair.left_out:
            late += not one.listed
            continue
        if _share(now - one.at, half_life_s) < WEIGHT_MIN:
            continue
        marks[one.id] = one.mark
        pair = _added(pair, one, half_life_s)
        if one.mark > newest:
            newest, pair = one.mark, replace(pair, namespace=one.namespace)
        counted += 1
    if counted:
        pair = replace(pair, marks_text=text_of(sorted(marks.values())))
    return CountedOutcomes(pair, counted, late)


def _added(pair: OutcomeSums, outcome: Observation, half_life_s: int) -> OutcomeSums:
    at = max(pair.at, outcome.at)
    before, weight = _share(at - pair.at, half_life_s), _share(at - outcome.at, half_life_s)
    return replace(
        pair,
        rewards=pair.rewards * before + outcome.reward * weight,
        weight=pair.weight * before + weight,
        at=at,
    )


def written(pair: OutcomeSums, most: int = IDS_MAX, after: Mark = NO_MARK) -> OutcomeSums:
    """Return a pair as it is published: without the marks that are old, too many, or not after one.

    Marks are left out here alone. If each count did so, the first outcomes of a list, which is in the order of names,
    would leave out marks that others of the same list are still to be compared with.
    """
    marks = pair.marks
    recent = [mark for mark in marks if mark[0] > pair.at - IDS_KEPT_S and mark > after]
    kept = recent[max(0, len(recent) - most) :]
    if len(kept) == len(marks):
        return pair
    return replace(pair, marks_text=text_of(kept), left_out=max(pair.left_out, marks[-len(kept) - 1]))


def value(pair: Sums, prior: float, half_life_s: int, now: float) -> float:
    """Return what a pair is worth at a moment: 0 to 1, and the prior without outcomes."""
    share = _share(now - pair.at, half_life_s)
    return (prior + share * pair.rewards) / (1 + share * pair.weight)


def score(pair: Sums, prior_percent: int, half_life_s: int, now_ns: int) -> PairScore:
    """Return the score of a pair, which holds until it is nearer to the prior by a point."""
    prior = prior_percent / 100
    points = math.floor(100 * value(pair, prior, half_life_s, now_ns / SECOND_NS) + 0.5)
    if points == prior_percent:
        return PairScore(points, None)
    border = (points + (0.5 if points < prior_percent else -0.5)) / 100
    # The share of the outcomes at which the value is at the border.
    share = (border - prior) / (pair.rewards - border * pair.weight)
    after = half_life_s * math.log2(1 / share)
    return PairScore(points, max(now_ns + 1, pair.at * SECOND_NS + math.floor(after * SECOND_NS) - _EARLY_NS))


def _share(age_s: float, half_life_s: int) -> float:
    return math.exp2(-max(0.0, age_s) / half_life_s)
