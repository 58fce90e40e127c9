"""Whatever happens to nodes: kept systems equal those from nothing, and scores those of a second computation."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fairlead.cooperative import finish
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes import kept_system as kept
from fairlead.policy.nodes.compared_views import follow, kept_system
from fairlead.policy.nodes.journal import Journal
from fairlead.policy.nodes.node_table import Nodes, RequestNodes
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.contract import Reads, SystemRead
from fairlead.strategies.node_system import PARTS
from fairlead.strategies.reads import NodeChange, union
from support.policy import NOW, Clock, Endless, pod, policy
from support.policy.asking import NEVER, scored
from support.policy.machines import learn, machine
from support.strategies.second_pigeon import Host, scores_of

NAMES = [f"n{at}" for at in range(6)]
BATCH = {"matchLabels": {"pool": "batch"}, "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}
RULES: dict[str, dict[str, Any]] = {
    "balance": {"objective": "Balance", "system": BATCH},
    "adaptive": {"minSamples": 3, "system": BATCH, "floors": [{"name": "memory", "quantity": "1"}]},
    "consolidate": {"objective": "Consolidate", "resources": ["memory"]},
    "one": {"resources": ["gpu", "cpu", "memory"], "minSamples": 2},
}
POLICIES = {name: policy(name, scores={"s": {"pigeon": rule}}) for name, rule in RULES.items()}
DEMANDS = {(at, f"u{at}"): (at % 3 / 2, at % 5 * 1.5, 1.0) for at in range(8)}
PODS = [
    pod(f"p{at}", request=request)
    for at, request in enumerate(
        [{}, {"cpu": 1.0}, {"cpu": 0.1, "memory": 3.0}, {"cpu": 2.0, "memory": 0.3, "gpu": 1.0}]
    )
]
shares = st.integers(0, 11).map(lambda tenths: tenths / 10)
sizes = st.sampled_from([0.0, 3.0, 4.0, 16.0])


class SystemsEqualFresh(RuleBasedStateMachine):
    """Every step changes something; answers are compared with a computation that keeps nothing."""

    @initialize(journal=st.sampled_from([3, 10, 1000]))
    def start(self, journal: int) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.nodes = Nodes(journal=Journal(journal))
        learn(self.nodes, DEMANDS)
        self.evaluators = {name: Evaluator(policy_set([one]), self.nodes) for name, one in POLICIES.items()}
        for name in NAMES[:3]:
            self.nodes.put(self._view(name, {}))

    def _view(self, name: str, changed: dict[str, Any]) -> NodeView:
        held = self.objects.setdefault(
            name,
            {"cpu": (0.4, 4.0), "memory": (0.2, 16.0), "gpu": (0.0, 3.0), "labels": {"pool": "batch"}, "fields": {}},
        )
        held.update(changed)
        amounts = {key: (share * whole, whole) for key in ("cpu", "memory", "gpu") for share, whole in [held[key]]}
        return machine(name, amounts, labels=held["labels"], **held["fields"])

    def _change(self, name: str, change: NodeChange, **changed: Any) -> None:
        if name in self.nodes.slots:
            self.nodes.put(self._view(name, changed), change)

    @rule(name=st.sampled_from(NAMES))
    def goes(self, name: str) -> None:
        self.nodes.remove(name)
        self.objects.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def comes_or_is_another_one(self, name: str) -> None:
        self.nodes.put(self._view(name, {}))

    @rule(name=st.sampled_from(NAMES), resource=st.sampled_from(["cpu", "memory", "gpu"]), share=shares)
    def pods_come(self, name: str, resource: str, share: float) -> None:
        if name in self.objects:
            whole = self.objects[name][resource][1]
            change = NodeChange(requested=frozenset({resource}))
            self._change(name, change, **{resource: (share, whole)})

    @rule(name=st.sampled_from(NAMES), resource=st.sampled_from(["cpu", "memory", "gpu"]), whole=sizes)
    def it_is_resized(self, name: str, resource: str, whole: float) -> None:
        if name in self.objects:
            share = self.objects[name][resource][0]
            both = frozenset({resource})
            self._change(name, NodeChange(requested=both, allocatable=both), **{resource: (share, whole)})

    @rule(name=st.sampled_from(NAMES), pool=st.sampled_from(["batch", "web", ""]))
    def label(self, name: str, pool: str) -> None:
        labels = {**self.objects.get(name, {}).get("labels", {}), "pool": pool}
        self._change(name, NodeChange(node=frozenset({("metadata", "labels", "pool")})), labels=labels)

    @rule(name=st.sampled_from(NAMES), is_old=st.booleans())
    def grows_old(self, name: str, is_old: bool) -> None:
        before = self.objects.get(name, {}).get("labels", {})
        labels = {"pool": before.get("pool", "")} | ({"old": ""} if is_old else {})
        self._change(name, NodeChange(node=frozenset({("metadata", "labels", "old")})), labels=labels)

    @rule(name=st.sampled_from(NAMES), ready=st.sampled_from(["True", "False", ""]), is_cordoned=st.booleans())
    def condition(self, name: str, ready: str, is_cordoned: bool) -> None:
        fields = {"ready": ready, "is_cordoned": is_cordoned}
        paths = frozenset({("status", "conditions", "Ready", "status"), ("spec", "unschedulable")})
        self._change(name, NodeChange(node=paths), fields=fields)

    @rule(
        name=st.sampled_from(NAMES),
        at=st.integers(0, len(PODS) - 1),
        asked=st.lists(st.sampled_from(NAMES), unique=True),
    )
    def is_asked(self, name: str, at: int, asked: Sequence[str]) -> None:
        self._compare(PODS[at], asked)

    @rule(at=st.integers(0, len(PODS) - 1), policy_name=st.sampled_from([*POLICIES]), looks=st.integers(0, 3))
    def is_asked_with_little_time(self, at: int, policy_name: str, looks: int) -> None:
        with suppress(TooSlowError):
            scored(self.evaluators[policy_name], PODS[at], NAMES, clock=Clock(1000), deadline_ns=looks * 1000)

    @rule()
    def has_nothing_to_do(self) -> None:
        for each in self.evaluators.values():
            assert each.precompute(now=NOW, clock=Endless(), deadline_ns=NEVER)

    def teardown(self) -> None:
        for one in PODS:
            self._compare(one, NAMES)
        fresh = Nodes()
        for view in self.nodes.views:
            if view is not None:
                fresh.put(view)
        for read in union(one.reads for one in POLICIES.values()).system:
            mine, other = (_followed(nodes, read) for nodes in (self.nodes, fresh))
            assert (mine.number, mine.figures) == (other.number, other.figures)
            assert [*mine.ordered] == [*other.ordered]
            for limit in (0, PARTS // 3, 2 * PARTS):
                assert mine.ordered.below(limit) == other.ordered.below(limit)

    def _compare(self, one: Any, names: Sequence[str]) -> None:
        brought = RequestNodes(self.nodes)
        for name in names:
            # What a call brings is only scored: its own amounts count for nothing.
            brought.put(machine(name, {"cpu": (1.0, 2.0), "memory": (1.0, 2.0), "gpu": (0.0, 9.0)}))
        for name, rule_ in RULES.items():
            want = self._wanted(rule_, POLICIES[name].reads, one, names)
            assert scored(self.evaluators[name], one, names) == pytest.approx(want, abs=1e-3)
            called = Evaluator(policy_set([POLICIES[name]]), brought)
            assert scored(called, one, names) == pytest.approx(want, abs=1e-3)

    def _wanted(self, written: dict[str, Any], reads: Reads, one: Any, names: Sequence[str]) -> list[float]:
        resources = written.get("resources", ["cpu", "memory"])
        floors = [1.0 if "floors" in written and name == "memory" else 0.0 for name in resources]
        system = {
            name: Host(*zip(*((held[key][0] * held[key][1], held[key][1]) for key in resources), strict=True))
            for name, held in self.objects.items()
            if name in self.nodes.slots
            and all(held[key][1] > 0 for key in resources)
            and held["fields"].get("ready", "True") in ("True", "")
            and not held["fields"].get("is_cordoned", False)
            and ("system" not in written or (held["labels"].get("pool") == "batch" and "old" not in held["labels"]))
        }
        request = [max(one.request.get(name, 0.0), floor) for name, floor in zip(resources, floors, strict=True)]
        demands = [[max(pair) for pair in zip(row, floors, strict=False)] for row in DEMANDS.values()]
        return scores_of(
            written.get("objective", "Adaptive"), system, names, request, demands, written.get("minSamples", 10)
        )


def _followed(nodes: Nodes, read: SystemRead) -> Any:
    system = kept_system(nodes, read)
    finish(follow(nodes, system))
    return system.sums


@pytest.fixture(autouse=True)
def _many_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_SLICE", 1)


TestSystemsEqualFresh = SystemsEqualFresh.TestCase
TestSystemsEqualFresh.settings = settings(
    max_examples=60, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)
