"""Pods as they are created: what is published is added to what they ask for themselves."""

from copy import deepcopy
from random import Random
from typing import Any

import pytest

from fairlead.policy.affinity.published_pods import (
    PUBLISHED_ANNOTATION,
    REQUIRED,
    TERMS_OF_POD_MAX,
    as_created,
    published_for,
    why_left_alone,
)
from support.examples import MANY
from support.policy.affinities import nodes, selected_by_pod
from support.policy.created_pods import A, B, N, affinity, pod, some_pod, some_publication, term_of


def terms_of(created: Any) -> Any:
    return created["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


ADDED: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
    "to a pod without terms": ([], [[term_of(A)]], [term_of(A)]),
    "all alternatives": ([], [[term_of(A), term_of(B)]], [term_of(A), term_of(B)]),
    "what all policies say": ([], [[term_of(A)], [term_of(B), term_of(N)]], [term_of(A, B), term_of(A, N)]),
    "to each term": ([term_of(A), term_of(N)], [[term_of(B)]], [term_of(A, B), term_of(N, B)]),
    "alternatives to each term": (
        [term_of(A), term_of(N)],
        [[term_of(B), term_of(A, B)]],
        [term_of(A, B), term_of(N, B), term_of(A, A, B), term_of(N, A, B)],
    ),
    "to a term with fields": (
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}],
        [[term_of(B)]],
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}], "matchExpressions": [B]}],
    ),
    "nothing to a term that selects nothing": ([{}, term_of(A)], [[term_of(B)]], [{}, term_of(A, B)]),
    "nothing where it is already": ([term_of(B, A)], [[term_of(A)]], [term_of(B, A)]),
}


@pytest.mark.parametrize(("own", "policies", "want"), ADDED.values(), ids=ADDED)
def test_it_adds(own: list[Any], policies: list[Any], want: list[Any]) -> None:
    given = pod(*own)
    before = deepcopy(given)
    created = as_created(given, {}, affinity(*policies))
    assert terms_of(created) == want
    assert created["metadata"]["annotations"] == {PUBLISHED_ANNOTATION: "4f"}
    assert given == before


def test_what_the_pod_prefers_stays() -> None:
    given = pod()
    given["spec"]["affinity"] = {"podAffinity": {"x": 1}, "nodeAffinity": {"preferredDuring": [1]}}
    created = as_created(given, {}, affinity([term_of(A)]))
    assert created["spec"]["affinity"]["podAffinity"] == {"x": 1}
    assert created["spec"]["affinity"]["nodeAffinity"] == {
        "preferredDuring": [1],
        REQUIRED: {"nodeSelectorTerms": [term_of(A)]},
    }


LEFT_ALONE = {
    "another scheduler": pod() | {"spec": {"schedulerName": "other"}},
    "no scheduler is named": pod() | {"spec": {}},
    "a node": pod() | {"spec": {"schedulerName": "fairlead", "nodeName": "n1"}},
    "the annotation": pod(annotations={PUBLISHED_ANNOTATION: "None"}),
    "no controller, but terms": pod(term_of(B), ownerReferences=[]),
    "an owner that does not control it": pod(term_of(B), ownerReferences=[{"kind": "A", "controller": False}]),
}


@pytest.mark.parametrize("given", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_it_leaves_a_pod_alone_for(given: Any) -> None:
    published = affinity([term_of(A)])
    assert why_left_alone(given, published)
    assert as_created(given, {}, published) == given


def test_a_pod_without_a_controller_gets_terms_if_it_has_none() -> None:
    assert terms_of(as_created(pod(ownerReferences=[]), {}, affinity([term_of(A)]))) == [term_of(A)]


def test_another_text_of_the_annotation_is_replaced() -> None:
    created = as_created(pod(annotations={PUBLISHED_ANNOTATION: "mine", "x": "y"}), {}, affinity([term_of(A)]))
    assert created["metadata"]["annotations"] == {PUBLISHED_ANNOTATION: "4f", "x": "y"}


_OF_POD: Any = {"key": "gpu", "operator": "In", "label": "gpu", "default": "any"}


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        ({"gpu": "a100"}, [[{"key": "gpu", "operator": "In", "values": ["a100"]}]]),
        ({}, [[{"key": "gpu", "operator": "In", "values": ["any"]}]]),
        ({"gpu": ""}, [[{"key": "gpu", "operator": "In", "values": [""]}]]),
        ({"gpu": "a b"}, []),
        ({"gpu": "a" * 64}, []),
        ({"gpu": "a\n"}, []),
    ],
    ids=["its value", "absent", "empty", "no label", "too long", "a line end"],
)
def test_a_value_comes_from_the_pod(labels: dict[str, str], want: list[Any]) -> None:
    assert published_for(pod(labels=labels), {}, affinity([term_of(_OF_POD)])) == want


def test_an_alternative_that_asks_for_nothing_is_as_good_as_none() -> None:
    free: Any = {"when": [{"label": "free", "operator": "Exists"}]}
    assert published_for(pod(labels={"free": ""}), {}, affinity([free, term_of(A)])) == []
    assert published_for(pod(), {}, affinity([free, term_of(A)])) == [[A]]


def test_of_policies_with_alternatives_three_are_taken() -> None:
    either = [term_of(A), term_of(B)]
    assert len(published_for(pod(), {}, affinity(*[either] * 5))) == 8


def test_where_there_are_too_many_alternatives_only_what_is_common_is_added() -> None:
    either = [term_of({"key": f"k{at}", "operator": "Exists"}) for at in range(5)]
    assert published_for(pod(), {}, affinity(either, either)) == []
    assert published_for(pod(), {}, affinity(either, [term_of(A)], either)) == [[A]]
    assert len(published_for(pod(), {}, affinity(either, [term_of(A)]))) == 5


def test_a_pod_with_too_many_terms_of_its_own_gets_none() -> None:
    either = [term_of({"key": f"k{at}", "operator": "Exists"}) for at in range(8)]
    own = [term_of({"key": f"own{at}", "operator": "Exists"}) for at in range(9)]
    assert len(terms_of(as_created(pod(*own[:8]), {}, affinity(either)))) == TERMS_OF_POD_MAX
    given = pod(*own)
    assert as_created(given, {}, affinity(either)) == given


def test_a_created_pod_selects_what_both_select_and_a_second_time_changes_nothing() -> None:
    random, gets = Random("created"), 0  # noqa: S311
    for _ in range(20 * MANY):
        published, (given, labels) = some_publication(random), some_pod(random)
        created = as_created(given, labels, published)
        assert as_created(created, labels, published) == created
        added = published_for(given, labels, published)
        alone = as_created(given | {"spec": {**given["spec"], "affinity": {}}}, labels, published)
        own, both, theirs = selected_by_pod(given), selected_by_pod(created), selected_by_pod(alone)
        for node in random.sample(nodes(), 6):
            want = own(node.labels, node.name) and (not added or theirs(node.labels, node.name))
            assert both(node.labels, node.name) == want, (given, published, node.labels)
        gets += bool(added)
    assert gets > MANY
