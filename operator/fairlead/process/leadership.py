"""Leadership of a replica: the election, and the controller of the leader, in their own threads."""

import os
import socket
from typing import TYPE_CHECKING

from fairlead.control.certificates.leader_certificates import OwnAuthority
from fairlead.control.loop.controller import leader_controller
from fairlead.control.loop.kopf_runtime import Runtime, session
from fairlead.control.loop.leader_context import LeaderContext, OperatorService
from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.control.status.lint_cache import LintCache
from fairlead.kube.access.login import Login, log_in
from fairlead.kube.http.client import Client
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.leader_election.elector import LEASES, Elector, identity
from fairlead.process.cluster_claim import ClusterClaim
from fairlead.process.settings import Address
from fairlead.render.object_names import LEASE

if TYPE_CHECKING:
    from fairlead.process.operator import OperatorReplica


class Leadership:
    """Leadership of one replica: the election, the cluster claim and kopf's runtime."""

    def __init__(self, operator: "OperatorReplica") -> None:
        own, core = operator.own, operator.core
        settings, me = operator.settings, operator.settings.pod or socket.gethostname()

        def access() -> Login:
            return log_in(settings.kubeconfig, settings.context)

        known = LeaderContext(
            client=lambda: Client(
                access(),
                deadline_s=LeaseTimings().act_s,
                writes_for_s=lambda: self.left_s,
                on_response=core.api_requests.add,
            ),
            model=core.strategies.model,
            settings=lambda: operator.file.settings,
            service=OperatorService(
                namespace=settings.namespace,
                name=settings.service,
                port=settings.listen.port,
                admission_port=settings.admission.port if settings.admission is not None else 0,
                publishes_authority=settings.metrics is not None,
                selector=settings.selector,
                url=f"https://{settings.service}.{settings.namespace}.svc:{settings.listen.port}",
            ),
            instance=me,
            authority=OwnAuthority(
                read=lambda: own.material.authority if own is not None else None,
                is_rotation_requested=lambda: own is not None and own.material.requested,
                context=operator.operator_context,
            ),
            nodes=lambda: len(core.mirror.nodes.slots) if core.mirror_feed.synced else None,
            is_leader=lambda: self.is_leader,
            warnings=LintCache(core.strategies.model, lambda: core.policies.options),
            metrics=LeaderMetrics(core.metrics),
        )
        self.runtime = Runtime(
            lambda: leader_controller(known), lambda: session(access()), settings.namespace, lambda: self.claim.wake()
        )
        self.claim = ClusterClaim(
            access,
            settings.namespace,
            self.runtime,
            lambda: self.elector.wake(),
            lambda: operator.file.settings.claim_namespace,
        )
        where = LEASES.named(settings.namespace, LEASE)
        self.elector = Elector(
            access,
            where,
            identity(me, settings.pod_uid or str(os.getpid())),
            self.claim,
            address=str(Address(settings.address, settings.listen.port)) if settings.address else "",
        )
        core.groups.wake = self.runtime.wake_pods
        core.metrics.gauge("fairlead_leader", "1 on the replica that leads.", ask=lambda: {(): int(self.is_leader)})
        core.metrics.gauge(
            "fairlead_other_operator",
            "1 on the replica that would lead, while the operator in another namespace manages the policies.",
            "namespace",
            ask=lambda: {(other,): 1} if (other := self.claim.other) else {},
        )

    def start(self) -> None:
        """Become a candidate."""
        self.elector.start()

    def stop(self, within_s: float) -> None:
        """Stop leading and release the Lease. Waits."""
        self.elector.stop(within_s)

    @property
    def other_leader(self) -> str:
        """Return the address and port of the replica that leads; "" if it is this one, or none is known."""
        return "" if self.elector.is_leader else self.elector.other_address

    @property
    def left_s(self) -> float:
        """Seconds for which it leads without a renewal; 0 if it does not lead."""
        return min(self.elector.left_s, self.claim.left_s)

    @property
    def is_leader(self) -> bool:
        """True if it leads now."""
        return self.left_s > 0

    @property
    def has_lease(self) -> bool:
        """True if the Lease is its own now, also while another operator manages the policies."""
        return self.elector.left_s > 0

    def summary(self) -> str:
        """Return one line for /readyz: who leads, and what keeps this replica from leading."""
        leader = "this replica" if self.elector.is_leader else self.elector.holder.partition("_")[0] or "none yet"
        faults = [self.elector.fault, *((self.claim.fault, self.runtime.fault) if self.elector.is_leader else ())]
        return "; ".join(filter(None, [leader, *faults]))
