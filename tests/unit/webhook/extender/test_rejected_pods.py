"""Pods that were refused: when one of them could be placed, that is told, and not again and again."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.groups.group import Group, Membership
from fairlead.groups.turns import WAITING
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate import matching
from fairlead.policy.evaluate.filter_result import SharedDomain
from fairlead.webhook.extender.call import Outcome
from fairlead.webhook.extender.decisions import Decision
from fairlead.webhook.extender.group_view import GroupView
from fairlead.webhook.extender.rejected_pods import (
    AGAIN_NS,
    CONDITIONS,
    GROUP_NS,
    PAUSE_NS,
    UNSEEN_NS,
    RejectedPods,
)
from fairlead.webhook.extender.state import ServingState
from support.policy import NOW, SECOND, node, pod, policy
from support.webhook import Asking, at, body

LABEL = "node.metadata.labels[?'pool'].orValue('') == 'ours'"
OTHER = "node.metadata.labels[?'other'].orValue('') == ''"
NAMES = ["a", "b"]


class Ground:
    """A replica with idle time."""

    def __init__(self, *policies: CompiledPolicy, limit: int = 512) -> None:
        nodes = [node(name) for name in NAMES]
        self.asking = Asking(policies, nodes, unplaced=[pod(schedulerName="fairlead").pod])
        self.waiting = RejectedPods(limit=limit)
        self.time, self.step, self.now = 0, 0, NOW

    def clock(self) -> int:
        self.time += self.step
        return self.time

    def filter(self, name: str = "x", entry: Any = "Fail", names: Iterable[str] = NAMES, **more: Any) -> str:
        asked = body([*names], pod={"name": name, "uid": f"u-{name}"}, **more)
        outcome = self.asking.filter(asked, entry).outcome
        self.record(outcome)
        return outcome.result

    def record(self, outcome: Outcome, at: int | None = None) -> None:
        answered_ns = self.time if at is None else at
        self.waiting.record(Decision(outcome, self.asking.caller, self.asking.serving.policies, answered_ns))

    def look(self, budget: int = 10**15) -> bool:
        """Whether all was looked at."""
        when = at(self.now, self.clock, self.time + budget)
        return self.waiting.recheck(self.asking.serving, when)

    @property
    def freed(self) -> bool:
        """Whether it is told of now; whoever asks is told once."""
        assert self.look()
        found, self.waiting.schedulable_again = self.waiting.schedulable_again, False
        return found

    def label(self, name: str, **labels: str) -> None:
        self.asking.nodes.put(node(name, labels=labels))


def test_a_pod_is_told_of_when_a_node_becomes_good() -> None:
    ground = Ground(policy(filters={"f": LABEL}))
    assert ground.filter() == "empty"
    assert not ground.freed
    assert ground.waiting.rejected_alone() == {"p": 1}
    ground.label("a", pool="theirs")
    assert not ground.freed
    ground.label("b", pool="ours")
    assert ground.freed
    assert not ground.freed


def test_and_when_the_rule_does() -> None:
    ground = Ground(policy(filters={"f": LABEL}))
    ground.filter()
    assert not ground.freed
    ground.asking.serve([policy(filters={"f": "true"}, generation=2)])
    assert ground.freed


def test_and_when_its_policy_goes() -> None:
    ground = Ground(policy(filters={"f": LABEL}))
    ground.filter()
    ground.asking.serve([])
    assert ground.freed


@pytest.mark.parametrize(
    "spec",
    [
        {"filters": {"f": f"now > timestamp({(NOW // SECOND) + 60})"}},
        {"filters": {"f": f"string(now) > string(timestamp({(NOW // SECOND) + 60}))"}},
        {"filters": {"f": "false"}, "match": {"conditions": {"c": f"now < timestamp({(NOW // SECOND) + 60})"}}},
        {"filters": {"f": f"pod.metadata.name == 'x' && now > timestamp({(NOW // SECOND) + 60})"}},
    ],
)
def test_and_when_the_time_has_come(spec: dict[str, Any]) -> None:
    ground = Ground(policy(**spec))
    assert ground.filter() == "empty"
    assert not ground.freed
    ground.now += 120 * SECOND
    assert not ground.freed, "nobody looks all the time"
    ground.time += AGAIN_NS
    assert ground.freed


def test_and_when_a_node_becomes_known() -> None:
    ground = Ground(policy(filters={"f": "node.metadata.name == 'c'"}))
    assert ground.filter(names=["c"]) == "empty"
    assert not ground.freed
    assert ground.waiting.rejected_alone() == {}, "no policy has refused it"
    ground.label("c")
    assert ground.freed


def test_one_that_could_be_placed_and_is_not_is_told_of_seldom() -> None:
    ground = Ground(policy(filters={"f": LABEL}))
    ground.filter()
    ground.label("a", pool="ours")
    assert ground.freed
    told = []
    for _ in range(120):
        ground.time += SECOND
        told.append(ground.freed)
    assert told.count(True) == 3  # after about 10, 30 and 70 seconds
    assert not any(told[: PAUSE_NS // SECOND - 1])
    ground.label("b", pool="ours")
    assert ground.freed, "another node is news"
    ground.label("a")
    ground.label("b")
    assert not ground.freed
    ground.label("a", pool="ours")
    assert ground.freed, "what was bad meanwhile is news, too"


def test_both_gates_have_to_leave_the_same_node() -> None:
    ignore = policy("q", filters={"g": OTHER}, failurePolicy="Ignore")
    ground = Ground(policy(filters={"f": LABEL}), ignore)
    ground.label("a", other="x", pool="ours")
    assert ground.filter(entry="Ignore", names=["a"]) == "empty"
    assert not ground.freed, "b passes one entry, and a the other one"
    ground.label("b", pool="ours")
    assert ground.freed


def test_pods_that_are_placed_or_let_pass_are_forgotten() -> None:
    ground = Ground(policy(filters={"f": LABEL}))
    ground.filter()
    assert ground.filter(entry="Ignore") == "passed"
    assert ground.waiting.rejected_alone() == {"p": 1}, "the other entry has not refused it"
    assert ground.look()
    ground.asking.mirror.waiting.clear()
    ground.time += AGAIN_NS
    assert ground.look()
    assert ground.waiting.rejected_alone() == {}
    ground.filter()
    ground.label("a", pool="ours")
    assert ground.filter() == "refused"
    assert ground.waiting.rejected_alone() == {}


def test_one_that_the_mirror_does_not_know_yet_stays_for_a_while() -> None:
    ground = Ground(policy(filters={"f": LABEL}))
    ground.filter("y")
    for left in ({"p": 1}, {}):
        ground.look()
        assert ground.waiting.rejected_alone() == left
        ground.time += UNSEEN_NS + 1
        ground.look()


def test_what_nobody_mends_or_means_is_not_remembered() -> None:
    ground = Ground(policy(filters={"f": "false"}))
    outcome = ground.asking.filter(body(nodes=[{"metadata": {"name": "a"}}])).outcome
    assert (outcome.result, outcome.simulated) == ("empty", True)
    ground.record(outcome, 0)
    ground.asking.caller = replace(ground.asking.caller, excluded_namespaces=frozenset({"ml"}))
    assert ground.filter() == "empty"
    assert ground.waiting.rejected_alone() == {}


def test_several_policies_refuse_together_and_none_alone() -> None:
    ground = Ground(policy(filters={"f": "node.metadata.name == 'a'"}), policy("q", filters={"f": "false"}))
    assert ground.filter() == "empty"
    assert ground.waiting.rejected_alone() == {}


def test_there_is_room_for_so_many() -> None:
    ground = Ground(policy(filters={"f": LABEL}), limit=3)
    for number in range(9):
        ground.filter(str(number))
    assert ground.waiting.rejected_alone() == {"p": 3}


@pytest.mark.parametrize("rule", [LABEL, f"{LABEL} && pod.metadata.name != 'z'"])
def test_it_goes_on_where_its_time_was_over(rule: str) -> None:
    ground = Ground(policy(filters={"f": rule}))
    for number in range(2000):
        ground.asking.nodes.put(node(f"n{number}"))
    ground.filter()
    ground.asking.serve([policy(filters={"f": rule}, generation=2)])
    ground.label("n1000", pool="ours")
    ground.step, slices = 500_000, 1
    while not ground.look(budget=2_000_000):
        slices += 1
    assert slices > 5
    assert ground.waiting.schedulable_again


def test_a_pod_that_raises_does_not_keep_the_others_from_being_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground(policy(filters={"f": LABEL}))
    ground.filter()
    ground.filter("odd")
    held = ground.asking.mirror.waiting
    held["ml", "odd"] = pod("odd", schedulerName="fairlead").pod
    before = ServingState.pod_view

    def view(self: ServingState, one: Any) -> Any:
        if one.metadata.name == "odd":
            raise ValueError("nobody foresaw it")
        return before(self, one)

    monkeypatch.setattr(ServingState, "pod_view", view)
    ground.label("b", pool="ours")
    assert ground.freed


def test_conditions_that_take_too_long_are_left_and_the_others_are_woken() -> None:
    slow = policy(match={"conditions": {"c": "pod.metadata.name == 'slow'", "d": "true"}}, filters={"f": LABEL})
    ground = Ground(slow, policy("q", filters={"f": LABEL}))
    ground.filter()
    ground.filter("slow")
    ground.asking.mirror.waiting["ml", "slow"] = pod("slow", schedulerName="fairlead").pod
    ground.label("b", pool="ours")
    ground.step = CONDITIONS // 2 + 1
    looks = 0
    while not ground.look(0):
        looks += 1
        assert looks < 20, "whoever is slow is passed over"
    slow_one = ground.waiting._pods["u-slow"]
    assert slow_one.skipped_until > ground.time
    assert not ground.asking.pace.open_circuits(ground.time), "nobody waits for an answer in idle time"


def test_conditions_of_a_policy_that_is_switched_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    one = policy(match={"conditions": {"c": "pod.metadata.name != ''"}}, filters={"f": "true"})
    ground = Ground(one)
    ground.record(Outcome(verb="filter", pod="u-x", waits=("ml", "x"), entry="Fail"), 0)
    for _ in range(2):
        ground.asking.pace.record_timeout(one, "filters", pod(), 0)
    monkeypatch.setattr(matching, "_holds", lambda *_: pytest.fail("its failure policy decides"))
    assert not ground.freed


GANG = {
    "name": "job",
    "group": "pod.metadata.labels[?'job'].orValue('')",
    "size": "int(pod.metadata.annotations[?'size'].orValue('2'))",
}


class Groups(GroupView):
    """A view by which each of some groups rejects its pods."""

    def __init__(self) -> None:
        self.rejecting = {"red"}

    def rejection(self, _uid: str, membership: Membership, _now: int, /) -> str | None:
        return WAITING if membership.group.value in self.rejecting else None


class SharedDomains(GroupView):
    """View in which every group has one domain."""

    domain: Mapping[str, str] | None = None

    def shared_domain(self, _group: str, _at: int, /) -> SharedDomain:
        return SharedDomain(self.domain)


def test_one_outside_the_domain_of_its_group_is_told_of_when_the_domain_is_another_one() -> None:
    topology = {"levels": ["rack"], "require": "rack", "group": "'job'"}
    ground, domains = Ground(policy(filters=[{"name": "racks", "topology": topology}])), SharedDomains()
    ground.asking.serving = replace(ground.asking.serving, groups=domains)
    for name in NAMES:
        ground.label(name, rack=name)
    domains.domain = {"rack": "another"}
    assert ground.filter() == "empty"
    assert not ground.freed
    domains.domain = {"rack": "b"}
    ground.time += AGAIN_NS
    assert ground.freed


class MemberGround(Ground):
    """A replica with members of groups, which the mirror knows."""

    def __init__(self, *policies: CompiledPolicy, limit: int = 512) -> None:
        super().__init__(*policies, limit=limit)
        self.groups = Groups()
        self.asking.groups = self.groups
        self.asking.serve(policies)

    def filter_member(self, name: str, job: str = "red", **annotations: str) -> str:
        metadata = {
            "name": name,
            "namespace": "ml",
            "uid": f"u-{name}",
            "labels": {"job": job},
            "annotations": annotations,
        }
        waiting = from_json("Pod", {"metadata": metadata, "spec": {"schedulerName": "fairlead"}})
        self.asking.mirror.waiting["ml", name] = waiting
        outcome = self.asking.filter(body(NAMES, pod=metadata)).outcome
        self.record(outcome)
        return outcome.result

    def pass_time(self, nanoseconds: int = AGAIN_NS) -> None:
        self.time += nanoseconds

    @property
    def kept(self) -> list[str]:
        return [uid.removeprefix("u-") for uid in self.waiting._pods]


def gangs(**spec: Any) -> CompiledPolicy:
    return policy(binding={"gang": [GANG]}, **spec)


def test_a_member_that_its_group_rejects_is_told_of_a_while_after_it_does_no_more() -> None:
    ground = MemberGround(gangs())
    assert ground.filter_member("a") == "empty"
    assert (ground.waiting.has_pods, ground.waiting.rejected_alone()) == (True, {})
    for _ in range(20):
        ground.pass_time()
        assert not ground.freed
    ground.groups.rejecting = set()
    ground.pass_time()
    assert not ground.freed, "what holds the group wakes it by itself"
    ground.pass_time(max(GROUP_NS, AGAIN_NS))
    assert ground.freed
    ground.pass_time()
    assert not ground.freed


def test_a_group_that_rejects_its_pods_again_meanwhile_is_not_told_of() -> None:
    ground = MemberGround(gangs())
    ground.filter_member("a")
    for _ in range(5):
        ground.groups.rejecting = set()
        ground.pass_time()
        assert not ground.freed
        ground.groups.rejecting = {"red"}
        ground.pass_time()
        assert not ground.freed


def test_a_member_that_a_filter_rejects_is_not_told_of_while_its_group_would_reject_it() -> None:
    ground = MemberGround(gangs(filters={"f": LABEL}))
    ground.groups.rejecting = set()
    assert ground.filter_member("a") == "empty"
    assert ground.waiting.rejected_alone() == {"p": 1}
    ground.groups.rejecting = {"red"}
    ground.label("a", pool="ours")
    assert not ground.freed
    ground.groups.rejecting = set()
    ground.pass_time()
    assert ground.freed


def test_of_each_group_one_pod_is_kept() -> None:
    ground = MemberGround(gangs(), limit=3)
    ground.groups.rejecting = {"red", "blue", "green"}
    for job in ("red", "blue", "green"):
        for number in range(100):
            ground.filter_member(f"{job}-{number}", job)
    assert ground.kept == ["red-0", "blue-0", "green-0"]
    ground.groups.rejecting = {"blue", "green"}
    assert ground.filter_member("red-0") == "passed"
    assert ground.kept == ["blue-0", "green-0"]
    ground.groups.rejecting = {"red", "blue", "green"}
    ground.filter_member("red-7")
    assert ground.kept == ["blue-0", "green-0", "red-7"]
    ground.asking.mirror.waiting.clear()
    ground.pass_time(UNSEEN_NS + AGAIN_NS)
    assert not ground.freed
    assert not ground.freed
    assert (ground.kept, ground.waiting.has_pods) == ([], False)
    ground.filter_member("red-8")
    assert ground.kept == ["red-8"]


def test_a_pod_whose_group_is_another_one_now_is_kept_for_that() -> None:
    ground = MemberGround(gangs())
    ground.groups.rejecting = {"red", "blue"}
    ground.filter_member("a")
    ground.filter_member("a", "blue")
    ground.filter_member("b")
    assert ground.kept == ["a", "b"]
    assert ground.waiting._groups == {Group("fairlead", "ml", "blue"): "u-a", Group("fairlead", "ml", "red"): "u-b"}


def test_a_pod_whose_group_cannot_be_decided_is_told_of_when_it_can_be() -> None:
    ground = MemberGround(gangs())
    assert ground.filter_member("a", size="many") == "empty"
    assert not ground.freed
    ground.groups.rejecting = set()
    ground.asking.serve([policy(binding={"gang": [GANG | {"size": "2"}]}, generation=2)])
    assert ground.freed
