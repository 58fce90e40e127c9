"""Groups in suites: siblings that wait, states that are given, and what a case expects of the pod's group."""

from typing import Any, Final

import pytest

from fairlead.api.errors import InvalidObjectError
from fairlead.api.parse import parse_params
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.suites.coverage import Coverage
from fairlead.suites.suite import Suite
from fairlead.suites.validate import field_errors
from support.policy import policy
from support.suites.running import difference_lines, results

GANG: Final[dict[str, Any]] = {
    "name": "job",
    "group": "pod.metadata.labels[?'job'].orValue('')",
    "size": "int(pod.metadata.annotations[?'size'].orValue('1'))",
}
JOBS: Final = policy("p", uid="", binding={"gang": [GANG]}, scores={"one": "double(pods.size())"})
WAITING, RESTING = "waiting for members of its group", "its group does not fit"
PLACING, UNDECIDED = "another group is being placed", "the group of the pod cannot be decided"


def member(name: str = "", job: str = "x", size: str = "3", **more: Any) -> dict[str, Any]:
    named = {"name": name} if name else {}
    return {"metadata": {**named, "labels": {"job": job}, "annotations": {"size": size}}, **more}


def suite(expect: dict[str, Any], of_suite: dict[str, Any] | None = None, **case: Any) -> dict[str, Any]:
    one = {"name": "one", "pod": member(), "expect": expect, **case}
    return {"nodes": [{"metadata": {"name": "a"}}], "cases": [one], **(of_suite or {})}


TWO: Final = [{**member("w"), "copies": 2}]
OF: Final[dict[str, tuple[dict[str, Any], str | None, dict[str, Any]]]] = {
    "alone": ({}, WAITING, {"name": "x", "size": 3, "known": 1, "started": False}),
    "one is missing": ({"waiting": [member("w")]}, WAITING, {"known": 2}),
    "complete": ({"waiting": TWO}, None, {"known": 3, "started": False}),
    "the largest size counts": ({"waiting": [*TWO, member("v", size="9")]}, WAITING, {"size": 9, "known": 4}),
    "another namespace": (
        {"waiting": [{"metadata": {**member("w")["metadata"], "namespace": "b"}, "copies": 2}]},
        WAITING,
        {"known": 1},
    ),
    "another scheduler": ({"waiting": [{**TWO[0], "spec": {"schedulerName": "other"}}]}, WAITING, {"known": 1}),
    "gates": ({"waiting": [{**TWO[0], "spec": {"schedulingGates": [{"name": "g"}]}}]}, WAITING, {"known": 1}),
    "one is placed": (
        {"pods": [{**member("q"), "spec": {"nodeName": "a"}}]},
        None,
        {"known": 1, "started": True},
    ),
    "one was placed": (
        {"pods": [{**member("q"), "spec": {"nodeName": "a"}, "status": {"phase": "Succeeded"}}]},
        WAITING,
        {"started": False},
    ),
    "started, as is said": ({"groups": [{"value": "x", "state": "Started"}]}, None, {"started": True, "known": 1}),
    "resting": ({"waiting": TWO, "groups": [{"value": "x", "state": "Resting"}]}, RESTING, {"known": 3}),
    "its turn": ({"waiting": TWO, "groups": [{"value": "x", "state": "Turn"}]}, None, {"known": 3}),
    "another's turn": ({"waiting": TWO, "groups": [{"value": "y", "state": "Turn"}]}, PLACING, {"known": 3}),
    "the turn of another namespace": (
        {"waiting": TWO, "groups": [{"namespace": "b", "value": "x", "state": "Turn"}]},
        PLACING,
        {},
    ),
    "started beside another's turn": (
        {"groups": [{"value": "x", "state": "Started"}, {"value": "y", "state": "Turn"}]},
        None,
        {"started": True},
    ),
    "size 1": ({"pod": member(size="1")}, None, {"name": ""}),
    "no group": ({"pod": member(job="")}, None, {"name": ""}),
    "of Kubernetes": ({"pod": member(spec={"schedulingGroup": {"podGroupName": "g"}})}, None, {"name": ""}),
    "no number": ({"pod": member(size="many")}, UNDECIDED, {}),
    "too many": ({"pod": member(size="501")}, UNDECIDED, {}),
}


