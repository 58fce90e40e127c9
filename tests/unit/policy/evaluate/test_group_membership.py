"""Groups of pods: which one an unplaced pod is in, which ones a placed pod was in, and what cannot be told."""

from itertools import product
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.groups.group import Group, Membership, UndecidedGroup
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.group_membership import GangValues, PlacedGroups, gang_values, membership_of
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.views.faults import RuleError
from fairlead.policy.views.placed_pod import placed_pod
from fairlead.policy.views.pod_view import PodView
from support.policy import Clock, Evaluation, ns, pod, policy

JOB, SIZE = "pod.metadata.labels[?'job'].orValue('')", "int(pod.metadata.annotations[?'size'].orValue('1'))"
ON_ENGINE = "'job' in pod.metadata.labels ? '%s'.format([pod.metadata.labels['job']]) : ''"


def entry(name: str = "job", group: str = JOB, size: str = SIZE, **more: Any) -> dict[str, Any]:
    return {"name": name, "group": group, "size": size} | more


def gangs(*entries: dict[str, Any], name: str = "p", **spec: Any) -> CompiledPolicy:
    return policy(name, binding={"gang": [*(entries or (entry(),))]}, **spec)


def matched(*policies: CompiledPolicy) -> list[Matched]:
    return [Matched(one) for one in policies]


def member(value: str = "a", size: int = 4, gang: str = "job", policy: str = "p", hold_s: int = 30) -> Membership:
    return Membership(Group("fairlead", "ml", value), size, hold_s, policy, gang)


def of(labels: dict[str, str], size: str | None = "4", **more: Any) -> PodView:
    return pod(labels=labels, annotations={} if size is None else {"size": size}, **more)


def undecided(why: str, gang: str = "job", policy: str = "p") -> UndecidedGroup:
    return UndecidedGroup(policy, gang, f"policy {policy}: {why}")


BY_ROLE = entry("role", "pod.metadata.labels[?'role'].orValue('')", "7", holdFor="2m")
RAISING = entry(group="pod.metadata.labels['job']")


@pytest.mark.parametrize(
    ("asked", "entries", "want"),
    [
        (of({"job": "a"}), [entry()], member()),
        (of({"job": "a"}, "1"), [entry()], None),
        (of({"job": "a"}, None), [entry()], None),
        (of({}), [entry()], None),
        (of({"job": ""}), [entry()], None),
        (of({"job": "a"}, "2"), [entry()], member(size=2)),
        (of({"job": "a"}, "500"), [entry(holdFor="5s")], member(size=500, hold_s=5)),
        # The first entry with a group counts, whatever its size.
        (of({"job": "a", "role": "r"}), [entry(), BY_ROLE], member()),
        (of({"job": "a", "role": "r"}), [BY_ROLE, entry()], member("r", 7, "role", hold_s=120)),
        (of({"role": "r"}), [entry(), BY_ROLE], member("r", 7, "role", hold_s=120)),
        (of({"job": "a", "role": "r"}, "1"), [entry(), BY_ROLE], None),
        (of({}), [entry(), BY_ROLE], None),
        # Of Kubernetes' own groups nothing is touched.
        (of({"job": "a"}, schedulingGroup={"podGroupName": "g"}), [entry()], None),
        (of({"job": "a"}, "x", schedulingGroup={"podGroupName": "g"}), [entry()], None),
        # Bad input.
        (of({"job": "a"}, "0"), [entry()], undecided("the size of job is not from 1 to 500")),
        (of({"job": "a"}, "-1"), [entry()], undecided("the size of job is not from 1 to 500")),
        (of({"job": "a"}, "501"), [entry()], undecided("the size of job is not from 1 to 500")),
        (of({"job": "a"}, "four"), [entry()], undecided("the size of job cannot be decided")),
        (of({"job": "a"}, ""), [entry()], undecided("the size of job cannot be decided")),
        (of({"job": "a"}, "9" * 30), [entry()], undecided("the size of job cannot be decided")),
        (of({"job": "a"}, "4.0"), [entry()], undecided("the size of job cannot be decided")),
        (of({"job": "a" * 254}), [entry()], undecided("the group of job has more than 253 characters")),
        (of({"job": "a" * 254}, "x"), [entry()], undecided("the group of job has more than 253 characters")),
        (of({"job": "a" * 253}), [entry()], member("a" * 253)),
        (of({"job": "\U0001f600" * 253}), [entry()], member("\U0001f600" * 253)),
        (of({}), [RAISING], undecided("the group of job cannot be decided")),
        # What cannot be told ends the search: another entry must not count today that does not tomorrow.
        (of({"role": "r"}), [RAISING, BY_ROLE], undecided("the group of job cannot be decided")),
        (of({"job": "a", "role": "r"}, "x"), [entry(), BY_ROLE], undecided("the size of job cannot be decided")),
        (of({"role": "r"}, "x"), [entry(), BY_ROLE], member("r", 7, "role", hold_s=120)),
        (of({"job": "a", "role": "r"}, "x"), [BY_ROLE, entry()], member("r", 7, "role", hold_s=120)),
        # Values are only compared.
        (of({"job": " "}), [entry()], member(" ")),
        (of({"job": "a\0b\n\u2028"}), [entry()], member("a\0b\n\u2028")),
        (of({"job": "a"}), [entry(group="pod.metadata.namespace + '/' + pod.metadata.uid")], member("ml/u-x")),
        (of({"job": "a"}), [entry(group=ON_ENGINE)], member()),
        (of({}), [entry(group=ON_ENGINE)], None),
        (
            of({}),
            [entry(group="'%s'.format([pod.metadata.labels['job']])")],
            undecided("the group of job cannot be decided"),
        ),
    ],
)
def test_the_group_of_an_unplaced_pod(
    asked: PodView, entries: list[dict[str, Any]], want: Membership | UndecidedGroup | None
) -> None:
    assert membership_of(asked, matched(gangs(*entries))) == want


