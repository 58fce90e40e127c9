"""Tasks of the capabilities run while the replica leads, and a fault of one ends no other."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from fairlead.process.tasks import LeaderTasks
from fairlead.webhook.capability import Capability
from support.faults import virtual


class Noted(Capability):
    """A capability that notes when it leads."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.noted = fails, list[str]()

    async def lead(self, is_leader: Callable[[], bool]) -> None:
        self.noted.append("begun")
        if self.fails:
            self.fails -= 1
            raise OSError("a fault")
        try:
            await asyncio.sleep(3600)
        finally:
            self.noted.append("ended as the leader" if is_leader() else "ended")


class Seat:
    leads = False


async def story(tasks: LeaderTasks, seat: Seat) -> None:
    running = asyncio.ensure_future(tasks.run())
    await asyncio.sleep(5)
    seat.leads = True
    await asyncio.sleep(5)
    seat.leads = False
    await asyncio.sleep(5)
    seat.leads = True
    await asyncio.sleep(60)
    await tasks.stop()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def test_they_run_while_this_replica_leads() -> None:
    seat, noted, idle = Seat(), Noted(), Capability()
    virtual.run(story(LeaderTasks([noted, idle], lambda: seat.leads), seat))
    assert noted.noted == ["begun", "ended", "begun", "ended as the leader"]


def test_one_that_fails_is_tried_again_and_ends_no_other() -> None:
    seat, noted, failing = Seat(), Noted(), Noted(fails=2)
    virtual.run(story(LeaderTasks([failing, noted], lambda: seat.leads), seat))
    assert noted.noted == ["begun", "ended", "begun", "ended as the leader"]
    assert failing.noted == ["begun", "begun", "begun", "ended as the leader"]
