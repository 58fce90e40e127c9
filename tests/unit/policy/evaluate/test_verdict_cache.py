"""Cached verdicts: what is evaluated again and what is not, in slices, within bounds."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.policy.columns import column
from fairlead.policy.columns.column import FilterColumn
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.verdict_cache import SLICE_MAX
from fairlead.policy.nodes.journal import ENTRIES_MAX
from fairlead.policy.nodes.node_table import Nodes
from fairlead.strategies.reads import NodeChange, Path, Reads, owner_of
from support.policy import NOW, SECOND, Clock, Evaluation, node, placed, pod, policy
from support.policy.rule_work import GPU, evaluations_in, gpu_cluster


def test_nothing_is_computed_again_while_nothing_changes() -> None:
    cluster = gpu_cluster()
    with evaluations_in(cluster) as cold:
        cluster.filter(pod(labels={"gpu": "a"}))
    assert cold == {"gpu": 20, "zone": 20, "room": 20}
    with evaluations_in(cluster) as again:
        cluster.filter(pod("another", labels={"gpu": "a", "other": "label"}))
        cluster.filter(pod(labels={"gpu": "a"}), ["n1"], NOW + 10**6 * SECOND)
    assert again == {}


def test_after_one_label_changed_only_its_rules_are_asked_once_for_each_class_asked() -> None:
    cluster = gpu_cluster()
    classes = [pod(labels={"gpu": gpu}) for gpu in "abc"]
    for one in classes:
        cluster.filter(one)
        cluster.scores(one)
    cluster.nodes.put(node("n3", labels={"gpu": "b"}), GPU)
    with evaluations_in(cluster) as asked:
        for one in [*classes, *classes]:
            cluster.filter(one)
            cluster.scores(one)
    assert asked == {"gpu": 3, "gpus": 3}
    assert "n3" in cluster.filter(classes[1]).passed
    with evaluations_in(cluster) as one_class:
        cluster.nodes.put(node("n3", labels={"gpu": "c"}), GPU)
        cluster.filter(classes[0])
    assert one_class == {"gpu": 1}


def test_changes_pile_up_to_one_evaluation() -> None:
    cluster = gpu_cluster()
    cluster.filter(pod())
    for at in range(50):
        cluster.nodes.put(node("n3", labels={"gpu": str(at)}), GPU)
    with evaluations_in(cluster) as asked:
        cluster.filter(pod())
    assert asked == {"gpu": 1}


CHANGES = {
    "a label that nobody reads": (NodeChange(node=frozenset({("metadata", "labels", "other")})), set()),
    "all labels": (NodeChange(node=frozenset({("metadata", "labels")})), {"gpu", "zone"}),
    "what is requested": (NodeChange(requested=frozenset({"cpu"})), {"room"}),
    "what is requested of something else": (NodeChange(requested=frozenset({"memory"})), set()),
    "what is allocatable": (NodeChange(allocatable=frozenset({"cpu"})), {"room"}),
    "pods": (NodeChange(pods=(owner_of(placed()),)), set()),
    "nobody knows what": (None, {"gpu", "zone", "room"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_touches_the_rules_that_read_it(name: str) -> None:
    change, want = CHANGES[name]
    cluster = gpu_cluster()
    cluster.filter(pod())
    cluster.nodes.put(node("n3", labels={"gpu": "a"}), change)
    with evaluations_in(cluster) as asked:
        cluster.filter(pod())
    assert asked == dict.fromkeys(want, 1)


_HEARTBEAT = NodeChange(node=frozenset({("status", "conditions", "lastHeartbeatTime")}))
_READERS = {
    "the labels": ("node.metadata.labels[?'gpu'].orValue('') != 'z'", 0),
    "one condition": ("node.status.conditions.exists(c, c.type == 'Ready')", 1),
}


@pytest.mark.parametrize("name", _READERS)
def test_a_change_is_in_the_journal_if_results_were_computed_from_it(name: str) -> None:
    expression, want = _READERS[name]
    cluster = Evaluation([policy("p", filters={"only": expression})], [node("n1")])
    before = cluster.nodes.head
    cluster.nodes.put(node("n1"), _HEARTBEAT)
    assert cluster.nodes.head == before  # nothing was asked about yet
    cluster.filter(pod())
    for _ in range(3):
        cluster.nodes.put(node("n1"), _HEARTBEAT)
    assert cluster.nodes.head == before + 3 * want


def test_a_class_stays_in_step_while_nodes_send_heartbeats_that_no_rule_reads() -> None:
    cluster = gpu_cluster()
    cluster.filter(pod())
    beating = node("n3", labels={"gpu": "a"})
    for _ in range(2 * ENTRIES_MAX):
        cluster.nodes.put(beating, _HEARTBEAT)
    with evaluations_in(cluster) as asked:
        cluster.filter(pod())
    assert asked == {}


_STEPS = st.sampled_from(["metadata", "labels", "a", "b", "status", "conditions"])
_SOME_PATHS = st.frozensets(st.lists(_STEPS, max_size=3).map(tuple), max_size=3)


@given(read=st.lists(_SOME_PATHS, max_size=3), changed=_SOME_PATHS, requested=st.frozensets(st.just("cpu")))
def test_what_affects_a_rule_that_was_asked_is_in_the_journal(
    read: list[frozenset[Path]], changed: frozenset[Path], requested: frozenset[str]
) -> None:
    nodes = Nodes()
    nodes.put(node("n1"))
    reads, change = [Reads(node=paths) for paths in read], NodeChange(node=changed, requested=requested)
    for many in range(len(reads) + 1):
        nodes.note_reads(reads[:many])
        before = nodes.head
        nodes.put(node("n1"), change)
        assert (nodes.head > before) is (bool(requested) or any(one.affected_by(change) for one in reads[:many]))


def test_rules_that_read_a_pods_identity_are_not_kept() -> None:
    cluster = Evaluation([policy(filters={"f": "pod.metadata.name != node.metadata.name"})], [node("a"), node("b")])
    assert cluster.filter(pod("a")).passed == ["b"]
    assert cluster.filter(pod("b")).passed == ["a"]
    assert len(cluster.evaluator.classes) == 0


def test_the_least_recently_asked_class_goes_first() -> None:
    cluster = gpu_cluster(classes=2)
    a, b, c = (pod(labels={"gpu": gpu}) for gpu in "abc")
    for one in (a, b, a, c):
        cluster.filter(one)
    with evaluations_in(cluster) as asked:
        cluster.filter(a)
    assert asked == {}
    with evaluations_in(cluster) as asked:
        cluster.filter(b)
    assert asked["gpu"] == 20


def test_a_node_that_went_while_the_journal_was_forgotten_is_not_known_any_more() -> None:
    cluster = gpu_cluster(journal=4)
    cluster.filter(pod(labels={"gpu": "a"}))
    cluster.nodes.remove("n3")
    for _ in range(5):
        cluster.nodes.put(node("n4", labels={"gpu": "a"}), GPU)
    found = cluster.filter(pod(labels={"gpu": "a"}), ["n3", "n4"])
    assert (found.passed, found.unknown, dict(found.rejected)) == (["n4"], ["n3"], {})


def test_a_slot_that_is_used_again_forgets_who_was_there() -> None:
    cluster = gpu_cluster()
    gold = pod(labels={"gpu": "a"})
    cluster.filter(gold)
    cluster.nodes.remove("n3")
    cluster.nodes.put(node("fresh", labels={"gpu": "b"}))
    found = cluster.filter(gold, ["fresh", "n3", "n4"])
    assert (found.passed, found.unknown, list(found.rejected)) == (["n4"], ["n3"], ["fresh"])


def test_past_the_deadline_the_policy_is_named_and_the_next_call_goes_on() -> None:
    rules = policy("slow", filters={"f": "node.metadata.labels[?'gpu'].orValue('') == 'a'"})
    cluster = Evaluation([rules], [node(f"n{at}", labels={"gpu": "a"}) for at in range(100)])
    said: list[str] = []
    passed: tuple[str, ...] = ()
    with evaluations_in(cluster) as asked:
        while not passed and len(said) < 1_000:
            try:
                passed = tuple(cluster.filter(pod(), clock=Clock(2_000_000), deadline_ns=0).passed)
            except TooSlowError as error:
                said.append(str(error))
    assert len(said) > 5
    assert set(said) == {"policy slow is too slow"}
    assert asked == {"f": 100}
    assert len(passed) == 100


@pytest.mark.parametrize(
    ("nodes", "takes"),
    [
        pytest.param(2, {2: 10}, id="past the deadline before the second policy has begun"),
        pytest.param(6, {2: 4, 6: 2}, id="and in its first slice"),
    ],
)
def test_who_took_the_time_is_named_and_not_who_comes_after_him(nodes: int, takes: dict[int, int]) -> None:
    class Uneven(Clock):
        def __call__(self) -> int:
            self.looks += 1
            self.time += takes.get(self.looks, 0)  # before this look
            return self.time

    rules = [policy(name, filters={"f": "node.metadata.name != 'x'"}) for name in ("a", "b")]
    cluster = Evaluation(rules, [node(f"n{at}") for at in range(nodes)])
    clock = Uneven()
    with pytest.raises(TooSlowError, match="policy a is too slow"):
        cluster.filter(pod(), clock=clock, deadline_ns=5)
    assert clock.looks == max(takes) + (nodes == 2)


def test_rules_that_hold_at_their_moment_only_do_not_pile_up_when_time_is_short_and_do_not_hold_up_others() -> None:
    cluster = Evaluation(
        [policy(filters={"a": "string(now) != ''", "b": "node.metadata.name != 'n0'"})],
        [node(f"n{at}") for at in range(100)],
    )
    for call in range(50):
        with pytest.raises(TooSlowError):
            cluster.filter(pod(), now=NOW + call, clock=Clock(900_000), deadline_ns=0)
    (kept,) = cluster.evaluator.classes
    assert [len(rule.waiting) <= 100 for rule in kept.verdicts.rules] == [True, True]
    assert cluster.evaluator.tally.evaluations["p", "b"] == 100
    assert cluster.filter(pod(), now=NOW + 99).passed == cluster.names[1:]


def test_a_rule_that_says_until_when_it_holds_is_asked_again_then_and_not_before() -> None:
    young = "now - timestamp(node.metadata.labels['since']) < duration('1m')"
    cluster = Evaluation(
        [policy(filters={"young": young}, scores={"hour": "now.getHours() > 8 ? 10.0 : 20.0"})],
        [node(f"n{at}", labels={"since": f"2027-01-15T07:59:{at:02}Z"}) for at in range(30)] + [node("new")],
    )
    asked = cluster.evaluator.tally.evaluations
    passed = [len(cluster.filter(pod(), now=NOW + at * SECOND).passed) for at in (0, 0, 5, 6, 29, 30, 1000)]
    assert passed == [29, 29, 24, 23, 0, 0, 0]
    assert asked["p", "young"] == 31 + 29
    scores = [cluster.scores(pod(), now=NOW + at * SECOND)[0] for at in (1000, 3599, 3600, 7199)]
    assert scores == [20.0, 20.0, 10.0, 10.0]
    assert asked["p", "hour"] == 2 * 31


def test_a_change_in_the_middle_of_a_cold_pass_is_not_lost() -> None:
    cluster = gpu_cluster()
    gold = pod(labels={"gpu": "a"})
    with pytest.raises(TooSlowError):
        cluster.filter(gold, clock=Clock(1_000_000_000), deadline_ns=0)
    cluster.nodes.remove("n0")
    cluster.nodes.put(node("new", labels={"gpu": "b"}))
    cluster.nodes.put(node("n19", labels={"gpu": "b"}), GPU)
    found = cluster.filter(gold)
    assert set(found.rejected) == {"new", "n19"}
    assert len(found.passed) == 18


class _Slow:
    """A clock that advances while nodes are evaluated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, each: int) -> None:
        self.time = 0
        self.slices: list[int] = []
        compute = FilterColumn.compute

        def slowly(rule: FilterColumn, slots: Any, now: int) -> None:
            self.time += each * len(slots)
            self.slices.append(each * len(slots))
            compute(rule, slots, now)

        monkeypatch.setattr(FilterColumn, "compute", slowly)

    def __call__(self) -> int:
        return self.time