def test_a_size_of_many_ways_is_a_plain_number() -> None:
    found = membership_of(of({"job": "a"}, priority=3), matched(gangs(entry(size="pod.spec.priority"))))
    assert found == member(size=3)
    absent = membership_of(of({"job": "a"}), matched(gangs(entry(size="pod.spec.priority"))))
    assert absent == undecided("the size of job is not from 1 to 500")
    assert isinstance(found, Membership)
    assert (type(found.size), type(found.group.value)) == (int, str)


@pytest.mark.parametrize(
    ("policies", "labels", "want"),
    [
        (("p", "q"), {"job": "a"}, member()),
        (("q", "p"), {"job": "a"}, member(policy="q")),  # `matched` is in the order of the policies
        (("p", "role"), {"role": "r"}, member("r", 7, "role", "role", 120)),  # the first one puts it in no group
        (("plain", "p"), {"job": "a"}, member()),
    ],
)
def test_the_first_policy_that_gives_a_group_counts(
    policies: tuple[str, ...], labels: dict[str, str], want: Membership
) -> None:
    made = {
        "p": gangs(),
        "q": gangs(name="q"),
        "role": gangs(BY_ROLE, name="role"),
        "plain": policy("plain", filters={"f": "true"}),
    }
    assert membership_of(of(labels), matched(*(made[name] for name in policies))) == want


def test_the_order_is_that_of_the_policies() -> None:
    cluster = Evaluation([gangs(), gangs(name="low", priority=-1), gangs(name="top", priority=1)])
    assert membership_of(of({"job": "a"}), cluster.matched(of({"job": "a"}))) == member(policy="top")


WHY = RuleError("the rule", "cannot be decided")


@pytest.mark.parametrize(
    ("doubtful", "why"),
    [
        (Matched(gangs(), undecided=WHY, condition="c"), "policy p cannot be decided"),
        (Matched(gangs(), switched=True), "policy p is too slow"),
    ],
)
def test_a_policy_that_may_apply_or_is_switched_refuses_its_pods(doubtful: Matched, why: str) -> None:
    refused = UndecidedGroup("p", "job", why)
    sure = Matched(gangs(name="q"))
    assert membership_of(of({}), [doubtful]) == refused
    assert membership_of(of({"job": "a"}), [doubtful, sure]) == refused
    assert membership_of(of({"job": "a"}), [sure, doubtful]) == member(policy="q")
    assert membership_of(of({}), [sure, doubtful]) == refused
    assert membership_of(of({}, schedulingGroup={"podGroupName": "g"}), [doubtful]) is None
    plain = Matched(policy("plain", filters={"f": "true"}), undecided=doubtful.undecided, switched=doubtful.switched)
    assert membership_of(of({"job": "a"}), [plain, sure]) == member(policy="q"), "one without gangs says nothing"


