"""A replica reports what the generations that it serves publish."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.cooperative import Steps
from fairlead.metrics import Metrics
from fairlead.policy.affinity.published_policies import publication_steps
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.render.operator_settings import parse_settings
from fairlead.replica_state import PolicyState, PublicationState, ReplicaState
from fairlead.webhook.publication.publications import Publications
from scripted.loop import in_loop
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


LATE = parse_settings("publishedAffinity: {enabled: true, lateLabels: [example.org/]}")


def left_out(made: Publications, one: CompiledPolicy) -> list[str] | None:
    """Return the filters that are not published; None before anything is computed."""
    found = reported(made, one)
    return None if found is None else [rule for rule, _ in found.left_out]


@in_loop
async def test_late_labels_of_the_settings_are_left_out_and_until_then_what_was_said_stays() -> None:
    one, made = compiled(POOL, CARD), Publications()
    running = asyncio.create_task(made.run())
    await made.follow([one])
    made.use_settings(LATE)
    assert left_out(made, one) == []
    await until(lambda: left_out(made, one) == ["card"])
    running.cancel()


@in_loop
async def test_late_labels_that_come_while_a_policy_is_computed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    one, made = compiled(POOL, CARD), Publications()
    of_pauses(monkeypatch, 3)
    following = asyncio.create_task(made.follow([one]))
    await asyncio.sleep(0)
    made.use_settings(LATE)
    await following
    assert left_out(made, one) == ["card"]


@in_loop
async def test_what_a_policy_does_not_wait_for_is_computed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    one, made = compiled(POOL), Publications()
    of_pauses(monkeypatch, 3)
    following, running = asyncio.create_task(made.follow([one])), asyncio.create_task(made.run())
    await asyncio.sleep(0)
    following.cancel()
    await until(lambda: left_out(made, one) == [])
    running.cancel()


def of_pauses(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Have what a policy publishes computed with so many pauses more."""

    def paused(*arguments: Any) -> Steps[Any]:
        for _ in range(count):
            yield
        return (yield from publication_steps(*arguments))

    monkeypatch.setattr("fairlead.webhook.publication.publications.publication_steps", paused)


async def until(reached: Callable[[], bool]) -> None:
    while not reached():
        await asyncio.sleep(0)


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
