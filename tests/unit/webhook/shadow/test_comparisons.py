"""Calls are compared after their replies, at once or in idle time, and each pod counts once for each effect."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

import pytest

from fairlead.metrics import Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.replica_state import PolicyState, ReplicaState, ShadowCounts, ShadowRuleCounts
from fairlead.strategies.reads import NodeChange
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.extender.call import IncomingCall
from fairlead.webhook.extender.decisions import Listeners
from fairlead.webhook.https.dispatch import Dispatcher
from fairlead.webhook.shadow import call_queue, comparisons
from fairlead.webhook.shadow.pod_counts import PODS
from fairlead.webhook.shadow.shadow import Shadow
from scripted.loop import in_loop
from support.policy import NOW, SECOND, node, placed, policy
from support.webhook import Asking, body

NAMES: Final = ["a", "b", "c"]
HALF: Final = {"f": "node.metadata.name == 'a'"}
NONE: Final = {"f": "false"}


class Loop:
    """An event loop that does what is asked of it when the test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []

    def call_soon(self, function: Callable[[], None]) -> None:
        self.soon.append(function)

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        self.later.append((seconds, function))

    def turn(self) -> None:
        """Do what was asked for soon."""
        functions, self.soon = self.soon, []
        for function in functions:
            function()

    def idle(self) -> None:
        """Do all that is left, however long it should wait."""
        while self.soon or self.later:
            self.turn()
            functions, self.later = self.later, []
            for _, function in functions:
                function()


class Replica:
    """A dispatcher with the capability; its clock advances with each look by `step`."""

    def __init__(self, policies: Sequence[CompiledPolicy], *, nodes: int = 3, **caller: Any) -> None:
        names = [*NAMES, *(f"n{at}" for at in range(nodes - 3))]
        self.asking = Asking(policies, [node(name, cpu=8.0) for name in names], **caller)
        self.loop, self.time, self.step, self.listed = Loop(), SECOND, 0, True
        listeners, self.metrics, self.mirror = Listeners(), Metrics(), Mirror(lambda: NOW)
        self.shadow = Shadow(
            self.mirror, listeners, lambda: self.asking.serving, lambda: NOW, 1.0, lambda _: self.listed
        )
        self.shadow.register(self.metrics)
        live = self.shadow.comparisons
        live.soon, live.later, live.clock = self.loop.call_soon, self.loop.call_later, self.clock
        self.calls = Dispatcher(
            Binder(None),  # type: ignore[arg-type]
            lambda *_: self.asking.caller,
            lambda: self.asking.serving,
            1.0,
            Metrics(),
            listeners=listeners,
            clock=self.clock,
            prioritize_ahead=False,
        )

    def clock(self) -> int:
        self.time += self.step
        return self.time

    async def serve(self, policies: Sequence[CompiledPolicy] | None = None) -> None:
        if policies is not None:
            self.asking.serve(policies)
        await self.shadow.follow(self.asking.serving.policies.policies)

    def ask(self, path: str, asked: bytes) -> bytes:
        reply = self.calls.routes()[path](IncomingCall("all", self.asking.caller, asked, self.time))
        assert not hasattr(reply, "__await__")
        if reply.sent is not None:
            reply.sent()
        return reply.body

    def filter(self, names: Sequence[str] = NAMES, *, uid: str = "u-x", entry: str = "", **pod: Any) -> None:
        self.ask(f"{entry}/filter", body(names, pod={"uid": uid, **pod}))

    def counts(self, name: str = "p") -> ShadowCounts | None:
        one = PolicyState(uid=f"u-{name}", generation="1", serving="1", reason="Compiled")
        return self.shadow.report(ReplicaState(policies={name: one})).policies[name].shadow

    def values(self, metric: str) -> Mapping[tuple[str, ...], float]:
        (found,) = (one for one in self.metrics.own if one.name == f"fairlead_shadow_{metric}")
        return found.values  # type: ignore[union-attr]


