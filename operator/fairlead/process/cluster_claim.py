"""Claim that one operator per cluster manages the policies, which are cluster-scoped.

The claim is a Lease in kube-system, or in the namespace that the settings name. Its holder is a namespace, and the
leader in that namespace renews it in its own thread. It is released only when the operator is uninstalled, so that the
next leader of the namespace continues. When a namespace is deleted, nothing renews the Lease, and another operator
takes it over after it expires.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from fairlead.api.names import GROUP, PLURAL
from fairlead.kube.access.login import Login
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.leader_election.elector import LEASES, Elector, LeaderTask
from fairlead.kube.resources import ObjectRef, Page
from fairlead.kube.watch.store import Meta
from fairlead.render.scheduler_bindings import KUBE_SYSTEM

LOG: Final = logging.getLogger(__name__)
CLAIM: Final = LEASES.named(KUBE_SYSTEM, f"{PLURAL}.{GROUP}")
"""Lease of the claim; in kube-system, where users of an operator's namespace cannot write."""
CLAIMS: Final = {"fieldSelector": f"metadata.name={CLAIM.name}"}
"""Query of the claims in all namespaces."""
TERMS: Final = LeaseTimings(lease_s=60.0, act_s=40.0, retry_s=5.0, absent_s=6.0)
"""It lasts longer than a change of the leader within a namespace. A deleted Lease is created again by its holder with
the next renewal."""
_HINT: Final = "a cluster can have only one operator: uninstall one of them"


class OtherClaimError(ClusterError):
    """Claim of another operator, in another namespace than ours."""


class _ClaimMeta(Meta, frozen=True):
    creationTimestamp: str = ""  # noqa: N815


class _ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class ClaimLease(msgspec.Struct, frozen=True):
    """Lease of a claim, as far as it matters to others."""

    metadata: _ClaimMeta = _ClaimMeta()
    spec: _ClaimSpec = _ClaimSpec()


_page: Final = msgspec.json.Decoder(Page[ClaimLease]).decode


class OtherClaims:
    """Claims of operators that were told another namespace for it.

    One of two must not lead: not the one in kube-system, where only administrators write; else not the older one.
    """

    def __init__(self, namespace: str, terms: LeaseTimings, clock: Clock | None = None) -> None:
        self.holder = ""
        """Namespace of the operator that leads by such a claim; "" if there is none."""
        self._namespace, self._terms, self._clock = namespace, terms, clock or Clock()
        self._changed: dict[str, tuple[str, float]] = {}
        """Version of each claim when it was last seen, and since when it has that, by its namespace."""

    async def check(self, client: Client, ours: ObjectRef) -> None:
        """Look for one. Raises OtherClaimError, or another ClusterError."""
        found = [one async for page in client.pages(LEASES, _page, query=CLAIMS) for one in page.items or ()]
        place = self.leading(found, ours.namespace)
        self.holder = next((one.spec.holder_identity or "" for one in found if one.metadata.namespace == place), "")
        if place:
            raise OtherClaimError(
                f"the operator in the namespace {self.holder} manages the policies, and has another claimNamespace: it "
                f"holds {CLAIM.named(place, CLAIM.name)}, and this one is to hold {ours}; {_HINT}, or if that is gone, "
                "delete its Lease"
            )

    def leading(self, claims: Sequence[ClaimLease], ours: str) -> str:
        """Return the namespace of the other claim that counts; "" if none does."""
        now, age = self._clock.now(), {one.metadata.namespace: one.metadata.creationTimestamp for one in claims}
        live = list[str]()
        for one in claims:
            place, version = one.metadata.namespace, one.metadata.resourceVersion
            if place == ours or one.spec.holder_identity in (None, "", self._namespace):
                continue
            before, since = self._changed.get(place, ("", now))
            since = since if before == version else now
            self._changed[place] = version, since
            if now < since + self._terms.lease_s:
                live.append(place)
        older = [one for one in live if ours not in age or (age[one], one) < (age[ours], ours)]
        return KUBE_SYSTEM if KUBE_SYSTEM in live else min(older, default="")


class ClusterClaim:
    """Leader task that runs another task only while the claim is ours."""

    def __init__(
        self,
        access: Callable[[], Login],
        namespace: str,
        task: LeaderTask,
        ended: Callable[[], object],
        place: Callable[[], str] = lambda: KUBE_SYSTEM,
        *,
        terms: LeaseTimings = TERMS,
    ) -> None:
        """Take the task to run; `ended` is called when the claim and the task have stopped, `place` at each start."""
        self._access, self._namespace, self._task, self._ended, self._terms = access, namespace, task, ended, terms
        self._elector: Elector | None = None
        self._place = place
        self._claims = OtherClaims(namespace, terms)

    def start(self) -> None:
        """Become a candidate."""
        where = CLAIM.named(self._place(), CLAIM.name)
        self._elector = Elector(
            self._access,
            where,
            self._namespace,
            self._task,
            terms=self._terms,
            releases=False,
            name="claim",
            met=self._met,
            over=self._ended,
            check=None if where == CLAIM else lambda client: self._claims.check(client, where),
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
        if elector is None or elector.ended or elector.is_leader:
            return ""
        return self._claims.holder or ("" if elector.holder == self._namespace else elector.holder)

    @property
    def fault(self) -> str:
        """Return why the claim is not ours although this replica leads; "" if it is ours."""
        elector = self._elector
        if elector is None or elector.ended:
            return ""
        if self._claims.holder:
            return elector.fault
        if other := self.other:
            claim = CLAIM.named(self._place(), CLAIM.name)
            return f"the operator in the namespace {other} manages the policies (it holds {claim}); {_HINT}"
        return elector.fault

    def wake(self) -> None:
        """Check again at once, because the task has stopped."""
        if self._elector is not None:
            self._elector.wake()

    def _met(self, holder: str) -> None:
        LOG.warning("leader.other_operator", extra={"namespace": holder, "hint": _HINT})