@pytest.mark.parametrize("each", [100, 2_000, 100_000, 600_000, 4_000_000])
def test_slices_follow_how_long_a_node_takes(monkeypatch: pytest.MonkeyPatch, each: int) -> None:
    slow = _Slow(monkeypatch, each)
    cluster = Evaluation([policy(filters={"f": "true"})], [node(f"n{at}") for at in range(2_000)])
    cluster.filter(pod(), clock=slow)  # type: ignore[arg-type]
    assert max(slow.slices) <= max(5_000_000, column._SLICE * each)
    assert max(slow.slices[1:]) <= max(2_000_000, each)
    assert max(slow.slices) <= SLICE_MAX * each
    assert sum(slow.slices) == 2_000 * each


def test_thousands_of_distinct_pods_are_bounded_in_memory() -> None:
    rules = policy(
        filters={"f": "node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels['owner']"},
        scores={"s": "pod.metadata.labels['owner'] == 'x' ? 1.0 : 2.0"},
    )
    cluster = Evaluation([rules], [node("n1"), node("n2")], classes=64)
    pods = [pod("x", labels={"owner": f"o{at}"}) for at in range(3_000)]
    sizes = []
    tracemalloc.start()
    try:
        for at, one in enumerate(pods):
            cluster.filter(one, ["n1"])
            if at in (600, 2_999):
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert len(cluster.evaluator.classes) == 64
    assert sizes[1] < sizes[0] * 1.2


