"""TLS listener: a connection reaches the server only after its handshake; failed handshakes are counted.

A connection that has sent nothing costs next to nothing, and is closed when its place is needed. Of those that have
sent something, few shake hands at once, and the address with the fewest handshakes is next: clients without a
certificate cannot keep others out. On a port where every accepted client has shown a certificate, addresses with an
accepted connection come first.

The certificate is looked up for each connection, so a new one needs no restart and closes no connection.
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp.web_protocol import RequestHandler

from fairlead.webhook.https.connection_limits import ConnectionLimits, ConnectionsByAddress
from fairlead.webhook.https.tls import reason_of

BACKLOG: Final = 1024
AT_ONCE: Final = 16
"""Connections that are accepted before calls are answered again."""
PAUSE_S: Final = 1.0
SHUTDOWN_S: Final = 1.0
CROWDED: Final = "too many connections"
Protocols = Callable[[], RequestHandler]
NoteRefused = Callable[[str, str], None]
"""Called with the reason and the address of each refused connection."""


@dataclass(slots=True, eq=False)
class _PendingConnection:
    """A connection before its handshake."""

    socket: socket.socket
    address: str
    timer: asyncio.TimerHandle | None = None
    owned: bool = False
    """Whether a transport owns the socket by now, and closes it."""


@dataclass(slots=True, eq=False)
class _Handshake:
    connection: _PendingConnection
    since: float


@dataclass(slots=True, eq=False)
class TlsListener:
    """Listener of a port. Its server calls `gone` for each connection that ended."""

    context: Callable[[], ssl.SSLContext] | None
    """Returns the TLS context; None: plain HTTP."""
    serve: Protocols
    refused: NoteRefused
    limits: ConnectionLimits
    identified: bool = False
    """Whether every accepted client has shown a certificate."""
    _listening: list[socket.socket] = field(default_factory=list)
    _pending: ConnectionsByAddress[_PendingConnection] = field(init=False)
    _waiting: dict[str, dict[_PendingConnection, None]] = field(default_factory=dict)
    """Connections that wait for their handshake, by address; the address whose turn was longest ago is first."""
    _handshakes: dict[asyncio.Task[None], _Handshake] = field(default_factory=dict)
    _served: ConnectionsByAddress[RequestHandler] = field(init=False)
    _timer: asyncio.TimerHandle | None = None

    def __post_init__(self) -> None:
        self._pending = ConnectionsByAddress(self.limits.pending, self.limits.pending_each)
        self._served = ConnectionsByAddress(self.limits.served, self.limits.served_each)

    async def open(self, host: str | None, port: int) -> int:
        """Start accepting connections; return the port."""
        loop = asyncio.get_running_loop()
        # asyncio resolves names and binds both address families; but it would accept all connections in one go.
        server = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        self._listening = [one.dup() for one in server.sockets]
        server.close()
        for one in self._listening:
            one.setblocking(False)  # noqa: FBT003
            if self.limits.unread is not None:  # accepted sockets inherit it
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.unread)
            one.listen(BACKLOG)
            loop.add_reader(one, self._accept, one)
        chosen: int = self._listening[0].getsockname()[1]
        return chosen

    def stop(self) -> None:
        """Stop accepting connections."""
        for one in self._listening:
            asyncio.get_running_loop().remove_reader(one)
            one.close()
        self._listening = []

    async def close(self) -> None:
        """Stop accepting connections, and close those before their handshake."""
        self.stop()
        for one in [*self._pending]:
            self._give_up(one)
        if self._timer is not None:
            self._timer.cancel()
        pending = [*self._handshakes]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def gone(self, protocol: RequestHandler) -> None:
        """Forget a connection that has ended."""
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
            self._add(_PendingConnection(accepted, str(name[0])))

    def _pause(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def resume() -> None:
            if listening in self._listening:
                loop.add_reader(listening, self._accept, listening)

        loop.call_later(PAUSE_S, resume)

    def _add(self, pending: _PendingConnection) -> None:
        if self.context is not None and self._served.is_full_for(pending.address):  # saves a useless handshake
            pending.socket.close()
            self.refused(CROWDED, pending.address)
            return
        loop = asyncio.get_running_loop()
        pending.timer = loop.call_later(self.limits.pending_s, self._refuse, pending, "timeout")
        loop.add_reader(pending.socket, self._on_data, pending)
        if (displaced := self._pending.add(pending, pending.address)) is not None:
            self._refuse(displaced, CROWDED)

    def _on_data(self, pending: _PendingConnection) -> None:
        try:
            silent = not pending.socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            silent = True
        if silent:
            self._refuse(pending, "connection lost")
            return
        asyncio.get_running_loop().remove_reader(pending.socket)
        self._waiting.setdefault(pending.address, {})[pending] = None
        self._start_handshakes()

    def _refuse(self, pending: _PendingConnection, reason: str) -> None:
        self._give_up(pending)
        self.refused(reason, pending.address)

    def _give_up(self, pending: _PendingConnection) -> None:
        self._remove_pending(pending)
        asyncio.get_running_loop().remove_reader(pending.socket)
        pending.socket.close()

    def _remove_pending(self, pending: _PendingConnection) -> None:
        """Remove a connection from those that wait."""
        self._pending.remove(pending)
        if (others := self._waiting.get(pending.address)) is not None:
            others.pop(pending, None)
            if not others:
                del self._waiting[pending.address]
        if pending.timer is not None:
            pending.timer.cancel()

    def _start_handshakes(self) -> None:
        """Start handshakes while there are places."""
        loop, limits = asyncio.get_running_loop(), self.limits
        while self._waiting:
            busy = Counter(handshake.connection.address for handshake in self._handshakes.values())
            preferred = self._preferred(busy)
            address = min(self._waiting, key=lambda one: (one not in preferred, busy[one]))
            if busy[address] >= limits.handshakes_each or len(self._handshakes) >= limits.handshakes:
                self._make_room(busy, address, preferred)
                return
            one = next(iter(self._waiting[address]))
            self._remove_pending(one)
            if (others := self._waiting.pop(address, None)) is not None:
                self._waiting[address] = others
            task = loop.create_task(self._shake_hands(one))
            self._handshakes[task] = _Handshake(one, loop.time())
            task.add_done_callback(self._on_handshake_done)

    def _preferred(self, busy: Counter[str]) -> frozenset[str]:
        """Return the addresses that come first: the known ones, as long as they leave enough places for others."""
        limits = self.limits
        if sum(busy[one] for one in busy if self._is_known(one)) >= limits.handshakes - limits.handshakes_each:
            return frozenset()
        return frozenset(one for one in self._waiting if self._is_known(one) and busy[one] < limits.handshakes_each)

    def _is_known(self, address: str) -> bool:
        return self.identified and self._served.has(address)

    def _on_handshake_done(self, task: asyncio.Task[None]) -> None:
        one = self._handshakes.pop(task).connection
        if not one.owned:
            one.socket.close()
        if not task.cancelled() and task.exception() is not None:  # there is no TLS context
            self.refused("other", one.address)
        self._start_handshakes()

    def _make_room(self, busy: Counter[str], waiting: str, preferred: Collection[str]) -> None:
        """Cancel a handshake that has had its time. `waiting` is the address that is next."""
        loop, limits = asyncio.get_running_loop(), self.limits
        now = loop.time()
        due = dict[asyncio.Task[None], float]()
        for task, handshake in self._handshakes.items():
            address = handshake.connection.address
            is_known = self._is_known(address)
            if busy[address] > busy[waiting] or (waiting in preferred and not is_known):
                due[task] = handshake.since + (limits.late_s if is_known else limits.hurried_s)
            elif address in self._waiting:
                due[task] = handshake.since + limits.late_s
        if not due:
            return
        task = min(due, key=due.__getitem__)
        if due[task] <= now:
            handshake = self._handshakes[task]
            handshake.since = now  # cancelling takes a moment
            task.cancel()
            self.refused("timeout", handshake.connection.address)
        elif self._timer is None or not now < self._timer.when() <= due[task]:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(due[task], self._start_handshakes)

    async def _shake_hands(self, pending: _PendingConnection) -> None:
        loop = asyncio.get_running_loop()
        tls_options = self._tls_options()
        pending.owned = True
        try:
            async with asyncio.timeout(self.limits.handshake_s):
                _, protocol = await loop.connect_accepted_socket(self.serve, pending.socket, **tls_options)
        except OSError as error:
            self.refused(reason_of(error), pending.address)
            _break_cycle(error)
            return
        except asyncio.CancelledError as error:
            _break_cycle(error)
            raise
        if protocol.transport is None:  # it has ended since
            return
        if (displaced := self._served.add(protocol, pending.address)) is not None:
            self.refused(CROWDED, pending.address)
            if displaced.transport is not None:
                displaced.transport.abort()

    def _tls_options(self) -> dict[str, Any]:
        if self.context is None:
            return {}
        longer = self.limits.handshake_s + 1.0  # than our own timeout, because asyncio's error does not say why
        return {"ssl": self.context(), "ssl_handshake_timeout": longer, "ssl_shutdown_timeout": SHUTDOWN_S}


def _break_cycle(error: BaseException | None) -> None:
    """Break the reference cycle of an error and its frames, which hold the buffers of the connection."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
