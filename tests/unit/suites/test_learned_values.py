"""What a suite says that rules have learned."""

from typing import Any, Final

import pytest

from fairlead.api.errors import InvalidObjectError
from support.policy import policy
from support.suites.running import difference_lines, results

PACKS: Final = policy("q", uid="", scores={"packs": {"pigeon": {"resources": ["cpu"], "samples": 4, "minSamples": 2}}})
RULE: Final = policy("p", uid="", scores={"works": {"kubeRL": {"priorPercent": 80, "halfLife": "12h"}}})
NODES: Final = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
POD: Final = {"metadata": {"labels": {"app": "x"}}}
KNOWN: Final = {"works": [{"type": "default/x", "node": "a", "value": 0.671494, "count": 2.207107}]}


def suite(scores: dict[str, float], of_suite: Any = None, of_case: Any = None, **case: Any) -> dict[str, Any]:
    one = {"name": "one", "pod": POD, "expect": {"scores": scores}, **case}
    if of_case is not None:
        one["learned"] = of_case
    made: dict[str, Any] = {"nodes": NODES, "cases": [one]}
    return made if of_suite is None else made | {"learned": of_suite}


@pytest.mark.parametrize(
    "given",
    [
        suite({"a": 80, "b": 80}),
        suite({"a": 67, "b": 80}, KNOWN),
        suite({"a": 67, "b": 80}, None, KNOWN),
        suite({"a": 80, "b": 80}, KNOWN, {"works": []}),
        suite({"a": 72, "b": 80}, {"works": [{**KNOWN["works"][0], "age": "18h"}]}),
        suite({"a": 40, "b": 90}, {"works": [{**KNOWN["works"][0], "value": 0.4, "count": 1},
                                             {**KNOWN["works"][0], "node": "b", "value": 0.9, "count": 1}]}),
    ],
)  # fmt: skip
def test_rules_score_by_what_they_have_learned(given: dict[str, Any]) -> None:
    (found,) = results(given, RULE)
    assert difference_lines(found) == []


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ({"works": KNOWN["works"] * 2}, "learned.works[1]: default/x on a is there already: keep one of them"),
        ({"works": {"demands": []}}, "learned.works: the rule works learns no requests"),
        ({"p/works": [], "works": []}, "learned.works: is the rule p/works, which is there already"),
        ({"q/works": []}, "no policy of this suite has a rule 'q/works' that learns: did you mean p/works?"),
        ({"work": []}, "learned.work: no policy of this suite has a rule 'work' that learns: did you mean works?"),
        ({"works": [{**KNOWN["works"][0], "node": "aa"}]}, "node: there is no node 'aa' in this case: did you mean a?"),
        (
            {"works": [{**KNOWN["works"][0], "value": 0.2, "count": 1}]},
            "value: 0.2 is no mean of rewards: with this prior and count it is from 0.4 to 0.9",
        ),
    ],
)
def test_what_cannot_be_is_an_error(learned: Any, message: str) -> None:
    (found,) = results(suite({"a": 1}, learned), RULE)
    (fault,) = map(str, found.faults)
    assert message.replace(": did", "; did").replace(": with", "; with").replace(": keep", "; keep") in fault


TEN: Final = {"allocatable": {"cpu": 10}}
LOADED: Final = [
    (name, {"metadata": {"name": name}, "status": TEN}, cpu) for name, cpu in zip("abc", (2, 5, 8), strict=True)
]
SPREAD: Final = {"a": 100, "b": 51.31, "c": 10}
PACKED: Final = {"a": 10, "b": 58.69, "c": 100}