def _counts(**counts: Any) -> ShadowCounts:
    rules = counts.pop("rules", [("Filter", "f", 0, 0)])
    made = [ShadowRuleCounts(kind=kind, name=name, pods=pods, unschedulable=alone) for kind, name, pods, alone in rules]
    return ShadowCounts(generation="1", rules=tuple(made), **counts)


@in_loop
async def test_a_pod_counts_once_for_each_effect() -> None:
    replica = Replica([policy(mode="Shadow", filters=HALF)])
    await replica.serve()
    replica.filter()
    assert replica.counts() == _counts()
    for calls in range(1, 4):
        replica.loop.idle()
        rules = [("Filter", "f", 1, 0)]
        assert replica.counts() == _counts(calls=calls, pods=1, restricted=1, rules=rules)
        replica.filter()
    replica.filter(["b", "c"])
    replica.loop.idle()
    expected = _counts(calls=5, pods=1, restricted=1, unschedulable=1, rules=[("Filter", "f", 1, 1)])
    assert replica.counts() == expected
    assert replica.values("pods") == {("p", one): 1 for one in ("compared", "restricted", "unschedulable")}
    assert replica.values("calls") == {("p", "compared"): 5}
    assert replica.values("rejected_nodes") == {("p", "f"): 2 * 4 + 2}


@in_loop
async def test_without_rules_in_shadow_nothing_listens() -> None:
    replica = Replica([policy(filters=HALF)])
    await replica.serve()
    assert (replica.asking.serving.shadow, replica.calls.listeners.each) == (None, ())
    await replica.serve([policy(mode="Shadow", filters=HALF)])
    assert len(replica.calls.listeners.each) == 1
    await replica.serve([policy(filters=HALF)])
    assert replica.calls.listeners.each == ()


NOT_COMPARED: Mapping[str, tuple[dict[str, Any], bytes]] = {
    "it is simulated": ({}, body(nodes=[{"metadata": {"name": "a"}, "spec": {}, "status": {}}])),
    "it is about the nominated node alone": (
        {},
        body(["b"]).replace(b'"status":{}', b'"status":{"nominatedNodeName":"b"}', 1),
    ),
    "its namespace is excluded": ({"excluded_namespaces": frozenset({"ml"})}, body(NAMES)),
    "it is of another scheduler": ({}, body(NAMES, scheduler="other")),
    "it cannot be read": ({}, b"{"),
}


@pytest.mark.parametrize("case", NOT_COMPARED)
@in_loop
async def test_a_call_is_not_compared_if(case: str) -> None:
    caller, asked = NOT_COMPARED[case]
    replica = Replica([policy(mode="Shadow", filters=NONE)], **caller)
    await replica.serve()
    replica.ask("/filter", asked)
    replica.loop.idle()
    assert replica.counts() == _counts()


@in_loop
async def test_a_call_about_another_node_than_the_nominated_one_is_compared() -> None:
    replica = Replica([policy(mode="Shadow", filters=NONE)])
    await replica.serve()
    replica.ask("/filter", body(["a"]).replace(b'"status":{}', b'"status":{"nominatedNodeName":"b"}', 1))
    replica.loop.idle()
    assert replica.counts() == _counts(calls=1, pods=1, restricted=1, unschedulable=1, rules=[("Filter", "f", 1, 1)])


@in_loop
async def test_what_both_entries_let_pass_is_compared() -> None:
    ignored = policy("i", failurePolicy="Ignore", filters={"g": "node.metadata.name != 'b'"})
    replica = Replica([policy(mode="Shadow", filters=HALF), ignored], ignore_entry=True)
    await replica.serve()
    replica.filter()
    replica.loop.idle()
    assert replica.counts() == _counts()
    replica.filter(entry="/ignore")
    replica.loop.idle()
    assert replica.values("rejected_nodes") == {("p", "f"): 1}
    for at in range(comparisons.BETWEEN_ENTRIES + 2):  # the entry Ignore is not called for these
        replica.filter(uid=f"u-{at}")
    replica.loop.idle()
    assert replica.values("calls") == {("p", "compared"): 1, ("p", "unknown"): 2}


