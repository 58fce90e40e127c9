"""What a suite writes of objects becomes whole ones."""

from typing import Any

import pytest

from fairlead.api.errors import InvalidObjectError
from fairlead.api.parse import parse_params
from fairlead.suites.objects import CaseInputs, apply_patch, case_inputs
from fairlead.suites.suite import Suite

# RFC 7386, appendix A, as far as it is about maps.
PATCHES: dict[str, tuple[Any, Any, Any]] = {
    "a value is replaced": ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    "a value comes": ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    "null removes": ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    "null removes nothing where there is nothing": ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    "a list is replaced": ({"a": ["b"]}, {"a": ["c"]}, {"a": ["c"]}),
    "a list by a value": ({"a": ["c"]}, {"a": "b"}, {"a": "b"}),
    "a map is merged": ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    "a value by a map": ({"a": "foo"}, {"a": {"b": "c", "d": None}}, {"a": {"b": "c"}}),
}


@pytest.mark.parametrize(("under", "over", "want"), PATCHES.values(), ids=PATCHES)
def test_objects_are_laid_over_each_other_as_kubectl_does_it(under: Any, over: Any, want: Any) -> None:
    assert apply_patch(under, over) == want


def of(case: dict[str, Any] | None = None, **suite: Any) -> CaseInputs:
    """The world of a suite with one case."""
    one = {"name": "case", "pod": {}, "expect": {}, **(case or {})}
    return case_inputs(parse_params({"policies": ["x"], "cases": [one], **suite}, Suite), 0, "fairlead")


def test_what_nobody_says_is_as_in_most_clusters() -> None:
    found = of(nodes=[{"metadata": {"name": "n"}}], pods=[{"metadata": {"name": "q"}, "spec": {"nodeName": "n"}}])
    [node], [pod] = found.nodes, found.pods
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": "n"}
    assert node["metadata"]["creationTimestamp"] == "2027-01-14T12:00:00Z"
    assert node["status"]["allocatable"] == {
        "cpu": "8",
        "memory": "32Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
    }
    assert node["status"]["capacity"] == node["status"]["allocatable"]
    assert pod["metadata"]["namespace"] == "default"
    assert pod["metadata"]["creationTimestamp"] == "2027-01-15T11:00:00Z"
    [ready] = pod["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["lastTransitionTime"]) == ("Ready", "True", "2027-01-15T11:00:00Z")
    assert found.pod["spec"]["schedulerName"] == "fairlead"
    assert [space["metadata"]["name"] for space in found.namespaces] == ["default"]


def test_a_node_has_a_capacity_of_what_it_says_is_allocatable_but_for_what_it_says() -> None:
    status = {"allocatable": {"cpu": 16}, "capacity": {"memory": "64Gi"}}
    [node] = of(nodes=[{"metadata": {"name": "n"}, "status": status}]).nodes
    assert node["status"]["capacity"] == {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    assert node["status"]["allocatable"] == node["status"]["capacity"] | {"memory": "32Gi"}


def test_every_namespace_that_a_pod_names_is_there_with_its_label() -> None:
    found = of(
        {"pod": {"metadata": {"namespace": "shop"}}},
        namespaces=[{"metadata": {"name": "shop", "labels": {"team": "a"}}}],
        nodes=[{"metadata": {"name": "n"}}],
        pods=[{"metadata": {"name": "q", "namespace": "tools"}, "spec": {"nodeName": "n"}}],
    )
    assert {one["metadata"]["name"]: one["metadata"]["labels"] for one in found.namespaces} == {
        "shop": {"kubernetes.io/metadata.name": "shop", "team": "a"},
        "tools": {"kubernetes.io/metadata.name": "tools"},
    }


def test_a_template_lies_under_and_the_case_over() -> None:
    found = of(
        {"nodes": [{"metadata": {"name": "n", "labels": {"b": "case", "d": None}}}]},
        templates={"t": {"metadata": {"labels": {"a": "template", "b": "template", "c": "template"}}}},
        nodes=[{"from": "t", "metadata": {"name": "n", "labels": {"b": "node", "c": "node", "d": "node"}}}],
    )
    labels = found.nodes[0]["metadata"]["labels"]
    assert labels == {"kubernetes.io/hostname": "n", "a": "template", "b": "case", "c": "node"}


NULLED = {"metadata": {"name": "n", "labels": {"kubernetes.io/hostname": None}}}


@pytest.mark.parametrize(
    "suite",
    [
        {"nodes": [NULLED]},
        {"nodes": [NULLED | {"from": "t"}], "templates": {"t": {}}},
        {"nodes": [{"from": "t", "metadata": {"name": "n"}}], "templates": {"t": NULLED}},
        {"nodes": [{"metadata": {"name": "n"}}], "case": {"nodes": [NULLED]}},
    ],
    ids=["an object", "an object over a template", "a template", "a case"],
)
def test_null_also_removes_what_nobody_said(suite: dict[str, Any]) -> None:
    assert of(**suite).nodes[0]["metadata"]["labels"] == {}


def test_a_case_adds_what_the_suite_has_not() -> None:
    found = of({"nodes": [{"metadata": {"name": "m"}}]}, nodes=[{"metadata": {"name": "n"}}])
    assert [one["metadata"]["name"] for one in found.nodes] == ["n", "m"]


def test_copies_are_numbered() -> None:
    found = of(nodes=[{"metadata": {"name": "n"}, "copies": 3}])
    assert [one["metadata"]["name"] for one in found.nodes] == ["n-1", "n-2", "n-3"]
    assert len({one["metadata"]["uid"] for one in found.nodes}) == 3


def test_amounts_may_be_numbers() -> None:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1, "nvidia.com/gpu": 2}}}]}
    found = of({"pod": {"spec": spec}}, nodes=[{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 1.5}}}])
    assert found.nodes[0]["status"]["allocatable"]["cpu"] == "1.5"
    assert found.pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "nvidia.com/gpu": "2"}


