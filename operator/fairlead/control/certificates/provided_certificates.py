"""Certificates of `CertManager` and `Provided`, as the leader needs them: read each time, never written.

One authority signs both sides. Errors name the Secret, the key in it, and what to do.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.kube.watch.secrets import Secret, Secrets
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.pki.provided import CertificateRequirements, find_faults
from fairlead.pki.tls_context import client_context
from fairlead.render.object_names import OPERATOR_SECRET, SERVER_SECRET, ObjectNames

_LISTED: Final = "; cert-manager creates it for schedulers that the operator's setting schedulers lists"


@dataclass(frozen=True, slots=True)
class ProvidedCertificates:
    """Provided certificates of one operator. All methods raise InvalidObjectError for unusable certificates."""

    secrets: Secrets
    host: str
    """Host name at which schedulers and the leader call replicas."""
    now: Callable[[], datetime]

    async def authority(self) -> bytes:
        """Return the authority that schedulers trust."""
        wanted = CertificateRequirements(self._where(SERVER_SECRET), "server", hosts=frozenset({self.host}))
        return (await self._read(SERVER_SECRET, wanted)).data["ca.crt"]

    async def scheduler(self, name: str) -> None:
        """Check the certificate of a scheduler."""
        secret = ObjectNames(name, self.secrets.namespace).certificate
        wanted = CertificateRequirements(self._where(secret), "client", scheduler_identity(name), otherwise=_LISTED)
        await self._read(secret, wanted)

    async def context(self) -> ssl.SSLContext:
        """Return the TLS context with which the leader calls replicas."""
        shown = (
            await self._read(OPERATOR_SECRET, CertificateRequirements(self._where(OPERATOR_SECRET), "client", OPERATOR))
        ).data
        return client_context(await self.authority(), shown["tls.crt"], shown["tls.key"])

    async def _read(self, name: str, wanted: CertificateRequirements) -> Secret:
        secret = await self.secrets.get(name)
        wrong = find_faults(wanted, None if secret is None else secret.data, self.now())
        if wrong or secret is None:
            raise InvalidObjectError([FieldError(("tls", "mode"), one) for one in wrong])
        return secret

    def _where(self, name: str) -> str:
        return f"{self.secrets.namespace}/{name}"
