"""Cache of lint warnings, for the status of policies; each generation of a policy is linted once.

A policy that accepts other warnings than before is linted again. Linting runs in pieces and with a share of the loop's
time, so that no status waits for the lint of another policy.
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
from fairlead.cooperative import Share, run_within_share
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.lint.acceptances import ACCEPT
from fairlead.policy.lint.codes import LintWarning
from fairlead.policy.lint.inspection import inspect_steps
from fairlead.policy.lint.policy_checks import warnings_steps

LOG: Final = logging.getLogger(__name__)
PART: Final = 1 / 10
_POLICIES_MAX: Final = 1000
Warnings = list[tuple[str, str, str]]
"""Reasons and messages, and why the policy's owner accepts them: "" if they are not accepted."""


@dataclass(slots=True, eq=False)
class _LintRun:
    generation: int
    accepts: str
    rules: CompileOptions
    warnings: Warnings | None = None
    remaining: asyncio.Task[None] | None = None


@dataclass(slots=True, eq=False)
class LintCache:
    """Cache of warnings, by the UIDs of policies."""

    model: type[SchedulerExtenderPolicy]
    options: Callable[[], CompileOptions]
    share: Share = field(default_factory=lambda: Share(perf_counter, PART))
    _runs: dict[str, _LintRun] = field(default_factory=dict)

    def __call__(self, policy: Mapping[str, Any], on_done: Callable[[], None]) -> Warnings | None:
        """Return the warnings of a policy; None while lint runs, which calls `on_done` at its end."""
        uid, generation, rules = policy["metadata"]["uid"], policy["metadata"]["generation"], self.options()
        accepts = str((policy["metadata"].get("annotations") or {}).get(ACCEPT, ""))
        run = self._runs.get(uid)
        if run is None or (run.generation, run.accepts) != (generation, accepts) or run.rules is not rules:
            self._forget(uid if run is not None or len(self._runs) < _POLICIES_MAX else next(iter(self._runs)))
            run = self._runs[uid] = _LintRun(generation, accepts, rules)
            self._start(run, policy, on_done)
        return run.warnings

    def _forget(self, uid: str) -> None:
        run = self._runs.pop(uid, None)
        if run is not None and run.remaining is not None:
            run.remaining.cancel()

    def _start(self, run: _LintRun, policy: Mapping[str, Any], on_done: Callable[[], None]) -> None:
        """Run lint until its share of the time is used, which most policies never reach, and the rest in a task."""
        pauses = self._pauses(run, policy)
        if pause := next(filter(None, pauses), 0.0):
            uid, rest = policy["metadata"]["uid"], itertools.chain((pause,), pauses)
            run.remaining = asyncio.get_running_loop().create_task(self._resume(uid, run, rest, on_done))

    async def _resume(self, uid: str, run: _LintRun, pauses: Iterable[float], on_done: Callable[[], None]) -> None:
        try:
            for each in pauses:
                await asyncio.sleep(each)
        except asyncio.CancelledError:  # the next leader lints it again
            if self._runs.get(uid) is run:
                del self._runs[uid]
            raise
        on_done()

    def _pauses(self, run: _LintRun, policy: Mapping[str, Any]) -> Generator[float, None, None]:
        """Run lint; yield after each piece for how long to pause."""
        try:
            inspected = yield from run_within_share(
                inspect_steps(policy, self.model, run.rules, warnings_steps), self.share
            )
        except Exception:  # it has no warnings then, and is not linted again
            LOG.exception("lint.fault", extra={"policy": policy["metadata"].get("name", "")})
            run.warnings = []
        else:
            found = (one for one in inspected.warnings if one.severity != "note")
            run.warnings = [(one.reason.value, _as_text(one), one.accepted) for one in found]


def _as_text(warning: LintWarning) -> str:
    return f"{render_path(warning.path)}: {warning.message}" + (f"; {warning.hint}" if warning.hint else "")