def test_the_time_is_the_suites_or_the_cases() -> None:
    assert of(now="1970-01-01T00:00:01Z").now == 1_000_000_000
    assert of({"now": "1970-01-01T00:00:02Z"}, now="1970-01-01T00:00:01Z").now == 2_000_000_000


NODE = {"metadata": {"name": "n"}}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a template that there is not": (
        {"templates": {"gpu": {}}, "nodes": [{"from": "gpo", "metadata": {"name": "n"}}]},
        "nodes[0].from: there is no template 'gpo'; did you mean gpu?",
    ),
    "a template where there are none": (
        {"nodes": [{"from": "x", "metadata": {"name": "n"}}]},
        "nodes[0].from: there is no template 'x'; the templates are none",
    ),
    "a node without a name": (
        {"nodes": [{}]},
        "nodes[0].metadata.name: is missing; name it: cases refer to it by name",
    ),
    "two nodes of one name": (
        {"nodes": [NODE, {"metadata": {"name": "n", "uid": "2"}}]},
        "nodes[1].metadata.name: 'n' exists already; give it another name",
    ),
    "a pod on no node": (
        {"nodes": [NODE], "pods": [{"metadata": {"name": "q"}}]},
        "pods[0].spec.nodeName: is missing; name the node of the pod q",
    ),
    "a pod on a node that there is not": (
        {"nodes": [NODE], "pods": [{"metadata": {"name": "q"}, "spec": {"nodeName": "m"}}]},
        "pods[0].spec.nodeName: there is no node 'm' in the case 'case'; the nodes are n",
    ),
    "copies that are none": (
        {"nodes": [NODE | {"copies": 0}]},
        "nodes[0].copies: must be a whole number from 1 to 1000, not 0",
    ),
    "a time that is none": ({"now": "yesterday"}, "now: 'yesterday' is not a time; write it as 2027-01-15T12:00:00Z"),
}


@pytest.mark.parametrize(("suite", "want"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(suite: dict[str, Any], want: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        of(**suite)
    assert str(refused.value) == want
