"""Who asks: what a request shows, and how it is had anew when it was refused or has run out."""

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
    """What is shown: a header, a certificate, both or none."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    """Where credentials come from."""

    async def current(self) -> Credential:
        """What to show now."""

    def renew(self, refused: Credential) -> bool:
        """Somebody was refused with this one; whether there may be another."""


@dataclass(slots=True)
class StaticCredentials:
    """Certificates and tokens in files or written out, and passwords."""

    token: SecretSource | None = None
    password: str = field(default="", repr=False)
    """`user:password`"""
    certificate: SecretSource | None = None
    key: SecretSource | None = None

    async def current(self) -> Credential:
        """What is in the files now."""
        return self._read()

    def renew(self, refused: Credential) -> bool:
        """Whether a file holds something else by now."""
        return self._read() != refused

    def _read(self) -> Credential:
        header = ""
        if self.token:
            token = self.token.read().decode(errors="replace")
            if not token.isprintable():  # a header is one line
                raise AccessError(self.token.file, self.token.field, "has more than one line", "a token is one line")
            header = f"Bearer {token}"
        elif self.password:
            header = f"Basic {base64.b64encode(self.password.encode()).decode()}"
        certificate = self.certificate.read() if self.certificate else b""
        return Credential(header, certificate, self.key.read() if self.key else b"")


def utc_now() -> datetime:
    """What the clock on the wall says: when something runs out is told in its terms."""
    return datetime.now(UTC)


_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class ExecCredentials:
    """A program's answers, kept until they run out. Everybody who needs one meanwhile waits for the same run."""

    def __init__(
        self, plugin: Plugin, *, beside: StaticCredentials | None = None, now: Callable[[], datetime] = utc_now
    ) -> None:
        """`beside` is what is shown where the program says nothing of it."""
        self._plugin = plugin
        self._beside = beside or StaticCredentials()
        self._now = now
        self._asking: asyncio.Task[Credential] | None = None
        self._held: Credential | None = None
        self._until = _NEVER

    async def current(self) -> Credential:
        """The program's last answer, or a new one."""
        if self._held is not None and self._now() < self._until:
            return self._held
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(lambda asking: asking.cancelled() or asking.exception())
        # Who cannot wait so long leaves it to the others, and to his own next try: a token of a cloud takes a second.
        return await asyncio.shield(self._asking)

    def renew(self, refused: Credential) -> bool:
        """Forget it, unless somebody else has done so already."""
        if self._held is refused:
            self._held = None
        return True

    async def _ask(self) -> Credential:
        answer = await self._plugin.ask()
        beside = await self._beside.current()
        until = answer.expiration_timestamp or _NEVER
        self._until = until if until.tzinfo else until.replace(tzinfo=UTC)
        self._held = Credential(
            f"Bearer {answer.token}" if answer.token else beside.authorization,
            answer.client_certificate_data.encode() or beside.certificate,
            answer.client_key_data.encode() or beside.key,
        )
        return self._held
