"""A comparison says what enforcing rules in shadow would change, or that it does not know."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from fairlead.cooperative import finish
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.shadow.call_comparison import CallComparison, CallToCompare, PolicyResult, Stretch
from fairlead.policy.shadow.effects import Effects
from fairlead.policy.shadow.shadow_rules import ShadowRules, shadow_rules
from fairlead.policy.shadow.slow_classes import REST_NS, SlowClasses
from fairlead.policy.views.pod_view import PodView
from support.examples import MANY
from support.policy import NOW, Clock, policy
from support.policy.comparing import COMPARED
from support.policy.shadows import (
    CHANGES,
    CUSTOM,
    DATA,
    NAMES,
    PODS,
    ChangingNodes,
    all_enforced,
    effects,
    one_enforced,
    passed,
    sets,
)

Changes = list[tuple[str, str]]


def _call(world: ChangingNodes, pod: PodView, names: Sequence[str]) -> CallToCompare:
    slots = [world.nodes.slots[name] for name in names if name in world.nodes.slots]
    return CallToCompare(pod, "fairlead", slots, len(names) - len(slots), world.nodes.head, 1 << 40)


def _compare(
    rules: ShadowRules, call: CallToCompare, world: ChangingNodes, changes: Changes, stretch_ns: int
) -> list[PolicyResult]:
    """Compare in stretches, with a change of a node before each."""
    clock = Clock(1000)

    def stretch() -> Stretch:
        return Stretch(NOW, clock, clock.time + stretch_ns)

    steps = CallComparison(rules, call, SlowClasses(), stretch).steps()
    left = [*changes]
    while True:
        try:
            next(steps)
        except StopIteration as end:
            results: list[PolicyResult] = end.value
            return results
        if left:
            world.change(*left.pop())


def _expected(
    policies: list[CompiledPolicy], rules: ShadowRules, world: ChangingNodes, pod: PodView, names: list[str]
) -> dict[tuple[str, str, str], Effects]:
    """Return the effects of each policy and of each rule alone, by policy, kind and name, as they are now."""
    found: dict[tuple[str, str, str], Effects] = {}
    for one in policies:
        if (shadow := rules.policies.get(one.name)) is None:
            continue
        found[one.name, "", ""] = effects(policies, all_enforced(one), world.nodes, pod, names)
        for kind, name in shadow.alone:
            if kind in ("Filter", "Score"):
                alone = one_enforced(one, (kind, name))
                found[one.name, kind, name] = effects(policies, alone, world.nodes, pod, names)
    return found


def _found(result: PolicyResult) -> dict[tuple[str, str, str], Effects | None]:
    compared, policy = result.comparison, result.policy.name
    assert compared is not None
    found = {(policy, "", ""): compared.together}
    found |= {(policy, "Filter", name): one for name, one in compared.filters.items()}
    return found | {(policy, "Score", name): one for name, one in compared.scores.items()}


@settings(max_examples=2 * MANY, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    policies=sets(modes=("Enforce", "Enforce", "Shadow", "Shadow", "Disabled")),
    pod=st.sampled_from(PODS),
    names=st.permutations(NAMES).flatmap(lambda names: st.integers(0, 5).map(lambda cut: names[: 6 - cut])),
    changes=st.lists(st.lists(CHANGES, max_size=2), max_size=4),
    stretch_ns=st.sampled_from([0, 20_000, 1 << 40]),
    journal=st.sampled_from([2, 20_000, 20_000]),
)
def test_it_is_what_enforcing_would_change_or_unknown(
    policies: list[CompiledPolicy],
    pod: PodView,
    names: list[str],
    changes: list[Changes],
    stretch_ns: int,
    journal: int,
) -> None:
    world = ChangingNodes(journal)
    rules = shadow_rules(policy_set(policies), world.nodes)
    if rules is None:
        return
    matched = {one.policy.name for one in rules.rules.policies.matching(pod, "fairlead", NOW)}
    for later in ([], *changes):
        passing = passed(policies, world.nodes, pod, names)
        expected = _expected(policies, rules, world, pod, names)
        call = _call(world, pod, passing)
        results = _compare(rules, call, world, later, stretch_ns)
        assert {one.policy.name for one in results} == matched
        for result in results:
            found = _found(result)
            assert (result.result == "unknown") == (found[result.policy.name, "", ""] is None)
            for rule, effect in found.items():
                event(str(effect))
                if effect is not None or not later:
                    assert effect == expected[rule], rule


ZONE: Final = "node.metadata.labels['zone'] != 'z2'"
LOAD: Final = "data.load < 0.5"


@pytest.mark.parametrize(
    ("spec", "change", "expected"),
    [
        ({"filters": {"f": ZONE}}, None, Effects(restricted=True)),
        ({"filters": {"f": ZONE}}, ("n0", "a"), Effects(restricted=True)),
        ({"filters": {"f": ZONE}}, ("n0", "label"), Effects(restricted=True)),
        ({"filters": {"f": ZONE}}, ("n2", "label"), None),
        ({"filters": {"f": ZONE}}, ("n2", "gone"), None),
        ({"filters": {"f": "free['cpu'] > 4.0"}}, ("n0", "a"), Effects(restricted=True)),
        ({"filters": {"f": "free['cpu'] > 1.0"}}, ("n0", "a"), None),
        ({"filters": {"f": "free['cpu'] > 5.0"}}, ("n0", "a"), None),
        ({"filters": {"f": LOAD}, "data": DATA}, ("n0", "load"), None),
        ({"filters": {"f": LOAD}, "data": DATA}, ("n0", "label"), Effects()),
        ({"scores": {"s": "free['cpu']"}}, None, Effects()),
        ({"scores": {"s": {"expression": "free['cpu']", "normalize": "MinMax"}}}, ("n0", "a"), None),
        ({"scores": {"s": COMPARED}}, ("n0", "a"), None),
        ({"scores": {"s": COMPARED}}, ("n0", "label"), Effects()),
    ],
)
def test_nodes_that_changed_after_the_call_are_left_out(
    spec: dict[str, Any], change: tuple[str, str] | None, expected: Effects | None
) -> None:
    world = ChangingNodes()
    one = policy("p", rules=CUSTOM, mode="Shadow", **spec)
    rules = shadow_rules(policy_set([one]), world.nodes)
    assert rules is not None
    call = _call(world, PODS[0], NAMES[:-1])
    if change is not None:
        world.change(*change)
    (result,) = _compare(rules, call, world, [], 1 << 40)
    assert result.comparison is not None
    assert result.comparison.together == expected


def test_every_filter_rejects_all_nodes_if_the_match_is_not_decided() -> None:
    world = ChangingNodes()
    match = {"conditions": {"c": "pod.metadata.labels['gpu'] == 'a'"}}
    one = policy("p", mode="Shadow", match=match, filters={"a": "true", "b": "true"})
    rules = shadow_rules(policy_set([one]), world.nodes)
    assert rules is not None
    (result,) = _compare(rules, _call(world, PODS[0], NAMES[:2]), world, [], 1 << 40)
    assert {*_found(result).values()} == {Effects(restricted=True, unschedulable=True)}
    assert {"a", "b"} == {*result.comparison.filters} if result.comparison else False


def test_a_class_that_takes_longer_than_the_call_could_rests_and_no_other_does() -> None:
    world, slow_classes, clock = ChangingNodes(), SlowClasses(), Clock(1000)
    same = {"f": "node.metadata.labels[?'zone'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')"}
    rules = shadow_rules(policy_set([policy(name, mode="Shadow", filters=same) for name in "pq"]), world.nodes)
    assert rules is not None

    def compared(pod: PodView, budget_ns: int) -> list[tuple[str, str, bool]]:
        call = replace(_call(world, pod, NAMES[:5]), budget_ns=budget_ns)
        steps = CallComparison(rules, call, slow_classes, lambda: Stretch(NOW, clock, clock.time)).steps()
        found: list[PolicyResult] = finish(steps)
        return [(one.policy.name, one.result, one.is_too_slow) for one in found]

    assert compared(PODS[1], 0) == [("p", "unknown", True), ("q", "unknown", True)]
    assert compared(PODS[1], 1 << 40) == [("p", "skipped", False), ("q", "skipped", False)]
    assert compared(PODS[2], 1 << 40) == [("p", "compared", False), ("q", "compared", False)]
    clock.time += REST_NS
    assert compared(PODS[1], 1 << 40) == [("p", "compared", False), ("q", "compared", False)]


def test_a_rule_whose_annotations_are_not_listed_is_unknown_and_others_are_not() -> None:
    world = ChangingNodes()
    reads = "pods.all(p, p.metadata.annotations[?'a'].orValue('') != 'x')"
    rules = shadow_rules(policy_set([policy("p", mode="Shadow", filters={"a": reads, "b": "false"})]), world.nodes)
    assert rules is not None
    call, clock, asked = _call(world, PODS[0], NAMES[:2]), Clock(1000), list[frozenset[str]]()

    def is_listed(keys: frozenset[str]) -> bool:
        asked.append(keys)
        return False

    steps = CallComparison(
        rules, call, SlowClasses(), lambda: Stretch(NOW, clock, 1 << 40), is_listed=is_listed
    ).steps()
    (result,) = finish(steps)
    assert (_found(result)["p", "Filter", "a"], {*asked}) == (None, {frozenset({"a"})})
    assert _found(result)["p", "Filter", "b"] == Effects(restricted=True, unschedulable=True)


def test_there_are_none_without_rules_in_shadow() -> None:
    assert shadow_rules(policy_set([policy("p", filters={"f": "true"})]), ChangingNodes().nodes) is None
