"""Group of a pod as filter sees it, with what is published of turns, and what cannot be told."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from fairlead.groups.group import Group, group_hash
from fairlead.groups.turns import PLACING, RESTING, WAITING, PreferredGroup, PublishedRest, PublishedTurn, Turns
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.group_membership import UNDECIDED
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.explain.group_explained import (
    PODS_UNREAD,
    POLICY_UNREAD,
    GroupExplained,
    GroupsOfPods,
    group_steps,
)
from fairlead.policy.views.placed_pod import PlacedPod, placed_pod
from fairlead.policy.views.pod_view import PodView
from support.policy import NOW, SECOND, pod, policy

JOB, SIZE = "pod.metadata.labels[?'job'].orValue('')", "int(pod.metadata.annotations[?'size'].orValue('1'))"
JOBS: Final = policy("p", binding={"gang": [{"name": "job", "group": JOB, "size": SIZE}]})
OWN: Final = group_hash(Group("fairlead", "ml", "a"))
OTHER: Final = group_hash(Group("fairlead", "ml", "b"))
NOW_S: Final = NOW / SECOND


def member(name: str = "x", job: str = "a", size: str = "3", **more: Any) -> PodView:
    return pod(name, labels={"job": job}, annotations={"size": size}, **more)


def on_node(name: str) -> PlacedPod:
    metadata = {"name": name, "namespace": "ml", "labels": {"job": "a"}, "annotations": {"size": "3"}}
    return placed_pod({"metadata": metadata, "spec": {}, "status": {"phase": "Running"}})


def groups(*waiting: PodView, policies: tuple[CompiledPolicy, ...] = (JOBS,)) -> GroupsOfPods:
    made = GroupsOfPods(policy_set(policies), NOW)
    for one in waiting:
        made.put_unplaced(one, "fairlead")
    return made


def explained(seen: GroupsOfPods, asked: PodView, *policies: CompiledPolicy) -> GroupExplained | None:
    return seen.explain(asked, policy_set(policies or (JOBS,)).matching(asked, "fairlead", NOW))


def turn(group: str, until_s: float = 10) -> PublishedTurn:
    return PublishedTurn(group, NOW_S - 9, NOW_S + until_s, held_members=2, size=3, attempt=4)


THREE: Final = [member(name) for name in "xyz"]
TURNS: Final[Mapping[str, tuple[Turns, dict[str, Any]]]] = {
    "nothing": (Turns(), {"state": "Waiting", "verdict": "Passes", "reason": ""}),
    "its turn": (
        Turns(turn(OWN)),
        {"state": "Turn", "verdict": "Passes", "reason": "", "held_members": 2, "attempt": 4},
    ),
    "its turn is over": (Turns(turn(OWN, 0)), {"state": "Waiting", "verdict": "Passes", "reason": ""}),
    "another's turn": (Turns(turn(OTHER)), {"state": "Waiting", "verdict": "Rejects", "reason": PLACING}),
    "it rests": (
        Turns(rests={OWN: PublishedRest(NOW_S + 1, 7)}),
        {"state": "Resting", "verdict": "Rejects", "reason": RESTING, "attempt": 7},
    ),
    "its rest is over": (
        Turns(rests={OWN: PublishedRest(NOW_S, 7)}),
        {"state": "Waiting", "verdict": "Passes", "reason": ""},
    ),
    "another is preferred": (
        Turns(preferred=PreferredGroup(OTHER, NOW_S + 1)),
        {"state": "Waiting", "verdict": "Rejects", "reason": PLACING},
    ),
}


@pytest.mark.parametrize(("turns", "want"), TURNS.values(), ids=TURNS)
def test_what_is_published_says_who_may_pass(turns: Turns, want: dict[str, Any]) -> None:
    seen = groups(*THREE)
    seen.turns["fairlead"] = turns
    seen.turns["other"] = Turns(turn(OTHER))
    assert explained(seen, THREE[0]) == GroupExplained(
        policy="p", entry="job", value="a", size=3, known=3, started=False, **want
    )


def test_a_pod_counts_once_whether_it_is_known_or_not() -> None:
    for waiting in ([member("y")], [member("y"), member("x")]):
        found = explained(groups(*waiting), member("x"))
        assert found is not None
        assert (found.known, found.reason) == (2, WAITING)


def test_a_pod_with_gates_does_not_count_itself() -> None:
    gated = member("x", schedulingGates=[{"name": "g"}])
    found = explained(groups(member("y"), gated), gated)
    assert found is not None
    assert found.known == 1


def test_a_placed_pod_is_looked_at_as_if_it_had_no_node() -> None:
    seen = groups()
    for name in ("x", "other"):
        seen.put_placed(on_node(name), None)
    found = explained(seen, member("x"))
    assert found is not None
    assert (found.started, found.state, found.reason) == (True, "Started", "")
    alone = groups()
    alone.put_placed(on_node("x"), None)
    first, again = explained(alone, member("x")), explained(alone, member("y"))
    assert first is not None
    assert again is not None
    assert (first.started, first.reason, again.started) == (False, WAITING, True)


def test_only_a_group_that_has_not_started_evicts_nothing() -> None:
    seen = groups()
    waits = explained(seen, member())
    seen.start(Group("fairlead", "ml", "a"))
    runs = explained(seen, member())
    wrong = explained(seen, member(size="0"))
    assert [one is not None and one.evicts_nothing for one in (waits, runs, wrong)] == [True, False, True]


@pytest.mark.parametrize(
    "asked",
    [member(job=""), member(size="1"), member(schedulingGroup={"podGroupName": "g"})],
    ids=["no value", "alone", "native"],
)
def test_a_pod_in_no_group_has_none(asked: PodView) -> None:
    assert explained(groups(), asked) is None


def test_without_gangs_nothing_is_looked_at() -> None:
    plain = policy("p", filters={"all": "true"})
    seen = groups(*THREE, policies=(plain,))
    assert not seen
    assert explained(seen, THREE[0], plain) is None


def test_what_cannot_be_decided_is_shown_with_its_values() -> None:
    found = explained(groups(), member(job="a\x1b[2J", size="many"))
    assert found is not None
    assert (found.value, found.size, found.verdict, found.reason) == ("a\x1b[2J", None, "Undecided", UNDECIDED)
    assert found.why.startswith("the size of job cannot be decided (")
    found = explained(groups(), member(size="501"))
    assert found is not None
    assert (found.value, found.size, found.why) == ("a", 501, "the size of job is not from 1 to 500")


def test_a_policy_that_may_not_apply_leaves_the_group_undecided() -> None:
    unsure = policy(
        "p",
        match={"conditions": {"c": "pod.metadata.labels['no'] == ''"}},
        binding={"gang": [{"name": "job", "group": JOB, "size": SIZE}]},
    )
    found = explained(groups(policies=(unsure,)), member(), unsure)
    assert found is not None
    assert (found.value, found.verdict, found.why) == ("", "Undecided", "policy p cannot be decided")


def test_what_was_not_read_is_not_guessed() -> None:
    seen = groups(*THREE)
    seen.are_known = False
    found = explained(seen, THREE[0])
    assert found == GroupExplained(policy="p", entry="job", value="a", size=3, verdict="NotKnown", why=PODS_UNREAD)
    assert not found.evicts_nothing
    plain = policy("plain", filters={"all": "true"})
    unread = groups(policies=()).explain(THREE[0], (), [plain, JOBS])
    assert unread == GroupExplained(policy="p", entry="job", value="", verdict="NotKnown", why=POLICY_UNREAD)
    assert groups(policies=()).explain(THREE[0], (), [plain]) is None


def test_the_steps_of_an_entry_are_those_of_group_and_size() -> None:
    asked = member()
    found = explained(groups(), asked)
    assert found is not None
    steps = group_steps(found, asked, policy_set((JOBS,)).matching(asked, "fairlead", NOW), NOW)
    values = {one.text: one.value for one in steps}
    assert values[JOB] == "a"
    assert 3 in values.values()