@in_loop
async def test_what_is_not_cached_waits_for_idle_time_and_more_than_the_queue_holds_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_queue, "CALLS", 2)
    replica = Replica([policy(mode="Shadow", filters={"f": "pod.metadata.name != 'x' || node.metadata.name == 'a'"})])
    await replica.serve()
    for at in range(3):
        replica.filter(uid=f"u-{at}")
    replica.loop.turn()
    assert replica.values("calls") == {("p", "skipped"): 1}
    replica.loop.idle()
    assert replica.values("calls") == {("p", "skipped"): 1, ("p", "compared"): 2}


@in_loop
async def test_a_node_that_changed_before_the_comparison_is_left_out() -> None:
    replica = Replica([policy(mode="Shadow", filters={"f": "free['cpu'] >= 8.0"})])
    await replica.serve()
    replica.filter()
    replica.asking.nodes.put(node("a", cpu=8.0, used=1.0), NodeChange(requested=frozenset({"cpu"})))
    replica.loop.idle()
    assert replica.counts() == _counts(calls=1, unknown=1)


@in_loop
async def test_it_takes_a_tenth_of_the_time() -> None:
    replica = Replica([policy(mode="Shadow", filters={"f": "pod.metadata.name != node.metadata.name"})], nodes=200)
    await replica.serve()
    replica.step = SECOND // 2000
    names = [*replica.asking.nodes.slots]
    waited = 0.0
    for at in range(20):
        replica.filter(names, uid=f"u-{at}")
    while replica.loop.soon or replica.loop.later:
        replica.loop.turn()
        for seconds, function in [*replica.loop.later]:
            replica.loop.later.clear()
            replica.time += int(seconds * SECOND)
            waited += seconds
            function()
    worked = replica.shadow.comparisons.seconds
    assert 0.05 < worked / (waited + worked) < 0.1


@in_loop
async def test_a_new_policy_set_ends_what_waits_and_a_new_generation_starts_at_zero() -> None:
    replica = Replica([policy(mode="Shadow", filters=NONE)])
    await replica.serve()
    replica.filter()
    replica.loop.idle()
    replica.filter()
    await replica.serve([policy(mode="Shadow", filters=NONE), policy("other")])
    replica.loop.idle()
    assert replica.values("calls") == {("p", "compared"): 1, ("p", "unknown"): 1}
    await replica.serve([policy(mode="Shadow", generation=2, filters=NONE)])
    found = replica.counts()
    assert found is not None
    assert (found.generation, found.calls, found.pods) == ("2", 0, 0)


@in_loop
async def test_a_rule_in_shadow_of_an_enforced_policy_counts_alone() -> None:
    rules = {"g": "node.metadata.name != 'b'", "f": {"expression": "node.metadata.name != 'c'", "mode": "Shadow"}}
    replica = Replica([policy(filters=rules)])
    await replica.serve()
    replica.filter()
    replica.loop.idle()
    assert replica.counts() == _counts(calls=1, pods=1, restricted=1, rules=[("Filter", "f", 1, 0)])
    assert replica.values("rejected_nodes") == {("p", "f"): 1}


@in_loop
async def test_errors_in_shadow_are_in_a_metric_of_their_own() -> None:
    replica = Replica([policy(mode="Shadow", filters={"f": "node.metadata.labels['x'] == 'y'"})])
    await replica.serve()
    replica.filter()
    replica.loop.idle()
    replica.shadow.count_errors()
    assert replica.values("rule_errors") == {("p", "f"): 3}
    assert (replica.asking.tally.drain(), replica.asking.tally.evaluations) == ([], {})


@in_loop
async def test_annotations_that_are_not_listed_yet_make_it_unknown() -> None:
    filters = {"f": "pods.all(p, p.metadata.annotations[?'a'].orValue('') != 'x')"}
    replica = Replica([policy(mode="Shadow", filters=filters)])
    await replica.serve()
    replica.listed = False
    replica.filter()
    replica.loop.idle()
    replica.listed = True
    replica.filter()
    replica.loop.idle()
    assert replica.counts() == _counts(calls=2, unknown=1, pods=1)


