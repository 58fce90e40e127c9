"""What a status says of rules in shadow, and how long it is."""

from typing import Any, Final

import msgspec
import pytest
from generate.crds import installed_policy
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.status import Status
from fairlead.control.decide.shadow_counters import ALL, OF_RULES, SUMS, ShadowRecord
from fairlead.control.status.shadow_status import SIZE_MAX, decoded, encoded, shadow_status, shadow_warning
from fairlead.replica_state import PolicyState, ReplicaState, ReplicaStates, ShadowCounts, ShadowRuleCounts

NOW: Final = "2026-01-01T00:00:00Z"
IN_SHADOW: Final[dict[str, Any]] = {"mode": "Shadow"}
COUNTED: Final = ShadowCounts(generation="2", calls=9, pods=5, unschedulable=1)
numbers = st.integers(0, 1 << 40)


def policy(spec: dict[str, Any], shadow: dict[str, Any] | None = None) -> dict[str, Any]:
    status = {} if shadow is None else {"shadow": shadow}
    return {"metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": spec, "status": status}


def states(*shadows: ShadowCounts | None, serving: str = "2", process: str = "process-") -> ReplicaStates:
    return {
        f"pod-{at}": ReplicaState(
            process=f"{process}{at:04}",
            policies={"p": PolicyState(uid="u", generation="2", serving=serving, reason="Compiled", shadow=shadow)},
        )
        for at, shadow in enumerate(shadows)
    }


def is_read(shadow: dict[str, Any]) -> None:
    """Check that the custom resource has these fields."""
    made = Status.model_validate({"shadow": shadow})
    assert made.model_dump(by_alias=True, exclude_unset=True, mode="json") == {"shadow": shadow}


def test_it_is_the_sum_over_the_replicas() -> None:
    rules = (ShadowRuleCounts(kind="Filter", name="f", pods=4, unschedulable=1),)
    one = msgspec.structs.replace(COUNTED, rules=rules, too_slow=2)
    found = shadow_status(policy(IN_SHADOW), states(one, one), NOW)
    assert found is not None
    replicas = found.pop("replicas")
    assert [one["process"] for one in replicas] == ["process-0000", "process-0001"]
    assert found == {
        "generation": 2,
        "since": NOW,
        "calls": 18,
        "skipped": 0,
        "unknown": 0,
        "pods": 10,
        "restricted": 0,
        "unschedulable": 2,
        "reordered": 0,
        "evictions": 0,
        "tooSlow": 4,
        "rules": [{"kind": "Filter", "name": "f", "pods": 8, "unschedulable": 2}],
    }
    is_read(found | {"replicas": replicas})


BEFORE: Final = encoded(ShadowRecord(generation=2, since=NOW, processes={"a": {(ALL, "pods"): 3}}))
RULE: Final[dict[str, Any]] = {"filters": [{"name": "f", "mode": "Shadow"}]}
KEPT: Final[dict[str, tuple[dict[str, Any], ReplicaStates, bool]]] = {
    "in shadow, and no replica answers": (IN_SHADOW, {"one": "no answer"}, True),
    "in shadow, and there is no replica": (IN_SHADOW, {}, True),
    "in shadow, and a replica has just started": (IN_SHADOW, states(None, serving=""), True),
    "in shadow, and a replica is too old to count": (IN_SHADOW, states(None), True),
    "a filter in shadow": (RULE, states(None), True),
    "a score in shadow": ({"scores": [{"name": "f", "mode": "Shadow"}]}, states(None), True),
    "a protection in shadow": ({"preemption": {"protect": [{"name": "f", "mode": "Shadow"}]}}, states(None), True),
    "an annotation in shadow": ({"binding": {"annotations": [{"key": "k", "mode": "Shadow"}]}}, states(None), True),
    "nothing in shadow": ({}, states(None), False),
    "nothing in shadow, and a replica has just started": ({}, states(None, serving=""), True),
    "nothing in shadow, and a replica does not answer": ({}, {**states(None), "other": "no answer"}, False),
    "nothing in shadow, and a replica still compares": ({}, states(COUNTED), True),
    "in shadow are only rules that no call can be compared with": (IN_SHADOW, states(None, serving="3"), False),
    "disabled": ({"mode": "Disabled"}, states(COUNTED), False),
    "disabled, with a rule in shadow": ({"mode": "Disabled", **RULE}, states(None), False),
    "rules that cannot be read": ({"filters": 5, "scores": [7], "preemption": []}, states(None), False),
}


@pytest.mark.parametrize(("spec", "answers", "is_kept"), KEPT.values(), ids=KEPT)
def test_it_goes_when_no_rule_is_in_shadow_any_more(
    spec: dict[str, Any], answers: ReplicaStates, is_kept: bool
) -> None:
    found = shadow_status(policy(spec, BEFORE), answers, NOW)
    assert (found is not None) == is_kept
    assert found is None or found["pods"] == (8 if COUNTED in _reported(answers) else 3)


def _reported(answers: ReplicaStates) -> list[ShadowCounts | None]:
    return [one.policies["p"].shadow for one in answers.values() if isinstance(one, ReplicaState)]


def test_a_policy_of_that_name_that_went_counts_for_nothing() -> None:
    one = policy(IN_SHADOW)
    one["metadata"]["uid"] = "another"
    assert shadow_status(one, states(COUNTED), NOW) is None


