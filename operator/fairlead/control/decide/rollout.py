"""Rollout of a scheduler's configuration: pure, decided in each reconcile from what is observed.

A candidate is good once it was verified. A candidate that fails, or is not verified in time, is rejected, and the
scheduler is rolled back to the last good configuration. A rejected one is not tried again until its inputs change.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.control.decide.rollout_observation import RolloutObservation

VERIFIED_WITHIN_S: Final = 180.0

Phase = Literal["Steady", "Rolling", "RolledBack", "Rejected"]
"""Rejected: it failed, and there is no good one to roll back to. It stays, and becomes good if it runs after all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutAttempt:
    """Candidate configuration, or one that was rejected."""

    config: str
    """Hash of the configuration."""
    inputs: str
    """Hash of everything that users can change: when it differs, the configuration is tried again."""
    since: float
    """Seconds since 1970."""
    why: str = ""
    """Why it was rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutState:
    """Persisted state of the rollouts of one scheduler."""

    good: str = ""
    """Hash of the last good configuration."""
    trying: RolloutAttempt | None = None
    rejected: RolloutAttempt | None = None

    @property
    def unverified(self) -> str:
        """Hash of the configuration that becomes good once it is verified; empty if there is none."""
        waits = self.trying or (None if self.good else self.rejected)
        return "" if waits is None else waits.config


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStep:
    """Outcome of one step: the configuration to apply, the state to persist first, phase and message."""

    config: str
    """Hash of the configuration to apply."""
    state: RolloutState
    """State to persist before that is applied."""
    phase: Phase
    message: str = ""


def next_step(wanted: str, inputs: str, memory: RolloutState, seen: RolloutObservation, now: float) -> RolloutStep:
    """Return the next step of a rollout."""
    rejected = memory.rejected
    if rejected is not None and (rejected.config, rejected.inputs) == (wanted, inputs):
        runs = not (memory.good or seen.failure or seen.missing) and seen.config == wanted
        return _steady(RolloutState(good=wanted), seen) if runs else _rolled_back_step(wanted, memory, seen)
    memory = replace(memory, rejected=None)
    if wanted == memory.good:
        return _steady(replace(memory, trying=None), seen)
    trying = memory.trying
    if trying is None or (trying.config, trying.inputs) != (wanted, inputs):
        # Only another configuration restarts the deadline of the rollout: edits of rules must not extend it.
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
