from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from generate.crds import installed_policy
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.mode import are_all_in_shadow
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.render.extenders import ExtenderEntry, Wiring, bind_timeout_s, wire
from fairlead.render.plan import urls
from fairlead.render.templates import read
from fairlead.webhook.https.dispatch import PATHS
from policies.good import device_share
from support.render.schedulers import ALL, config_of, planned

POLICY = installed_policy()
FILTERS = {"filters": [{"name": "a", "expression": "true"}]}
SCORES = {"scores": [{"name": "b", "expression": "1"}]}
PROTECTS = {"preemption": {"protect": [{"name": "c", "expression": "true"}]}}
BINDS = {"binding": {"annotations": [{"key": "fairlead.dev/a", "expression": "'x'"}]}}
IGNORE = {"failurePolicy": "Ignore"}


def holds(*times: str) -> dict[str, Any]:
    """A policy with gangs that hold for these times."""
    each = {"group": "pod.metadata.name", "size": "2"}
    return {"binding": {"gang": [{"name": f"g{at}", "holdFor": one, **each} for at, one in enumerate(times)]}}


RACKS = {"filters": [{"name": "r", "topology": {"levels": ["rack"], "require": "rack"}}]}
SHADOW = {"mode": "Shadow"}
IN_SHADOW: dict[str, Any] = {
    "filters": [{"name": "a", "expression": "true"} | SHADOW],
    "scores": [{"name": "b", "expression": "1"} | SHADOW],
    "preemption": {"protect": [{"name": "c", "expression": "true"} | SHADOW]},
    "binding": {"annotations": [{"key": "fairlead.dev/a", "expression": "'x'"} | SHADOW]},
}
NO_CEL = {"filters": [{"name": "a", "expression": "not an expression ("}]}

GATE = ExtenderEntry(filters=True)
LOOSE = ExtenderEntry(filters=True, ignorable=True)
BINDER = ExtenderEntry(filters=True, binds=True)
IGNORED = ExtenderEntry(filters=True, ignorable=True, path="/ignore")
RATES = ExtenderEntry(scores=True)
HOLDS = ExtenderEntry(binds=True, timeout_s=35)

TABLE: Mapping[str, tuple[Sequence[Mapping[str, Any]], Sequence[ExtenderEntry]]] = {
    "no policy: a gate that nobody waits for": ([], [LOOSE]),
    "a filter": ([FILTERS], [GATE]),
    "nothing but a match, which may be about pods that must wait": ([{}], [GATE]),
    "a policy that does not compile": ([NO_CEL], [GATE]),
    "a score": ([SCORES], [GATE, RATES]),
    "a binding": ([BINDS], [BINDER]),
    "a binding without annotations": ([{"binding": {}}], [GATE]),
    "a binding that grants devices": ([{"binding": {"deviceShare": [device_share()]}}], [BINDER]),
    "a group": ([holds("30s")], [GATE, HOLDS]),
    "a group that says no time": ([{"binding": {"gang": [{"name": "g", "group": "''", "size": "2"}]}}], [GATE, HOLDS]),
    "groups that are held for several times": (
        [holds("5s", "31s"), holds("30s")],
        [GATE, ExtenderEntry(binds=True, timeout_s=65)],
    ),
    "a group beside annotations": ([BINDS, holds("5s")], [GATE, HOLDS]),
    "a group of a policy that is off": ([BINDS, holds("5s") | {"mode": "Disabled"}], [BINDER]),
    "a group that has to share a domain": ([RACKS], [BINDER]),
    "a group that has to share a domain, and is held": ([RACKS | holds("5s")], [GATE, HOLDS]),
    "a protection": ([PROTECTS], [GATE]),
    "a filter that may be ignored": ([FILTERS | IGNORE], [LOOSE, IGNORED]),
    "a protection that may be ignored": ([PROTECTS | IGNORE], [LOOSE, IGNORED]),
    "a score of a policy that may be ignored": ([SCORES | IGNORE], [LOOSE, RATES]),
    "both kinds": ([FILTERS | IGNORE, FILTERS | SCORES], [GATE, IGNORED, RATES]),
    "a policy that is off": ([FILTERS | SCORES | BINDS | {"mode": "Disabled"}], [LOOSE]),
    "one that is off beside one that is not": ([BINDS | {"mode": "Disabled"}, FILTERS | IGNORE], [LOOSE, IGNORED]),
    "rules of each kind, all in shadow": ([IN_SHADOW], [LOOSE]),
    "rules in shadow of a policy that may be ignored": ([IN_SHADOW | {"binding": None} | IGNORE], [LOOSE]),
    "one that keeps domains, in shadow": ([{"filters": [RACKS["filters"][0] | SHADOW]}], [LOOSE]),
    "all in shadow beside a group": ([IN_SHADOW | holds("5s")], [GATE, HOLDS]),
    "all in shadow beside a device share": ([IN_SHADOW | {"binding": {"deviceShare": [device_share()]}}], [BINDER]),
    "all but one in shadow": ([IN_SHADOW | SCORES], [GATE, RATES]),
    "all in shadow beside a policy that is ignored": ([IN_SHADOW, FILTERS | IGNORE], [LOOSE, IGNORED]),
    "everything": ([FILTERS | SCORES | BINDS | PROTECTS, FILTERS | IGNORE], [BINDER, IGNORED, RATES]),
    "everything, and a group": ([FILTERS | SCORES | holds("10s"), FILTERS | IGNORE], [GATE, IGNORED, RATES, HOLDS]),
}
TIMEOUTS = {1: 35, 5: 35, 30: 35, 31: 65, 60: 65, 61: 125, 120: 125, 500: 125}
"""How long the scheduler waits for binds, by how long they are held. The last one is of a newer version of the API."""


