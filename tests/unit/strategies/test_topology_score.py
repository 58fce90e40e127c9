"""Score `topology`: tables, and whatever happens to nodes and pods: what is kept equals that from nothing."""

from collections.abc import Mapping, Sequence
from math import floor
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fairlead.cooperative import finish
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.explain.explainer import explain, explain_compared
from fairlead.policy.nodes.compared_views import follow, kept_topology
from fairlead.policy.nodes.journal import Journal
from fairlead.policy.nodes.kept_topology import KeptTopology
from fairlead.policy.nodes.node_table import Nodes, RequestNodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import PlacedPod, placed_pod
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import NodeChange, owner_of
from support.policy import NOW, Evaluation, faults, pod, policy
from support.policy.asking import scored
from support.policy.machines import machine

LEVELS = ("block", "rack", "host")
GROUP = "pod.metadata.labels[?'job'].orValue('')"
REQUEST = {"cpu": 2.0, "pods": 1.0}
Place = str
"""Values of the levels of a node, one letter each; fewer if labels are missing."""


def near(*, size: str | None = "3", group: str | None = GROUP, **more: Any) -> CompiledPolicy:
    given = {"levels": list(LEVELS), "group": group, "size": size}
    params = {name: value for name, value in given.items() if value is not None}
    return policy(scores={"near": {"topology": params}}, **more)


def member(name: str, job: str = "a", *, namespace: str = "ml", phase: str = "Running", **metadata: Any) -> PlacedPod:
    whole = {"name": name, "namespace": namespace, "uid": f"u-{name}", "labels": {"job": job}} | metadata
    return placed_pod({"metadata": whole, "status": {"phase": phase}})


def on(place: Place, *pods: PlacedPod, name: str = "", cpu: float = 8.0, used: float = 0.0) -> NodeView:
    labels = dict(zip(LEVELS, place, strict=False))
    plain = machine(name or place, {"cpu": (used, cpu), "pods": (float(len(pods)), 10.0)}, labels=labels)
    return NodeView(plain.node, pods=pods, allocatable=plain.allocatable, requested=plain.requested)


def asked(views: Sequence[NodeView], one: PodView, by: CompiledPolicy) -> dict[str, float]:
    nodes = Nodes()
    for view in views:
        nodes.put(view)
    names = [view.name for view in views]
    return dict(zip(names, scored(Evaluator(policy_set([by]), nodes), one, names), strict=True))


JOB = pod("new", labels={"job": "a"}, request=REQUEST)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["ABC"], {"ABC": 100, "ABD": 200 / 3, "AEF": 100 / 3, "GHI": 0, "A": 0}),
        # One in the same rack on another host, one in another rack of the block: 100 * (1 - 1.5 / 3).
        (["ABC", "AEF"], {"ABC": 200 / 3, "ABD": 50, "AEF": 200 / 3, "GHI": 0, "A": 0}),
        (["ABC", "A"], {"ABC": 50, "ABD": 100 / 3, "AEF": 50 / 3, "GHI": 0, "A": 0}),
        (["A"], {"ABC": 0, "ABD": 0, "AEF": 0, "GHI": 0, "A": 0}),
    ],
)
def test_members_that_are_placed(where: Sequence[Place], expected: Mapping[Place, float]) -> None:
    views = [on(place, *(member(f"q{at}") for at, one in enumerate(where) if one == place)) for place in expected]
    assert asked(views, JOB, near()) == pytest.approx(expected)