@in_loop
async def test_a_protection_that_would_drop_a_candidate() -> None:
    protect = {"n": "victim.metadata.name == 'q'"}
    replica = Replica([policy(mode="Shadow", protect=protect)])
    replica.asking.nodes.put(node("a", pods=[placed("q")]))
    await replica.serve()
    for victims in ({"b": ["u-q"]}, {"a": ["u-q"], "b": ["u-r"]}):
        replica.ask("/preempt", body(victims=victims))
        replica.loop.idle()
    assert replica.counts() == _counts(evictions=1, rules=[("Protection", "n", 1, 0)])


@in_loop
async def test_a_pod_that_would_not_have_been_bound() -> None:
    annotations = {"fairlead.dev/a": {"expression": "node.metadata.labels['x']", "onError": "Reject"}}
    replica = Replica([policy(mode="Shadow", annotations=annotations)])
    await replica.serve()
    replica.filter()
    replica.loop.idle()

    entry: Any = SimpleNamespace(
        pod=SimpleNamespace(uid="u-x"), request=SimpleNamespace(amounts={"cpu": 1.0}), node="a"
    )
    for _ in range(2):
        replica.mirror.watchers.put_placed(("ml", "x"), entry)
        replica.loop.idle()
    expected = _counts(calls=1, pods=1, unschedulable=1, rules=[("Annotation", "fairlead.dev/a", 1, 1)])
    assert replica.counts() == expected
    replica.shadow.count_errors()
    assert replica.values("rule_errors") == {("p", "fairlead.dev/a"): 1}


@pytest.mark.parametrize(
    ("key", "priority", "match", "unbound"),
    [
        pytest.param("a", 1, {}, False, id="its value is written"),
        pytest.param("a", -1, {}, True, id="one that comes later writes nothing"),
        pytest.param("a", 1, {"namespaces": ["other"]}, True, id="one that does not match writes nothing"),
        pytest.param("b", 1, {}, True, id="another key"),
    ],
)
@in_loop
async def test_an_annotation_that_an_enforced_policy_writes_first_binds_the_pod(
    key: str, priority: int, match: Any, unbound: bool
) -> None:
    annotations = {"fairlead.dev/a": {"expression": "node.metadata.labels['x']", "onError": "Reject"}}
    enforced = policy("e", priority=priority, match=match, annotations={f"fairlead.dev/{key}": "'v'"})
    replica = Replica([enforced, policy(mode="Shadow", annotations=annotations)])
    await replica.serve()
    replica.filter()
    replica.loop.idle()
    entry: Any = SimpleNamespace(pod=SimpleNamespace(uid="u-x"), request=SimpleNamespace(amounts={}), node="a")
    replica.mirror.watchers.put_placed(("ml", "x"), entry)
    replica.loop.idle()
    found = replica.counts()
    assert found is not None
    assert (found.pods, found.unschedulable) == (1, int(unbound))


@in_loop
async def test_calls_are_not_compared_before_first_values_are_there() -> None:
    replica = Replica([policy(mode="Shadow", filters=NONE)])
    await replica.serve()
    replica.shadow.comparisons.has_values = lambda: False
    replica.filter()
    replica.loop.idle()
    assert replica.counts() == _counts(calls=1, unknown=1, rules=[("Filter", "f", 0, 0)])


@in_loop
async def test_a_pod_that_was_forgotten_counts_again() -> None:
    replica = Replica([policy(mode="Shadow", filters=NONE)])
    await replica.serve()
    for at in (*range(PODS + 1), 0, PODS):
        replica.filter(["a"], uid=f"u-{at}")
        replica.loop.idle()
    found = replica.counts()
    assert found is not None
    assert (found.pods, found.calls) == (PODS + 2, PODS + 3)
