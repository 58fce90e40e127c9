"""Gathering of the cluster facts for rendering, after the certificates are up to date."""

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from fairlead.control.certificates.ca_bundle import WebhookCABundle
from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.control.decide.drift import Drift, DriftLog
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.kube.errors import ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import VERSION
from fairlead.pki import parsing
from fairlead.pki.authority import Authority, Phase
from fairlead.pki.rotation import ReplicaTrust, WaitFor
from fairlead.render.cluster_facts import ClusterFacts
from fairlead.replica_state import ReplicaState

LOG: Final = logging.getLogger(__name__)
_VERSIONS_FOR: Final = timedelta(minutes=10)
"""How long a version counts: while a control plane is upgraded, API servers of several versions answer."""


class _Version(msgspec.Struct):
    gitVersion: str  # noqa: N815  as the API has it


_version: Final = msgspec.json.Decoder(_Version).decode


@dataclass(slots=True, eq=False, kw_only=True)
class FactsGatherer:
    """Gatherer of the facts while this replica leads."""

    client: Client
    namespace: str
    url: str
    """URL at which schedulers call the operator."""
    certificates: SchedulerCertificates
    provided: ProvidedCertificates
    ca_bundle: WebhookCABundle
    replicas: ReplicaClient
    authority: Callable[[], Authority | None]
    """Our authority as this replica has it cached, because its Secret may be deleted."""
    requested: Callable[[], bool]
    """True if a rotation of the authority is requested."""
    nodes: Callable[[], int | None]
    now: Callable[[], datetime]
    drifts: DriftLog
    _waits: WaitFor | None = None
    _versions: dict[str, datetime] = field(default_factory=dict)

    @property
    def is_rotating(self) -> bool:
        """True if the authority is being rotated or is to be."""
        held = self.authority()
        return self._waits is not None or self.requested() or (held is not None and held.phase is not Phase.STABLE)

    async def facts(self, scheduler: str, rolled: Mapping[str, str], paused: Collection[str]) -> ClusterFacts:
        """Return the facts for one scheduler, once its certificate is issued. Raises InvalidObjectError.

        `rolled` has all schedulers with the authorities that their pods were started with; `paused` names those that
        are not to start.
        """
        if self.ca_bundle.is_self_managed():
            known = await self._own(rolled, paused)
        else:
            await self.provided.scheduler(scheduler)
            known = await self.provided.authority()
        now = self.now()
        self._versions[(await self.client.get(VERSION, _version)).gitVersion] = now
        return ClusterFacts(
            namespace=self.namespace,
            url=self.url,
            ca_bundle=known.decode(),
            server_versions=tuple(sorted(one for one, seen in self._versions.items() if now - seen < _VERSIONS_FOR)),
            nodes=self.nodes(),
        )

    async def rotate(self) -> None:
        """Do the next step of a rotation if there is no scheduler whose reconcile does it."""
        if self.ca_bundle.is_self_managed():
            await self._own({}, ())

    async def _own(self, rolled: Mapping[str, str], paused: Collection[str]) -> bytes:
        digests = {name: parsing.digest(bundle.encode()) if bundle else "" for name, bundle in rolled.items()}
        answers = {name: _replica(one) for name, one in self.replicas.states.items()}
        step = await self.certificates.step(digests, answers, self.authority(), paused)
        if step.pending_reason is not None and step.pending_reason != self._waits:
            LOG.info("authority.rotation_pending", extra={"reason": str(step.pending_reason)})
        self._waits = step.pending_reason
        for scheduler, text in step.restored.items():
            self.drifts.record(Drift(scheduler, "Secret", text))
        with suppress(ForbiddenError):  # the poller repeats it, and records the missing permission
            await self.ca_bundle.set(step.authority)
        return step.authority.server_ca_bundle


def _replica(state: Any) -> ReplicaTrust | None:
    return ReplicaTrust(state.authorities, state.issuer) if isinstance(state, ReplicaState) else None