def packing(learned: Any, scores: dict[str, float]) -> dict[str, Any]:
    ask = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]}
    placed = [
        {"metadata": {"name": f"on-{name}"}, "spec": {"nodeName": name, "containers": [
            {"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
        for name, _, cpu in LOADED
    ]  # fmt: skip
    case = {"name": "one", "pod": {"spec": ask}, "learned": learned, "expect": {"scores": scores}}
    return {"nodes": [one for _, one, _ in LOADED], "pods": placed, "cases": [case]}


@pytest.mark.parametrize(
    ("demands", "scores"),
    [
        ([{"cpu": "500m", "copies": 4}], SPREAD),
        ([{"cpu": 0.5, "copies": 3}, {"cpu": 5}], PACKED),
        ([{"cpu": 5, "copies": 4000}, {"cpu": "500m", "copies": 4}], SPREAD),  # the newest four count
        ([{"cpu": 0.5}, {"cpu": 5}, {"cpu": 0.5, "copies": 3}], PACKED),
        ([{"cpu": 0.5, "copies": 3}, {"cpu": 5}, {"cpu": 0.5, "copies": 4}], SPREAD),
        ([{}, {"cpu": "5"}], PACKED),  # what is left out is 0
        ([{"cpu": 1}], dict.fromkeys("abc", 0)),  # two are needed
        ([], dict.fromkeys("abc", 0)),
    ],
)
def test_rules_score_by_the_requests_that_they_have_learned(demands: Any, scores: dict[str, float]) -> None:
    for name in ("packs", "q/packs"):
        (found,) = results(packing({name: {"demands": demands}}, scores), PACKS)
        assert difference_lines(found) == []


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ([], "learned.packs: the rule packs learns no outcomes; write {demands: "),
        (
            {"demands": [{"cpu": 1}, {"memory": 1}]},
            "learned.packs.demands[1].memory: is none of the resources of the rule; they are cpu, and copies",
        ),
        (
            {"demands": [{"copis": 1}]},
            "learned.packs.demands[0].copis: is none of the resources of the rule; did you mean copies?",
        ),
    ],
)
def test_requests_that_cannot_be_are_an_error(learned: Any, message: str) -> None:
    (found,) = results(packing({"packs": learned}, SPREAD), PACKS)
    (fault,) = map(str, found.faults)
    assert f"cases[0].{message}" in fault


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ({"demands": [{"cpu": -1}]}, "learned.packs.demands[0].cpu: '-1' is not possible here; write a quantity"),
        ({"demands": [{"cpu": True}]}, "learned.packs.demands[0].cpu: must be a string, not true"),
        ({"demands": [{"copies": 0}]}, "learned.packs.demands[0].copies: must be at least 1, not 0"),
        ({"demands": [{"copies": 4001}]}, "learned.packs.demands[0].copies: must be at most 4000, not 4001"),
        ({"demand": []}, "learned.packs.demand: there is no such field; did you mean demands?"),
        (
            [{"type": "a", "node": "b", "value": 1, "cuont": 1}],
            "learned.packs[0].cuont: there is no such field; did you mean count?",
        ),
        (5, "learned.packs: must be a list, not 5"),
    ],
)
def test_what_has_another_form_is_an_error(learned: Any, message: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        results(packing({"packs": learned}, SPREAD), PACKS)
    assert any(f"cases[0].{message}" in str(one) for one in refused.value.errors)


def test_a_rule_that_two_policies_have_is_named_with_its_policy() -> None:
    other = policy("other", uid="", scores={"works": {"kubeRL": {}}})
    (found,) = results(suite({"a": 1}, KNOWN), RULE, other)
    (fault,) = map(str, found.faults)
    assert "learned.works: several policies have a rule works; write other/works or p/works" in fault
    (found,) = results(suite({"a": 167, "b": 180}, {"p/works": KNOWN["works"], "other/works": []}), RULE, other)
    assert difference_lines(found) == []


def test_a_case_replaces_what_the_suite_says_by_another_name() -> None:
    (found,) = results(suite({"a": 80, "b": 80}, KNOWN, {"p/works": []}), RULE)
    assert difference_lines(found) == []


def test_a_value_may_have_another_prior() -> None:
    pair = {**KNOWN["works"][0], "value": (1 + 1.353553) / (1 + 2.207107), "prior": 1}
    (found,) = results(suite({"a": 67, "b": 80}, {"works": [pair]}), RULE)
    assert difference_lines(found) == []