def policy(spec: Mapping[str, Any]) -> SchedulerExtenderPolicy:
    obj = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "some"}}
    return parse_policy(obj | {"spec": spec}, POLICY)


@pytest.mark.parametrize("case", TABLE)
def test_the_entries_follow_from_the_policies(case: str) -> None:
    specs, want = TABLE[case]
    assert [*wire(map(policy, specs)).entries] == [*want]


def test_a_group_that_has_to_share_a_domain_needs_calls_with_all_nodes() -> None:
    assert not wire([policy(FILTERS | BINDS), policy(RACKS | {"mode": "Disabled"})]).asks_all
    assert wire([policy(FILTERS), policy(RACKS)]).asks_all
    some, others = Wiring(asks_all=True), Wiring()
    assert [(one | other).asks_all for one, other in ((some, others), (others, some), (others, others))] == [
        True,
        True,
        False,
    ]


_shadow = [{part: IN_SHADOW[part]} for part in ("filters", "scores", "preemption")]
_parts = st.sampled_from([FILTERS, SCORES, PROTECTS, BINDS, holds("5s"), holds("90s"), {}, *_shadow])
_specs = st.builds(lambda *parts: {k: v for part in parts for k, v in part.items()}, _parts, _parts)
_policies = st.lists(
    st.builds(
        lambda spec, how: policy(spec if "binding" in spec else spec | how),
        _specs,
        st.sampled_from([{}, IGNORE, {"mode": "Disabled"}]),
    ),
    max_size=4,
)


@given(_policies, _policies)
def test_those_of_two_sets_join_to_that_of_both_and_order_does_not_count(
    some: list[SchedulerExtenderPolicy], others: list[SchedulerExtenderPolicy]
) -> None:
    assert wire(some) | wire(others) == wire(others + some)


@given(_policies)
def test_what_decision_1_says_holds_of_every_set(policies: list[SchedulerExtenderPolicy]) -> None:
    gate, *others = wire(policies).entries
    verbs = [dict(one.verbs) for one in (gate, *others)]
    assert len(verbs) <= 4
    # zeros may be left out only because of an entry that does not prioritize
    assert {"filterVerb", "preemptVerb"} <= verbs[0].keys()
    assert "prioritizeVerb" not in verbs[0]
    assert all(("filterVerb" in one) == ("preemptVerb" in one) for one in verbs)
    assert sum("bindVerb" in one for one in verbs) <= 1
    binders = [one for one in (gate, *others) if one.binds]
    assert len(binders) == any(one.spec.mode == "Enforce" and one.spec.binding is not None for one in policies)
    assert not any(one.ignorable for one in binders)
    assert all([*dict(one.verbs)] == ["bindVerb"] for one in (gate, *others) if one.timeout_s)
    waits = any(
        one.spec.mode == "Enforce" and one.spec.failure_policy == "Fail" and not are_all_in_shadow(_written(one))
        for one in policies
    )
    assert gate.ignorable != waits


def _written(one: SchedulerExtenderPolicy) -> dict[str, Any]:
    return one.model_dump(by_alias=True, exclude_defaults=True, mode="json")


def test_a_pod_is_never_bound_past_an_entry_that_binds() -> None:
    assert not Wiring(binds=True).entries[0].ignorable


@pytest.mark.parametrize(("hold_s", "timeout_s"), TIMEOUTS.items())
def test_the_scheduler_waits_for_held_binds_in_three_steps(hold_s: int, timeout_s: int) -> None:
    assert bind_timeout_s(hold_s) == timeout_s
    assert Wiring(binds=True, hold_s=hold_s).entries[-1].timeout_s == timeout_s


def test_a_longer_hold_within_a_step_changes_nothing_that_is_rendered() -> None:
    hashes = {planned(replace(ALL, hold_s=hold_s)).config_hash for hold_s in (0, 5, 30)}
    assert len(hashes) == 2


def test_binds_that_are_held_have_the_longest_timeout_that_settings_allow() -> None:
    config = read(config_of(planned(replace(ALL, hold_s=30), timeout="30s")))
    assert [one["httpTimeout"] for one in config["extenders"]] == ["30s", "30s", "30s", "35s"]


@pytest.mark.parametrize("hold_s", [0, 30])
def test_each_url_is_one_that_the_webhook_answers(hold_s: int) -> None:
    config = read(config_of(planned(replace(ALL, hold_s=hold_s))))
    assert sorted(urlsplit(url).path for url in urls(config)) == sorted(PATHS)
    assert [urlsplit(url).path for url in urls(read(config_of(planned(Wiring()))))] == ["/filter", "/preempt"]
