"""A field that there is not would be passed over in silence, and the test would test something else."""

from typing import Any

import pytest

from fairlead.api.parse import parse_params
from fairlead.suites.suite import Suite
from fairlead.suites.validate import field_errors

META = {"name": "n"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelt field": (
        {"nodes": [{"metdata": META}]},
        "nodes[0].metdata: there is no such field; did you mean metadata?",
    ),
    "a misspelt field far below": (
        {"pods": [{"spec": {"containers": [{"resources": {"request": {}}}]}}]},
        "pods[0].spec.containers[0].resources.request: there is no such field; did you mean requests?",
    ),
    "a label that is a number": (
        {"nodes": [{"metadata": {"labels": {"rack": 7}}}]},
        "nodes[0].metadata.labels.rack: must be a string, not 7; write it in quotes",
    ),
    "a label that is true": (
        {"nodes": [{"metadata": {"labels": {"ssd": True}}}]},
        "nodes[0].metadata.labels.ssd: must be a string, not true; write it in quotes",
    ),
    "an amount that is true": (
        {"nodes": [{"status": {"allocatable": {"cpu": True}}}]},
        "nodes[0].status.allocatable.cpu: must be a string, not true; write it in quotes",
    ),
    "a map where a list should be": (
        {"nodes": [{"status": {"conditions": {"type": "Ready"}}}]},
        "nodes[0].status.conditions: must be a list, not a map; each item begins with '- '",
    ),
    "a text where a map should be": (
        {"nodes": [{"metadata": {"labels": "a"}}]},
        "nodes[0].metadata.labels: must be a map, not 'a'",
    ),
    "a time that is none": (
        {"nodes": [{"metadata": {"creationTimestamp": "today"}}]},
        "nodes[0].metadata.creationTimestamp: 'today' is not a time; write it as 2027-01-15T12:00:00Z",
    ),
    "a priority in quotes": (
        {"pods": [{"spec": {"priority": "5"}}]},
        "pods[0].spec.priority: must be a whole number, not '5'",
    ),
    "a template of the wrong kind": (
        {"templates": {"t": {"status": {"allocatable": {}}}}, "pods": [{"from": "t"}]},
        "templates.t.status.allocatable: there is no such field",
    ),
    "a template": (
        {"templates": {"t": {"metadata": {"lables": {}}}}},
        "templates.t.metadata.lables: there is no such field; did you mean labels?",
    ),
}


def said(**suite: Any) -> list[str]:
    case = {"name": "case", "pod": {}, "expect": {"passed": []}}
    return [str(one) for one in field_errors(parse_params({"policies": ["x"], "cases": [case], **suite}, Suite))]


@pytest.mark.parametrize(("suite", "want"), BAD.values(), ids=BAD)
def test_what_no_object_has_is_refused(suite: dict[str, Any], want: str) -> None:
    assert said(**suite) == [want]


def test_a_case_is_looked_at_too() -> None:
    case = {"name": "case", "pod": {"sepc": {}}, "nodes": [{"spce": {}}], "expect": {"passed": []}}
    found = [
        str(one).partition(":")[0] for one in field_errors(parse_params({"policies": ["x"], "cases": [case]}, Suite))
    ]
    assert found == ["cases[0].nodes[0].spce", "cases[0].pod.sepc"]


def test_a_case_that_expects_nothing_is_refused() -> None:
    suite = parse_params({"policies": ["x"], "cases": [{"name": "a", "pod": {}, "expect": {}}]}, Suite)
    [fault] = field_errors(suite)
    assert str(fault).startswith("cases[0].expect: expects nothing, so the case cannot fail; its fields are")


def test_what_the_api_has_is_taken() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "from": "t",
        "copies": 2,
        "metadata": {"name": "n", "managedFields": [{}], "annotations": {"a": "b"}, "creationTimestamp": None},
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": 4, "memory": "1Gi"}},
    }
    probe = {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"port": 80}}}], "priority": 5}
    # A template may be of any kind.
    assert said(nodes=[node], pods=[{"spec": probe}], templates={"t": {"spec": {"unschedulable": True}}}) == []
