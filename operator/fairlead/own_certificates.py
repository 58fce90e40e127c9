"""What a replica shows, from the Secret of our own authority: made if there is none, followed, signed in memory."""

import asyncio
import logging
import ssl
from datetime import UTC, datetime
from typing import Final

from fairlead.cluster.client import Client
from fairlead.cluster.errors import ClusterError
from fairlead.cluster.reflector import Reflector
from fairlead.cluster.secrets import Secret, Secrets
from fairlead.control.authority import SECRET
from fairlead.control.certificates import Certificates
from fairlead.control.leaves import server_hosts
from fairlead.control.material import Material
from fairlead.pairs import calling
from fairlead.render.names import Names
from fairlead.settings import OperateSettings
from fairlead.webhook.tls import Contents, InMemory, Tls, TlsError

LOG: Final = logging.getLogger(__name__)
_AGAIN_S: Final = 1.0


class OwnCertificates:
    """Of one replica."""

    def __init__(self, settings: OperateSettings, client: Client) -> None:
        self._settings, self._secrets = settings, Secrets(client, settings.namespace)
        self._memory = InMemory("our own authority")
        self.tls = Tls(self._memory, later=True)
        self.fault = ""
        """Why there is nothing yet."""
        addresses = frozenset({settings.address} - {""})
        hosts = server_hosts(settings.service, settings.namespace, addresses)
        self.material = Material(hosts, lambda: datetime.now(UTC), self._use)

    async def begin(self) -> None:
        """Until there is something to show."""
        namespace = self._settings.namespace
        made = Certificates(
            self._secrets,
            SECRET,
            lambda name: Names(name, namespace).certificate,
            lambda name: Names(name, namespace).labels,
            lambda: datetime.now(UTC),
        )
        while self.material.server is None:
            try:
                self.material.put(await made.ensure())
            except ClusterError as error:
                if str(error) != self.fault:
                    LOG.warning("our authority is not there yet", extra={"why": str(error)})
                self.fault = str(error)
            if self.material.server is None:
                await asyncio.sleep(_AGAIN_S)
        self.fault = ""

    def follow(self) -> Reflector[Secret]:
        """What goes on beside."""
        return self._secrets.follow(SECRET, self.material)

    def client(self) -> ssl.SSLContext:
        """What the operator shows to its replicas, and whom it believes. From any thread."""
        authority, shown = self.material.authority, self.material.operator
        if authority is None or shown is None:
            raise TlsError("there is nothing from our own authority yet")
        return calling(authority.trusted, shown.certificate, shown.key)

    def _use(self, material: Material) -> None:
        if material.authority is None or material.server is None:
            return
        server = material.server
        self._memory.contents = Contents(server.certificate, server.key, material.authority.trusted)
        try:
            if self.tls.reload():
                LOG.info("new certificates are used")
        except TlsError as error:
            LOG.error("what our authority has signed cannot be used", extra={"why": str(error)})  # noqa: TRY400
