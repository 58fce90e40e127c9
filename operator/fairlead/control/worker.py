"""Passes over one scheduler, one after the other: when something happens, and again after a pause when one failed."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.cluster.errors import ClusterError, ConflictError, ForbiddenError
from fairlead.control.authority import AuthorityError
from fairlead.control.passes import Passed

LOG: Final = logging.getLogger(__name__)
RESYNC_S: Final = 300.0
_QUIET_S: Final = 10.0
_AGAIN_S: Final = 2.0
_MOST_AGAIN_S: Final = 30.0
_NOTHING: Final = Passed()


@dataclass(slots=True, eq=False, kw_only=True)
class Worker:
    """Of one scheduler."""

    scheduler: str
    once: Callable[[], Awaitable[Passed]]
    """One pass. Raises ClusterError or AuthorityError where it has to be done again."""
    say: Callable[[Passed], Awaitable[None]]
    """Told what came of each."""
    is_over: Callable[[Passed], bool]
    """Whether there is nothing more to do for it."""
    passed: Passed = _NOTHING
    """What the last pass came to, or the one before those that failed."""
    _due: asyncio.Event = field(default_factory=asyncio.Event)
    _failures: int = 0

    def due(self) -> None:
        """Another pass soon."""
        self._due.set()

    async def run(self) -> None:
        """Until there is nothing more to do."""
        again = 0.0
        while True:
            try:
                async with asyncio.timeout(again):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            again = await self._pass()
            await self.say(self.passed)
            if self.is_over(self.passed) and not self._due.is_set():
                return

    async def _pass(self) -> float:
        """One pass; after how long the next one follows though nothing happens."""
        try:
            self.passed = await self.once()
        except (ClusterError, AuthorityError) as error:
            self._failures += 1
            again: float = min(_AGAIN_S * 2**self._failures, _MOST_AGAIN_S) * random.uniform(0.5, 1.0)  # noqa: S311  no secret
            if not isinstance(error, ConflictError) or self._failures > 1:  # it is seen next time who was faster
                lacks = isinstance(error, ForbiddenError) and error.is_of_rbac
                missing, failed = (str(error), "") if lacks else ("", str(error))
                self.passed = replace(self.passed, missing=missing, failed=failed)
            extra = {"scheduler": self.scheduler, "why": str(error), "again": f"{again:.0f} s"}
            LOG.warning("a pass failed", extra=extra)
            return again
        except Exception:
            self._failures += 1
            self.passed = replace(self.passed, missing="", failed="a fault of the operator: its log says more")
            LOG.exception("a pass failed, and it is a fault of ours", extra={"scheduler": self.scheduler})
            return _MOST_AGAIN_S
        self._failures = 0
        return rest_s(self.passed)


def rest_s(passed: Passed) -> float:
    """How long nothing has to be looked at."""
    decision = passed.decision
    if passed.refused:
        return _MOST_AGAIN_S
    resync = RESYNC_S * random.uniform(0.8, 1.2)  # noqa: S311  no secret
    if passed.paused:
        return resync
    if decision is not None and (decision.phase == "Rolling" or (decision.fate == "Goes" and not passed.gone)):
        return _AGAIN_S
    if decision is not None and decision.phase == "Steady" and decision.message:
        return _QUIET_S
    left = decision.again_s if decision is not None else None
    waits = decision is not None and decision.fate == "Waits"
    return min(resync, left + 0.1 if left is not None else resync, _QUIET_S if waits else resync)
