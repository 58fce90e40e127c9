"""The wire between the operator and an API server in memory: it counts what is written, and lets one write fail."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from fairlead.kube.errors import UnreachableError
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.http.transport import Request, Transport
from support.faults.api import WRITES, Api, Happened, body_of, chosen, refused

if TYPE_CHECKING:
    from fairlead.kube.access.login import Login


@dataclass(frozen=True)
class Fault:
    """Fault of a write."""

    status: int = 0
    """What it is answered with; 0: nothing is answered."""
    reason: str = ""
    message: str = "on purpose"
    applied: bool = False
    """Whether it was carried out all the same."""
    dies: bool = False
    """Whether who asked is not there any more."""

    def error(self, ask: Request) -> Exception:
        if self.status:
            return refused(ask, self.status, self.reason, self.message)
        return UnreachableError(ask.verb, ask.where, "the connection broke on purpose")


FAULTS: Mapping[str, Fault] = {
    "forbidden": Fault(403, "Forbidden"),
    "disk-full": Fault(507, "InsufficientStorage"),
    "conflict": Fault(409, "Conflict"),
    "lost-before": Fault(),
    "lost-after": Fault(applied=True),
    "dead-before": Fault(dies=True),
    "dead-after": Fault(dies=True, applied=True),
}


@dataclass
class Wire:
    """Between the two."""

    api: Api
    fault: Fault | None = None
    at: int = -1
    """Which write it befalls, from 0 on; -1: none."""
    every: bool = False
    """Whether it befalls each write once."""
    denied: str = ""
    """What cannot be written for now."""
    lacks: tuple[str, ...] = ()
    """What we have no right to write for now."""
    writes: list[str] = field(default_factory=list)
    died: asyncio.Event = field(default_factory=asyncio.Event)
    _met: set[str] = field(default_factory=set)

    def client(self) -> Client:
        """Client that asks once: a retry is for its caller."""
        time = asyncio.get_running_loop().time
        client = _Client(cast("Login", _Anybody()), clock=Clock(time), deadline_s=0.0)
        client.wire = self
        return client

    async def once(self, ask: Request, *_: Any, **__: float) -> bytes:
        """One request."""
        await asyncio.sleep(0)
        fault = self._befalls(ask) if ask.verb in WRITES and ask.where.resource.plural != "events" else None
        if fault is None:
            return self.api.answer(ask)
        if fault.applied:
            self.api.answer(ask)
        if fault.dies:
            self.died.set()
            await asyncio.Event().wait()
        raise fault.error(ask)

    def _befalls(self, ask: Request) -> Fault | None:
        body = body_of(ask)
        name = ask.where.name or body.get("metadata", {}).get("name", "")
        what = f"{ask.verb} {ask.where.what} {name}"
        self.writes.append(what)
        if self.denied and what.endswith(self.denied):
            return FAULTS["forbidden"]
        if what.endswith(self.lacks):
            at = ask.where.resource
            said = f'User "x" cannot {ask.verb} resource "{at.plural}" in API group "{at.group}"'
            return Fault(403, "Forbidden", message=f"{said} at the cluster scope")
        if self.every:
            met = what in self._met
            self._met.add(what)
            return None if met else self.fault
        return self.fault if len(self.writes) - 1 == self.at else None

    @asynccontextmanager
    async def stream(self, ask: Request, *_: Any, **_options: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch."""
        yield self._lines(ask, int(ask.query["resourceVersion"]))

    async def _lines(self, ask: Request, version: int) -> AsyncIterator[bytes]:
        told, kind = asyncio.Event(), (ask.where.resource.group, ask.where.resource.plural)
        self.api.heard.append(hear := lambda _: told.set())
        try:
            while True:
                told.clear()
                for one in [one for one in self.api.history if one.version > version and one.key[:2] == kind]:
                    version = one.version
                    if ask.where.namespace in ("", one.key[2]) and chosen(ask.query, one.obj):
                        yield msgspec.json.encode({"type": one.type, "object": one.obj}) + b"\n"
                await told.wait()
        finally:
            self.api.heard.remove(hear)

    async def close(self) -> None:
        """Close it: there are no more requests."""


class _Anybody:
    async def connection(self) -> None:
        return None

    def renew(self, _: Any) -> bool:
        return False

    def read_again(self, _: Any) -> bool:
        return False


class _Client(Client):
    wire: Wire

    async def __aenter__(self) -> Self:
        self._open_transport = cast("Transport", self.wire)
        return self


def telling(api: Api, told: Callable[[Happened], None]) -> Callable[[], None]:
    """Tell of what happens, soon; ends when what it gives is called."""
    loop = asyncio.get_running_loop()

    def hear(one: Happened) -> None:
        loop.call_soon(told, one)

    api.heard.append(hear)
    return lambda: api.heard.remove(hear)