def test_errors_are_counted_without_values_of_the_pod() -> None:
    tally, made = RuleErrorTally(), matched(gangs(entry(), BY_ROLE))
    for size in ("secret", "secret", "501", "1", "4"):
        membership_of(of({"job": "a"}, size), made, tally=tally)
    membership_of(of({"job": "secret" * 99}), made, tally=tally)
    (failures,) = tally.drain()
    assert (failures.policy, failures.rule, failures.count, failures.faults) == ("p", "binding/job", 4, 0)
    assert failures.last_message == "the group of job has more than 253 characters"
    membership_of(of({"job": "a"}, "secret"), made, tally=tally)
    (failures,) = tally.drain()
    assert "secret" not in failures.last_message
    membership_of(of({"job": "a"}), [Matched(gangs(), undecided=WHY, condition="c")], tally=tally)
    assert tally.drain() == [], "the condition was counted where it was evaluated"


@pytest.mark.parametrize("broken", ["for_pod", "evaluation"])
@pytest.mark.parametrize("error", [ValueError("secret"), RecursionError("secret"), MemoryError("secret")])
def test_a_fault_of_ours_is_an_error_of_the_rule(
    error: Exception, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, tally = matched(gangs()), RuleErrorTally()

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(CompiledExpression, "for_pod", fail if broken == "for_pod" else lambda *_: fail)
    assert membership_of(of({"job": "a"}), made, tally=tally) == undecided("the group of job cannot be decided")
    (failures,) = tally.drain()
    assert (failures.faults, "secret" in failures.last_message) == (1, False)
    assert PlacedGroups([made[0].policy]).of(placed({"job": "a"}), None) == ()


def test_a_deadline_names_the_policy_that_took_most() -> None:
    made, spent = matched(gangs(name="q"), gangs(entry("a"), entry("b"))), {"q": 5}
    with pytest.raises(TooSlowError) as late:
        membership_of(of({}), made, clock=Clock(step=10), deadline_ns=45, spent=spent)
    assert (late.value.policy, spent) == ("p", {"q": 15, "p": 20})
    assert membership_of(of({}), made, clock=Clock(step=10), deadline_ns=50) is None
    assert membership_of(of({"job": "a"}), made, clock=Clock(step=10), deadline_ns=20) == member(policy="q")


def test_the_values_that_an_explanation_shows() -> None:
    (rule,) = gangs().gangs
    outside, raised = (RuleError("the size of job", why) for why in ("is not from 1 to 500", "cannot be decided"))
    assert gang_values(rule, of({"job": "a"})) == GangValues("a", 4)
    assert gang_values(rule, of({"job": "a"}, "501")) == GangValues("a", 501, outside)
    value, size, error = gang_values(rule, of({"job": "a"}, "x"))
    assert (value, size, str(error)) == ("a", None, str(raised))
    assert gang_values(rule, of({"job": "b" * 254}))[:2] == ("b" * 254, None)
    assert gang_values(rule, of({})) == GangValues()


# Placed pods.


def placed(
    labels: dict[str, str], annotations: dict[str, str] | None = None, namespace: str = "ml", **spec: Any
) -> Any:
    metadata = {"name": "x", "namespace": namespace, "uid": "u-x", "labels": labels, "annotations": annotations or {}}
    return placed_pod({"metadata": metadata, "spec": {"nodeName": "n", **spec}, "status": {"phase": "Running"}})


A, R = (Group("fairlead", "ml", "a"),), (Group("fairlead", "ml", "r"),)
FOUR, ONE = {"size": "4"}, {"size": "1"}
BY_SPEC = entry(size="pod.spec.containers.size() + 1")


@pytest.mark.parametrize(
    ("seen", "policies", "want"),
    [
        (placed({"job": "a"}, FOUR), [gangs()], A),
        (placed({}, FOUR), [gangs()], ()),
        (placed({"job": "a"}, FOUR, schedulingGroup={"podGroupName": "g"}), [gangs()], ()),
        # A driver with the label of its executors starts nothing, where its size can be told.
        (placed({"job": "a"}, ONE), [gangs()], ()),
        (placed({"job": "a"}), [gangs()], ()),
        (placed({"job": "a"}, ONE), [gangs(BY_SPEC)], A),
        (placed({"job": "a"}), [gangs(entry(size="4"))], A),
        (placed({"job": "a", "role": "r"}, ONE), [gangs(entry(), BY_ROLE)], ()),
        (placed({"role": "r"}, ONE), [gangs(entry(), BY_ROLE)], R),
        # What cannot be told is not taken as started.
        (placed({"job": "a"}, {"size": "x"}), [gangs()], ()),
        (placed({"job": "a"}, {"size": "501"}), [gangs()], ()),
        (placed({"job": "a" * 254}, FOUR), [gangs()], ()),
        (placed({"role": "r"}), [gangs(RAISING, BY_ROLE)], ()),
        # Of the match only conditions are taken as true.
        (placed({"job": "a"}, FOUR), [gangs(match={"conditions": {"c": "false"}})], A),
        (placed({"job": "a"}, FOUR), [gangs(match={"conditions": {"c": "pod.metadata.labels['no'] == ''"}})], A),
        (placed({"job": "a"}, FOUR), [gangs(match={"namespaces": ["ml"]})], A),
        (placed({"job": "a"}, FOUR), [gangs(match={"namespaces": ["other"]})], ()),
        (placed({"job": "a"}, FOUR), [gangs(match={"podSelector": {"matchLabels": {"job": "a"}}})], A),
        (placed({"job": "a"}, FOUR), [gangs(match={"podSelector": {"matchLabels": {"job": "b"}}})], ()),
        (placed({"job": "a"}, FOUR), [gangs(mode="Disabled")], ()),
        (placed({"job": "a"}, FOUR), [policy("plain", filters={"f": "true"})], ()),
        # The first policy of each scheduler counts.
        (placed({"job": "a", "role": "r"}, FOUR), [gangs(), gangs(BY_ROLE, name="z", priority=1)], R),
        (placed({"job": "a"}, FOUR), [gangs(BY_ROLE, name="a"), gangs()], A),
        (placed({"job": "a"}, FOUR), [gangs(name="a", match={"namespaces": ["other"]}), gangs()], A),
        (placed({"job": "a"}, FOUR), [gangs(), gangs(name="q", schedulerName="o")], (*A, Group("o", "ml", "a"))),
        (placed({"job": "a"}, FOUR, namespace=""), [gangs()], (Group("fairlead", "default", "a"),)),
        (placed({"job": "a"}, FOUR), [gangs(entry(group=ON_ENGINE))], A),
    ],
)
def test_the_groups_of_a_placed_pod(seen: Any, policies: list[CompiledPolicy], want: tuple[Group, ...]) -> None:
    assert PlacedGroups(policies).of(seen, ns()) == want


@pytest.mark.parametrize(
    ("namespace", "want"), [(ns(labels={"team": "a"}), A), (ns(labels={"team": "b"}), ()), (ns(), ()), (None, ())]
)
def test_a_namespace_that_is_not_known_starts_nothing(namespace: Any, want: tuple[Group, ...]) -> None:
    groups = PlacedGroups([gangs(match={"namespaceSelector": {"matchLabels": {"team": "a"}}})])
    assert groups.of(placed({"job": "a"}, FOUR), namespace) == want
    assert groups.reads_namespaces
    assert not PlacedGroups([gangs()]).reads_namespaces


EXISTS = {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}
JOBS_AND_ROLES: list[dict[str, str]] = [
    {"job": "a"},
    {"job": "a", "role": "r"},
    {"role": "r"},
    {"role": "r", "tier": "t"},
    {"role": "", "tier": "t"},
]
READING: dict[str, list[CompiledPolicy]] = {
    "labels and annotations": [gangs(entry(), BY_ROLE)],
    "all labels": [gangs(entry(group="pod.metadata.labels.map(key, key).sort().join(',')", size="4"))],
    "a selector": [
        gangs(match={"podSelector": {"matchLabels": {"role": "r"}}}),
        gangs(BY_ROLE, name="q", match=EXISTS),
    ],
    "a namespace": [gangs(match={"namespaceSelector": {"matchLabels": {"team": "a"}}})],
    "owners": [gangs(entry(group="pod.metadata.ownerReferences.map(owner, owner.uid).join('')", size="4"))],
    "names": [gangs(entry(group="pod.metadata.name + pod.metadata.uid", size="4"))],
    "the namespace": [gangs(entry(group="pod.metadata.namespace + 'x'", size="4"), match={"namespaces": ["ml", "b"]})],
}


@pytest.mark.parametrize("policies", READING.values(), ids=READING)
def test_pods_that_are_told_apart_have_groups_of_their_own(policies: list[CompiledPolicy]) -> None:
    """What is known of one pod is used for others: it must be what a fresh look at each of them says."""
    spaces = [ns("ml", {"team": "a"}), ns("ml", {"team": "b"}), None]
    options: dict[str, list[Any]] = {
        "name": ["x", "y"],
        "namespace": ["ml", "b"],
        "labels": [{}, *JOBS_AND_ROLES],
        "annotations": [{}, {"size": "4"}, {"size": "x"}],
        "ownerReferences": [[], [{"kind": "Job", "name": "j", "uid": "u-1"}], [{"kind": "Job", "uid": "u-2"}]],
    }
    groups = PlacedGroups(policies)
    for values in product(*options.values()):
        metadata = dict(zip(options, values, strict=True))
        seen = placed_pod({"metadata": metadata | {"uid": f"u-{metadata['name']}"}, "spec": {"nodeName": "n"}})
        for namespace in spaces:
            assert groups.of(seen, namespace) == PlacedGroups(policies).of(seen, namespace)


def test_pods_that_are_alike_share_their_groups_and_what_is_known_is_bounded() -> None:
    groups = PlacedGroups([gangs()])
    assert groups.of(placed({"job": "a", "other": "1"}, FOUR), None) is groups.of(placed({"job": "a"}, FOUR), None)
    for number in range(10_000):
        groups.of(placed({"job": f"{number}"}, FOUR), None)
    assert len(groups._known) < 8_193


def test_there_are_none_without_gangs() -> None:
    assert not PlacedGroups([policy(filters={"f": "true"}), gangs(mode="Disabled")])
    assert PlacedGroups([gangs()])


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ([gangs(), policy("q", filters={"f": "true"})], True),
        ([gangs(), gangs(name="off", mode="Disabled")], True),
        ([gangs(generation=2)], False),
        ([gangs(uid="u-other")], False),
        ([gangs(priority=2)], False),
        ([gangs(mode="Disabled")], False),
        ([gangs(), gangs(name="q")], False),
    ],
)
def test_the_groups_are_the_same_as_long_as_their_policies_are(other: list[CompiledPolicy], same: bool) -> None:
    assert (PlacedGroups([gangs()]).meaning == PlacedGroups(other).meaning) is same


