"""Time until nodes on which pods failed are tried again, in virtual time: the demo, with hours for minutes. Pure.

The scheduler is simulated; the scores are the product's, and so is how outcomes are counted and weighed.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from bench.learning.simulated_scheduler import GIB, Amounts, SimulatedPod, SimulatedScheduler
from fairlead.learned.outcomes import FAILURE, LATE_FAILURE, SUCCESS
from fairlead.learned.pair import NOTHING, Observation, OutcomeSums, count, key_of, node_key, score
from fairlead.learned.pairs import Key, shard_of
from fairlead.time_units import SECOND_NS

KINDS: Final[Mapping[str, float | None]] = {"10 s": 10.0, "1 min": 60.0, "never": None}
"""Kinds of nodes, by the time after which containers of one type of pods fail there."""
FAILING: Final = ("10 s", "1 min")
OF_EACH: Final = 3
CAPACITY: Final = Amounts(16_000, 64 * GIB)
REQUEST: Final = Amounts(1_500, 6 * GIB)
TYPES: Final = ("fails", "steady")
EVERY_S: Final = 120.0
"""A pod of each type comes so often."""
LASTS_S: Final = 1800.0
FIXED_S: Final = 7200.0
"""From then on nothing fails on any node."""
SETTLE_S: Final = 600
PUBLISHED_S: Final = 15.0
HALF_LIVES_H: Final = (1, 6, 24)
USUAL_H: Final = 6
"""Half-life of a rule that says none."""
SEEDS: Final = 5
DAYS: Final = 14
_HOUR_S: Final = 3600
_BACK_OFF_S: Final = (0, 10, 20, 40, 80, 160)
_BACK_OFF_MAX_S: Final = 300


@dataclass(slots=True)
class Trial:
    """Run with one half-life; 0 for none, without the rule."""

    half_life_h: int
    failures: int = 0
    """Ends of containers, with those of the type that fails nowhere, which has none."""
    on_failing: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By hour, pods of the type that fails: those on nodes on which it fails or has failed, and all of them."""
    tried: dict[str, float] = field(default_factory=dict)
    """By kind, hours from the repair to the first pod of the type on a node of it."""
    score_then: dict[str, int] = field(default_factory=dict)
    """Score of that node at that time."""
    shared_again: float | None = None
    """Hours from the repair to the first hour in which these nodes get nine tenths of their part of the pods."""
    scores: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """By kind, hours since the repair and the mean score of its nodes for the type that fails."""

    def share(self, first: int, last: int) -> float:
        """Return the share of pods that went to nodes on which they fail, in these hours."""
        found = [self.on_failing[hour] for hour in range(first, last)]
        return sum(one for one, _ in found) / sum(both for _, both in found)


def failures(start: float, end: float, after: float) -> list[float]:
    """Return the times at which a container fails that the kubelet starts again, with its back-off."""
    found, at = list[float](), start
    while (at := at + after) <= end:
        found.append(at)
        number = len(found) - 1
        at += _BACK_OFF_S[number] if number < len(_BACK_OFF_S) else _BACK_OFF_MAX_S
    return found


def observations(
    pod: str, kind: str, node: str, start: float, ends: Sequence[float], until: float, after: float | None
) -> Iterator[Observation]:
    """Yield the outcomes that a pod tells, each at its time."""
    for at in ends:
        reward = FAILURE if after is None or after < SETTLE_S else LATE_FAILURE
        yield Observation(f"default/{kind}", "default", node_key(node), int(at), key_of(pod, at), reward)
    settled = start + SETTLE_S
    if settled <= until and not any(at <= settled for at in ends):
        yield Observation(f"default/{kind}", "default", node_key(node), int(settled), key_of(pod, "settled"), SUCCESS)


