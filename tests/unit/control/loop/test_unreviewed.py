"""A leader for a while, in virtual time, whose API server may not reach the admission check."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.control.status.crd_fields import CrdFields
from fairlead.control.status.unreviewed import KNOWN_S, SETTLED_S, UnreviewedGenerations
from fairlead.metrics import Metrics
from support.faults.cluster import FakeCluster
from support.faults.faults import Wire
from support.faults.life import POLICY, STAGES
from support.faults.stories import with_scheduler

LONG_S = SETTLED_S + KNOWN_S + 30


def warned(cluster: FakeCluster) -> list[str]:
    """Messages of the warning that the policy was not reviewed."""
    warnings = cluster.api.objects[POLICY].get("status", {}).get("warnings", ())
    return [one["message"] for one in warnings if one["reason"] == "NotReviewed"]


def edit(cluster: FakeCluster, points: float) -> None:
    """Store another generation."""
    spec = cluster.api.objects[POLICY]["spec"]
    cluster.api.edit(POLICY, spec={**spec, "scores": [{"name": "s", "expression": str(points)}]})


def _is_blocked(cluster: FakeCluster) -> None:
    cluster.admission = "blocked"


def _is_reached(cluster: FakeCluster) -> None:
    cluster.admission = "reached"


def _is_off(cluster: FakeCluster) -> None:
    cluster.admission = "off"


@pytest.mark.parametrize(
    ("state", "settled_s", "expected"),
    [
        pytest.param(_is_blocked, LONG_S, True, id="blocked"),
        pytest.param(_is_reached, LONG_S, False, id="reached"),
        pytest.param(_is_off, LONG_S, False, id="disabled, or older replicas that do not say"),
        pytest.param(_is_blocked, 0.0, False, id="the API server may not know the replicas yet"),
    ],
)
def test_a_generation_that_no_replica_reviewed_is_in_the_status(
    state: Callable[[FakeCluster], None], settled_s: float, expected: bool
) -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        state(cluster)
        await asyncio.sleep(settled_s)
        edit(cluster, 1.0)
        await asyncio.sleep(LONG_S)
        assert bool(warned(cluster)) is expected, warned(cluster)
        if expected:
            (message,) = warned(cluster)
            generation = cluster.api.objects[POLICY]["metadata"]["generation"]
            assert message.startswith(f"generation {generation} was stored without a review")
            assert "port 9443" in message
            assert "hostNetwork: true" in message

    with_scheduler(story)


def test_the_warning_is_kept_by_another_leader_and_goes_when_a_generation_is_reviewed() -> None:
    async def story(cluster: FakeCluster, wire: Wire) -> None:
        _is_blocked(cluster)
        await asyncio.sleep(LONG_S)
        edit(cluster, 1.0)
        await asyncio.sleep(LONG_S)
        assert warned(cluster)
        wire.died.set()
        await asyncio.sleep(LONG_S)
        assert warned(cluster), "another leader forgot it"
        _is_reached(cluster)
        await asyncio.sleep(LONG_S)
        assert warned(cluster), "this generation is as it was"
        edit(cluster, 2.0)
        await asyncio.sleep(LONG_S)
        assert not warned(cluster)

    with_scheduler(story)


def test_what_a_replica_that_is_gone_may_have_reviewed_is_not_reported() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        _is_blocked(cluster)
        await asyncio.sleep(LONG_S)
        edit(cluster, 1.0)
        cluster.process = "another"
        await asyncio.sleep(LONG_S)
        assert not warned(cluster)

    with_scheduler(story)


def test_a_policy_that_is_deleted_is_forgotten() -> None:
    async def story(cluster: FakeCluster, _: Wire) -> None:
        _is_blocked(cluster)
        await asyncio.sleep(LONG_S)
        edit(cluster, 1.0)
        await asyncio.sleep(LONG_S)
        assert warned(cluster)
        cluster.api.delete(POLICY)
        await asyncio.sleep(1)
        _is_reached(cluster)
        STAGES["the first policy"].act(cluster)
        await asyncio.sleep(LONG_S)
        assert not warned(cluster)

    with_scheduler(story)


def test_the_metric_names_unreviewed_policies_while_this_replica_leads() -> None:
    metrics, unreviewed = Metrics(), UnreviewedGenerations(lambda: 0.0)
    registry: Any = None
    warned: dict[str, Any] = {"observedGeneration": 3, "warnings": [{"reason": "NotReviewed"}]}
    leader = LeaderMetrics(metrics)

    def series() -> list[str]:
        lines = metrics.exposition().decode().splitlines()
        return [line for line in lines if line.startswith("fairlead_policy_unreviewed")]

    for generation, expected in ((3, ['fairlead_policy_unreviewed{policy="p"} 1.0']), (4, [])):
        unreviewed.add_listed({"metadata": {"name": "p", "uid": "u", "generation": generation}, "status": warned})
        with leader.export_gauges(registry, lambda: 0, CrdFields({}), unreviewed):
            assert series() == expected
        assert series() == []