def test_verdicts_that_hold_for_a_time_are_remembered_once_for_each_node() -> None:
    ready = {"nodeReadiness": {"labels": [{"key": "gpu"}], "conditions": [{"type": "Ready"}], "holdOff": "1h"}}
    cluster = Evaluation([policy(filters={"ready": ready})])
    for at in range(3_000):
        stamp = f"2027-01-15T07:{at % 60:02}:00Z"
        change = NodeChange(node=frozenset({("status", "conditions", "Ready")}))
        cluster.nodes.put(node("n", labels={"gpu": "a"}, conditions={"Ready": ("True", stamp)}), change)
        cluster.filter(pod())
    (kept,) = cluster.evaluator.classes
    (rule,) = kept.verdicts.rules
    assert len(rule._queue) < 1_000
    assert rule.computed == []


def test_the_end_of_a_verdict_that_was_replaced_is_no_reason_to_ask_again() -> None:
    ready = {"nodeReadiness": {"conditions": [{"type": "Ready"}], "holdOff": "60s"}}
    cluster = Evaluation([policy(filters={"ready": ready})])
    change = NodeChange(node=frozenset({("status", "conditions", "Ready")}))
    for status in ("True", "False"):
        cluster.nodes.put(node("n", conditions={"Ready": (status, "2027-01-15T08:00:00Z")}), change)
        assert cluster.reasons(pod())
    with evaluations_in(cluster) as asked:
        cluster.filter(pod(), now=NOW + 61 * SECOND)
    assert asked == {}


def test_a_node_that_comes_is_judged_whatever_is_said_to_have_changed() -> None:
    cluster = gpu_cluster()
    cluster.filter(pod(labels={"gpu": "a"}))
    cluster.nodes.put(node("new", labels={"gpu": "a"}), NodeChange())
    assert "new" in cluster.filter(pod(labels={"gpu": "a"}), ["new", "n1"]).passed


def test_idle_time_computes_what_waits() -> None:
    cluster = gpu_cluster()
    gold = pod(labels={"gpu": "a"})
    cluster.filter(gold)
    cluster.nodes.put(node("n3", labels={"gpu": "b"}), GPU)
    assert cluster.evaluator.precompute(now=NOW, clock=Clock(), deadline_ns=1)
    with evaluations_in(cluster) as asked:
        cluster.filter(gold)
    assert asked == {}
    for at in range(20):
        cluster.nodes.put(node(f"n{at}", labels={"gpu": "b"}), GPU)
    assert not cluster.evaluator.precompute(now=NOW, clock=Clock(10**9), deadline_ns=0)