def run(half_life_h: int, seed: int, days: float = DAYS) -> Trial:
    """Let pods come until the nodes have their part of the pods again and each kind was tried, or for so many days."""
    kinds = {f"node-{at}": kind for at, kind in enumerate(kind for kind in KINDS for _ in range(OF_EACH))}
    rule = {"name": "works", "weight": 5, "kubeRL": {"halfLife": f"{half_life_h or 1}h"}}
    made = SimulatedScheduler([*kinds], CAPACITY, scores=[rule] if half_life_h else (), seed=seed)
    found, learned = Trial(half_life_h), _Outcomes(made, (half_life_h or 1) * _HOUR_S)
    ends, now, number = list[tuple[float, str, SimulatedPod]](), 0.0, 0
    while now < FIXED_S + days * 24 * _HOUR_S:
        while ends and ends[0][0] <= now:
            _, left, gone = heapq.heappop(ends)
            made.remove(gone, left)
        learned.publish(now)
        if now % _HOUR_S == 0:
            _note_scores(found, learned, kinds, now)
            if found.shared_again is None and _has_part_again(found, now):
                found.shared_again = (now - FIXED_S) / _HOUR_S - 1
            if found.shared_again is not None and len(found.tried) == len(FAILING):
                break
        for kind in TYPES:
            pod = SimulatedPod(f"{kind}-{number:06}", REQUEST, kind)
            name = made.place(pod, now)
            if name is None:
                raise RuntimeError("the nodes are full: fewer pods, or larger nodes")
            heapq.heappush(ends, (now + LASTS_S, name, pod))
            after = KINDS[kinds[name]] if kind == "fails" else None
            failed = [] if after is None else failures(now, min(now + LASTS_S, FIXED_S), after)
            found.failures += len(failed)
            learned.hear(observations(pod.uid, kind, name, now, failed, now + LASTS_S, after))
            if kind == "fails":
                _note_placement(found, learned, kinds[name], name, now)
        now, number = now + EVERY_S, number + 1
    return found


def _note_placement(found: Trial, learned: "_Outcomes", kind: str, name: str, now: float) -> None:
    hour = int(now // _HOUR_S)
    failing, both = found.on_failing.get(hour, (0, 0))
    found.on_failing[hour] = failing + (kind in FAILING), both + 1
    if now >= FIXED_S and kind in FAILING and kind not in found.tried:
        found.tried[kind] = (now - FIXED_S) / _HOUR_S
        found.score_then[kind] = learned.score(name, now)


def _note_scores(found: Trial, learned: "_Outcomes", kinds: Mapping[str, str], now: float) -> None:
    for kind in KINDS:
        points = fmean(learned.score(name, now) for name, one in kinds.items() if one == kind)
        found.scores.setdefault(kind, []).append(((now - FIXED_S) / _HOUR_S, points))


def _has_part_again(found: Trial, now: float) -> bool:
    """Return whether the last hour, which began after the repair, had the part that nodes without a rule have."""
    hour = int(now // _HOUR_S) - 1
    return hour * _HOUR_S >= FIXED_S and found.share(hour, hour + 1) >= 0.9 * len(FAILING) / len(KINDS)


class _Outcomes:
    """Outcomes that the leader has heard and published."""

    def __init__(self, made: SimulatedScheduler, half_life_s: int) -> None:
        self._made, self._half_life_s = made, half_life_s
        self._pending = list[tuple[int, str, Observation]]()
        self._pairs: dict[Key, OutcomeSums] = {}

    def hear(self, observed: Iterator[Observation]) -> None:
        """Note outcomes that are still to come."""
        for one in observed:
            heapq.heappush(self._pending, (one.at, one.id, one))

    def publish(self, now: float) -> None:
        """Count what was seen up to the last publication."""
        seen, published = dict[Key, list[Observation]](), now // PUBLISHED_S * PUBLISHED_S
        while self._pending and self._pending[0][0] <= published:
            _, _, one = heapq.heappop(self._pending)
            seen.setdefault((one.type, one.node), []).append(one)
        for key, outcomes in seen.items():
            self._pairs[key] = count(self._pairs.get(key, NOTHING), outcomes, self._half_life_s, int(now)).pair
        for number in {shard_of(key) for key in seen}:
            self._made.publish_outcomes(
                number, {key: pair for key, pair in self._pairs.items() if shard_of(key) == number}
            )

    def score(self, name: str, now: float) -> int:
        """Return the score of a node for the type that fails."""
        pair = self._pairs.get(("default/fails", node_key(name)), NOTHING)
        return score(pair, 100, self._half_life_s, int(now * SECOND_NS)).points


def runs() -> Iterator[Trial]:
    """Yield a run without the rule, and those of each half-life and seed."""
    yield run(0, 0, days=1.0)
    for half_life_h in HALF_LIVES_H:
        for seed in range(SEEDS):
            yield run(half_life_h, seed)
