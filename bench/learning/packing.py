"""Room that placements leave for large pods: pods that come and go on simulated nodes, by rule and by seed. Pure."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, pstdev
from typing import Any, Final, NamedTuple

from bench.learning.simulated_scheduler import GIB, Amounts, ScoringStrategy, SimulatedPod, SimulatedScheduler
from fairlead.learned.demands import Arrival, newest

NODES: Final = 50
CAPACITY: Final = Amounts(16_000, 64 * GIB)
SMALL: Final = Amounts(500, 2 * GIB)
LARGE: Final = Amounts(8_000, 32 * GIB)
EQUAL: Final = Amounts(1_250, 5 * GIB)
"""Request of each of the equal pods: the mean of the mixture."""
LARGE_SHARE: Final = 0.1
LOAD: Final = 0.75
"""Share of the nodes that pods request on average, if none of them waits."""
LASTS_S: Final = 1000.0
"""Mean time that a pod stays, which is distributed exponentially, as are the times between arrivals."""
PODS: Final = 2000
COUNTED: Final = 1000
"""The last so many pods are counted: by then the number of pods that stay is about constant."""
SAMPLES: Final = 100
PUBLISHED_S: Final = 15.0
PIGEON: Final[Mapping[str, Any]] = {"name": "adaptive", "weight": 5, "pigeon": {"samples": SAMPLES}}
HOT_SPOT: Final[Mapping[str, Any]] = {
    "name": "not-all-at-once",
    "weight": 5,
    "hotSpot": {"windows": [{"within": "1m", "count": 2, "points": 10}]},
}


class Rules(NamedTuple):
    """Settings of the scheduler, and the scores of a policy."""

    fit: ScoringStrategy = "LeastAllocated"
    scores: Sequence[Mapping[str, Any]] = ()


RULES: Final[Mapping[str, Rules]] = {
    "LeastAllocated": Rules(),
    "MostAllocated": Rules("MostAllocated"),
    "pigeon": Rules(scores=(PIGEON,)),
}
ARRIVALS: Final = ("mixed", "equal")


class ComingPod(NamedTuple):
    """Pod that comes at a time and stays so long once it is placed."""

    at: float
    lasts_s: float
    pod: SimulatedPod


@dataclass(frozen=True, slots=True)
class Packing:
    """State of the nodes at the end of a run, and how many pods waited."""

    room: float
    """Number of large pods that still fit."""
    waited: float
    """Share of the pods that were not placed at once."""
    large_waited: float
    """Share of the large pods that were not; 0 without large ones."""
    deviation: float
    """Standard deviation of the nodes' requested share of cpu."""
    fullest: float
    """Requested share of cpu of the fullest node."""


def arrivals(kind: str, seed: int, many: int = PODS) -> list[ComingPod]:
    """Return the pods of a run: the same for all rules."""
    chance, now, found = Random(f"{kind}/{seed}"), 0.0, list[ComingPod]()  # noqa: S311  a simulation
    every_s = LASTS_S * EQUAL.cpu / (LOAD * NODES * CAPACITY.cpu)
    for number in range(many):
        now += chance.expovariate(1 / every_s)
        lasts_s, is_large = chance.expovariate(1 / LASTS_S), chance.random() < LARGE_SHARE
        request = EQUAL if kind == "equal" else LARGE if is_large else SMALL
        found.append(ComingPod(now, lasts_s, SimulatedPod(f"pod-{number:05}", request)))
    return found


def room_for(request: Amounts, free: Sequence[Amounts]) -> int:
    """Return how many pods of this request still fit, if no other pod comes."""
    return sum(min(one.cpu // request.cpu, one.memory // request.memory) for one in free)


def run(rules: Rules, coming: Sequence[ComingPod], counted: int, seed: int) -> Packing:
    """Place the pods one after the other; those that do not fit wait in the order in which they came."""
    made = SimulatedScheduler([f"node-{at:02}" for at in range(NODES)], CAPACITY, rules.fit, rules.scores, seed)
    learning = _Learning(made)
    ends, waiting, waited = list[tuple[float, int, SimulatedPod, str]](), list[ComingPod](), list[ComingPod]()

    def place(one: ComingPod, now: float) -> bool:
        name = made.place(one.pod, now)
        if name is not None:
            heapq.heappush(ends, (now + one.lasts_s, len(ends), one.pod, name))
        return name is not None

    for number, one in enumerate(coming):
        while ends and ends[0][0] <= one.at:
            now, _, pod, name = heapq.heappop(ends)
            made.remove(pod, name)
            learning.publish(now)
            waiting = [still for still in waiting if not place(still, now)]
        learning.hear(one, number)
        learning.publish(one.at)
        if not place(one, one.at):
            waiting.append(one)
            waited.append(one)
    return _packing(made, coming[-counted:], waited)


def _packing(made: SimulatedScheduler, coming: Sequence[ComingPod], waited: Sequence[ComingPod]) -> Packing:
    late = {one.pod.uid for one in waited}
    large = [one for one in coming if one.pod.request == LARGE]
    shares = [used.cpu / CAPACITY.cpu for used in made.requested.values()]
    return Packing(
        room=room_for(LARGE, [CAPACITY.minus(used) for used in made.requested.values()]),
        waited=fmean(one.pod.uid in late for one in coming),
        large_waited=fmean(one.pod.uid in late for one in large) if large else 0.0,
        deviation=pstdev(shares),
        fullest=max(shares),
    )


def runs(seeds: int, many: int = PODS, counted: int = COUNTED) -> Iterator[tuple[str, str, Packing]]:
    """Yield arrivals, rules and result of each run, seed by seed."""
    for seed in range(seeds):
        for kind in ARRIVALS:
            coming = arrivals(kind, seed, many)
            for name, rules in RULES.items():
                yield kind, name, run(rules, coming, counted, seed)


class _Learning:
    """Requests of the newest pods, published as the leader does it."""

    def __init__(self, made: SimulatedScheduler) -> None:
        self._made, self._published = made, 0.0
        self._heard: dict[Arrival, tuple[float, ...]] = {}

    def hear(self, one: ComingPod, number: int) -> None:
        """Learn the requests of a pod."""
        self._heard[number, one.pod.uid] = tuple(one.pod.request.in_units.values())
        self._heard = dict(newest(self._heard, SAMPLES))

    def publish(self, now: float) -> None:
        """Publish what was heard, if it is time."""
        if now >= self._published + PUBLISHED_S:
            self._published = now
            self._made.publish_demands(dict(self._heard))
