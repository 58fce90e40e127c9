"""One operator per cluster: of several namespaces one has the right to manage the policies, which have none.

It is a Lease that all of them know, held in a namespace's name by whichever of its replicas leads there, in a thread of
its own. It is not released when that replica leaves, only when the operator is uninstalled: the next replica goes on.
A namespace that has gone renews nothing, and another has the Lease when it has not changed for a while.
"""

import logging
from collections.abc import Callable
from typing import Final

from fairlead.api.names import GROUP, PLURAL
from fairlead.kube.access.access import Access
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.leader_election.elector import LEASES, Elector, LeaderTask

LOG: Final = logging.getLogger(__name__)
CLAIM: Final = LEASES.named("kube-system", f"{PLURAL}.{GROUP}")
"""Where those who may write into the namespace of one operator cannot."""
TERMS: Final = LeaseTimings(lease_s=60.0, act_s=40.0, retry_s=5.0, absent_s=6.0)
"""It lasts longer than it takes that another replica of the same namespace leads. One that is deleted its holder makes
anew with the next renewal."""
_CURE: Final = "a cluster can have only one operator: uninstall one of them"


class ClusterClaim:
    """The duty of the replica that leads in its namespace: to have another duty only while the claim is ours."""

    def __init__(
        self,
        access: Callable[[], Access],
        namespace: str,
        duty: LeaderTask,
        ended: Callable[[], object],
        *,
        terms: LeaseTimings = TERMS,
    ) -> None:
        """`ended` is called when nothing goes on of what was begun."""
        self._access, self._namespace, self._duty, self._ended, self._terms = access, namespace, duty, ended, terms
        self._elector: Elector | None = None

    def start(self) -> None:
        """Become a candidate."""
        self._elector = Elector(
            self._access,
            CLAIM,
            self._namespace,
            self._duty,
            terms=self._terms,
            releases=False,
            name="claim",
            met=self._met,
            over=self._ended,
        )
        self._elector.start()

    def stop(self) -> None:
        """Stop soon, and the duty at once."""
        self._duty.stop()
        if self._elector is not None:
            self._elector.leave()

    @property
    def stopped(self) -> bool:
        """Whether nothing of it goes on."""
        return (self._elector is None or self._elector.ended) and self._duty.stopped

    @property
    def left_s(self) -> float:
        """For how long it is ours if it is not renewed; 0 if it is not."""
        return self._elector.left_s if self._elector is not None else 0.0

    @property
    def other(self) -> str:
        """The namespace whose operator has it, where we would lead; empty if there is none."""
        elector = self._elector
        if elector is None or elector.ended or elector.is_leader or elector.holder == self._namespace:
            return ""
        return elector.holder

    @property
    def fault(self) -> str:
        """Why it is not ours where we would lead; empty if it is."""
        elector = self._elector
        if elector is None or elector.ended:
            return ""
        if other := self.other:
            return f"the operator in the namespace {other} manages the policies (it holds {CLAIM}); {_CURE}"
        return elector.fault

    def wake(self) -> None:
        """Look again at once: the duty has ended."""
        if self._elector is not None:
            self._elector.wake()

    def _met(self, holder: str) -> None:
        LOG.warning("leader.other_operator", extra={"namespace": holder, "hint": _CURE})
