"""What a replica shows and whom it trusts: signed by itself, from the Secret of our authority as it is now.

A sink for a reflector: it is told of the Secret. Whatever happens to the Secret, what was good goes on.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fairlead import pem
from fairlead.certificates import Pair
from fairlead.cluster.held import Key
from fairlead.cluster.secrets import Secret
from fairlead.control import authority as authorities
from fairlead.control.authority import Authority, AuthorityError
from fairlead.control.certificates_plan import ROTATE, Replica
from fairlead.control.leaves import own_leaf
from fairlead.identities import OPERATOR, SERVER

LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Material:
    """Of one replica."""

    hosts: frozenset[str]
    now: Callable[[], datetime]
    changed: Callable[["Material"], None]
    """Told when there is something else to show or to trust."""
    authority: Authority | None = None
    requested: bool = False
    """Whether somebody asks for another authority."""
    fault: str = ""
    """Why the Secret cannot be used as it is, where that is so."""
    server: Pair | None = field(default=None, repr=False)
    operator: Pair | None = field(default=None, repr=False)
    """What the leader shows to the other replicas."""

    @property
    def state(self) -> Replica | None:
        """What to answer to the leader."""
        if self.authority is None or self.server is None:
            return None
        trusted = self.authority.trusted
        return Replica(pem.digest(trusted), pem.said(self.server.certificate, [trusted]).issuer)

    def renew(self) -> None:
        """Sign anew what it is time for; from time to time."""
        if self.authority is not None:
            self._try(self.authority.data(), "what is held of our authority")

    def begin(self) -> None:
        """A list begins."""

    def end(self) -> None:
        """A list is complete."""

    def put(self, secret: Secret) -> None:
        """The Secret came or changed."""
        self.requested = ROTATE in secret.metadata.annotations
        if self._try(secret.data, f"Secret {secret.metadata.namespace}/{secret.metadata.name}"):
            self.fault = ""

    def remove(self, key: Key) -> None:
        """It was deleted: what it held goes on, and can be written again."""
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
            server = own_leaf(authority, SERVER, "server", self.hosts, now, self.server)
            operator = own_leaf(authority, OPERATOR, "client", frozenset(), now, self.operator)
        except (ValueError, TypeError) as error:
            raise AuthorityError(f"tls.crt cannot sign: {error}; delete the Secret for a new authority") from error
        self.authority, self.server, self.operator = authority, server, operator
        if (authority, server, operator) != before:
            self.changed(self)

    def _failed(self, why: str) -> None:
        if why != self.fault:
            LOG.error("our authority cannot be read", extra={"why": why})
        self.fault = why
