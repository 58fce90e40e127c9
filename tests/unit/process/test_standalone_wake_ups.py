"""A process that is alone wakes refused members by itself: at most once a second, and again if that fails."""

import asyncio
from contextlib import suppress

import pytest

from fairlead.control.loop.waker import NAME, PAUSE_S, REQUESTED_S
from fairlead.process.standalone import _Wakes
from support.faults import virtual
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import FAULTS, Fault, Wire


def wakes(requests: list[float], until: float, fault: Fault | None = None) -> list[str]:
    """Return what was written when wake-ups were requested at these times."""

    async def run() -> list[str]:
        cluster = FakeCluster()
        wire = Wire(cluster.api, fault, at=0 if fault else -1)
        async with wire.client() as client:
            made = _Wakes(client, NAMESPACE)
            running = asyncio.ensure_future(made.run())
            for at in requests:
                asyncio.get_running_loop().call_later(at, made.request)
            await asyncio.sleep(until)
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        return [one for one in wire.writes if one.endswith(NAME)]

    return virtual.run(run())


@pytest.mark.parametrize(
    ("requests", "until", "fault", "number"),
    [
        ([], 60.0, None, 0),
        ([1.0], 60.0, None, 1),
        ([1.0, 1.1, 1.2], 60.0, None, 2),
        ([1.0, 1.0 + 2 * REQUESTED_S], 60.0, None, 2),
        ([1.0], 1.0 + PAUSE_S - 0.5, FAULTS["disk-full"], 1),
        ([1.0], 60.0, FAULTS["disk-full"], 2),
        ([1.0], 60.0, FAULTS["forbidden"], 1),
    ],
)
def test_wake_ups(requests: list[float], until: float, fault: Fault | None, number: int) -> None:
    found = wakes(requests, until, fault)
    assert len([one for one in found if one.startswith("patch")]) == number, found
