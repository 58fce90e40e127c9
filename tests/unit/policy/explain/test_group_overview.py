"""Overview of groups: their states, members, and what each waits for."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.groups.group import Group, group_hash
from fairlead.groups.turns import NO_TURNS, PreferredGroup, PublishedRest, PublishedTurn, Turns
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.explain.group_overview import (
    GroupMember,
    GroupOverview,
    GroupSummary,
    MemberState,
    UndecidedPod,
    group_overview,
)
from fairlead.policy.views.pod_view import PodView
from support.policy import NOW, SECOND, ns, policy

JOB: Final = "pod.metadata.labels[?'job'].orValue('')"
SIZE: Final = "int(pod.metadata.annotations[?'size'].orValue('1'))"
NOW_S: Final = NOW // SECOND  # 2027-01-15T08:00:00Z
MADE: Final = NOW - 60 * SECOND


def gangs(name: str = "p", **spec: Any) -> CompiledPolicy:
    return policy(name, binding={"gang": [{"name": "job", "group": JOB, "size": SIZE}]}, **spec)


def pod(
    name: str,
    job: str = "red",
    size: str = "3",
    *,
    on: str = "",
    namespace: str = "ml",
    gates: Iterable[str] = (),
    condition: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    scheduler: str = "fairlead",
    deleted: bool = False,
    made: str = "2027-01-15T07:59:00Z",
) -> PodView:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"u-{name}",
        "labels": {"job": job, **(labels or {})},
        "annotations": {"size": size},
        "creationTimestamp": made,
    }
    if deleted:
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    spec: dict[str, Any] = {"schedulerName": scheduler, "schedulingGates": [{"name": one} for one in gates]}
    if on:
        spec["nodeName"] = on
        condition = condition or {"status": "True", "lastTransitionTime": "2027-01-15T07:59:30Z"}
    conditions = [] if condition is None else [{"type": "PodScheduled", **condition}]
    whole = {"metadata": metadata, "spec": spec, "status": {"conditions": conditions}}
    return PodView(from_json("Pod", whole), ns(namespace, {"team": "a"}))


def overview(*pods: PodView, turns: Turns | None = NO_TURNS, policies: Iterable[CompiledPolicy] = ()) -> GroupOverview:
    published = {} if turns is None else {"fairlead": turns}
    return group_overview(pods, policy_set(policies or [gangs()]), published, NOW)


def only(found: GroupOverview) -> GroupSummary:
    (one,) = found.groups
    return one


RED, BLUE = (group_hash(Group("fairlead", "ml", value)) for value in ("red", "blue"))
TRIED_NEXT: Final = "the scheduler, which tries its pods next"
THREE: Final = [pod("a"), pod("b"), pod("c")]
AFTER: Final = NOW_S + 190


def turn(group: str = RED, held: int = 1, size: int = 3, until: int = AFTER) -> PublishedTurn:
    return PublishedTurn(group, NOW_S - 5, until, held_members=held, size=size, attempt=3)


RESTS: Final = Turns(rests={RED: PublishedRest(AFTER, 3)})
GATED: Final = [pod("g", gates=["quota"]), pod("h", gates=["quota"])]


@pytest.mark.parametrize(
    ("pods", "turns", "state", "known", "size", "waits_for"),
    [
        (THREE[:1], NO_TURNS, "Waiting", 1, 3, "2 more members"),
        (THREE[:2], NO_TURNS, "Waiting", 2, 3, "1 more member"),
        (THREE[:2], None, "Waiting", 2, 3, "1 more member"),
        (THREE, NO_TURNS, "Waiting", 3, 3, TRIED_NEXT),
        (THREE, None, "Waiting", 3, 3, "unknown: nothing of the turn is published"),
        # The size is the largest that a known member says.
        ([*THREE, pod("d", size="5")], NO_TURNS, "Waiting", 4, 5, "1 more member"),
        ([*THREE, pod("d", size="5", gates=["x"])], NO_TURNS, "Waiting", 3, 3, TRIED_NEXT),
        # Neither gated nor deleted pods are known.
        ([*THREE[:2], GATED[0]], NO_TURNS, "Waiting", 2, 3, "1 more member (1 with scheduling gates does not count)"),
        (GATED, NO_TURNS, "Waiting", 0, 3, "3 more members (2 with scheduling gates do not count)"),
        ([*THREE[:2], pod("d", deleted=True)], NO_TURNS, "Waiting", 2, 3, "1 more member"),
        # The turn.
        (THREE, Turns(turn()), "Turn", 3, 3, "2 more members to find room, until 08:03:10Z (attempt 3)"),
        (THREE, Turns(turn(held=2)), "Turn", 3, 3, "1 more member to find room, until 08:03:10Z (attempt 3)"),
        (THREE, Turns(turn(held=3)), "Turn", 3, 3, "its Bindings (attempt 3)"),
        (THREE, Turns(turn(held=3, size=4)), "Turn", 3, 4, "1 more member to find room, until 08:03:10Z (attempt 3)"),
        (THREE, Turns(turn(until=NOW_S)), "Waiting", 3, 3, TRIED_NEXT),
        ([*THREE, pod("x", "blue")], Turns(turn(BLUE)), "Waiting", 3, 3, "the turn of ml/blue"),
        (THREE, Turns(turn(BLUE)), "Waiting", 3, 3, "the turn of a group that is not seen"),
        (THREE[:1], Turns(turn(BLUE)), "Waiting", 1, 3, "2 more members"),
        (
            [*THREE, pod("x", "blue")],
            Turns(preferred=PreferredGroup(BLUE, NOW_S + 5)),
            *("Waiting", 3, 3, "ml/blue, which is tried first until 08:00:05Z"),
        ),
        (
            THREE,
            Turns(preferred=PreferredGroup(RED, NOW_S + 5)),
            *("Waiting", 3, 3, TRIED_NEXT),
        ),
        (
            THREE,
            Turns(preferred=PreferredGroup(BLUE, NOW_S)),
            *("Waiting", 3, 3, TRIED_NEXT),
        ),
        # A rest.
        (THREE, RESTS, "Resting", 3, 3, "its rest until 08:03:10Z (attempt 3)"),
        (THREE[:1], RESTS, "Resting", 1, 3, "its rest until 08:03:10Z (attempt 3), and 2 more members"),
        # What has started waits for nothing, whatever is published.
        ([*THREE[:2], pod("d", on="n")], RESTS, "Started", 2, 3, ""),
        ([pod("d", on="n", size="7")], Turns(turn()), "Started", 0, 7, ""),
        ([*THREE[:2], pod("d", on="n", deleted=True)], NO_TURNS, "Waiting", 2, 3, "1 more member"),
    ],
)  # fmt: skip
def test_states_and_what_is_waited_for(
    pods: list[PodView], turns: Turns | None, state: str, known: int, size: int, waits_for: str
) -> None:
    red = next(one for one in overview(*pods, turns=turns).groups if one.name == "ml/red")
    assert (red.state, red.known, red.size, red.waits_for) == (state, known, size, waits_for)


@pytest.mark.parametrize(
    ("pods", "turns", "since", "until", "held_members", "attempt"),
    [
        ([pod("a", made="2027-01-15T07:58:00Z"), pod("b")], NO_TURNS, MADE - 60 * SECOND, None, 0, 0),
        ([pod("b"), pod("a", made="2027-01-15T07:58:00Z", gates=["x"])], NO_TURNS, MADE - 60 * SECOND, None, 0, 0),
        (THREE, Turns(turn(held=2)), NOW - 5 * SECOND, AFTER * SECOND, 2, 3),
        (THREE, RESTS, MADE, AFTER * SECOND, 0, 3),
        ([*THREE, pod("d", on="n")], RESTS, NOW - 30 * SECOND, None, 0, 0),
    ],
)
def test_moments_and_held_members(
    pods: list[PodView], turns: Turns, since: int, until: int | None, held_members: int, attempt: int
) -> None:
    found = only(overview(*pods, turns=turns))
    assert (found.since, found.until) == (since, until)
    assert (found.held_members, found.attempt) == (held_members, attempt)


NO_ROOM: Final = {"status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}


def test_members() -> None:
    found = only(
        overview(
            pod("placed", on="n1"),
            pod("refused", condition=NO_ROOM),
            pod("not-bound", condition=NO_ROOM | {"reason": "SchedulerError", "message": "1 of 3 members"}),
            pod("gated", gates=["quota", "b"], condition=NO_ROOM | {"reason": "SchedulingGated"}),
            pod("new"),
            pod("gone", deleted=True),
        )
    )
    assert [(one.name, one.state.value, one.node, one.refusal, one.gates) for one in found.members] == [
        ("gated", "Gated", "", "", ["quota", "b"]),
        ("gone", "Deleting", "", "", []),
        ("new", "Known", "", "", []),
        ("not-bound", "Known", "", "1 of 3 members", []),
        ("placed", "Placed", "n1", "", []),
        ("refused", "Known", "", "0/2 nodes are available", []),
    ]
    assert [found.count(state) for state in MemberState] == [1, 3, 1, 1]
    assert isinstance(found.members[0], GroupMember)


def test_the_order_and_what_is_left_out() -> None:
    pods = [
        pod("s", "started", on="n"),
        pod("w", "waits"),
        pod("w2", "waits", namespace="aa"),
        pod("r"),
        pod("t", "blue"),
        pod("plain", ""),
        pod("single", "single", size="1"),
        pod("deleted", "deleted", deleted=True),
        pod("other", "other", scheduler="default-scheduler"),
    ]
    turns = Turns(turn(BLUE), {RED: PublishedRest(AFTER, 3)})
    assert [one.name for one in overview(*pods, turns=turns).groups] == [
        *("ml/blue", "ml/red", "aa/waits", "ml/waits", "ml/started"),
    ]


def test_groups_of_two_schedulers_are_two() -> None:
    policies = [gangs(), gangs("q", schedulerName="batch")]
    pods = [pod("a"), pod("b", scheduler="batch"), pod("c", scheduler="batch")]
    found = overview(*pods, policies=policies, turns=Turns(turn())).groups
    assert [(one.group.scheduler, one.known, one.state) for one in found] == [
        ("batch", 2, "Waiting"),
        ("fairlead", 1, "Turn"),
    ]
    # Replicas do not see which scheduler has placed a pod.
    found = overview(pod("a", on="n"), pod("b", scheduler="batch"), policies=policies).groups
    assert [(one.group.scheduler, one.state, one.size) for one in found] == [
        ("batch", "Started", 3),
        ("fairlead", "Started", 3),
    ]


@pytest.mark.parametrize("team", ["a", "b"])
def test_policies_that_do_not_apply_give_no_group(team: str) -> None:
    selects = gangs(match={"namespaceSelector": {"matchLabels": {"team": team}}})
    assert len(overview(pod("a"), policies=[selects]).groups) == (team == "a")
    assert overview(pod("a"), policies=[gangs(mode="Disabled")]) == GroupOverview([], [])


def test_pods_whose_group_cannot_be_decided() -> None:
    wrong = [pod("z", size="many"), pod("b", "v" * 254)]
    pods = [*wrong, pod("gone", size="many", deleted=True), pod("on", size="x", on="n")]
    assert overview(*pods).undecided == [
        UndecidedPod("ml", "b", "policy p: the group of job has more than 253 characters"),
        UndecidedPod("ml", "z", "policy p: the size of job cannot be decided"),
    ]


def test_values_are_what_they_are() -> None:
    found = overview(pod("a", "x\n\x1b[31m/y"), pod("b", "x\n\x1b[31m/y"), pod("c", "blue", "1"), pod("d", "blue", "2"))
    assert [one.name for one in found.groups] == ["ml/blue", "ml/x\n\x1b[31m/y"]
