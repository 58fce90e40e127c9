"""What is known of the cluster when a scheduler is rendered, once certificates are as they have to be."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from fairlead.control.certificates.ca_bundle import WebhookCABundle
from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.reconcile.result import Drift
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
"""Several API servers of different versions answer while a control plane is upgraded."""


class _Version(msgspec.Struct):
    gitVersion: str  # noqa: N815  as the API has it


_version: Final = msgspec.json.Decoder(_Version).decode


@dataclass(slots=True, eq=False, kw_only=True)
class FactsGatherer:
    """While this replica leads."""

    client: Client
    namespace: str
    url: str
    """Where schedulers call the operator."""
    certificates: SchedulerCertificates
    provided: ProvidedCertificates
    ca_bundle: WebhookCABundle
    replicas: ReplicaClient
    held: Callable[[], Authority | None]
    """Our authority, as this replica knows it: its Secret may be deleted."""
    requested: Callable[[], bool]
    """Whether somebody asks for another one."""
    nodes: Callable[[], int | None]
    now: Callable[[], datetime]
    _waits: WaitFor | None = None
    _restored: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, datetime] = field(default_factory=dict)

    @property
    def is_rotating(self) -> bool:
        """Whether the authority is to be replaced, or is being."""
        held = self.held()
        return self._waits is not None or self.requested() or (held is not None and held.phase is not Phase.STABLE)

    def pop_restored(self, scheduler: str) -> Sequence[Drift]:
        """Return what others had done to the certificate of a scheduler, each once."""
        return [Drift("Secret", text)] if (text := self._restored.pop(scheduler, "")) else []

    async def facts(self, scheduler: str, rolled: Mapping[str, str], paused: Collection[str]) -> ClusterFacts:
        """Told of a scheduler, of all that there are with the authorities that these were started with, and of those
        that are not to begin. Raises InvalidObjectError.
        """  # noqa: D205
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
        """The next step of a rotation, where there is no scheduler."""
        if self.ca_bundle.is_self_managed():
            await self._own({}, ())

    async def _own(self, rolled: Mapping[str, str], paused: Collection[str]) -> bytes:
        digests = {name: parsing.digest(bundle.encode()) if bundle else "" for name, bundle in rolled.items()}
        answers = {name: _replica(one) for name, one in self.replicas.states.items()}
        passed = await self.certificates.step(digests, answers, self.held(), paused)
        if passed.pending_reason is not None and passed.pending_reason != self._waits:
            LOG.info("authority.rotation_pending", extra={"reason": str(passed.pending_reason)})
        self._waits = passed.pending_reason
        self._restored |= passed.restored
        with suppress(ForbiddenError):  # it is done again, and said, where no scheduler waits for it
            await self.ca_bundle.set(passed.authority)
        return passed.authority.server_ca_bundle


def _replica(said: Any) -> ReplicaTrust | None:
    return ReplicaTrust(said.authorities, said.issuer) if isinstance(said, ReplicaState) else None
