"""Which configuration a scheduler is to run, and how far it is: pure, decided anew each time from what is seen.

A configuration is tried, and is good once it was verified. One that fails, or is not verified in time, is put away, the
last good one is put back, and it is not tried again until something that decides it has changed.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.control.decide.rollout_observation import RolloutObservation

VERIFIED_WITHIN_S: Final = 180.0

Phase = Literal["Steady", "Rolling", "RolledBack", "Rejected"]
"""Rejected: it failed, and there is no good one to put back: it stays, and is good once it runs all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutAttempt:
    """A configuration that is on its way, or was put away."""

    config: str
    """Its hash."""
    inputs: str
    """A hash of all that a person could change to get another: it is tried again when that does."""
    since: float
    """Seconds since 1970."""
    why: str = ""
    """What was wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutState:
    """What has to be known after a restart."""

    good: str = ""
    """The hash of the configuration that was last verified."""
    trying: RolloutAttempt | None = None
    rejected: RolloutAttempt | None = None

    @property
    def unverified(self) -> str:
        """The hash of what is good as soon as it is seen to run; empty if nothing is."""
        waits = self.trying or (None if self.good else self.rejected)
        return "" if waits is None else waits.config


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStep:
    """What follows."""

    config: str
    """The hash to apply."""
    state: RolloutState
    """To be written before that is applied."""
    phase: Phase
    message: str = ""


def next_step(wanted: str, inputs: str, memory: RolloutState, seen: RolloutObservation, now: float) -> RolloutStep:
    """One pass."""
    rejected = memory.rejected
    if rejected is not None and (rejected.config, rejected.inputs) == (wanted, inputs):
        runs = not (memory.good or seen.failure or seen.missing) and seen.config == wanted
        return _steady(RolloutState(good=wanted), seen) if runs else _rolled_back_step(wanted, memory, seen)
    memory = replace(memory, rejected=None)
    if wanted == memory.good:
        return _steady(replace(memory, trying=None), seen)
    trying = memory.trying
    if trying is None or (trying.config, trying.inputs) != (wanted, inputs):
        # The time that a roll may take begins anew only with another configuration: edits of rules must not extend it.
        since = trying.since if trying is not None and trying.config == wanted else now
        trying = RolloutAttempt(config=wanted, inputs=inputs, since=since)
    memory = replace(memory, trying=trying)
    if seen.config != wanted:
        return RolloutStep(config=wanted, state=memory, phase="Rolling", message="its Deployment is being updated")
    if seen.failure:
        return _reject(memory, trying, seen.failure, now, seen)
    if not (missing := seen.missing):
        return _steady(RolloutState(good=wanted), seen)
    if now - trying.since >= VERIFIED_WITHIN_S:
        return _reject(memory, trying, f"not verified within {VERIFIED_WITHIN_S:g} s: {missing}", now, seen)
    return RolloutStep(config=wanted, state=memory, phase="Rolling", message=missing)


def _steady(memory: RolloutState, seen: RolloutObservation) -> RolloutStep:
    message = seen.failure or seen.pending_reason if seen.config == memory.good else "its Deployment is being restored"
    return RolloutStep(config=memory.good, state=memory, phase="Steady", message=message)


def _reject(memory: RolloutState, tried: RolloutAttempt, why: str, now: float, seen: RolloutObservation) -> RolloutStep:
    rejected = replace(tried, why=why, since=now)
    return _rolled_back_step(tried.config, replace(memory, trying=None, rejected=rejected), seen)


def _rolled_back_step(wanted: str, memory: RolloutState, seen: RolloutObservation) -> RolloutStep:
    why = memory.rejected.why if memory.rejected is not None else ""
    if not memory.good:
        message = f"configuration {wanted} is rejected: {why}"
        return RolloutStep(config=wanted, state=memory, phase="Rejected", message=message)
    back = "rolled back" if seen.config == memory.good and not seen.pending_reason else "rolling back"
    message = f"configuration {wanted} is rejected: {why}; {back} to the last good one, {memory.good}"
    return RolloutStep(config=memory.good, state=memory, phase="RolledBack", message=message)
