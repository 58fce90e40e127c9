"""Rollout of a scheduler's configuration: pure, decided in each reconcile from what is observed.

A candidate is good once it was verified. A candidate that fails, or is not verified in time, is rejected, and the
scheduler is rolled back to the last good configuration. A rejected one is not tried again until its inputs change.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.control.decide.rollout_observation import RolloutObservation

VERIFIED_WITHIN_S: Final = 180.0

RolloutPhase = Literal["Steady", "Rolling", "RolledBack", "Rejected"]
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

    last_good: str = ""
    """Hash of the last good configuration."""
    candidate: RolloutAttempt | None = None
    rejected: RolloutAttempt | None = None

    @property
    def unverified(self) -> str:
        """Hash of the configuration that becomes good once it is verified; empty if there is none."""
        waits = self.candidate or (None if self.last_good else self.rejected)
        return "" if waits is None else waits.config


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutStep:
    """Outcome of one step: the configuration to apply, the state to persist first, phase and message."""

    config: str
    """Hash of the configuration to apply."""
    state: RolloutState
    """State to persist before that is applied."""
    phase: RolloutPhase
    message: str = ""


def next_step(desired: str, inputs: str, state: RolloutState, observed: RolloutObservation, now: float) -> RolloutStep:
    """Return the next step of a rollout."""
    rejected = state.rejected
    if rejected is not None and (rejected.config, rejected.inputs) == (desired, inputs):
        runs = not (state.last_good or observed.failure or observed.missing) and observed.config == desired
        return (
            _steady(RolloutState(last_good=desired), observed) if runs else _rolled_back_step(desired, state, observed)
        )
    state = replace(state, rejected=None)
    if desired == state.last_good:
        return _steady(replace(state, candidate=None), observed)
    candidate = state.candidate
    if candidate is None or (candidate.config, candidate.inputs) != (desired, inputs):
        # Only another configuration restarts the deadline of the rollout: edits of rules must not extend it.
        since = candidate.since if candidate is not None and candidate.config == desired else now
        candidate = RolloutAttempt(config=desired, inputs=inputs, since=since)
    state = replace(state, candidate=candidate)
    if observed.config != desired:
        return RolloutStep(config=desired, state=state, phase="Rolling", message="its Deployment is being updated")
    if observed.failure:
        return _reject(state, candidate, observed.failure, now, observed)
    if not (missing := observed.missing):
        return _steady(RolloutState(last_good=desired), observed)
    if now - candidate.since >= VERIFIED_WITHIN_S:
        return _reject(state, candidate, f"not verified within {VERIFIED_WITHIN_S:g} s: {missing}", now, observed)
    return RolloutStep(config=desired, state=state, phase="Rolling", message=missing)


def _steady(state: RolloutState, observed: RolloutObservation) -> RolloutStep:
    message = (
        observed.failure or observed.pending_reason
        if observed.config == state.last_good
        else "its Deployment is being restored"
    )
    return RolloutStep(config=state.last_good, state=state, phase="Steady", message=message)


def _reject(
    state: RolloutState, attempt: RolloutAttempt, why: str, now: float, observed: RolloutObservation
) -> RolloutStep:
    rejected = replace(attempt, why=why, since=now)
    return _rolled_back_step(attempt.config, replace(state, candidate=None, rejected=rejected), observed)


def _rolled_back_step(desired: str, state: RolloutState, observed: RolloutObservation) -> RolloutStep:
    why = state.rejected.why if state.rejected is not None else ""
    if not state.last_good:
        message = f"configuration {desired} is rejected: {why}"
        return RolloutStep(config=desired, state=state, phase="Rejected", message=message)
    back = "rolled back" if observed.config == state.last_good and not observed.pending_reason else "rolling back"
    message = f"configuration {desired} is rejected: {why}; {back} to the last good one, {state.last_good}"
    return RolloutStep(config=state.last_good, state=state, phase="RolledBack", message=message)