@pytest.mark.parametrize(
    "other",
    [
        member("q", "b"),
        member("q", ""),
        member("q", namespace="other"),
        member("q", phase="Succeeded"),
        member("q", phase="Failed"),
        member("q", deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
)
def test_pods_that_are_no_members(other: PlacedPod) -> None:
    assert asked([on("ABC", other), on("DEF", member("m"))], JOB, near()) == {"ABC": 0, "DEF": 100}


@pytest.mark.parametrize(
    ("size", "free", "chosen"),
    [
        # Each node has room for half of its free cores.
        (3, {"ABC": 8, "ABD": 8, "EFG": 6}, {"EFG"}),  # the narrowest level, then the least room
        (4, {"ABC": 8, "ABD": 8, "EFG": 6}, {"ABC"}),  # then the name
        (5, {"ABC": 8, "ABD": 8, "EFG": 6}, {"ABC", "ABD"}),  # no host holds it, but a rack does
        (6, {"ABC": 7, "AFD": 6, "EFG": 6}, {"ABC", "AFD"}),  # halves of a core are no room
        (7, {"ABC": 7, "AFD": 6, "EFG": 6}, set()),
        (4, {"ABC": 6, "ABD": 6, "A": 90}, {"ABC", "ABD"}),
        (1, {"ABC": 6, "ABD": 6}, set()),
    ],
)
def test_no_member_is_placed(size: int, free: Mapping[Place, float], chosen: set[Place]) -> None:
    views = [on(place, cpu=cores) for place, cores in free.items()]
    expected = {place: 100.0 if place in chosen else 0.0 for place in free}
    assert asked(views, JOB, near(size=str(size))) == expected


def owned(name: str, uid: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": "Job", "name": name, "uid": uid, "controller": True, "apiVersion": "v1"}]}


def test_the_group_is_the_controller() -> None:
    view = placed_pod({"metadata": {"name": "new", "namespace": "ml", **owned("j", "1")}})
    views = [on("ABC", member("q", **owned("j", "1"))), on("DEF", member("r", **owned("j", "2")))]
    assert asked(views, PodView(view), near(group=None, size=None)) == {"ABC": 100, "DEF": 0}
    assert asked(views, pod(), near(group=None, size=None)) == {"ABC": 0, "DEF": 0}


def test_the_group_is_that_of_the_only_gang() -> None:
    gang = [{"name": "job", "group": GROUP, "size": "2", "holdFor": "30s"}]
    by = near(group=None, size=None, binding={"gang": gang}, failurePolicy="Fail")
    assert asked([on("ABC", cpu=4.0), on("DEF", cpu=2.0)], JOB, by) == {"ABC": 100, "DEF": 0}
    assert asked([on("ABC", cpu=4.0), on("DEF", member("q"))], JOB, by) == {"ABC": 0, "DEF": 100}


def test_annotations_that_tell_the_group_are_kept_of_placed_pods() -> None:
    group = "pod.metadata.annotations[?'example.org/group'].orValue('')"
    assert near(group=group).pod_annotations == {"example.org/group"}
    assert near(size="int(pod.metadata.annotations['example.org/size'])").pod_annotations <= {"example.org/size"}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"group": "pod.spec.nodeName"}, "group"),
        ({"group": "''"}, "group"),
        ({"size": "0"}, "size"),
        ({"size": "501"}, "size"),
    ],
)
def test_what_does_not_compile(params: Mapping[str, str], field: str) -> None:
    found = faults(scores={"near": {"topology": {"levels": ["rack"], **params}}})
    assert [*found] == [f"spec.scores[0].topology.{field}"]


@pytest.mark.parametrize("size", ["int(pod.metadata.labels['job'])", "size(pod.metadata.labels['job']) - 1"])
def test_a_size_that_cannot_be_told_scores_nothing(size: str) -> None:
    assert asked([on("ABC"), on("DEF")], JOB, near(size=size)) == {"ABC": 0, "DEF": 0}


def test_nodes_that_a_call_brings() -> None:
    nodes = Nodes()
    nodes.put(on("ABC", member("q")))
    brought = RequestNodes(nodes)
    for view in (on("ABC"), on("ABD")):
        brought.put(view)
    found = scored(Evaluator(policy_set([near()]), brought), JOB, ["ABC", "ABD"])
    assert found == pytest.approx([100, 200 / 3])  # members are those of the cluster


def noted(views: Sequence[NodeView], name: str) -> Mapping[str, object]:
    """What explain shows of a node."""
    found = Evaluation([near()], views)
    matched = found.matched(JOB)
    compared = explain_compared(JOB, matched, found.nodes, found.names, NOW)
    (of_node,) = explain(JOB, matched, found.nodes, name, NOW, compared).scores
    assert of_node.noted is not None
    return {key: value for key, value in of_node.noted.values.items() if value is not None}


def test_explain_shows_the_terms() -> None:
    of_rule = {"group": "a", "members": 3}
    views = [on("ABC", member("q"), member("r")), on("ABD"), on("AEF", member("s")), on("A")]
    assert noted(views, "ABD") == of_rule | {"domain": ("A", "B", "D"), "distances": [0, 2, 1, 0]}
    assert noted(views, "ABC") == of_rule | {"domain": ("A", "B", "C"), "distances": [2, 0, 1, 0]}
    assert noted(views, "A") == of_rule | {"domain": ()}
    of_rule = {"group": "a", "members": 0, "size": 3, "chosen": ("A", "B", "C")}
    views = [on("ABC"), on("ABD", cpu=4.0)]
    assert noted(views, "ABD") == of_rule | {"domain": ("A", "B", "D"), "capacity": [6.0, 6.0, 2.0]}


PLACES = ["ABC", "ABD", "AEF", "GHI", "AB", ""]
JOBS = ["a", "b", ""]
BY = near()
(READ,) = BY.reads.topology


def oracle(views: Sequence[NodeView], one: PodView, size: int) -> list[float]:
    """Scores by the definition, from nothing."""

    def place(view: NodeView) -> list[str] | None:
        found = [view.labels.get(level, "") for level in LEVELS]
        return found if all(found) else None

    def distance(here: list[str], there: list[str] | None) -> int:
        shared = 0
        while there is not None and shared < len(LEVELS) and here[shared] == there[shared]:
            shared += 1
        return len(LEVELS) - shared

    job = one.labels["job"]
    if not job:
        return [0.0] * len(views)
    members = [place(view) for view in views for each in view.pods if each.labels["job"] == job]
    if members:
        scores = [0.0] * len(views)
        for at, view in enumerate(views):
            if (here := place(view)) is not None:
                mean = sum(distance(here, there) for there in members) / len(members)
                scores[at] = 100 * (1 - mean / len(LEVELS))
        return scores
    for depth in (3, 2, 1):
        room = dict[tuple[str, ...], int]()
        for view in views:
            if (here := place(view)) is not None:
                free = (10 - len(view.pods), floor(view.free["cpu"] / 2))
                room[tuple(here[:depth])] = room.get(tuple(here[:depth]), 0) + max(0, *[min(free)])
        if holds := sorted((there, domain) for domain, there in room.items() if there >= size):
            chosen = holds[0][1]
            return [100.0 if tuple(place(view) or ())[:depth] == chosen else 0.0 for view in views]
    return [0.0] * len(views)


