"""Condition Published, and what a status says of the node affinity that a policy publishes."""

from typing import Any

import pytest

from fairlead.api.mode import Mode
from fairlead.control.status.publication_condition import (
    publication_condition,
    publication_status,
    publication_warnings,
)
from fairlead.replica_state import PolicyState, PublicationGaps, PublicationState, RuleState

POLICY: dict[str, Any] = {
    "name": "p",
    "uid": "u",
    "generation": 3,
    "when": [{"namespace": True, "operator": "In", "values": ["ml"]}],
    "terms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a", "b"]}]}],
}
EXACT = PublicationState(policy=POLICY)
WIDER = PublicationState(policy=POLICY, left_out=(("room", "it reads free"),))
NOTHING = PublicationState(left_out=(("room", "it reads free"),))
UNKNOWN = PublicationState(unknown_match="urgent reads pod.spec.priority")
PUBLISHES = {"publish": "NodeAffinity"}


def states(*publications: PublicationState | None) -> list[PolicyState]:
    return [PolicyState(uid="u", generation="3", serving="3", reason="", publication=one) for one in publications]


@pytest.mark.parametrize(
    ("spec", "mode", "publications", "not_installed", "expected"),
    [
        ({}, "Enforce", [EXACT], "", None),
        ({"publish": "None"}, "Enforce", [EXACT], "", None),
        (PUBLISHES, "Enforce", [EXACT, EXACT], "", ("True", "Exact", "exactly")),
        (PUBLISHES, "Enforce", [WIDER], "", ("True", "Wider", "room: it reads free")),
        (PUBLISHES, "Enforce", [NOTHING], "", ("False", "NothingToPublish", "room: it reads free")),
        (PUBLISHES, "Enforce", [PublicationState()], "", ("False", "NothingToPublish", "it has no filters")),
        (PUBLISHES, "Enforce", [UNKNOWN], "", ("False", "MatchNotPublishable", "urgent reads pod.spec.priority")),
        (PUBLISHES, "Enforce", [EXACT], "upgrade the chart", ("False", "NotInstalled", "upgrade the chart")),
        (PUBLISHES, "Disabled", [], "", ("False", "NothingToPublish", "it is disabled")),
        (PUBLISHES, "Shadow", [EXACT], "", ("False", "NothingToPublish", "it is in shadow")),
        (PUBLISHES, "Enforce", [EXACT], None, ("Unknown", "Pending", "being computed")),
        (PUBLISHES, "Enforce", [EXACT, WIDER], "", ("Unknown", "Pending", "being computed")),
        (PUBLISHES, "Enforce", [EXACT, None], "", ("Unknown", "Pending", "being computed")),
        (PUBLISHES, "Enforce", [], "", ("Unknown", "Pending", "being computed")),
    ],
)
def test_the_condition(
    spec: dict[str, str],
    mode: Mode,
    publications: list[PublicationState | None],
    not_installed: str | None,
    expected: tuple[str, str, str] | None,
) -> None:
    found = publication_condition(spec, mode, states(*publications), not_installed)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.value, found.reason) == expected[:2]
    assert expected[2] in found.message


def test_filters_in_shadow_are_not_taken_for_none() -> None:
    rules = tuple([RuleState(kind=kind, name=kind, mode="Shadow") for kind in ("Filter", "Score")])
    one = PolicyState(uid="u", generation="3", serving="3", reason="", publication=PublicationState(), rules=rules)
    found = publication_condition(PUBLISHES, "Enforce", [one], "")
    assert found is not None
    assert (found.reason, found.message) == ("NothingToPublish", "all its filters are in shadow")


def test_what_is_published_in_words() -> None:
    assert publication_status(states(WIDER)) == {
        "generation": 3,
        "terms": ["pool in a, b, for pods with namespace in ml"],
        "leftOut": [{"rule": "room", "reason": "it reads free"}],
    }


def test_what_is_left_out_where_nothing_is_published() -> None:
    assert publication_status(states(NOTHING)) == {"leftOut": [{"rule": "room", "reason": "it reads free"}]}


@pytest.mark.parametrize("publications", [[], [None], [PublicationState()], [EXACT, WIDER]])
def test_nothing_is_said_of_what_replicas_do_not_agree_on(publications: list[PublicationState | None]) -> None:
    assert publication_status(states(*publications)) is None


FEW = PublicationGaps(outdated=1, outdated_pods=("ml/a",))
MANY = PublicationGaps(outdated=5, outdated_pods=("ml/a", "ml/b", "ml/c"), missed=2, missed_pods=("ml/d", "ml/e"))
LATE = PublicationGaps(late_labels=1, late=("pool came on node n 12s after it had joined",))


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([], []),
        ([None], []),
        ([FEW], [("PublishedAffinityOutdated", 1, "changed: ml/a; create them again")]),
        (
            [FEW, None, MANY],
            [
                ("PublishedAffinityOutdated", 5, "ml/a, ml/b, ml/c and 2 more; create them again"),
                ("PublicationMissed", 2, "published for them: ml/d, ml/e; an API server"),
            ],
        ),
        ([LATE], [("LateLabel", 1, "pool came on node n 12s after it had joined; put them into the templates")]),
    ],
)
def test_warnings_of_pods_and_nodes(gaps: list[PublicationGaps | None], expected: list[tuple[str, int, str]]) -> None:
    found = [
        *publication_warnings([PolicyState(uid="u", generation="3", serving="3", reason="", gaps=one) for one in gaps])
    ]
    assert [(one["reason"], one["count"]) for one in found] == [one[:2] for one in expected]
    for one, (_, _, said) in zip(found, expected, strict=True):
        assert said in one["message"]
