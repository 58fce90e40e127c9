"""What is left out where not everything may be read."""

from typing import Any

import pytest

from fairlead.simulation.visibility import ObjectKind, judgeable
from support.policy import policy

LABELS = {"labels": "node.metadata.labels[?'a'].orValue('') == ''"}
ROOM = {"room": "free['cpu'] > 1.0"}
OWN = {"own": "namespaceObject.metadata.labels[?'a'].orValue('') == node.metadata.name"}


@pytest.mark.parametrize(
    ("spec", "unread", "kept", "said"),
    {
        "nothing is asked for": ({"filters": LABELS}, ["pods", "namespace"], ["labels"], []),
        "pods": ({"filters": LABELS | ROOM}, ["pods"], ["labels"], ["p/room: it reads the pods on nodes"]),
        "pods by another name": (
            {"filters": {"few": "size(pods) < 3", "used": "requested['cpu'] < 1.0"}},
            ["pods"],
            [],
            ["p/few: it reads the pods on nodes", "p/used: it reads the pods on nodes"],
        ),
        "a score": (
            {"filters": LABELS, "scores": {"s": "free['cpu']"}},
            ["pods"],
            ["labels"],
            ["p/s: it reads the pods on nodes"],
        ),
        "pods may be read": ({"filters": ROOM | OWN}, ["namespace"], ["room"], ["p/own: it reads the pod's namespace"]),
        "the namespace decides": (
            {"filters": LABELS, "match": {"namespaceSelector": {}}},
            ["namespace"],
            None,
            ["p as a whole: it reads the pod's namespace"],
        ),
        "a condition on it": (
            {"filters": LABELS, "match": {"conditions": {"c": "namespaceObject.metadata.name == 'ml'"}}},
            ["namespace"],
            None,
            ["p as a whole: it reads the pod's namespace"],
        ),
        "its name is known": ({"filters": LABELS, "match": {"namespaces": ["ml"]}}, ["namespace"], ["labels"], []),
    }.values(),
)
def test_what_would_have_to_be_guessed_is_left_out(
    spec: dict[str, Any], unread: list[ObjectKind], kept: list[str] | None, said: list[str]
) -> None:
    found, left_out = judgeable([policy(**spec)], unread)
    assert [[rule.name for rule in one.filters] for one in found] == ([] if kept is None else [kept])
    assert [one.describe() for one in left_out] == said


def test_a_rule_of_which_it_is_given_what_it_has_learned_is_evaluated() -> None:
    scores: dict[str, Any] = {"works": {"kubeRL": {}}, "packs": {"pigeon": {}}}
    (found,), (left_out,) = judgeable([policy(scores=scores)], ["learned"], (), [("p", "works")])
    assert [one.name for one in found.scores] == ["works"]
    assert left_out.describe() == (
        "p/packs: it reads what it has learned, which is in ConfigMaps of the operator's namespace: give it with "
        "--learned FILE"
    )
