"""Node affinity that a case expects of its pod: what policies publish for it, and nothing else."""

from typing import Any, Final

import pytest

from fairlead.api.parse import parse_params
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, REQUIRED
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.suites.suite import Suite
from support.policy import policy
from support.suites.running import difference_lines, result

Terms = list[dict[str, Any]]
L: Final = "node.metadata.labels"
NEAR: Final = f"{L}[?'pool'].orValue('') in ['a', 'b'] && ({L}['size'] == '3' || 'fast' in {L})"
TEAM: Final = f"{L}[?'team'].orValue('') == namespaceObject.metadata.labels[?'team'].orValue('none')"


def publishing(publish: str = "NodeAffinity", **spec: Any) -> CompiledPolicy:
    return policy("p", publish=publish, **({"filters": {"near": NEAR}} | spec))


def term(*requirements: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"matchExpressions": [*requirements], **more}


def asks(key: str, operator: str = "Exists", *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": [*values]} if values else {})


def owned(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return a pod of a controller with terms of its own."""
    required = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*terms]}}}
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    return {"metadata": {"ownerReferences": [owner]}, "spec": {"affinity": required}}


ALONE: Final = {"metadata": {"annotations": {PUBLISHED_ANNOTATION: "None"}}}
BOTH: Final = [
    term(asks("pool", "In", "a", "b"), asks("size", "In", "3")),
    term(asks("pool", "In", "a", "b"), asks("fast")),
]
EXPECTED: Final[dict[str, tuple[CompiledPolicy, dict[str, Any], Terms]]] = {
    "all terms": (publishing(), {}, BOTH),
    "in another order": (
        publishing(),
        {},
        [term(asks("fast"), asks("pool", "In", "b", "a")), term(asks("size", "In", "3"), asks("pool", "In", "a", "b"))],
    ),
    "none for a pod that is left alone": (publishing(), ALONE, []),
    "none for a pod that does not match": (
        publishing(match={"podSelector": {"matchLabels": {"app": "x"}}}),
        {"metadata": {"labels": {"app": "y"}}},
        [],
    ),
    "none of a filter on what no label says": (publishing(filters={"room": "free['cpu'] > 2.0"}), {}, []),
    "none of a policy that is disabled": (publishing(mode="Disabled"), {}, []),
    "none for a pod of another scheduler": (publishing(), {"spec": {"schedulerName": "other"}}, []),
    "with a label of the namespace": (
        publishing(filters={"team": TEAM}),
        {"metadata": {"namespace": "ml"}},
        [term(asks("team", "In", "red"))],
    ),
    "of a namespace without it": (
        publishing(filters={"team": TEAM}),
        {},
        [term(asks("team", "In", "none"))],
    ),
    "in terms of its own": (
        publishing(filters={"pool": f"'pool' in {L}"}),
        owned(term(matchFields=[asks("metadata.name", "In", "n1")]) | {"matchExpressions": []}, term(asks("zone"))),
        [term(asks("pool"), matchFields=[asks("metadata.name", "In", "n1")]), term(asks("zone"), asks("pool"))],
    ),
}
"""Policy, pod, and terms."""


def found(one: CompiledPolicy, pod: dict[str, Any], terms: Terms) -> list[str]:
    namespaces = [{"metadata": {"name": "ml", "labels": {"team": "red"}}}]
    return difference_lines(result({"affinity": terms}, one, pod=pod, namespaces=namespaces))


@pytest.mark.parametrize(("one", "pod", "terms"), EXPECTED.values(), ids=EXPECTED)
def test_the_terms_of_a_pod(one: CompiledPolicy, pod: dict[str, Any], terms: Terms) -> None:
    assert found(one, pod, terms) == []
    assert found(one, pod, [*terms, term(asks("other"))]) != []
    assert not terms or found(one, pod, terms[1:]) != []


NEAR_TEXT: Final = "pool in a, b and size in 3, or fast is there and pool in a, b"
WRONG: Final[dict[str, tuple[CompiledPolicy, dict[str, Any], Terms, str, list[str]]]] = {
    "another value": (
        publishing(filters={"pool": f"{L}[?'pool'].orValue('') == 'a'"}),
        {},
        [term(asks("pool", "In", "b"))],
        "affinity: : pool in b | pool in a",
        [],
    ),
    "a term is missing": (
        publishing(),
        {},
        BOTH[:1],
        f"affinity: : pool in a, b and size in 3 | {NEAR_TEXT}",
        ["not expected: fast is there and pool in a, b"],
    ),
    "one of two is another": (
        publishing(),
        {},
        [BOTH[0], term(asks("slow", "DoesNotExist"))],
        f"affinity: : pool in a, b and size in 3, or slow is absent | {NEAR_TEXT}",
        ["not there: slow is absent", "not expected: fast is there and pool in a, b"],
    ),
    "some is expected, and the pod is left alone": (
        publishing(),
        ALONE,
        [term(asks("pool"))],
        f"affinity: : pool is there | none: its annotation {PUBLISHED_ANNOTATION} is None",
        [],
    ),
    "some is expected, and nothing is implied": (
        publishing(match={"namespaces": ["ml"]}),
        {},
        [term(asks("pool"))],
        "affinity: : pool is there | none: nothing is implied for it",
        [],
    ),
    "some is expected of another scheduler": (
        publishing(),
        {"spec": {"schedulerName": "other"}},
        [{}],
        "affinity: : a term without requirements | none: nothing is published for its scheduler",
        [],
    ),
    "none is expected": (
        publishing(filters={"pool": f"'pool' in {L}"}),
        {},
        [],
        "affinity: : none | pool is there",
        [],
    ),
}
"""Policy, pod, expected terms, the difference, and its notes."""


@pytest.mark.parametrize(("one", "pod", "terms", "line", "notes"), WRONG.values(), ids=WRONG)
def test_a_difference(one: CompiledPolicy, pod: dict[str, Any], terms: Terms, line: str, notes: list[str]) -> None:
    failed = result({"affinity": terms}, one, pod=pod)
    assert difference_lines(failed) == [line]
    assert [note for note in failed.differences[0].notes if note != "No policy matches this pod."] == notes


def test_a_suite_whose_policies_publish_nothing_cannot_expect_it() -> None:
    [fault] = difference_lines(result({"affinity": []}, publishing(publish="None")))
    assert fault.startswith("cases[0].expect.affinity: no policy of this suite publishes node affinity; add publish: ")


BAD: Final = {
    "an operator": (term(asks("pool", "Is")), "affinity[0].matchExpressions[0].operator"),
    "a field": ({"matchExpression": []}, "affinity[0].matchExpression"),
    "no key": (term({"operator": "Exists"}), "affinity[0].matchExpressions[0].key"),
}


@pytest.mark.parametrize(("wrong", "field"), BAD.values(), ids=BAD)
def test_what_is_no_term_is_an_error_of_the_suite(wrong: dict[str, Any], field: str) -> None:
    case = {"name": "case", "pod": {}, "expect": {"affinity": [wrong]}}
    with pytest.raises(Exception, match="cases") as raised:
        parse_params({"policies": ["x"], "cases": [case]}, Suite)
    assert f"cases[0].expect.{field}" in str(raised.value)
