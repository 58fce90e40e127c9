from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
from generate.crds import installed_policy
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.render.extenders import ExtenderEntry, Wiring, wire
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
NO_CEL = {"filters": [{"name": "a", "expression": "not an expression ("}]}

GATE = ExtenderEntry(filters=True)
LOOSE = ExtenderEntry(filters=True, ignorable=True)
BINDER = ExtenderEntry(filters=True, binds=True)
IGNORED = ExtenderEntry(filters=True, ignorable=True, path="/ignore")
RATES = ExtenderEntry(scores=True)

TABLE: Mapping[str, tuple[Sequence[Mapping[str, Any]], Sequence[ExtenderEntry]]] = {
    "no policy: a gate that nobody waits for": ([], [LOOSE]),
    "a filter": ([FILTERS], [GATE]),
    "nothing but a match, which may be about pods that must wait": ([{}], [GATE]),
    "a policy that does not compile": ([NO_CEL], [GATE]),
    "a score": ([SCORES], [GATE, RATES]),
    "a binding": ([BINDS], [BINDER]),
    "a binding without annotations": ([{"binding": {}}], [GATE]),
    "a binding that grants devices": ([{"binding": {"deviceShare": [device_share()]}}], [BINDER]),
    "a protection": ([PROTECTS], [GATE]),
    "a filter that may be ignored": ([FILTERS | IGNORE], [LOOSE, IGNORED]),
    "a protection that may be ignored": ([PROTECTS | IGNORE], [LOOSE, IGNORED]),
    "a score of a policy that may be ignored": ([SCORES | IGNORE], [LOOSE, RATES]),
    "both kinds": ([FILTERS | IGNORE, FILTERS | SCORES], [GATE, IGNORED, RATES]),
    "a policy that is off": ([FILTERS | SCORES | BINDS | {"mode": "Disabled"}], [LOOSE]),
    "one that is off beside one that is not": ([BINDS | {"mode": "Disabled"}, FILTERS | IGNORE], [LOOSE, IGNORED]),
    "everything": ([FILTERS | SCORES | BINDS | PROTECTS, FILTERS | IGNORE], [BINDER, IGNORED, RATES]),
}


def policy(spec: Mapping[str, Any]) -> SchedulerExtenderPolicy:
    obj = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "some"}}
    return parse_policy(obj | {"spec": spec}, POLICY)


@pytest.mark.parametrize("case", TABLE)
def test_the_entries_follow_from_the_policies(case: str) -> None:
    specs, want = TABLE[case]
    assert [*wire(map(policy, specs)).entries] == [*want]


_parts = st.sampled_from([FILTERS, SCORES, PROTECTS, BINDS, {}])
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
    assert len(verbs) <= 3
    # zeros may be left out only because of an entry that does not prioritize
    assert {"filterVerb", "preemptVerb"} <= verbs[0].keys()
    assert "prioritizeVerb" not in verbs[0]
    assert all(("filterVerb" in one) == ("preemptVerb" in one) for one in verbs)
    assert sum("bindVerb" in one for one in verbs) <= 1
    assert not (gate.ignorable and gate.binds)
    waits = any(one.spec.mode == "Enforce" and one.spec.failure_policy == "Fail" for one in policies)
    assert gate.ignorable != waits


def test_a_pod_is_never_bound_past_an_entry_that_binds() -> None:
    assert not Wiring(binds=True).entries[0].ignorable


def test_each_url_is_one_that_the_webhook_answers() -> None:
    assert sorted(urlsplit(url).path for url in urls(read(config_of(planned(ALL))))) == sorted(PATHS)
    assert [urlsplit(url).path for url in urls(read(config_of(planned(Wiring()))))] == ["/filter", "/preempt"]
