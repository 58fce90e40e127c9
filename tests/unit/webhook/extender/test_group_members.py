"""Members of groups in filter, preempt and bind: what each verb says to them, from what is known of their groups."""

import json
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.groups.group import Group, Membership
from fairlead.groups.turns import PLACING, RESTING, WAITING
from fairlead.policy.evaluate.group_membership import UNDECIDED
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import VerbReply
from fairlead.webhook.extender.group_view import GroupView
from fairlead.webhook.extender.preempt import HELD
from fairlead.webhook.extender.verbs import EVICTS_NOBODY
from support.policy import node, policy
from support.webhook import Asking, Passing, body, go, names_of

RED = Group("fairlead", "ml", "red")
GANG = {
    "name": "job",
    "group": "pod.metadata.labels[?'job'].orValue('')",
    "size": "int(pod.metadata.annotations[?'size'].orValue('2'))",
}
RULE = "p", "binding/job"
MEMBER: dict[str, Any] = {"labels": {"job": "red"}}
NODES = [node("a", labels={"pool": "ours"}), node("b")]
OURS = {"f": "node.metadata.labels[?'pool'].orValue('') == 'ours'"}


class View(GroupView):
    """A view that says of every group the same, and notes whom it is asked about."""

    def __init__(self, why: str | None = None, *, is_placed: bool = False, members: tuple[str, ...] = ()) -> None:
        self.why, self.has_started, self.members = why, is_placed, members
        self.asked: list[tuple[str, Membership]] = []

    def rejection(self, uid: str, membership: Membership, _now: int, /) -> str | None:
        self.asked.append((uid, membership))
        return self.why

    def is_placed(self, _group: Group, /) -> bool:
        return self.has_started

    def is_member(self, uid: str, /) -> bool:
        return uid in self.members


def asking(view: View, **spec: Any) -> Asking:
    binding = {"gang": [GANG]}
    unplaced = from_json(
        "Pod",
        {
            "metadata": {"name": "x", "namespace": "ml", "uid": "u-x", **MEMBER},
            "spec": {"schedulerName": "fairlead"},
        },
    )
    return Asking([policy(binding=binding, **spec)], NODES, groups=view, unplaced=[unplaced])


def refused(answer: VerbReply) -> dict[str, str]:
    return dict(go.decode("filter", answer.body)["FailedAndUnresolvableNodes"] or {})


@pytest.mark.parametrize("why", [WAITING, RESTING, PLACING])
def test_filter_rejects_a_member_on_every_node_for_good(why: str) -> None:
    view = View(why)
    answer = asking(view).filter(body(["a", "b"], pod=MEMBER))
    assert refused(answer) == {"a": why, "b": why}
    assert names_of(answer) == []
    assert view.asked == [("u-x", Membership(RED, 2, 30, "p", "job"))]
    outcome = answer.outcome
    assert (outcome.result, outcome.refusals) == ("empty", {RULE: 2})
    assert (outcome.waits, outcome.group, outcome.waits_for_group) == (("ml", "x"), RED, True)


@pytest.mark.parametrize(
    ("filters", "passed"), [({}, ["a", "b"]), (OURS, ["a"])], ids=["without filters", "with filters"]
)
def test_a_member_that_may_be_placed_is_filtered_as_any_other_pod(filters: Any, passed: list[str]) -> None:
    answer = asking(View(), filters=filters).filter(body(["a", "b"], pod=MEMBER))
    assert (names_of(answer), answer.outcome.group, answer.outcome.waits_for_group) == (passed, RED, False)


@pytest.mark.parametrize(
    ("pod", "spec"),
    [
        ({}, {}),
        ({"labels": {"job": ""}}, {}),
        (MEMBER | {"annotations": {"size": "1"}}, {}),
        (MEMBER, {"schedulingGroup": {"podGroupName": "native"}}),
        (MEMBER, {"scheduler": "another"}),
    ],
    ids=["no label", "no value", "size 1", "a native group", "another scheduler"],
)
def test_of_pods_in_no_group_nothing_is_asked(pod: Any, spec: Any) -> None:
    view = View(WAITING)
    answer = asking(view).filter(body(["a", "b"], pod=pod, **spec))
    assert (names_of(answer), view.asked, answer.outcome.group) == (["a", "b"], [], None)


UNREADABLE = MEMBER | {"annotations": {"size": "many"}}


def test_a_pod_whose_group_cannot_be_decided_is_refused_everywhere_and_counted() -> None:
    view = View()
    one = asking(view)
    answer = one.filter(body(["a", "b"], pod=UNREADABLE))
    assert (refused(answer), view.asked) == ({"a": UNDECIDED, "b": UNDECIDED}, [])
    assert (answer.outcome.refusals, answer.outcome.waits_for_group) == ({RULE: 2}, False)
    assert [(each.policy, each.rule) for each in one.tally.drain()] == [RULE]


