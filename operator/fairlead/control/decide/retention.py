"""How long what nobody needs any more is kept: a verb, and a scheduler. Pure.

A policy that is renamed in Git goes before it comes again. If that took a verb away, schedulers would roll twice.
"""

from dataclasses import dataclass
from typing import Final, Literal

from fairlead.render.extenders import Wiring

VERB_S: Final = 60.0
SCHEDULER_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionState:
    """What has to be known after a restart; times in seconds since 1970."""

    wiring: Wiring | None = None
    """What the scheduler has."""
    narrower_since: float | None = None
    """Since when its policies need less than that."""
    empty_since: float | None = None
    """Since when there are no policies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedWiring:
    """What follows."""

    wiring: Wiring
    retention: RetentionState
    requeue_after_s: float | None = None
    """When this may become another without any event."""


def retained_wiring(uses: Wiring | None, before: RetentionState, now: float) -> RetainedWiring:
    """What a scheduler is wired with whose policies use this; None: it has no policies."""
    empty_since = None if uses is not None else before.empty_since if before.empty_since is not None else now
    used = Wiring() if uses is None else uses
    if before.wiring is None or before.wiring | used == used:
        lasting = RetentionState(wiring=used, empty_since=empty_since)
        return RetainedWiring(wiring=used, retention=lasting)
    since = before.narrower_since if before.narrower_since is not None else now
    left = since + (SCHEDULER_S if uses is None else VERB_S) - now
    if left <= 0:
        return RetainedWiring(wiring=used, retention=RetentionState(wiring=used, empty_since=empty_since))
    kept = before.wiring | used
    lasting = RetentionState(wiring=kept, narrower_since=since, empty_since=empty_since)
    return RetainedWiring(wiring=kept, retention=lasting, requeue_after_s=left)


def retention_decision(
    *, listed: bool, lasting: RetentionState, unbound: int, now: float
) -> tuple[Literal["Stays", "Waits", "Goes"], str]:
    """Whether a scheduler that has no policies is taken away, and why not yet."""
    if listed or lasting.empty_since is None:
        return "Stays", ""
    left = lasting.empty_since + SCHEDULER_S - now
    if left > 0:
        return "Waits", f"no policy uses it any more; it will be deleted in {left:.0f} s"
    if unbound:
        return "Waits", f"no policy uses it any more, but {unbound} pending pods name it"
    return "Goes", "no policy uses it any more, and no pending pod names it"