@pytest.mark.parametrize(("case", "reason", "group"), OF.values(), ids=OF)
def test_filter_is_asked_as_in_a_cluster(case: dict[str, Any], reason: str | None, group: dict[str, Any]) -> None:
    placed = len(case.get("pods", ()))
    expect: dict[str, Any] = {"passed": ["a"], "scores": {"a": placed}, "preferred": ["a"]}
    if reason is not None:
        why = {"reason": reason, "rule": "p/binding/job", "resolvable": False}
        expect = {"passed": [], "rejected": {"a": why}, "preferred": []}
    (found,) = results(suite({**expect, **({"group": group} if group else {})}, **case), JOBS)
    assert difference_lines(found) == []


def test_waiting_pods_and_states_of_a_case_are_merged_over_those_of_the_suite() -> None:
    of_suite = {"waiting": TWO, "groups": [{"value": "y", "state": "Turn"}, {"value": "x", "state": "Resting"}]}
    cases: list[dict[str, Any]] = [
        {"expect": {"rejected": {"a": RESTING}}},
        {"groups": [{"value": "x", "state": "Waiting"}], "expect": {"rejected": {"a": PLACING}}},
        {"groups": [{"value": one, "state": "Waiting"} for one in "xy"], "expect": {"passed": ["a"]}},
        {"waiting": [member("w-1", job="z")], "expect": {"rejected": {"a": WAITING}, "group": {"known": 2}}},
    ]
    named = [{"name": f"case {at}", "pod": member(), **one} for at, one in enumerate(cases)]
    found = results({"nodes": [{"metadata": {"name": "a"}}], "cases": named, **of_suite}, JOBS)
    assert [difference_lines(one) for one in found] == [[]] * len(cases)


WRONG: Final[dict[str, tuple[dict[str, Any], dict[str, Any], str]]] = {
    "name": ({"name": "y"}, {}, "name y | name x"),
    "in none": ({"name": ""}, {}, "in no group | name x"),
    "in one": ({"name": "x", "size": 3}, {"pod": member(job="")}, "name x, size 3 | in no group"),
    "size and known": ({"size": 4, "known": 1}, {}, "size 4, known 1 | size 3, known 1"),
    "started": ({"started": True}, {}, "started | not started"),
    "not decided": (
        {"name": "x"},
        {"pod": member(size="0")},
        "name x | cannot be decided: the size of job is not from 1 to 500",
    ),
}


@pytest.mark.parametrize(("expected", "case", "difference"), WRONG.values(), ids=WRONG)
def test_what_is_not_so_is_a_difference(expected: dict[str, Any], case: dict[str, Any], difference: str) -> None:
    (found,) = results(suite({"group": expected}, **case), JOBS)
    assert difference_lines(found) == [f"group: : {difference}"]


def test_a_rejection_shows_what_the_group_was_computed_from() -> None:
    (found,) = results(suite({"passed": ["a"]}), JOBS)
    (difference,) = found.differences
    assert difference.got == f"rejected: {WAITING}, by p/binding/job"
    steps = [(one.text, one.value) for one in difference.rules[0].steps]
    assert ("pod.metadata.labels[?'job'].orValue('')", "x") in steps


def test_a_group_evicts_nothing_before_it_has_started() -> None:
    low = {"metadata": {"name": "low"}, "spec": {"nodeName": "a", "priority": -5}}
    (found,) = results(suite({"evictable": ["low"]}, pods=[low]), JOBS)
    assert difference_lines(found) == [
        "evictable: low: may be evicted | not evicted: a group evicts no pods to start, by p/binding/job"
    ]
    started = [{"value": "x", "state": "Started"}]
    (found,) = results(suite({"evictable": ["low"]}, pods=[low], groups=started), JOBS)
    assert difference_lines(found) == []


