"""The part of a replica that may lead: the election and what its winner does, in threads of their own."""

import os
import socket
from typing import TYPE_CHECKING

from fairlead.cluster.access import Access, find_access
from fairlead.cluster.client import Client
from fairlead.cluster.lease import LEASES, Elector, identity
from fairlead.control.leader import LEASE, leading
from fairlead.control.leader import Operator as Known
from fairlead.control.lint import Linted
from fairlead.control.login import session
from fairlead.control.runtime import Runtime

if TYPE_CHECKING:
    from fairlead.operate import Operator


class Leads:
    """Of one replica."""

    def __init__(self, operator: "Operator") -> None:
        own = operator.own
        settings, me = operator.settings, operator.settings.pod or socket.gethostname()
        drifted = operator.metrics.counter(
            "fairlead_drift_corrected", "Objects that somebody had changed or deleted, and that were put right.", "kind"
        )

        def access() -> Access:
            return find_access(settings.kubeconfig, settings.context)

        known = Known(
            client=lambda: Client(access()),
            model=operator.model,
            settings=lambda: operator.told.settings,
            namespace=settings.namespace,
            service=settings.service,
            port=settings.listen.port,
            url=f"https://{settings.service}.{settings.namespace}.svc:{settings.listen.port}",
            selector=settings.selector,
            instance=me,
            context=operator.operator_context,
            held=lambda: own.material.authority if own is not None else None,
            requested=lambda: own is not None and own.material.requested,
            nodes=lambda: len(operator.mirror.nodes.slots) if operator.watching.synced else None,
            leads=lambda: self.elector.leads,
            warnings=Linted(operator.model, lambda: operator.policies.rules),
            drift=drifted.add,
        )
        self.runtime = Runtime(
            lambda: leading(known), lambda: session(access()), settings.namespace, lambda: self.elector.wake()
        )
        where = LEASES.of(settings.namespace, LEASE)
        self.elector = Elector(access, where, identity(me, settings.pod_uid or str(os.getpid())), self.runtime)

    def start(self) -> None:
        """Become a candidate."""
        self.elector.start()

    def stop(self, within_s: float) -> None:
        """Stop leading and release the Lease. Waits."""
        self.elector.stop(within_s)

    @property
    def leads(self) -> bool:
        """Whether it does now."""
        return self.elector.leads

    def said(self) -> str:
        """How it is with that, for people."""
        told = "this one" if self.leads else self.elector.holder.partition("_")[0] or "nobody yet"
        faults = [one for one in (self.elector.fault, self.runtime.fault if self.leads else "") if one]
        return "; ".join([told, *faults])
