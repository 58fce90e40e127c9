"""Watch of the chart's bindings of schedulers, which all schedulers share: a change of one causes one sync."""

import asyncio
from dataclasses import dataclass, field
from typing import Final, NoReturn

from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.missing_permissions import MissingPermissions

SUBJECTS: Final = "the bindings of schedulers do not have the accounts that exist"


@dataclass(slots=True, eq=False)
class BindingWatch:
    """Watch of one leader."""

    bindings: SchedulerBindings
    queue: SchedulerQueue
    missing_permissions: MissingPermissions
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> NoReturn:
        """Watch, and sync after each change, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self.bindings.watches(self._on_event):
                group.create_task(one.run())
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self.sync()

    async def sync(self) -> None:
        """Bind the accounts that exist; if that fails, the reconciles try again, and statuses say why."""
        if not await self.missing_permissions.attempt(SUBJECTS, self.bindings.sync):
            self.queue.enqueue_all()
        await self.queue.report_drifts()

    def _on_event(self) -> None:
        self.bindings.is_synced = False
        self._changed.set()
