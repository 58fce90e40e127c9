"""Where connections come in: each is shaken hands with before anybody else sees it, and those that fail are counted.

Who says nothing costs next to nothing, and leaves when the place is needed. Of those who speak, few shake hands at
once, and whoever comes from where fewest do is next: nobody who has not said who he is keeps others from it. Where
everybody who is let in has shown a certificate, whoever comes from where one of those is comes before the others.

The certificate in use is looked at for each connection, so that a new one needs no restart and closes nothing.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp.web_protocol import RequestHandler

from fairlead.webhook.https.address_share import ConnectionsByAddress
from fairlead.webhook.https.connection_limits import Limits
from fairlead.webhook.https.handshake_errors import reason_of

BACKLOG: Final = 1024
AT_ONCE: Final = 16
"""Connections that are accepted before calls are answered again."""
PAUSE_S: Final = 1.0
SHUTDOWN_S: Final = 1.0
CROWDED: Final = "too many connections"
Protocols = Callable[[], RequestHandler]
Refused = Callable[[str, str], None]
"""Told why a connection was refused, and from where it came."""


@dataclass(slots=True, eq=False)
class _PendingConnection:
    """A connection that has not been let in."""

    socket: socket.socket
    address: str
    timer: asyncio.TimerHandle | None = None
    entered: bool = False
    """Whether the socket is a transport's by now, which closes it."""


@dataclass(slots=True, eq=False)
class _Handshake:
    one: _PendingConnection
    since: float


