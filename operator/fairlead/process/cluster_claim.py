"""Claim that one operator per cluster manages the policies, which are cluster-scoped.

The claim is a Lease in kube-system. Its holder is a namespace, and the leader in that namespace renews it in its own
thread. It is released only when the operator is uninstalled, so that the next leader of the namespace continues. When a
namespace is deleted, nothing renews the Lease, and another operator takes it over after it expires.
"""

import logging
from collections.abc import Callable
from typing import Final

from fairlead.api.names import GROUP, PLURAL
from fairlead.kube.access.login import Login
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.leader_election.elector import LEASES, Elector, LeaderTask

LOG: Final = logging.getLogger(__name__)
CLAIM: Final = LEASES.named("kube-system", f"{PLURAL}.{GROUP}")
"""Lease of the claim; in kube-system, where users of an operator's namespace cannot write."""
TERMS: Final = LeaseTimings(lease_s=60.0, act_s=40.0, retry_s=5.0, absent_s=6.0)
"""It lasts longer than a change of the leader within a namespace. A deleted Lease is created again by its holder with
the next renewal."""
_HINT: Final = "a cluster can have only one operator: uninstall one of them"


class ClusterClaim:
    """Leader task that runs another task only while the claim is ours."""

    def __init__(
        self,
        access: Callable[[], Login],
        namespace: str,
        task: LeaderTask,
        ended: Callable[[], object],
        *,
        terms: LeaseTimings = TERMS,
    ) -> None:
        """Take the task to run; `ended` is called when the claim and the task have stopped."""
        self._access, self._namespace, self._task, self._ended, self._terms = access, namespace, task, ended, terms
        self._elector: Elector | None = None

    def start(self) -> None:
        """Become a candidate."""
        self._elector = Elector(
            self._access,
            CLAIM,
            self._namespace,
            self._task,
            terms=self._terms,
            releases=False,
            name="claim",
            met=self._met,
            over=self._ended,
        )
        self._elector.start()

    def stop(self) -> None:
        """Stop soon, and the task at once."""
        self._task.stop()
        if self._elector is not None:
            self._elector.leave()

    @property
    def stopped(self) -> bool:
        """True if neither the claim nor the task runs."""
        return (self._elector is None or self._elector.ended) and self._task.stopped

    @property
    def left_s(self) -> float:
        """Seconds for which the claim is ours without a renewal; 0 if it is not ours."""
        return self._elector.left_s if self._elector is not None else 0.0

    @property
    def other(self) -> str:
        """Namespace of the operator that holds the claim instead of us; empty if there is none."""
        elector = self._elector
        if elector is None or elector.ended or elector.is_leader or elector.holder == self._namespace:
            return ""
        return elector.holder

    @property
    def fault(self) -> str:
        """Return why the claim is not ours although this replica leads; "" if it is ours."""
        elector = self._elector
        if elector is None or elector.ended:
            return ""
        if other := self.other:
            return f"the operator in the namespace {other} manages the policies (it holds {CLAIM}); {_HINT}"
        return elector.fault

    def wake(self) -> None:
        """Check again at once, because the task has stopped."""
        if self._elector is not None:
            self._elector.wake()

    def _met(self, holder: str) -> None:
        LOG.warning("leader.other_operator", extra={"namespace": holder, "hint": _HINT})
