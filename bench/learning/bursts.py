"""Bursts of pods, which a real scheduler places sooner than the mirror sees them: how much room they leave by rule."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import pstdev
from typing import Any, Final

from bench.learning.operator import LearningOperator
from bench.learning.packing import (
    ARRIVALS,
    CAPACITY,
    HOT_SPOT,
    LARGE,
    PIGEON,
    SAMPLES,
    Rules,
    arrivals,
    room_for,
)
from bench.learning.simulated_scheduler import Amounts, SimulatedPod, SimulatedScheduler
from bench.scheduler import scheduler_running
from bench.stage import NAME, PODS, Stage
from testbed.api import Object, wait_for

MANY: Final = 200
RULES: Final[Mapping[str, Rules]] = {
    "LeastAllocated": Rules(),
    "MostAllocated": Rules("MostAllocated"),
    "pigeon": Rules(scores=(PIGEON,)),
    "pigeon, hotSpot": Rules(scores=(PIGEON, HOT_SPOT)),
}
PACKING_PROFILE: Final[Mapping[str, Any]] = {
    "pluginConfig": [
        {
            "name": "NodeResourcesFit",
            "args": {
                "scoringStrategy": {
                    "type": "MostAllocated",
                    "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                }
            },
        }
    ]
}
"""Profile of a scheduler that packs."""
_PLACED_S: Final = 120.0
_PUBLISHED_S: Final = 60.0
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Burst:
    """State of the nodes after a burst."""

    room: float
    """Number of large pods that still fit."""
    deviation: float
    """Standard deviation of the nodes' requested share of cpu."""
    most: float
    """Number of pods on the node that got most."""
    took_s: float
    """Seconds until all were placed; 0 in a simulation."""


def simulated(name: str, kind: str, seed: int) -> Burst:
    """Place a burst with the simulated scheduler, which sees each placement at once."""
    rules, pods = RULES[name], pods_of(kind, seed)
    made = SimulatedScheduler([f"node-{at:02}" for at in range(50)], CAPACITY, rules.fit, rules.scores, seed)
    earlier = pods_of(kind, -1)[-SAMPLES:]
    made.publish_demands({(at, one.uid): tuple(one.request.in_units.values()) for at, one in enumerate(earlier)})
    placed = {one.uid: node for one in pods if (node := made.place(one, 0.0)) is not None}
    return state_of(made.names, pods, placed)


def pods_of(kind: str, seed: int) -> list[SimulatedPod]:
    """Return the pods of a burst."""
    return [one.pod for one in arrivals(kind, seed, MANY)]


def state_of(
    nodes: Sequence[str], pods: Sequence[SimulatedPod], placed: Mapping[str, str], took_s: float = 0.0
) -> Burst:
    """Return the state of the nodes with these pods."""
    used = dict.fromkeys(nodes, Amounts(0, 0))
    for pod in pods:
        if (node := placed.get(pod.uid)) is not None:
            used[node] = used[node].plus(pod.request)
    return Burst(
        room=room_for(LARGE, [CAPACITY.minus(one) for one in used.values()]),
        deviation=pstdev(one.cpu / CAPACITY.cpu for one in used.values()),
        most=max(Counter(placed.values()).values(), default=0),
        took_s=took_s,
    )


def runs(
    stage: Stage, operator: LearningOperator, nodes: Sequence[str], rounds: int, folder: Path
) -> Iterator[tuple[str, str, Burst]]:
    """Yield arrivals, rules and result of each burst with a real scheduler."""
    for name, rules in RULES.items():
        own = folder / name.replace(", ", "-")
        own.mkdir()
        if rules.scores:
            operator.serve(rules.scores)
        with ExitStack() as stack:
            entries = operator.entries(own) if rules.scores else []
            profile = PACKING_PROFILE if rules.fit == "MostAllocated" else {}
            stack.enter_context(scheduler_running(own, stage.kubeconfig, NAME, entries, stage.nodes, profile=profile))
            for kind in ARRIVALS:
                if rules.scores:
                    _burst(stage, nodes, pods_of(kind, -1))
                    _wait_until_learned(stage, operator)
                for seed in range(rounds):
                    yield kind, name, _burst(stage, nodes, pods_of(kind, seed))


def _burst(stage: Stage, nodes: Sequence[str], pods: Sequence[SimulatedPod]) -> Burst:
    stage.delete_pods()
    time.sleep(1.0)  # until the scheduler and the operator have seen that they have gone
    placed: dict[str, str] = {}

    def all_placed() -> bool:
        for pod in stage.api.items(PODS, resourceVersion="0"):
            if node := pod["spec"].get("nodeName"):
                placed[pod["metadata"]["name"]] = node
        return len(placed) == len(pods)

    begun = time.monotonic()
    stage.api.create_all(PODS, [_pod(one) for one in pods])
    wait_for("the burst to be placed", all_placed, timeout_s=_PLACED_S, progress=lambda: len(placed))
    return state_of(nodes, pods, placed, time.monotonic() - begun)


def _wait_until_learned(stage: Stage, operator: LearningOperator) -> None:
    """Return when the requests of the pods that exist now are published, and no others."""
    uids = {one["metadata"]["uid"] for one in stage.api.items(PODS)}

    def is_learned() -> bool:
        known = [uid for _, uid in operator.demands()]
        return len(known) == SAMPLES and uids.issuperset(known)

    wait_for("their requests to be published", is_learned, timeout_s=_PUBLISHED_S, every_s=0.5)


def _pod(one: SimulatedPod) -> Object:
    requests = {"cpu": f"{one.request.cpu}m", "memory": f"{one.request.memory // _MIB}Mi"}
    spec = {
        "schedulerName": NAME,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}],
    }
    return {"metadata": {"name": one.uid, "labels": {"app": one.app}}, "spec": spec}