@dataclass(slots=True, eq=False)
class TlsListener:
    """A port. Whoever serves it tells `gone` of each connection that ended: see Guests."""

    context: Callable[[], ssl.SSLContext] | None
    """None: plain text."""
    serve: Protocols
    refused: Refused
    limits: Limits
    identified: bool = False
    """Whether all who are let in have shown a certificate."""
    _listening: list[socket.socket] = field(default_factory=list)
    _coming: ConnectionsByAddress[_PendingConnection] = field(init=False)
    _speaking: dict[str, dict[_PendingConnection, None]] = field(default_factory=dict)
    """Those of them who wait for their handshake, by address; the address whose turn was longest ago is the first."""
    _handshakes: dict[asyncio.Task[None], _Handshake] = field(default_factory=dict)
    _served: ConnectionsByAddress[RequestHandler] = field(init=False)
    _again: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self._coming = ConnectionsByAddress(self.limits.coming, self.limits.coming_each)
        self._served = ConnectionsByAddress(self.limits.served, self.limits.served_each)

    async def open(self, host: str | None, port: int) -> int:
        """Begin to accept; gives the port."""
        loop = asyncio.get_running_loop()
        # asyncio knows how to bind to names and to both families; but it would accept all that came at one stretch.
        server = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        self._listening = [one.dup() for one in server.sockets]
        server.close()
        for one in self._listening:
            one.setblocking(False)  # noqa: FBT003
            if self.limits.unread is not None:  # those that are accepted have it from there
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.unread)
            one.listen(BACKLOG)
            loop.add_reader(one, self._accept, one)
        chosen: int = self._listening[0].getsockname()[1]
        return chosen

    def stop(self) -> None:
        """Accept no more."""
        for one in self._listening:
            asyncio.get_running_loop().remove_reader(one)
            one.close()
        self._listening = []

    async def close(self) -> None:
        """The same, and give up on those who have not been let in."""
        self.stop()
        for one in [*self._coming]:
            self._give_up(one)
        if self._again is not None:
            self._again.cancel()
        pending = [*self._handshakes]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def gone(self, protocol: RequestHandler) -> None:
        """It has ended."""
        self._served.remove(protocol)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, name = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError:  # no more descriptors, or no memory
                self._pause(listening)
                return
            accepted.setblocking(False)  # noqa: FBT003
            self._come(_PendingConnection(accepted, str(name[0])))

    def _pause(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def go_on() -> None:
            if listening in self._listening:
                loop.add_reader(listening, self._accept, listening)

        loop.call_later(PAUSE_S, go_on)

    def _come(self, one: _PendingConnection) -> None:
        if self.context is not None and self._served.is_full_for(one.address):  # do not shake hands for nothing
            one.socket.close()
            self.refused(CROWDED, one.address)
            return
        loop = asyncio.get_running_loop()
        one.timer = loop.call_later(self.limits.coming_s, self._turn_away, one, "timeout")
        loop.add_reader(one.socket, self._speaks, one)
        if (leaves := self._coming.add(one, one.address)) is not None:
            self._turn_away(leaves, CROWDED)

    def _speaks(self, one: _PendingConnection) -> None:
        try:
            silent = not one.socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            silent = True
        if silent:
            self._turn_away(one, "connection lost")
            return
        asyncio.get_running_loop().remove_reader(one.socket)
        self._speaking.setdefault(one.address, {})[one] = None
        self._begin()

    def _turn_away(self, one: _PendingConnection, reason: str) -> None:
        self._give_up(one)
        self.refused(reason, one.address)

    def _give_up(self, one: _PendingConnection) -> None:
        self._take(one)
        asyncio.get_running_loop().remove_reader(one.socket)
        one.socket.close()

    def _take(self, one: _PendingConnection) -> None:
        """It is not among those who come any more."""
        self._coming.remove(one)
        if (others := self._speaking.get(one.address)) is not None:
            others.pop(one, None)
            if not others:
                del self._speaking[one.address]
        if one.timer is not None:
            one.timer.cancel()

    def _begin(self) -> None:
        """Shake hands with whoever is next, as long as there are places."""
        loop, limits = asyncio.get_running_loop(), self.limits
        while self._speaking:
            busy = Counter(shaking.one.address for shaking in self._handshakes.values())
            first = self._first(busy)
            address = min(self._speaking, key=lambda one: (one not in first, busy[one]))
            if busy[address] >= limits.handshakes_each or len(self._handshakes) >= limits.handshakes:
                self._hurry(busy, address, first)
                return
            one = next(iter(self._speaking[address]))
            self._take(one)
            if (others := self._speaking.pop(address, None)) is not None:
                self._speaking[address] = others
            task = loop.create_task(self._enter(one))
            self._handshakes[task] = _Handshake(one, loop.time())
            task.add_done_callback(self._ended)

    def _first(self, busy: Counter[str]) -> frozenset[str]:
        """Who comes before the others: those who are known, as long as these leave enough places to the others."""
        limits = self.limits
        if sum(busy[one] for one in busy if self._is_known(one)) >= limits.handshakes - limits.handshakes_each:
            return frozenset()
        return frozenset(one for one in self._speaking if self._is_known(one) and busy[one] < limits.handshakes_each)

    def _is_known(self, address: str) -> bool:
        return self.identified and self._served.has(address)

    def _ended(self, task: asyncio.Task[None]) -> None:
        one = self._handshakes.pop(task).one
        if not one.entered:
            one.socket.close()
        if not task.cancelled() and task.exception() is not None:  # there is no context for it
            self.refused("other", one.address)
        self._begin()

    def _hurry(self, busy: Counter[str], waits: str, first: Collection[str]) -> None:
        """Have one leave who has had his time. `waits`: where whoever is next comes from."""
        loop, limits = asyncio.get_running_loop(), self.limits
        now = loop.time()
        lasts = dict[asyncio.Task[None], float]()
        for task, shaking in self._handshakes.items():
            address = shaking.one.address
            is_known = self._is_known(address)
            if busy[address] > busy[waits] or (waits in first and not is_known):
                lasts[task] = shaking.since + (limits.late_s if is_known else limits.hurried_s)
            elif address in self._speaking:
                lasts[task] = shaking.since + limits.late_s
        if not lasts:
            return
        task = min(lasts, key=lasts.__getitem__)
        if lasts[task] <= now:
            shaking = self._handshakes[task]
            shaking.since = now  # it takes a moment to end
            task.cancel()
            self.refused("timeout", shaking.one.address)
        elif self._again is None or not now < self._again.when() <= lasts[task]:
            if self._again is not None:
                self._again.cancel()
            self._again = loop.call_at(lasts[task], self._begin)

    async def _enter(self, one: _PendingConnection) -> None:
        loop = asyncio.get_running_loop()
        secured = self._secured()
        one.entered = True
        try:
            async with asyncio.timeout(self.limits.handshake_s):
                _, protocol = await loop.connect_accepted_socket(self.serve, one.socket, **secured)
        except OSError as error:
            self.refused(reason_of(error), one.address)
            _let_go(error)
            return
        except asyncio.CancelledError as error:
            _let_go(error)
            raise
        if protocol.transport is None:  # it has ended meanwhile
            return
        if (leaves := self._served.add(protocol, one.address)) is not None:
            self.refused(CROWDED, one.address)
            if leaves.transport is not None:
                leaves.transport.abort()

    def _secured(self) -> dict[str, Any]:
        if self.context is None:
            return {}
        longer = self.limits.handshake_s + 1.0  # than we wait: its own end says nothing of why
        return {"ssl": self.context(), "ssl_handshake_timeout": longer, "ssl_shutdown_timeout": SHUTDOWN_S}


def _let_go(error: BaseException | None) -> None:
    """Free what was being called: its frames hold the error that holds them, and the buffers of what is over."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
