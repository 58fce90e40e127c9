"""Registry of the schedulers: which are there, which may start beside them, and what the last reconcile came to.

All workers of a leader share it. A scheduler counts as there from the moment before the first of its objects is
written until nothing is left of it, so that two that start at once never take the same place.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.control.decide import unlisted_schedulers
from fairlead.control.decide.desired import PolicyIndex, is_leaving, is_paused, scheduler_of
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulers
from fairlead.control.reconcile.result import NOTHING, ReconcileResult
from fairlead.render.operator_settings import OperatorSettings


@dataclass(slots=True, eq=False, kw_only=True)
class SchedulerRegistry:
    """Schedulers of one operator."""

    policy_index: PolicyIndex
    managed: ManagedSchedulers
    settings: Callable[[], OperatorSettings]
    now: Callable[[], datetime]
    results: dict[str, ReconcileResult] = field(default_factory=dict)
    """Of all that have a worker: what the last reconcile came to, or the one before those that failed."""
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Two at once would take the same place."""

    def result(self, scheduler: str) -> ReconcileResult:
        """Return what the last reconcile of a scheduler came to."""
        return self.results.get(scheduler, NOTHING)

    def is_listed(self, scheduler: str) -> bool:
        """Return whether the settings list it: then it is there without any policy."""
        return self.settings().lists(scheduler)

    def is_paused(self, scheduler: str) -> bool:
        """Return whether a policy says that it is to stay as it is."""
        return is_paused(self.policy_index.policies_of(scheduler))

    def is_there(self, scheduler: str) -> bool:
        """Return whether something of it may be there."""
        return scheduler in self.managed.there or self._ran_before(scheduler)

    def is_finished(self, scheduler: str) -> bool:
        """Return whether there is nothing more to do for it."""
        result = self.result(scheduler)
        over = result.gone or (result.refused and not self.is_listed(scheduler))
        return bool(over) and not self.policy_index.policies_of(scheduler)

    def denial_reason(self, scheduler: str) -> str:
        """Return why it may not be there, whether it is or not; "" if it may."""
        return unlisted_schedulers.denial_reason(scheduler, self.settings())

    def no_room_reason(self, scheduler: str) -> str:
        """Return why it may not start beside the others; "" if it may, and where no policy asks for it."""
        if all(map(is_leaving, self.policy_index.policies_of(scheduler))):
            return ""
        return unlisted_schedulers.no_room_reason(
            scheduler, self.settings(), self.managed.there, lambda: self._asked_since(scheduler)
        )

    async def start(self, scheduler: str) -> None:
        """Record that it is ours from now on. Raises InvalidObjectError where others have taken its place."""
        async with self._starting:
            if not self.is_there(scheduler) and (why := self.no_room_reason(scheduler)):
                raise InvalidObjectError([FieldError(("schedulers",), why)])
            await self.managed.note(scheduler, self.now())

    def waiting_for_room(self) -> Sequence[str]:
        """Return those that may start now that another one has gone."""
        return [name for name, one in self.results.items() if one.full]

    def started_with_ca(self, scheduler: str) -> Mapping[str, str]:
        """Return which authorities each scheduler's pods were started with: of all that are there, and of this one."""
        return {
            name: one.started_with_ca
            for name, one in self.results.items()
            # no other has a certificate: it may be refused in a moment
            if name == scheduler or self.is_listed(name) or self.is_there(name) or one.started_with_ca
            if not (one.refused or one.gone)
        }

    def paused_before_start(self, schedulers: Collection[str]) -> Sequence[str]:
        """Return those of them that are not to start."""
        return [name for name in schedulers if self.is_paused(name) and not self.is_there(name)]

    def _asked_since(self, scheduler: str) -> Mapping[str, str]:
        """Return since when each is asked for, without those that are refused for another reason, or paused."""
        policies = self.policy_index.policies.values()
        idle = {scheduler_of(one) for one in policies if is_paused([one])}
        idle |= {name for name, one in self.results.items() if one.refused and not one.full}
        asked = unlisted_schedulers.asked_since(policies)
        return {name: since for name, since in asked.items() if name == scheduler or name not in idle}

    def _ran_before(self, scheduler: str) -> bool:
        """Return whether a policy's status says so: it outlives an operator, and may be about another scheduler."""
        found = [one.get("status", {}).get("scheduler", {}) for one in self.policy_index.policies_of(scheduler)]
        return any(one.get("name") == scheduler and one.get("lastGoodConfigHash") for one in found)
