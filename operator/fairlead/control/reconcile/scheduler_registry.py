"""Registry of the schedulers: which exist, which may start, and the result of the last reconcile of each.

All workers of a leader share it. A scheduler counts as existing from just before its first object is written until
nothing is left of it, so that two that start at once never take the same place.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.names import scheduler_of
from fairlead.control.decide import unlisted_schedulers
from fairlead.control.decide.desired import PolicyIndex, is_being_deleted, is_paused
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulers
from fairlead.control.reconcile.result import NOTHING, ReconcileResult
from fairlead.render.operator_settings import OperatorSettings


@dataclass(slots=True, eq=False, kw_only=True)
class SchedulerRegistry:
    """Registry of one operator's schedulers."""

    policy_index: PolicyIndex
    managed: ManagedSchedulers
    settings: Callable[[], OperatorSettings]
    now: Callable[[], datetime]
    results: dict[str, ReconcileResult] = field(default_factory=dict)
    """Result of the last reconcile of each scheduler that has a worker; failures keep the one before."""
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Two that start at once would take the same place."""

    def result(self, scheduler: str) -> ReconcileResult:
        """Return the result of the last reconcile of a scheduler."""
        return self.results.get(scheduler, NOTHING)

    def is_listed(self, scheduler: str) -> bool:
        """Return whether the settings list a scheduler: then it exists without any policy."""
        return self.settings().lists(scheduler)

    def is_paused(self, scheduler: str) -> bool:
        """Return whether a policy pauses a scheduler."""
        return is_paused(self.policy_index.policies_of(scheduler))

    def is_there(self, scheduler: str) -> bool:
        """Return whether a scheduler may exist."""
        return scheduler in self.managed.existing or self._ran_before(scheduler)

    def is_finished(self, scheduler: str) -> bool:
        """Return whether nothing is left to do for a scheduler."""
        result = self.result(scheduler)
        over = result.gone or (result.refused and not self.is_listed(scheduler))
        return bool(over) and not self.policy_index.policies_of(scheduler)

    def denial_reason(self, scheduler: str) -> str:
        """Return why a scheduler may not exist; "" if it may."""
        return unlisted_schedulers.denial_reason(scheduler, self.settings())

    def no_room_reason(self, scheduler: str) -> str:
        """Return why a scheduler may not start beside the others; "" if it may, or if no policy names it."""
        if all(map(is_being_deleted, self.policy_index.policies_of(scheduler))):
            return ""
        return unlisted_schedulers.no_room_reason(
            scheduler, self.settings(), self.managed.existing, lambda: self._requested_since(scheduler)
        )

    async def start(self, scheduler: str) -> None:
        """Record that a scheduler is ours from now on. Raises InvalidObjectError if others took its place."""
        async with self._starting:
            if not self.is_there(scheduler) and (why := self.no_room_reason(scheduler)):
                raise InvalidObjectError([FieldError(("schedulers",), why)])
            await self.managed.record(scheduler, self.now())

    def waiting_for_room(self) -> Sequence[str]:
        """Return the schedulers that may start when another one is gone."""
        return [name for name, one in self.results.items() if one.full]

    def started_with_ca(self, scheduler: str) -> Mapping[str, str]:
        """Return the authorities that the pods of each existing scheduler, and of this one, were started with."""
        return {
            name: one.started_with_ca
            for name, one in self.results.items()
            # others have no certificate, and may still be refused
            if name == scheduler or self.is_listed(name) or self.is_there(name) or one.started_with_ca
            if not (one.refused or one.gone)
        }

    def paused_before_start(self, schedulers: Collection[str]) -> Sequence[str]:
        """Return those of the schedulers that are paused and do not exist yet."""
        return [name for name in schedulers if self.is_paused(name) and not self.is_there(name)]

    def _requested_since(self, scheduler: str) -> Mapping[str, str]:
        """Return since when each scheduler is requested, without paused ones and those refused for other reasons."""
        policies = self.policy_index.policies.values()
        idle = {scheduler_of(one) for one in policies if is_paused([one])}
        idle |= {name for name, one in self.results.items() if one.refused and not one.full}
        requested = unlisted_schedulers.requested_since(policies)
        return {name: since for name, since in requested.items() if name == scheduler or name not in idle}

    def _ran_before(self, scheduler: str) -> bool:
        """Return whether a policy's status says that it ran: statuses survive a reinstalled operator."""
        found = [one.get("status", {}).get("scheduler", {}) for one in self.policy_index.policies_of(scheduler)]
        return any(one.get("name") == scheduler and one.get("lastGoodConfigHash") for one in found)
