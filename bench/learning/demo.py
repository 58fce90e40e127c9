"""Demo of the original on kwok nodes: one type of pods fails on two of three kinds of nodes, a second one nowhere.

Two schedulers place the same pods at the same time, each on nodes of its own: one with the rule, one without.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from bench.learning.operator import LearningOperator
from bench.scheduler import scheduler_running
from bench.stage import NAME, PODS, Stage
from fairlead.learned.pair import NOTHING, node_key, score
from testbed.api import Object, wait_for
from testbed.kwok import FAILS_AFTER

KINDS: Final = ("10s", "60s", "never")
"""Values of the label of nodes: the time after which containers of one type fail there."""
OF_EACH: Final = 3
TYPES: Final = ("fails", "steady")
WITH, WITHOUT = "with", "without"
SCHEDULERS: Final = {WITH: NAME, WITHOUT: f"{NAME}-without"}
EVERY_S: Final = 4.0
"""A pod of each type comes to each scheduler so often."""
LASTS_S: Final = 120.0
SETTLE_S: Final = 90
HALF_LIFE_S: Final = 600
RULE: Final[Mapping[str, Any]] = {
    "name": "works",
    "weight": 5,
    "kubeRL": {"settle": f"{SETTLE_S}s", "halfLife": f"{HALF_LIFE_S}s"},
}
_SET: Final = "fairlead.dev/testbed-set"
_STEP_S: Final = 0.5
_SCORES_EVERY_S: Final = 5.0
_PLACED_S: Final = 60.0


class Placed(NamedTuple):
    """Pod that has a node."""

    at: float
    """Seconds since the begin."""
    scheduler: str
    type: str
    kind: str
    """Of the node."""


@dataclass(slots=True)
class Seen:
    """Course of the demo."""

    placed: dict[str, Placed] = field(default_factory=dict)
    """By the name of the pod."""
    failures: dict[str, int] = field(default_factory=dict)
    """Ends of containers, by the name of the pod."""
    scores: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    """By type and kind of node, seconds since the begin and the mean score of the nodes."""

    def shares(self, scheduler: str, kind: str, first: float, last: float) -> dict[str, float]:
        """Return the share of the pods of a type that were placed on each kind of nodes, in that time."""
        found = [
            one.kind
            for one in self.placed.values()
            if (one.scheduler, one.type) == (scheduler, kind) and first <= one.at < last
        ]
        return {each: found.count(each) / len(found) if found else 0.0 for each in KINDS}

    def failed(self, scheduler: str) -> int:
        """Return how often containers failed."""
        return sum(many for name, many in self.failures.items() if self.placed[name].scheduler == scheduler)


def run(stage: Stage, operator: LearningOperator, nodes: Sequence[str], seconds: float, folder: Path) -> Seen:
    """Let pods come for so many seconds, to nodes that this labels."""
    stage.delete_pods()
    kinds = _label(stage, nodes)
    uids = {one["metadata"]["name"]: str(one["metadata"]["uid"]) for one in stage.api.items("/api/v1/nodes")}
    operator.serve([RULE])
    with ExitStack() as stack:
        for name, scheduler in SCHEDULERS.items():
            own = folder / name
            own.mkdir()
            entries = operator.entries(own) if name == WITH else []
            stack.enter_context(scheduler_running(own, stage.kubeconfig, scheduler, entries, stage.nodes))
        course = _Course(stage, operator, kinds, uids)
        while course.now < seconds:
            course.step()
            time.sleep(_STEP_S)
        wait_for("the last pods to be placed", course.all_placed, timeout_s=_PLACED_S)
    stage.delete_pods()
    return course.seen


def failures_of(status: Mapping[str, Any]) -> int:
    """Return how often the containers of a pod have failed, from its status."""
    found = 0
    for one in status.get("containerStatuses", ()):
        has_ended = "terminated" in one["state"] or "waiting" in one["state"]
        found += one["restartCount"] + has_ended
    return found


@dataclass(slots=True)
class _Course:
    stage: Stage
    operator: LearningOperator
    kinds: Mapping[str, str]
    """Of the nodes, by name."""
    uids: Mapping[str, str]
    seen: Seen = field(default_factory=Seen)
    _begun: float = field(default_factory=time.monotonic)
    _made: int = 0
    _looked: float = -_SCORES_EVERY_S
    _gone: set[str] = field(default_factory=set)

    @property
    def now(self) -> float:
        """Return the seconds since the begin."""
        return time.monotonic() - self._begun

    def step(self) -> None:
        """Make the pods whose time has come, see where they are, and end old ones."""
        if self.now >= self._made * EVERY_S:
            self.stage.api.create_all(PODS, [_pod(self._made, name, kind) for name in SCHEDULERS for kind in TYPES])
            self._made += 1
        self._look()
        if self.now >= self._looked + _SCORES_EVERY_S:
            self._looked = self.now
            self._note_scores()

    def all_placed(self) -> bool:
        """Report whether each pod that was made has a node."""
        self._look()
        return len(self.seen.placed) == self._made * len(SCHEDULERS) * len(TYPES)

    def _look(self) -> None:
        for pod in self.stage.api.items(PODS):
            name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
            if not node or name in self._gone:
                continue
            if name not in self.seen.placed:
                labels = pod["metadata"]["labels"]
                kind = self.kinds[node]
                self.seen.placed[name] = Placed(self.now, labels["set"], labels["app"], kind)
                if labels["app"] == "fails" and kind != "never":
                    self.stage.api.patch(f"{PODS}/{name}", {"metadata": {"annotations": {FAILS_AFTER: kind}}})
            self.seen.failures[name] = max(self.seen.failures.get(name, 0), failures_of(pod.get("status", {})))
            if self.now >= self.seen.placed[name].at + LASTS_S:
                self._gone.add(name)
                self.stage.api.delete(f"{PODS}/{name}", gracePeriodSeconds="0")

    def _note_scores(self) -> None:
        pairs, now_ns = self.operator.outcomes(), time.time_ns()
        by_kind = defaultdict[tuple[str, str], list[int]](list)
        for node, kind in self.kinds.items():
            if not _is_of(node, self.kinds, WITH):
                continue
            for each in TYPES:
                pair = pairs.get((f"{NAME}/{each}", node_key(self.uids[node])), NOTHING)
                by_kind[each, kind].append(score(pair, 100, HALF_LIFE_S, now_ns).points)
        for key, points in by_kind.items():
            self.seen.scores.setdefault(key, []).append((self.now, fmean(points)))


def _sets(nodes: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield scheduler, kind and name of the nodes that take part."""
    names = iter(nodes)
    for scheduler in SCHEDULERS:
        for kind in KINDS:
            for _ in range(OF_EACH):
                yield scheduler, kind, next(names)


def _is_of(node: str, kinds: Mapping[str, str], scheduler: str) -> bool:
    return node in {name for one, _, name in _sets([*kinds]) if one == scheduler}


def _label(stage: Stage, nodes: Sequence[str]) -> dict[str, str]:
    kinds = {}
    for scheduler, kind, name in _sets(nodes):
        stage.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {_SET: scheduler, FAILS_AFTER: kind}}})
        kinds[name] = kind
    return kinds


def _pod(number: int, scheduler: str, kind: str) -> Object:
    requests = {"cpu": "500m", "memory": "2Gi"}
    spec = {
        "schedulerName": SCHEDULERS[scheduler],
        "nodeSelector": {_SET: scheduler},
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}],
    }
    labels = {"app": kind, "set": scheduler}
    return {"metadata": {"name": f"{scheduler}-{kind}-{number:04}", "labels": labels}, "spec": spec}
