"""Certificates of a replica: from files, or signed in memory by our own authority."""

import asyncio
import logging
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Final

import msgspec

from fairlead.api.errors import InvalidObjectError
from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.http.document_writer import write_document
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.secrets import SECRETS, Secret, Secrets
from fairlead.kube.watch.store import EventSink, Key
from fairlead.logs import RateLimiter
from fairlead.pki import authority as authorities
from fairlead.pki import parsing
from fairlead.pki.authority import Authority, AuthorityError, current_leaf, server_hosts
from fairlead.pki.identities import AUTHORITY_SECRET, OPERATOR, SERVER
from fairlead.pki.issuing import Pair
from fairlead.pki.rotation import ROTATE, ReplicaTrust
from fairlead.pki.tls_context import client_context
from fairlead.process.peer_certificates import PREVIOUS, PeerCertificates
from fairlead.process.settings import OperateSettings
from fairlead.render.object_names import PREVIOUS_SECRET, ObjectNames
from fairlead.webhook.holding.passed_calls import NoCertificateError
from fairlead.webhook.https.tls import Contents, InMemory, Tls, TlsError

LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class ReplicaCertificates(EventSink):
    """Certificates of one replica, signed by the authority in the watched Secret."""

    hosts: frozenset[str]
    now: Callable[[], datetime]
    changed: Callable[["ReplicaCertificates"], None]
    """Called when a certificate or the authority changes."""
    authority: Authority | None = None
    requested: bool = False
    """True if a rotation of the authority is requested."""
    fault: str = ""
    """Why the Secret cannot be used; empty if it can."""
    server: Pair | None = field(default=None, repr=False)
    operator: Pair | None = field(default=None, repr=False)
    """Client certificate with which the leader calls the other replicas."""

    @property
    def state(self) -> ReplicaTrust | None:
        """State to report to the leader."""
        if self.authority is None or self.server is None:
            return None
        trusted = self.authority.client_ca_bundle
        return ReplicaTrust(
            parsing.digest(trusted), parsing.read_certificate(self.server.certificate, [trusted]).issuer
        )

    def renew(self) -> None:
        """Renew certificates that are due."""
        if self.authority is not None:
            self._try(self.authority.data(), "the cached authority")

    def put(self, secret: Secret) -> None:
        """Use the authority of a Secret that was added or changed."""
        self.requested = ROTATE in secret.metadata.annotations
        if self._try(secret.data, f"Secret {secret.metadata.namespace}/{secret.metadata.name}"):
            self.fault = ""

    def remove(self, key: Key) -> None:
        """Keep using the cached authority when its Secret is deleted; the leader writes it again."""
        self._failed(f"Secret {'/'.join(key)} was deleted")

    def _try(self, data: Mapping[str, bytes], where: str) -> bool:
        try:
            self._use(authorities.read(data))
        except AuthorityError as error:
            self._failed(f"{where}, {error}")
            return False
        return True

    def _use(self, authority: Authority) -> None:
        now, before = self.now(), (self.authority, self.server, self.operator)
        try:
            server = current_leaf(authority, SERVER, "server", self.hosts, now, self.server)
            operator = current_leaf(authority, OPERATOR, "client", frozenset(), now, self.operator)
        except (ValueError, TypeError) as error:
            raise AuthorityError(f"tls.crt cannot sign: {error}: delete the Secret for a new authority") from error
        self.authority, self.server, self.operator = authority, server, operator
        if (authority, server, operator) != before:
            self.changed(self)

    def _failed(self, why: str) -> None:
        if why != self.fault:
            LOG.error("authority.unreadable", extra={"error": why})
        self.fault = why


_RETRY_S: Final = 1.0


class CertificateFiles:
    """Provided certificates, in files."""

    def __init__(self, tls: Tls) -> None:
        self.tls = tls
        self._fault = ""

    async def refresh(self) -> str:
        """Load the current files; return why they cannot be used, or ""."""
        self._fault = reload(self.tls, self._fault)
        return self._fault


def reload(tls: Tls, last_fault: str) -> str:
    """Load the current certificates; return why they cannot be used, or "". Logs a fault that differs from the last."""
    try:
        if tls.reload():
            LOG.info("certificates.loaded")
    except TlsError as error:
        if (fault := str(error)) != last_fault:
            LOG.warning("certificates.unusable", extra={"error": fault})
        return fault
    return ""


