"""What lint warns of, for the status of a policy; looked for once for each generation.

In pieces, which share a part of the time: nobody's status waits for what lint says of somebody else's policy.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

from fairlead.api.errors import render_path
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import Share, paid
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.lint.codes import LintWarning
from fairlead.policy.lint.inspection import inspect_steps

LOG: Final = logging.getLogger(__name__)
PART: Final = 1 / 10
_MOST: Final = 1000
Warnings = list[tuple[str, str]]
"""Reasons and sentences."""


@dataclass(slots=True, eq=False)
class _LintRun:
    generation: int
    rules: CompileOptions
    found: Warnings | None = None
    remaining: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class LintCache:
    """Warnings, by the UIDs of policies."""

    model: type[SchedulerExtenderPolicy]
    options: Callable[[], CompileOptions]
    share: Share = field(default_factory=lambda: Share(perf_counter, PART))
    _runs: dict[str, _LintRun] = field(default_factory=dict)

    def __call__(self, policy: Mapping[str, Any], found: Callable[[], None]) -> Warnings | None:
        """Of a policy as the API server has it; None while it is being looked at: then `found` is told of the end."""
        uid, generation, rules = policy["metadata"]["uid"], policy["metadata"]["generation"], self.options()
        look = self._runs.get(uid)
        if look is None or look.generation != generation or look.rules is not rules:
            self._forget(uid if look is not None or len(self._runs) < _MOST else next(iter(self._runs)))
            look = self._runs[uid] = _LintRun(generation, rules)
            self._begin(look, policy, found)
        return look.found

    def _forget(self, uid: str) -> None:
        look = self._runs.pop(uid, None)
        if look is not None and look.remaining is not None:
            look.remaining.cancel()

    def _begin(self, look: _LintRun, policy: Mapping[str, Any], found: Callable[[], None]) -> None:
        """Most are looked at in less time than may be taken at once."""
        pauses = self._pauses(look, policy)
        if pause := next(filter(None, pauses), 0.0):
            uid, rest = policy["metadata"]["uid"], itertools.chain((pause,), pauses)
            look.remaining = asyncio.get_running_loop().create_task(self._go_on(uid, look, rest, found))

    async def _go_on(self, uid: str, look: _LintRun, pauses: Iterable[float], found: Callable[[], None]) -> None:
        try:
            for each in pauses:
                await asyncio.sleep(each)
        except asyncio.CancelledError:  # whoever leads next looks at it again
            if self._runs.get(uid) is look:
                del self._runs[uid]
            raise
        found()

    def _pauses(self, look: _LintRun, policy: Mapping[str, Any]) -> Generator[float, None, None]:
        """Look at it, and tell after each piece for how long to give the time to others."""
        try:
            inspected = yield from paid(inspect_steps(policy, self.model, look.rules), self.share)
        except Exception:  # nothing is said of it, and it is not tried again
            LOG.exception("lint.fault", extra={"policy": policy["metadata"].get("name", "")})
            look.found = []
        else:
            found = (one for one in inspected.warnings if one.severity == "warning")
            look.found = [(one.reason.value, _as_text(one)) for one in found]


def _as_text(one: LintWarning) -> str:
    return f"{render_path(one.path)}: {one.message}" + (f"; {one.hint}" if one.hint else "")
