"""Result of a reconcile of one scheduler."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from fairlead.control.decide.decide import ReconcileDecision
from fairlead.kube.errors import ClusterError
from fairlead.pki.authority import AuthorityError

RolloutResult = Literal["verified", "rolled_back", "rejected"]
ROLLOUT_RESULTS: Final[tuple[RolloutResult, ...]] = get_args(RolloutResult)


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """Rollout that ended with this reconcile."""

    result: RolloutResult
    """Rejected: it failed, and there was no good configuration to roll back to."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """Result of one reconcile of one scheduler."""

    decision: ReconcileDecision | None = None
    policy_edits: Sequence[str] = ()
    """Edit ids of the policies that it was decided from."""
    refused: str = ""
    """Why the scheduler cannot be managed."""
    full: bool = False
    """True if it is refused only because there are too many others."""
    error: ClusterError | AuthorityError | None = None
    """Why the reconcile has to be retried."""
    missing_permission: str = ""
    """The missing permission for which the last reconcile failed."""
    failed: str = ""
    """Why else the last reconcile failed. It is retried."""
    gone: bool = False
    """True if nothing is left of the scheduler."""
    paused: bool = False
    """True if nothing was written because the scheduler is paused."""
    started_with_ca: str = ""
    """The authorities that all of its pods were started with, in PEM; empty if they differ or are unknown."""
    rollout: FinishedRollout | None = None

    @property
    def is_ready(self) -> bool:
        """True if the scheduler runs the desired configuration."""
        steady = self.decision is not None and self.decision.phase == "Steady" and not self.decision.message
        return steady and not (self.refused or self.failed or self.missing_permission)


NOTHING: Final = ReconcileResult()
