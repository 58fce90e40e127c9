"""Lives of a leader in virtual time: with nothing at first, or with a scheduler that runs."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from fairlead.render.operator_settings import parse_settings
from support.faults import virtual
from support.faults.cluster import FakeCluster
from support.faults.faults import Wire
from support.faults.leader import around, at_work, until
from support.faults.life import STAGES

Story = Callable[[FakeCluster, Wire], Coroutine[Any, Any, None]]


def begun(story: Story) -> None:
    """With nothing."""
    cluster = FakeCluster()

    async def whole() -> None:
        wire = Wire(cluster.api)
        async with at_work(cluster, wire):
            await story(cluster, wire)

    with around(cluster):
        virtual.run(whole())


def with_scheduler(story: Story) -> None:
    """With a scheduler that runs."""

    async def whole(cluster: FakeCluster, wire: Wire) -> None:
        STAGES["the first policy"].act(cluster)
        await until("Ready", lambda: STAGES["the first policy"].done(cluster))
        await asyncio.sleep(100)
        await story(cluster, wire)

    begun(whole)


@contextmanager
def with_settings(settings: str) -> Iterator[None]:
    """With other settings of the operator."""
    with patch("support.faults.leader.SETTINGS", parse_settings(settings)):
        yield


def drifted(cluster: FakeCluster) -> list[str]:
    return [one["note"] for _, one in cluster.api.of("events") if one["reason"] == "DriftCorrected"]