@pytest.mark.parametrize("pod", [MEMBER, UNREADABLE], ids=["a member", "undecided"])
def test_a_pod_on_nodes_of_the_request_passes_and_nothing_is_recorded(pod: Any) -> None:
    view = View(WAITING)
    one = asking(view)
    nodes = [{"metadata": {"name": name}} for name in ("a", "z")]
    answer = one.filter(body(nodes=nodes, pod=pod))
    assert (names_of(answer), answer.outcome.simulated, view.asked) == (["a", "z"], True, [])
    assert (answer.outcome.waits, answer.outcome.group) == (None, None)
    assert one.tally.drain() == []


def test_scores_know_no_groups() -> None:
    view = View(WAITING)
    one = asking(view, scores={"s": "node.metadata.name == 'a' ? 100.0 : 0.0"})
    scored = go.decode("prioritize", one.prioritize(body(["a", "b"], pod=MEMBER)).body)
    assert (scored, view.asked) == ([{"Host": "a", "Score": 10}], [])


def candidates(answer: VerbReply) -> list[str]:
    return [*go.decode("preempt", answer.body)["NodeNameToMetaVictims"]]


BOTH = {"a": ["u-1"], "b": ["u-2", "u-3"]}
PREEMPT: dict[str, tuple[View, dict[str, Any], list[str], dict[tuple[str, str], int]]] = {
    "a member of a group that has not started": (View(), MEMBER, [], {RULE: 2}),
    "a member of one that has started": (View(WAITING, is_placed=True), MEMBER, ["a", "b"], {}),
    "undecided": (View(is_placed=True), UNREADABLE, [], {RULE: 2}),
    "in no group": (View(), {}, ["a", "b"], {}),
    "in no group, over a held member": (View(members=("u-3",)), {}, ["a"], {HELD: 1}),
    "a member, over a held member": (View(is_placed=True, members=("u-1",)), MEMBER, ["b"], {HELD: 1}),
    "over held members only": (View(members=("u-1", "u-2")), {}, [], {HELD: 2}),
}


@pytest.mark.parametrize("case", PREEMPT)
def test_groups_evict_nobody_and_their_members_are_not_evicted(case: str) -> None:
    view, pod, left, refusals = PREEMPT[case]
    answer = asking(view).preempt(body(victims=BOTH, pod=pod))
    assert (candidates(answer), answer.outcome.refusals) == (left, refusals)


def test_a_pod_that_no_policy_applies_to_evicts_no_held_member_either() -> None:
    for one in (
        Asking([], NODES, groups=View(members=("u-1",))),
        Asking([policy(filters={"f": "true"})], NODES, schedulers=["another"], groups=View(members=("u-1",))),
    ):
        assert candidates(one.preempt(body(victims=BOTH))) == ["b"]
    entry_ignore = asking(View(members=("u-1",))).preempt(body(victims=BOTH), "Ignore")
    assert candidates(entry_ignore) == ["b"]


def test_why_a_group_evicts_nobody_is_a_text_of_its_own() -> None:
    assert EVICTS_NOBODY not in (WAITING, RESTING, PLACING, UNDECIDED)


ARGS = json.dumps({"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "a"}).encode()


def test_bind_decides_with_the_membership_of_the_pod() -> None:
    found = asking(View(WAITING)).bind(ARGS)
    assert isinstance(found, BindDecision)
    assert found.membership == Membership(RED, 2, 30, "p", "job"), "what filter says is advice: bind is what counts"


def test_bind_of_a_pod_whose_group_cannot_be_decided_is_refused() -> None:
    one = asking(View())
    waiting = from_json(
        "Pod",
        {
            "metadata": {"name": "x", "namespace": "ml", "uid": "u-x", **UNREADABLE},
            "spec": {"schedulerName": "fairlead"},
        },
    )
    one.mirror.waiting["ml", "x"] = waiting
    found = one.bind(ARGS)
    assert isinstance(found, VerbReply)
    assert go.decode("bind", found.body)["Error"] == UNDECIDED
    assert [(each.policy, each.rule) for each in one.tally.drain()] == [RULE]


def test_a_policy_whose_circuit_is_open_refuses_its_members() -> None:
    view, clock = View(), Passing()
    one = asking(view)
    for switched in (None, "class"):
        assert clock.ask(one, "filter", ["a", "b"], slow=True, pod=MEMBER).outcome.switched == switched
    del view.asked[:]
    assert [*refused(clock.ask(one, "filter", ["a", "b"], slow=False, pod=MEMBER))] == ["a", "b"]
    assert view.asked == []