FAULTS: Final[dict[str, tuple[dict[str, Any], dict[str, Any], str]]] = {
    "two turns": (
        {"groups": [{"value": "x", "state": "Turn"}, {"value": "y", "state": "Turn"}]},
        {},
        (
            "groups[1].state: default/x has the turn already, and a scheduler places one group at a time; give one of "
            "them another state, such as x: Waiting"
        ),
    ),
    "a misspelt group": (
        {"groups": [{"value": "xx", "state": "Resting"}]},
        {},
        "groups[0].value: no pod of this case is in the group default/xx; did you mean default/x?",
    ),
    "a waiting pod on a node": (
        {"waiting": [member("w", spec={"nodeName": "a"})]},
        {},
        "waiting[0].spec.nodeName: is set, but these pods have no node; list the pod under `pods`",
    ),
    "the pod itself": (
        {"waiting": [member("pod")]},
        {},
        "waiting[0].metadata.name: 'pod' is the name of the pod of the case; give it another name",
    ),
    "a placed pod": (
        {"waiting": [member("q")], "pods": [member("q", spec={"nodeName": "a"})]},
        {},
        "waiting[0].metadata.name: 'q' is the name of a placed pod; give it another name",
    ),
    "a waiting pod without a name": (
        {"waiting": [member()]},
        {},
        "waiting[0].metadata.name: is missing; name it: cases refer to it by name",
    ),
    "an unknown rule": (
        {},
        {"rejected": {"a": {"rule": "binding/jobs"}}},
        "expect.rejected.a: no policy of this suite has a filter 'binding/jobs'; did you mean binding/job?",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("case", "expect", "message"), FAULTS.values(), ids=FAULTS)
def test_what_cannot_be_is_an_error(case: dict[str, Any], expect: dict[str, Any], message: str) -> None:
    (found,) = results(suite(expect or {"passed": []}, **case), JOBS)
    assert [str(one) for one in found.faults] == [f"cases[0].{message}"]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        (suite({"group": {"name": "x"}}), "cases[0].expect.group"),
        (suite({"passed": []}, groups=[{"value": "x", "state": "Turn"}]), "cases[0].groups[0]"),
        (suite({"passed": []}, {"groups": [{"value": "x", "state": "Turn"}]}), "groups[0]"),
    ],
)
def test_without_groups_in_policies_nothing_can_be_said_of_them(written: dict[str, Any], path: str) -> None:
    (found,) = results(written, policy("p", filters={"all": "true"}))
    (fault,) = map(str, found.faults)
    assert fault.startswith(f"{path}: no policy of this suite has an entry of binding.gang; add one, or remove ")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"groups": [{"value": "x", "state": "Rests"}]}, "cases[0].groups[0].state"),
        ({"groups": [{"state": "Turn"}]}, "cases[0].groups[0].value"),
        (
            {"groups": [{"value": "x", "state": one} for one in ("Turn", "Resting")]},
            "cases[0].groups[1]: namespace 'default', value 'x' is a duplicate",
        ),
        ({"groups": [{"value": "", "state": "Turn"}]}, "cases[0].groups[0].value"),
        ({"expect": {"group": {"size": 501}}}, "cases[0].expect.group.size"),
        ({"expect": {"group": {"sise": 5}}}, "cases[0].expect.group.sise: there is no such field; did you mean size?"),
    ],
)
def test_what_has_another_form_is_an_error(case: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        results(suite({"passed": []}) | {"cases": [{"name": "one", "pod": {}, "expect": {"passed": []}, **case}]}, JOBS)
    assert [one for one in map(str, refused.value.errors) if one.startswith(message)]


def test_a_misspelt_field_of_a_waiting_pod_is_refused() -> None:
    case = {"name": "a", "pod": {}, "waiting": [{"metadata": {"nmae": "x"}}], "expect": {"group": {}}}
    read = parse_params({"policies": ["x"], "cases": [case], "waiting": [{"spce": {}}]}, Suite)
    assert [str(one).partition(";")[0] for one in field_errors(read)] == [
        "waiting[0].spce: there is no such field",
        "cases[0].waiting[0].metadata.nmae: there is no such field",
        "cases[0].expect.group: expects nothing of the group",
    ]


def covered(*cases: dict[str, Any], policies: tuple[CompiledPolicy, ...] = (JOBS,)) -> dict[str, dict[str, int]]:
    coverage = Coverage()
    coverage.expect(policies)
    for case in cases:
        (found,) = results(suite({}, **case), *policies)
        assert not found.faults
        coverage.see(policies, found.outcomes)
    return {f"{one.kind} {one.rule}": one.outcomes for one in coverage.rules()}


def test_both_outcomes_of_an_entry_are_counted() -> None:
    assert covered()["Filter binding/job"] == {"passed": 0, "rejected": 0}
    assert covered({"pod": member(job="")})["Filter binding/job"] == {"passed": 0, "rejected": 0}
    found = covered({}, {"waiting": TWO}, {"waiting": TWO})
    assert found["Filter binding/job"] == {"passed": 2, "rejected": 1}
    assert found["Score one"] == {"scored": 2}, "filter rejects the pod before a score is asked"
