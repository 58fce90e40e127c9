"""What policies publish, and what they leave out."""

from typing import Any

import pytest

from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.published_policies import (
    POLICIES_MAX,
    LeftOut,
    PolicyPublication,
    affinity_of_scheduler,
    publication_of,
)
from support.policy import policy

_L = "node.metadata.labels"
_POOL = {"key": "pool", "operator": "In", "values": ["memory"]}
_NO_POOL = {"key": "pool", "operator": "DoesNotExist"}
_WANTED = "pod.metadata.labels[?'gpu'].orValue('any')"
_OF_POOL = f"{_L}[?'pool'].orValue('') == 'memory'"


def published(**spec: Any) -> PolicyPublication:
    return publication_of(policy(**spec), Vocabulary())


def terms_of(expression: str, **rule: Any) -> Any:
    found = published(filters={"f": {"expression": expression, **rule}}).policy
    return None if found is None else found["terms"]


SAID = {
    "a label": (_OF_POOL, [{"matchExpressions": [_POOL]}]),
    "and more than labels": (f"{_OF_POOL} && free['cpu'] > 2.0", [{"matchExpressions": [_POOL]}]),
    "a label that the pod names, unless it names none": (
        f"{_WANTED} == 'any' || {_L}[?'gpu'].orValue('') == {_WANTED}",
        [
            {"when": [{"label": "gpu", "default": "any", "operator": "In", "values": ["any"]}]},
            {"matchExpressions": [{"key": "gpu", "operator": "In", "label": "gpu", "default": "any"}]},
            {
                "when": [{"label": "gpu", "default": "-", "operator": "In", "values": [""]}],
                "matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}],
            },
        ],
    ),
    "a label of the namespace": (
        f"namespaceObject.metadata.labels['tenant'] == {_L}['tenant']",
        [
            {
                "when": [{"namespaceLabel": "tenant", "operator": "Exists"}],
                "matchExpressions": [{"key": "tenant", "operator": "In", "namespaceLabel": "tenant"}],
            }
        ],
    ),
    "other than an annotation": (
        f"{_L}['a'] != pod.metadata.annotations['a']",
        [
            {
                "when": [{"annotation": "a", "operator": "Exists"}],
                "matchExpressions": [
                    {"key": "a", "operator": "NotIn", "annotation": "a"},
                    {"key": "a", "operator": "Exists"},
                ],
            }
        ],
    ),
    "the namespace": (
        f"{_L}['team'] == pod.metadata.namespace",
        [{"matchExpressions": [{"key": "team", "operator": "In", "namespace": True}]}],
    ),
    "an extended resource": (
        f"!pod.spec.containers.exists(one, 'a.b/gpu' in one.resources.limits) || {_OF_POOL}",
        [
            {"when": [{"resource": "a.b/gpu", "operator": "DoesNotExist"}]},
            {"matchExpressions": [_POOL]},
        ],
    ),
    "a number": (f"int({_L}['n']) > 3", [{"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["3"]}]}]),
}


@pytest.mark.parametrize(("expression", "want"), SAID.values(), ids=SAID)
def test_it_says(expression: str, want: list[object]) -> None:
    assert terms_of(expression) == want


NOT_SAID = {
    "the name of a node": (
        "node.metadata.name == 'n'",
        "`: Karpenter ignores pods that name nodes",
    ),
    "the host's name": (f"{_L}['kubernetes.io/hostname'] == 'n'", "Karpenter ignores pods that ask for the label"),
    "another label of Karpenter": (f"'karpenter.sh/initialized' in {_L}", "Karpenter ignores pods that ask for"),
    "a late label": (f"{_L}['nvidia.com/gpu.product'] == 'a100'", "nvidia.com/gpu.product is a late label"),
    "a key that is computed": (f"'data-' + pod.metadata.labels['d'] in {_L}", "`'data-' + pod.metadata.labels['d'] in"),
    "what is free": ("free['cpu'] > 2.0", "`free['cpu'] > 2.0`"),
    "either a label or what is free": (f"{_OF_POOL} || free['cpu'] > 2.0", "`free['cpu'] > 2.0`"),
    "the priority": (f"pod.spec.priority > 5 || {_OF_POOL}", "`pod.spec.priority > 5`"),
    "another list of containers": (
        f"pod.spec.initContainers.exists(one, 'a.b/gpu' in one.resources.limits) || {_OF_POOL}",
        "`pod.spec.initContainers",
    ),
    "a resource whose limit may be written later": (
        f"pod.spec.containers.exists(one, 'cpu' in one.resources.limits) || {_OF_POOL}",
        "`pod.spec.containers",
    ),
    "a strategy": (
        {"nodeReadiness": {"daemonSets": [{"namespace": "a", "name": "b"}]}},
        "it is decided by a strategy",
    ),
}


@pytest.mark.parametrize(("rule", "reason"), NOT_SAID.values(), ids=NOT_SAID)
def test_it_leaves_out(rule: Any, reason: str) -> None:
    found = published(filters={"f": rule})
    assert found.policy is None
    [left_out] = found.left_out
    assert left_out.rule == "f"
    assert reason in left_out.reason


def test_what_one_filter_cannot_say_does_not_matter_to_another() -> None:
    found = published(filters={"room": "free['cpu'] > 2.0", "pool": _OF_POOL})
    assert found.policy is not None
    assert found.policy["terms"] == [{"matchExpressions": [_POOL]}]
    assert found.left_out == (LeftOut("room", "`free['cpu'] > 2.0`"),)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        (f"{_L}['pool'] == 'memory'", [{"matchExpressions": [_POOL]}, {"matchExpressions": [_NO_POOL]}]),
        (f"{_OF_POOL} && free['cpu'] > 2.0", [{"matchExpressions": [_POOL]}]),
        (f"{_OF_POOL} || free['cpu'] > 2.0", None),
        (f"pod.spec.containers.exists(one, one.image.matches('(a+)+')) || {_OF_POOL}", None),
    ],
    ids=["absent raises", "surely false elsewhere", "never surely false", "it may be ended"],
)
def test_where_errors_pass_it_selects_what_is_not_surely_false(expression: str, want: object) -> None:
    assert terms_of(expression, onError="Pass") == want


def test_a_filter_that_no_node_passes_is_no_affinity() -> None:
    assert published(filters={"f": f"{_L}['a'] == 'x' && {_L}['a'] == 'y'"}) == PolicyPublication(None)


def test_the_match_becomes_guards() -> None:
    found = published(
        match={
            "namespaces": ["ml", "web"],
            "namespaceSelector": {"matchLabels": {"team": "a"}},
            "podSelector": {
                "matchExpressions": [
                    {"key": "app", "operator": "NotIn", "values": ["x"]},
                    {"key": "kind", "operator": "Exists"},
                    {"key": "old", "operator": "DoesNotExist"},
                ]
            },
            "conditions": {"c": "pod.metadata.annotations[?'mode'].orValue('fast') == 'fast'"},
        },
        filters={"f": _OF_POOL},
    ).policy
    assert found is not None
    assert found["when"] == [
        {"namespace": True, "operator": "In", "values": ["ml", "web"]},
        {"namespaceLabel": "team", "default": "", "operator": "In", "values": ["a"]},
        {"label": "app", "default": "", "operator": "NotIn", "values": ["x"]},
        {"label": "kind", "operator": "Exists"},
        {"label": "old", "operator": "DoesNotExist"},
        {"annotation": "mode", "default": "fast", "operator": "In", "values": ["fast"]},
    ]


def test_alternatives_of_the_match_become_guards_of_the_terms() -> None:
    condition = "'a' in pod.metadata.labels || 'b' in pod.metadata.labels"
    found = published(match={"conditions": {"c": condition}}, filters={"f": _OF_POOL}).policy
    assert found is not None
    assert found["when"] == []
    assert found["terms"] == [
        {"when": [{"label": key, "operator": "Exists"}], "matchExpressions": [_POOL]} for key in "ab"
    ]


def test_a_match_that_cannot_be_told_publishes_nothing() -> None:
    match = {"conditions": {"known": "'a' in pod.metadata.labels", "high": "pod.spec.priority > 5"}}
    found = published(match=match, filters={"f": _OF_POOL})
    assert found == PolicyPublication(None, unknown_match=LeftOut("high", "`pod.spec.priority > 5`"))


def test_only_rules_that_decide_are_published() -> None:
    assert published(mode="Disabled", filters={"f": _OF_POOL}).policy is None


def test_too_many_alternatives_are_left_out_and_the_others_stay() -> None:
    many = " || ".join(f"({_L}[?'a{at}'].orValue('') == 'x' && 'b{at}' in {_L})" for at in range(17))
    found = published(filters={"pool": _OF_POOL, "many": many})
    assert found.policy is not None
    assert found.policy["terms"] == [{"matchExpressions": [_POOL]}]
    assert {one.rule for one in found.left_out} == {"many"}


def test_requirements_above_the_limits_are_left_out() -> None:
    keys = " && ".join(f"'k{at}' in {_L}" for at in range(17))
    values = f"{_L}[?'pool'].orValue('') in {[f'v{at}' for at in range(33)]}"
    found = published(filters={"keys": keys, "values": values})
    assert found.policy is not None
    [term] = found.policy["terms"]
    assert len(term["matchExpressions"]) == 16
    assert {one.rule for one in found.left_out} == {"keys", "values"}


def test_a_match_above_the_limits_publishes_nothing() -> None:
    """Without one of its guards pods that it does not match would get its affinity."""
    one = " && ".join(f"'k{at}' in pod.metadata.labels" for at in range(17))
    either = f"({one}) || 'other' in pod.metadata.labels"
    for condition in (one, either):
        assert published(match={"conditions": {"c": condition}}, filters={"f": _OF_POOL}).policy is None


def test_the_hash_tells_what_is_published() -> None:
    one, other = (published(filters={"f": text}).policy for text in (_OF_POOL, f"'a' in {_L}"))
    assert one is not None
    assert other is not None
    hashes = {affinity_of_scheduler("s", some)["hash"] for some in ([one], [other], [one, other], [])}
    assert len(hashes) == 4
    assert len(affinity_of_scheduler("s", [one] * 100)["policies"]) == POLICIES_MAX
