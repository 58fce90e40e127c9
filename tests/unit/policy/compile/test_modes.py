"""Rules in shadow are a part of their own: the weaker of the policy's mode and the rule's holds."""

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.mode import MODES, Mode, RuleMode, weaker
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import as_enforced, compared, divided, in_mode, rules_in_shadow, undivided
from policies.good import device_share, gang
from support.policy import policy

TOPOLOGY: Final = {"topology": {"levels": ["zone"], "require": "zone"}}
PARTS: Final = ("filters", "scores", "protect", "annotations")
RULE_MODES: Final[tuple[RuleMode | None, ...]] = (None, "Enforce", "Shadow")
_EXPRESSIONS: Final = {"filters": "true", "scores": "1.0", "protect": "true", "annotations": "'x'"}

_PREFIXES: Final = {"filters": "f", "scores": "s", "protect": "p", "annotations": "fairlead.dev/a"}


def names(one: CompiledPolicy | None) -> list[str]:
    """Names of the rules of a policy, by kind, in their order."""
    if one is None:
        return []
    rules = [[rule.name for rule in one.filters], [rule.name for rule in one.scores]]
    rules += [[rule.name for rule in one.protections], [rule.key for rule in one.annotations]]
    return [name for of in rules for name in of]


Written = dict[str, dict[str, RuleMode | None]]


def _named(modes: tuple[list[RuleMode | None], ...]) -> Written:
    return {
        part: {f"{_PREFIXES[part]}{at}": mode for at, mode in enumerate(of)}
        for part, of in zip(PARTS, modes, strict=True)
    }


written = st.tuples(*[st.lists(st.sampled_from(RULE_MODES), max_size=3)] * len(PARTS)).map(_named)


def made(rules: Written, mode: Mode = "Enforce", **more: Any) -> CompiledPolicy:
    """Compile a policy with rules of these modes."""
    spec: dict[str, Any] = {
        part: {name: {"expression": _EXPRESSIONS[part], **({"mode": one} if one else {})} for name, one in of.items()}
        for part, of in rules.items()
    }
    return policy(mode=mode, **spec, **more)


@given(written, st.sampled_from(MODES))
def test_of_the_two_modes_the_weaker_one_holds(rules: Written, mode: Mode) -> None:
    ceiling: RuleMode = "Shadow" if mode == "Shadow" else "Enforce"
    in_shadow = [
        name for of in rules.values() for name, one in of.items() if weaker(ceiling, one or "Enforce") == "Shadow"
    ]
    decide = [name for of in rules.values() for name in of if name not in in_shadow]
    found = made(rules, mode)
    assert (names(found), names(found.shadow)) == (decide, in_shadow)
    assert {name for _, name in rules_in_shadow(found)} == {*in_shadow}
    assert (found.mode, found.enforced, found.evaluated) == (mode, mode == "Enforce", mode != "Disabled")


@given(written, st.lists(st.sampled_from(MODES), min_size=1))
def test_any_sequence_of_modes_ends_as_the_last_one_says(rules: Written, modes: list[Mode]) -> None:
    one = made(rules)
    for mode in modes:
        one = in_mode(one, mode)
        assert in_mode(one, mode) is one
    assert _comparable(one) == _comparable(in_mode(made(rules), modes[-1]))


@given(written, st.sampled_from(MODES))
def test_what_is_divided_is_put_together_in_its_written_order(rules: Written, mode: Mode) -> None:
    found = made(rules, mode)
    whole = undivided(found)
    assert names(whole) == [name for of in rules.values() for name in of]
    assert whole.shadow is None
    assert _comparable(divided(whole)) == _comparable(found)
    assert undivided(whole) is whole


@given(written, st.sampled_from(MODES))
def test_as_enforced_all_its_rules_decide_unless_it_is_disabled(rules: Written, mode: Mode) -> None:
    found = as_enforced(made(rules, mode))
    assert (found.shadow, names(found)) == (None, names(undivided(made(rules))))
    assert found.enforced == (mode != "Disabled")


@given(written, st.sampled_from(MODES))
def test_what_is_compared_is_enforced_and_nothing_of_a_policy_that_is_disabled(rules: Written, mode: Mode) -> None:
    found = made(rules, mode)
    for_calls = compared(found)
    assert names(for_calls) == ([] if mode == "Disabled" else names(found.shadow))
    assert for_calls is None or for_calls.enforced
    assert compared(replace(found, placeholder="NotCompiled")) is None


@pytest.mark.parametrize("in_shadow", [("a",), ("b",), ("a", "b")])
def test_a_filter_that_keeps_domains_is_in_shadow_with_its_rule_and_is_not_compared(in_shadow: tuple[str, ...]) -> None:
    rules = {name: TOPOLOGY | ({"mode": "Shadow"} if name in in_shadow else {}) for name in ("a", "b")}
    found = policy(filters=rules)
    assert [one.name for one in found.domain_rules] == [name for name in rules if name not in in_shadow]
    assert found.binds == (len(in_shadow) < 2)
    assert [one.name for one in undivided(found).domain_rules] == ["a", "b"]
    assert compared(found) is None


def test_a_gang_is_in_shadow_only_with_its_policy_and_is_not_compared() -> None:
    rules: dict[str, Any] = {"filters": {"f": "true"}, "binding": {"gang": [gang()]}}
    assert policy(**rules).shadow is None
    found = policy(mode="Shadow", **rules)
    assert (found.gangs, found.binds, found.hold_s) == ((), False, 0)
    assert ("Filter", "binding/whole-job") in rules_in_shadow(found)
    assert names(compared(found)) == ["f"]


def test_a_device_share_stays_in_force_beside_a_filter_in_shadow_of_its_name() -> None:
    spec: dict[str, Any] = {"binding": {"deviceShare": [device_share()]}}
    found = policy(filters={"room": {"deviceShare": {"name": "gpu"}, "mode": "Shadow"}}, **spec)
    assert [one.name for one in found.filters] == ["binding/gpu"], "its own filter decides in place of the other"
    assert (bool(found.device_shares), names(found.shadow)) == (True, ["room"])
    off = in_mode(found, "Shadow")  # as a brake, also where the edit is one that is not stored
    assert (off.device_shares, off.binds, compared(off)) == ((), False, None)


def test_conditions_and_what_is_published_follow_the_policy() -> None:
    spec: dict[str, Any] = {"match": {"conditions": {"c": "true"}}, "publish": "NodeAffinity"}
    one = policy(filters={"f": {"expression": "true", "mode": "Shadow"}}, **spec)
    assert (one.publishes, ("Condition", "c") in rules_in_shadow(one)) == (True, False)
    all_in_shadow = in_mode(one, "Shadow")
    assert (all_in_shadow.publishes, ("Condition", "c") in rules_in_shadow(all_in_shadow)) == (False, True)


def _comparable(one: CompiledPolicy) -> tuple[object, ...]:
    return one.mode, names(one), names(one.shadow), one.publishes, one.reports and [rule.name for rule in one.reports]
