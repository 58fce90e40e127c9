"""Watch of the chart's bindings of schedulers, which all schedulers share: a change of one causes one sync."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn

from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.missing_permissions import MissingPermissions

_SUBJECTS: Final = "the bindings of schedulers do not have the accounts that exist"
_RETRY_S: Final = 30.0


@dataclass(slots=True, eq=False)
class BindingWatch:
    """Watch of one leader."""

    bindings: SchedulerBindings
    queue: SchedulerQueue
    missing_permissions: MissingPermissions
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> NoReturn:
        """Watch, and sync after each change, until cancelled; repeat a sync that fails."""
        async with asyncio.TaskGroup() as group:
            for one in self.bindings.watches(self._on_event):
                group.create_task(one.run())
            is_synced = True
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if is_synced else _RETRY_S):
                        await self._changed.wait()
                self._changed.clear()
                is_synced = await self.sync()

    async def sync(self) -> bool:
        """Bind the accounts that exist; return whether that succeeded. If not, each scheduler's status says so."""
        is_synced = await self.missing_permissions.attempt(_SUBJECTS, self.bindings.sync)
        if not is_synced:
            self.queue.enqueue_all()
        await self.queue.report_drifts()
        return is_synced

    def _on_event(self) -> None:
        self.bindings.is_synced = False
        self._changed.set()
