"""Controller of the leader: takes the events of kopf, and runs the leader's background tasks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fairlead.control.decide.desired import Obj
from fairlead.control.loop.informer import PolicyInformer
from fairlead.control.loop.poller import ReplicaPoller
from fairlead.control.loop.queue import SchedulerQueue


@dataclass(slots=True, eq=False, kw_only=True)
class Controller:
    """Controller of one leader. All of it runs in one loop, which is not the one that serves."""

    informer: PolicyInformer
    queue: SchedulerQueue
    poller: ReplicaPoller
    background: Sequence[Callable[[], Awaitable[None]]] = ()
    """Other tasks that run while it leads."""

    def on_policy_event(self, kind: str | None, policy: Obj) -> None:
        """Handle an event of a policy."""
        self.informer.on_policy_event(kind, policy)

    def enqueue(self, scheduler: str) -> None:
        """Handle an event of an object of a scheduler."""
        self.queue.enqueue(scheduler)

    async def run(self) -> None:
        """Run until cancelled. Schedulers that the settings list are enqueued first: they exist without a policy."""
        for one in self.poller.settings().schedulers:
            self.enqueue(one.name)
        tasks = [asyncio.ensure_future(work()) for work in (self.poller.run, *self.background)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.queue.stop()
