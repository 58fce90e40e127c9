"""Certificates as the leader has them: of schedulers, its own, and what the API server trusts.

Our own authority signs them, or they are provided, as the settings say at the moment.
"""

import logging
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlead.control.certificates.ca_bundle import patch_ca_bundle, publish_authority
from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.control.decide.drift import DriftLog
from fairlead.kube.errors import ClusterError, ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki import authority as authorities
from fairlead.pki import parsing
from fairlead.pki.authority import Authority, AuthorityError, Phase
from fairlead.pki.identities import AUTHORITY_SECRET
from fairlead.pki.rotation import ReplicaTrust, WaitFor
from fairlead.render.object_names import ObjectNames
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaState, ReplicaStates

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAuthority:
    """Our own authority as this replica has it cached, because its Secret may be deleted. Thread-safe."""

    read: Callable[[], Authority | None]
    is_rotation_requested: Callable[[], bool]
    context: Callable[[], ssl.SSLContext]
    """Returns the TLS context with the operator's own client certificate."""


class LeaderCertificates:
    """Certificates of one operator, while this replica leads."""

    def __init__(
        self,
        client: Client,
        secrets: Secrets,
        host: str,
        own: OwnAuthority,
        settings: Callable[[], OperatorSettings],
        drifts: DriftLog,
        now: Callable[[], datetime],
        *,
        publishes_authority: bool = False,
    ) -> None:
        """`host`: the name at which schedulers and the leader call replicas."""
        self._publishes_authority = publishes_authority
        self._client, self._namespace, self._own, self._settings = client, secrets.namespace, own, settings
        self._provided = ProvidedCertificates(secrets, host, now)
        self._issuer = SchedulerCertificates(
            secrets=secrets,
            name=AUTHORITY_SECRET,
            secret_of=lambda name: ObjectNames(name, secrets.namespace).certificate,
            labels_of=lambda name: ObjectNames(name, secrets.namespace).labels,
            now=now,
            drifts=drifts,
        )
        self._webhook_authority: Authority | None = None
        """Authority with which the API server is to verify the admission webhook."""
        self._waits: WaitFor | None = None

    @property
    def is_rotating(self) -> bool:
        """True if the authority is being rotated or is to be."""
        kept = self._own.read()
        is_moving = kept is not None and kept.phase is not Phase.STABLE
        return is_moving or self._waits is not None or self._own.is_rotation_requested()

    async def begin(self) -> None:
        """Have our own authority there early, for the first policy; each reconcile repeats it."""
        with suppress(ClusterError, AuthorityError):
            if self._is_self_managed:
                kept = await self._issuer.ensure(self._own.read())
                self._webhook_authority = authorities.read(kept.data)
                await self.sync_webhook()

    async def context(self) -> ssl.SSLContext:
        """Return the TLS context with which the leader calls replicas. Raises InvalidObjectError."""
        return self._own.context() if self._is_self_managed else await self._provided.context()

    async def ensure(
        self, scheduler: str, started_with: Mapping[str, str], paused: Collection[str], states: ReplicaStates
    ) -> str:
        """Have the certificate of a scheduler there; return the authorities that it is to trust, in PEM.

        `started_with` has the authorities that the pods of each scheduler were started with; `paused` names those that
        are not to start. Raises InvalidObjectError for provided certificates that cannot be used.
        """
        if self._is_self_managed:
            return (await self._step(started_with, paused, states)).decode()
        await self._provided.scheduler(scheduler)
        return (await self._provided.authority()).decode()

    async def rotate(self, states: ReplicaStates) -> None:
        """Do the next step of a rotation if there is no scheduler whose reconcile does it."""
        if self._is_self_managed:
            await self._step({}, (), states)

    async def sync_webhook(self) -> None:
        """Write the CA bundle of the admission webhook if it is missing: an upgrade of the chart may have reset it."""
        if self._webhook_authority is not None and self._is_self_managed:
            authorities = self._webhook_authority.client_ca_bundle
            await patch_ca_bundle(self._client, self._namespace, authorities)
            if self._publishes_authority:
                await publish_authority(self._client, self._namespace, authorities)

    async def _step(self, started_with: Mapping[str, str], paused: Collection[str], states: ReplicaStates) -> bytes:
        digests = {name: parsing.digest(bundle.encode()) if bundle else "" for name, bundle in started_with.items()}
        trusts = {name: _trust_of(one) for name, one in states.items()}
        step = await self._issuer.step(digests, trusts, self._own.read(), paused)
        if step.pending_reason is not None and step.pending_reason != self._waits:
            LOG.info("authority.rotation_pending", extra={"reason": str(step.pending_reason)})
        self._waits, self._webhook_authority = step.pending_reason, step.authority
        with suppress(ForbiddenError):  # the housekeeper repeats it, and records the missing permission
            await self.sync_webhook()
        return step.authority.server_ca_bundle

    @property
    def _is_self_managed(self) -> bool:
        return self._settings().tls.mode == "SelfManaged"


def _trust_of(state: ReplicaState | str) -> ReplicaTrust | None:
    return ReplicaTrust(state.authorities, state.issuer) if isinstance(state, ReplicaState) else None