class TopologiesEqualFresh(RuleBasedStateMachine):
    """Every step changes something; counters and scores are compared with a computation that keeps nothing."""

    @initialize(journal=st.sampled_from([2, 10, 1000]))
    def start(self, journal: int) -> None:
        self.nodes = Nodes(journal=Journal(journal))
        self.evaluator = Evaluator(policy_set([BY]), self.nodes)
        self.known = dict[str, tuple[str, float, tuple[PlacedPod, ...]]]()
        self.made = 0

    def _put(self, name: str, place: str, cpu: float, pods: tuple[PlacedPod, ...], change: NodeChange | None) -> None:
        self.known[name] = place, cpu, pods
        self.nodes.put(on(place, *pods, name=name, cpu=cpu), change)

    @rule(name=st.sampled_from("uvwxyz"), place=st.sampled_from(PLACES), cpu=st.sampled_from([0.0, 3.0, 6.0, 8.0]))
    def comes(self, name: str, place: str, cpu: float) -> None:
        self._put(name, place, cpu, (), None)

    @rule(name=st.sampled_from("uvwxyz"))
    def goes(self, name: str) -> None:
        self.nodes.remove(name)
        self.known.pop(name, None)

    @rule(name=st.sampled_from("uvwxyz"), place=st.sampled_from(PLACES))
    def moves(self, name: str, place: str) -> None:
        if name in self.known:
            _, cpu, pods = self.known[name]
            labels = frozenset(("metadata", "labels", level) for level in LEVELS)
            self._put(name, place, cpu, pods, NodeChange(node=labels))

    @rule(name=st.sampled_from("uvwxyz"), cpu=st.sampled_from([0.0, 3.0, 6.0, 8.0]))
    def grows(self, name: str, cpu: float) -> None:
        if name in self.known:
            place, _, pods = self.known[name]
            self._put(name, place, cpu, pods, NodeChange(allocatable=frozenset({"cpu"})))

    @rule(name=st.sampled_from("uvwxyz"), job=st.sampled_from(JOBS))
    def is_placed(self, name: str, job: str) -> None:
        if name in self.known:
            place, cpu, pods = self.known[name]
            self.made += 1
            one = member(f"q{self.made}", job)
            self._put(name, place, cpu, (*pods, one), NodeChange(pods=(owner_of(one),), requested=frozenset({"pods"})))

    @rule(name=st.sampled_from("uvwxyz"))
    def ends(self, name: str) -> None:
        if name in self.known and self.known[name][2]:
            place, cpu, (one, *others) = self.known[name]
            change = NodeChange(pods=(owner_of(one),), requested=frozenset({"pods"}))
            self._put(name, place, cpu, tuple(others), change)

    @rule(name=st.sampled_from("uvwxyz"), job=st.sampled_from(JOBS))
    def is_labelled(self, name: str, job: str) -> None:
        if name in self.known and self.known[name][2]:
            place, cpu, (one, *others) = self.known[name]
            after = member(one.name, job)
            self._put(name, place, cpu, (after, *others), NodeChange(pods=(owner_of(one), owner_of(after))))

    @rule()
    def counters_equal_fresh(self) -> None:
        kept, fresh = kept_topology(self.nodes, READ), KeptTopology(READ)
        finish(follow(self.nodes, kept))
        fresh.begin(self.nodes.slots.values())
        finish(fresh.work(self.nodes.views))
        assert kept.sums.nodes == fresh.sums.nodes
        assert kept.sums.groups == fresh.sums.groups
        for request in ({"cpu": 2.0}, {"cpu": 3.0}):
            rooms = [each.seen_from((), self.nodes.views, ()).room(request) for each in (kept, fresh)]
            assert rooms[0] == rooms[1]

    @rule(job=st.sampled_from(JOBS))
    def scores_are_those_of_the_definition(self, job: str) -> None:
        views = [view for view in self.nodes.views if view is not None]
        one = pod("new", labels={"job": job}, request=REQUEST)
        found = scored(self.evaluator, one, [view.name for view in views]) if views else []
        assert found == pytest.approx(oracle(views, one, 3))


TestTopologies = TopologiesEqualFresh.TestCase
TestTopologies.settings = settings(
    max_examples=150, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_topology_is_that_of_a_rule() -> None:
    assert next(iter(near().reads.topology)) != READ
