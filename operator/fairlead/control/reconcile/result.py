"""What a reconcile of one scheduler came to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from fairlead.control.decide.decide import Decision
from fairlead.kube.errors import ClusterError
from fairlead.pki.authority import AuthorityError


@dataclass(frozen=True, slots=True)
class Drift:
    """One of our objects that was changed or deleted by others."""

    kind: str
    message: str
    """Names the object, and says what had become of it."""


RolloutResult = Literal["verified", "rolled_back", "rejected"]
ROLLOUT_RESULTS: Final[tuple[RolloutResult, ...]] = get_args(RolloutResult)


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """A rollout that ended with this reconcile."""

    result: RolloutResult
    """Rejected: it failed, and there was no good configuration to go back to."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """Outcome of one reconcile of one scheduler."""

    decision: Decision | None = None
    policy_edits: Sequence[str] = ()
    """The edits of policies that it was decided from."""
    refused: str = ""
    """Why the scheduler cannot be had."""
    full: bool = False
    """True if that is only because there are too many others."""
    error: ClusterError | AuthorityError | None = None
    """Why the reconcile has to be done again."""
    missing_permission: str = ""
    """The permission for want of which the last reconcile failed."""
    failed: str = ""
    """Why else the last reconcile failed. It is done again."""
    gone: bool = False
    """True if nothing is left of the scheduler."""
    paused: bool = False
    """True if nothing was written because the scheduler is paused."""
    started_with_ca: str = ""
    """The authorities that all of its pods were started with, as PEM; empty if they differ, or are not known."""
    rollout: FinishedRollout | None = None
    drifts: Sequence[Drift] = ()
    """What others had changed or deleted, and is as it was."""

    @property
    def is_ready(self) -> bool:
        """Return whether the scheduler runs what is desired."""
        steady = self.decision is not None and self.decision.phase == "Steady" and not self.decision.message
        return steady and not (self.refused or self.failed or self.missing_permission)


NOTHING: Final = ReconcileResult()