@pytest.mark.parametrize(
    "group",
    [
        JOB,
        ON_ENGINE,
        "pod.metadata.ownerReferences.map(owner, owner.uid).join('')",
        "pod.metadata.annotations[?'size'].orValue('') + pod.metadata.name",
        "has(pod.metadata.labels.job) ? 'with' : 'without'",
        "has(pod.metadata.uid) ? pod.metadata.uid : 'no uid'",
        "pod.metadata.labels.map(key, key).sort().join(',')",
    ],
)
@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "x", "namespace": "ml", "uid": "u", "labels": {"job": "a"}, "annotations": {"size": "4"}},
        {"name": "x", "namespace": "ml", "ownerReferences": [{"kind": "Job", "name": "j", "uid": "u-j"}]},
        {"name": "x", "namespace": "ml", "labels": {}, "ownerReferences": []},
    ],
)
def test_a_pod_is_in_the_same_group_before_and_after_it_is_placed(group: str, metadata: dict[str, Any]) -> None:
    made = gangs(entry(group=group, size="4"))
    before = membership_of(PodView(from_json("Pod", {"metadata": metadata, "spec": {}})), matched(made))
    (after,) = PlacedGroups([made]).of(placed_pod({"metadata": metadata, "spec": {"nodeName": "n"}}), None) or (None,)
    assert not isinstance(before, UndecidedGroup)
    assert (before and before.group) == after
