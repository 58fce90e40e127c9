"""Retention of verbs and schedulers that no policy needs any more. Pure.

When a policy is renamed in Git, the old one is deleted before the new one is created. Without retention that would
remove a verb for a moment and roll the scheduler twice.
"""

from dataclasses import dataclass
from typing import Final, Literal

from fairlead.render.extenders import Wiring

VERB_S: Final = 60.0
SCHEDULER_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionState:
    """Persisted state of the retention of one scheduler; times in seconds since 1970."""

    wiring: Wiring | None = None
    """The wiring that the scheduler has."""
    narrower_since: float | None = None
    """Time since which its policies need less than that."""
    empty_since: float | None = None
    """Time since which it has no policies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedWiring:
    """Wiring of a scheduler, including what is retained."""

    wiring: Wiring
    retention: RetentionState
    requeue_after_s: float | None = None
    """Time until the next change that needs no event."""


def retained_wiring(uses: Wiring | None, before: RetentionState, now: float) -> RetainedWiring:
    """Return the wiring of a scheduler whose policies use this; None means that it has no policies."""
    empty_since = None if uses is not None else before.empty_since if before.empty_since is not None else now
    used = Wiring() if uses is None else uses
    if before.wiring is None or before.wiring | used == used:
        retention = RetentionState(wiring=used, empty_since=empty_since)
        return RetainedWiring(wiring=used, retention=retention)
    since = before.narrower_since if before.narrower_since is not None else now
    left = since + (SCHEDULER_S if uses is None else VERB_S) - now
    if left <= 0:
        return RetainedWiring(wiring=used, retention=RetentionState(wiring=used, empty_since=empty_since))
    kept = before.wiring | used
    retention = RetentionState(wiring=kept, narrower_since=since, empty_since=empty_since)
    return RetainedWiring(wiring=kept, retention=retention, requeue_after_s=left)


def retention_decision(
    *, listed: bool, retention: RetentionState, pending_pods: int, now: float
) -> tuple[Literal["Keep", "Retain", "Delete"], str]:
    """Return whether a scheduler without policies is deleted, and why or why not yet."""
    if listed or retention.empty_since is None:
        return "Keep", ""
    left = retention.empty_since + SCHEDULER_S - now
    if left > 0:
        return "Retain", f"no policy uses it any more; it will be deleted in {left:.0f} s"
    if pending_pods:
        return "Retain", f"no policy uses it any more, but {pending_pods} pending pods name it"
    return "Delete", "no policy uses it any more, and no pending pod names it"