records = st.builds(
    lambda rules, processes, earlier: ShadowRecord(
        generation=2,
        since=NOW,
        rules=tuple(("Filter", f"f{at}") for at in range(rules)),
        processes={f"p{at}": one for at, one in enumerate(processes)},
        earlier=earlier,
        folded=("x",) if earlier else (),
    ),
    st.integers(0, 4),
    st.lists(st.dictionaries(st.tuples(st.just(ALL), st.sampled_from(SUMS)), numbers), max_size=3),
    st.dictionaries(
        st.tuples(st.tuples(st.just("Filter"), st.sampled_from(["f0", "f1"])), st.sampled_from(OF_RULES)), numbers
    ),
)


@given(records)
def test_what_is_written_is_what_is_read(record: ShadowRecord) -> None:
    written = encoded(record)
    is_read(written)
    again = decoded(written)
    assert again is not None
    assert encoded(again) == written
    assert {key: one for key, one in again.sums.items() if one and key[0] in (ALL, *record.rules)} == {
        key: one for key, one in record.sums.items() if one and key[0] in (ALL, *record.rules)
    }


@pytest.mark.parametrize("counts", ["", "?", "A", "AAAA", "====", "\u00e4", "gICAgICA"])
def test_counts_that_somebody_wrote_are_none_and_are_counted_anew(counts: str) -> None:
    spoilt = BEFORE | {"replicas": [{"process": "process-0000", "counts": counts}]}
    found = shadow_status(policy(IN_SHADOW, spoilt), states(COUNTED), NOW)
    assert found is not None
    assert (found["pods"], found["calls"]) == (5, 9)


def test_counts_of_a_newer_version_are_read_as_far_as_they_are_known() -> None:
    with pytest.MonkeyPatch.context() as newer:
        newer.setattr("fairlead.control.status.shadow_status.SUMS", (*SUMS, "later"))
        newer.setattr("fairlead.control.status.shadow_status._FIELDS", {one: one for one in (*SUMS, "later")})
        rule = ("Filter", "f")
        record = ShadowRecord(
            generation=2,
            since=NOW,
            rules=(rule,),
            processes={"a": {(ALL, "pods"): 3, (ALL, "later"): 7, (rule, "pods"): 2}},
        )
        written = encoded(record)
    found = decoded(written)
    assert found is not None
    assert (found.sums[ALL, "pods"], found.sums[rule, "pods"]) == (3, 2)


def many(rules: int, name: str, pods: int) -> ShadowCounts:
    """Counts of a process with many rules, of which each has changed something."""
    return ShadowCounts(
        generation="2",
        rules=tuple(
            ShadowRuleCounts(kind="Filter", name=f"{name}-{at:02}", pods=pods - at, unschedulable=pods // 20 + at)
            for at in range(rules)
        ),
        **{one: pods * 3 - at for at, one in enumerate(SUMS)},
    )


@pytest.mark.parametrize(
    ("name", "pods", "replicas", "least"),
    [
        pytest.param("spread-racks", 200_000, 3, 64, id="a few replicas"),
        pytest.param("f", 1_000, 10, 64, id="short names"),
        pytest.param("spread-racks", 2_000, 10, 56, id="many replicas"),
        pytest.param("a-name-as-long-as-many-rules-have", 200_000, 10, 40, id="long names"),
        pytest.param("n" * 60, 50_000_000, 10, 20, id="the longest names, and more pods than ever are"),
    ],
)
def test_with_64_rules_it_is_not_too_long(name: str, pods: int, replicas: int, least: int) -> None:
    found = shadow_status(policy(IN_SHADOW), states(*[many(64, name, pods)] * replicas), NOW)
    assert found is not None
    assert len(msgspec.json.encode(found)) <= SIZE_MAX
    assert len(found["rules"]) >= least
    assert found["pods"] == replicas * (pods * 3 - SUMS.index("pods")), "these are never left out"
    is_read(found)
    again = shadow_status(policy(IN_SHADOW, found), states(*[many(64, name, pods)] * replicas), NOW)
    assert again == found


def test_the_names_of_all_fields_fit_the_custom_resource() -> None:
    assert "shadow" in installed_policy().model_fields["status"].annotation.model_fields  # type: ignore[union-attr]


WARNED: Final = {"since": NOW, "pods": 20, "unschedulable": 2}


@pytest.mark.parametrize(
    ("shadow", "said"),
    [
        (None, None),
        ({**WARNED, "unschedulable": 0}, None),
        (WARNED, "would have had no node if its rules in shadow were enforced"),
        (
            {**WARNED, "rules": [{"name": one, "unschedulable": at} for at, one in enumerate("abcde")]},
            "enforced; one rule alone would do it: b, c, d and 1 more",
        ),
    ],
)
def test_pods_that_would_have_no_node_are_a_warning(shadow: dict[str, Any] | None, said: str | None) -> None:
    found = [*shadow_warning(shadow)]
    assert len(found) == (said is not None)
    for one in found:
        assert (one["reason"], one["count"]) == ("ShadowUnschedulable", 2)
        assert one["message"].startswith(f"of 20 pods compared since {NOW}")
        assert one["message"].endswith(said)
