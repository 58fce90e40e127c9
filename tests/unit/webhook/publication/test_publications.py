"""A replica reports what the generations that it serves publish."""

import asyncio
from typing import Any

import pytest

from fairlead.metrics import Metrics
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.render.operator_settings import parse_settings
from fairlead.replica_state import PolicyState, PublicationState, ReplicaState
from fairlead.webhook.publication.publications import Publications
from support.policy import policy

POOL = {"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}
CARD = {"name": "card", "expression": "node.metadata.labels[?'example.org/card'].orValue('') == 'a'"}


def compiled(*filters: Any, publish: str = "NodeAffinity", **more: Any) -> CompiledPolicy:
    return policy(filters=list(filters), publish=publish, **more)


def reported(made: Publications, one: CompiledPolicy, serving: str | None = None) -> PublicationState | None:
    generation = one.generation if serving is None else serving
    state = PolicyState(uid=one.uid, generation="9", serving=generation, reason="Compiled")
    return made.report(ReplicaState(policies={one.name: state})).policies[one.name].publication


def following(*policies: CompiledPolicy) -> Publications:
    made = Publications()
    asyncio.run(made.follow(policies))
    return made


def test_what_a_policy_publishes_is_reported_of_the_generation_that_serves() -> None:
    one = compiled(POOL)
    made = following(one)
    found = reported(made, one)
    assert found is not None
    assert found.policy is not None
    assert found.policy["terms"] == [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]
    assert reported(made, one, "another") is None


@pytest.mark.parametrize("more", [{"publish": "None"}, {"mode": "Disabled"}])
def test_a_policy_that_publishes_nothing_is_left_as_it_is(more: dict[str, str]) -> None:
    one = compiled(POOL, **more)
    assert reported(following(one), one) is None


def test_a_policy_that_serves_no_more_is_forgotten() -> None:
    one, made = compiled(POOL), following(compiled(POOL))
    asyncio.run(made.follow([]))
    assert reported(made, one) is None


def test_late_labels_of_the_settings_are_left_out_at_once() -> None:
    one = compiled(POOL, CARD)
    made = following(one)
    made.use_settings(parse_settings("publishedAffinity: {enabled: true, lateLabels: [example.org/]}"))
    found = reported(made, one)
    assert found is not None
    assert [rule for rule, _ in found.left_out] == ["card"]


def test_a_fault_publishes_nothing_and_the_policy_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> object:
        raise RuntimeError("a fault")

    monkeypatch.setattr("fairlead.webhook.publication.publications.publication_steps", fails)
    one = compiled(POOL)
    found = reported(following(one), one)
    assert found is not None
    assert found.policy is None


def test_the_terms_are_counted() -> None:
    metrics, made = Metrics(), following(compiled(POOL))
    made.register(metrics)
    assert 'fairlead_published_terms{policy="p"} 1.0' in metrics.exposition().decode()