async def write_previous(client: Client, namespace: str, peers: PeerCertificates, rate_limiter: RateLimiter) -> None:
    """Write the previous certificates of callers into their Secret if they have changed."""
    before, document = peers.before(), peers.document
    if before == (document.value or {}) or document.fault:
        return
    text = msgspec.json.encode(before)
    metadata = {"name": PREVIOUS_SECRET, "namespace": namespace}
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"before": b64encode(text).decode()}}
    try:
        await write_document(client, PREVIOUS, document, obj, SECRETS.named(namespace, PREVIOUS_SECRET))
    except ClusterError as error:  # retried soon
        if (more := rate_limiter.allow(PREVIOUS_SECRET)) is not None:
            extra = {"secret": PREVIOUS_SECRET, "error": str(error), **more}
            LOG.warning("certificates_before.write_failed", extra=extra)


class CertificateRefresher:
    """Certificates that our own authority signs in memory, renewed and reloaded."""

    def __init__(self, settings: OperateSettings, client: Client) -> None:
        self._settings, self._secrets = settings, Secrets(client, settings.namespace)
        self._memory = InMemory("the operator's own authority")
        self.tls = Tls(self._memory, later=True)
        self._fault = ""
        self.fault = ""
        """Why there is no authority yet."""
        addresses = frozenset({settings.address} - {""})
        hosts = server_hosts(settings.service, settings.namespace, addresses)
        self.material = ReplicaCertificates(hosts, lambda: datetime.now(UTC), self._use)

    async def begin(self) -> None:
        """Wait for the first certificate; create the authority if there is none."""
        namespace = self._settings.namespace
        made = SchedulerCertificates(
            self._secrets,
            AUTHORITY_SECRET,
            lambda name: ObjectNames(name, namespace).certificate,
            lambda name: ObjectNames(name, namespace).labels,
            lambda: datetime.now(UTC),
        )
        while self.material.server is None:
            try:
                self.material.put(await made.ensure())
            except ClusterError as error:
                if str(error) != self.fault:
                    LOG.warning("authority.missing", extra={"error": str(error)})
                self.fault = str(error)
            if self.material.server is None:
                await asyncio.sleep(_RETRY_S)
        self.fault = ""

    async def refresh(self) -> str:
        """Renew certificates that are due; return why they cannot be used, or ""."""
        self.material.renew()
        self._fault = reload(self.tls, self._fault)
        return self._fault or self.fault or self.material.fault

    def follow(self) -> Reflector[Secret]:
        """Return the watch of the authority's Secret."""
        return self._secrets.follow(AUTHORITY_SECRET, self.material)

    def client(self) -> ssl.SSLContext:
        """Return the TLS context with which the operator calls its replicas. Thread-safe."""
        authority, shown = self.material.authority, self.material.operator
        if authority is None or shown is None:
            raise TlsError("there is no certificate of the operator's own authority yet")
        return client_context(authority.client_ca_bundle, shown.certificate, shown.key)

    def _use(self, material: ReplicaCertificates) -> None:
        if material.authority is None or material.server is None:
            return
        server = material.server
        self._memory.contents = Contents(server.certificate, server.key, material.authority.client_ca_bundle)
        try:
            if self.tls.reload():
                LOG.info("certificates.loaded")
        except TlsError as error:
            LOG.error("certificates.unusable", extra={"error": str(error)})  # noqa: TRY400


KEPT_S: Final = 60.0
"""How long provided certificates are used without being read again: they are replaced long before they expire."""


class OperatorContexts:
    """TLS contexts with which each replica calls others as the operator, by its own authority or as provided."""

    def __init__(
        self, own: CertificateRefresher | None, provided: ProvidedCertificates, clock: Callable[[], float] = monotonic
    ) -> None:
        """`own` is None if the certificates are provided."""
        self._own, self._provided, self._clock = own, provided, clock
        self._made_of: tuple[object, ...] = ()
        self._context: ssl.SSLContext | None = None
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def context(self) -> ssl.SSLContext:
        """Return the current one; calls that come together share it. Raises NoCertificateError."""
        return await self._read() if self._own is None else self._of_own(self._own)

    def _of_own(self, own: CertificateRefresher) -> ssl.SSLContext:
        made_of = own.material.authority, own.material.operator
        if self._context is None or any(a is not b for a, b in zip(made_of, self._made_of, strict=True)):
            try:
                self._context, self._made_of = own.client(), made_of
            except (TlsError, ssl.SSLError) as error:
                raise NoCertificateError(str(error)) from error
        return self._context

    async def _read(self) -> ssl.SSLContext:
        async with self._reading:
            if self._context is None or self._clock() - self._read_at >= KEPT_S:
                try:
                    self._context = await self._provided.context()
                except (InvalidObjectError, ClusterError, ssl.SSLError, OSError) as error:
                    if self._context is None:
                        raise NoCertificateError(str(error)) from error
                self._read_at = self._clock()
            return self._context
