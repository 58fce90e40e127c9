"""Credentials: what a request presents, and how it is renewed when it was refused or has expired."""

import asyncio
import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from fairlead.kube.access.exec_plugin import Plugin
from fairlead.kube.access.secret_files import SecretSource
from fairlead.kube.errors import AccessError


@dataclass(frozen=True, slots=True)
class Credential:
    """Authorization header and client certificate; both may be empty."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    """Source of credentials."""

    async def current(self) -> Credential:
        """Return the current credential."""

    def renew(self, refused: Credential) -> bool:
        """Drop a credential that was refused; return whether there may be a new one."""


@dataclass(slots=True)
class StaticCredentials:
    """Certificates and tokens, inline or in files, and passwords."""

    token: SecretSource | None = None
    password: str = field(default="", repr=False)
    """`user:password`"""
    certificate: SecretSource | None = None
    key: SecretSource | None = None

    async def current(self) -> Credential:
        """Return the current contents of the files."""
        return self._read()

    def renew(self, refused: Credential) -> bool:
        """Return whether a file has changed since."""
        return self._read() != refused

    def _read(self) -> Credential:
        header = ""
        if self.token:
            token = self.token.read().decode(errors="replace")
            if not token.isprintable():  # a header must be one line
                raise AccessError(self.token.file, self.token.field, "has more than one line", "a token is one line")
            header = f"Bearer {token}"
        elif self.password:
            header = f"Basic {base64.b64encode(self.password.encode()).decode()}"
        certificate = self.certificate.read() if self.certificate else b""
        return Credential(header, certificate, self.key.read() if self.key else b"")


def utc_now() -> datetime:
    """Return the current time: expirations are given as wall-clock time."""
    return datetime.now(UTC)


_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class ExecCredentials:
    """Credentials of an exec plugin, cached until they expire. Concurrent requests wait for one run."""

    def __init__(
        self, plugin: Plugin, *, beside: StaticCredentials | None = None, now: Callable[[], datetime] = utc_now
    ) -> None:
        """Take `beside` for what the plugin does not provide."""
        self._plugin = plugin
        self._beside = beside or StaticCredentials()
        self._now = now
        self._running: asyncio.Task[Credential] | None = None
        self._credential: Credential | None = None
        self._expires = _NEVER

    async def current(self) -> Credential:
        """Return the cached credential, or run the plugin."""
        if self._credential is not None and self._now() < self._expires:
            return self._credential
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._ask())
            self._running.add_done_callback(lambda asking: asking.cancelled() or asking.exception())
        # A caller that times out leaves the run to others and to its own next try: a cloud's token takes a second.
        return await asyncio.shield(self._running)

    def renew(self, refused: Credential) -> bool:
        """Forget the credential, unless another request has done so already."""
        if self._credential is refused:
            self._credential = None
        return True

    async def _ask(self) -> Credential:
        answer = await self._plugin.ask()
        beside = await self._beside.current()
        until = answer.expiration_timestamp or _NEVER
        self._expires = until if until.tzinfo else until.replace(tzinfo=UTC)
        self._credential = Credential(
            f"Bearer {answer.token}" if answer.token else beside.authorization,
            answer.client_certificate_data.encode() or beside.certificate,
            answer.client_key_data.encode() or beside.key,
        )
        return self._credential
