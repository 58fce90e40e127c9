"""The way of nearly all calls: what is written as kube-scheduler writes it is answered where its last byte comes in.

All else goes to aiohttp, byte for byte as it came: another method or header, chunks, a body that is slow or too large,
a caller who may not ask, whatever has to wait for others, and what comes when the connection is to end. So nothing of
HTTP is decided here but what is plain. When aiohttp has answered, and nothing but whole requests came, the next call
may go this way again.
"""

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from fairlead.webhook.extender.call import Reply
from fairlead.webhook.https.peer import Peer

# What Go's client writes, in its order. Nothing here may mean to aiohttp anything else than it does to us.
_HEAD: Final = re.compile(
    rb"POST (/[a-z/]{1,64}) HTTP/1\.1\r\n"
    rb"Host: [\w.:\[\]-]{1,255}\r\n"
    rb"User-Agent: [\w./()-][\w./() -]{0,255}\r\n"
    rb"Content-Length: ([1-9]\d{0,9})\r\n"
    rb"Content-Type: application/json\r\n"
    rb"Accept-Encoding: gzip\r\n"
    rb"\r\n"
)
_LONGEST: Final = 1024  # heads are shorter; a body is not looked through for one
_START: Final = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_LONG: Final = 1 << 18
_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}
_UNKNOWN: Final = -1
Work = Callable[[bytes, int], Reply]
"""From the body of a request, and when its head was there, to the reply."""
Find = Callable[[Peer, str, int], Work | None]
"""Who answers at once what comes from him, for that path, with a body of that length; None for aiohttp."""
Meet = Callable[[asyncio.BaseTransport], Peer]


class FastPathConnection(RequestHandler):
    """One connection."""

    __slots__ = (
        "_age", "_body_s", "_clock", "_due", "_find", "_head", "_held", "_lent", "_meet", "_missing", "_since",
        "_timer", "peer",
    )  # fmt: skip
    peer: Peer

    def __init__(
        self,
        manager: web.Server,
        meet: Meet,
        find: Find,
        clock: Callable[[], int],
        body_s: float,
        age: int,
        **options: Any,
    ) -> None:
        """`age`: after so many nanoseconds the next reply is the last."""
        super().__init__(manager, loop=asyncio.get_running_loop(), **options)
        self._meet, self._find, self._clock, self._body_s, self._age = meet, find, clock, body_s, age
        self._due = 0  # from when on aiohttp answers, who can say that this reply is the last
        self._lent = 0  # bytes still to come of a request that aiohttp has; below zero where only aiohttp can tell
        self._head: re.Match[bytes] | None = None  # of a request of which some is missing
        self._held: list[bytes] = []  # what there is of its body
        self._missing = 0
        self._since: int | None = None  # when its head was there
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self.peer = self._meet(transport)
        self._due = min(self.peer.ends, self._clock() + self._age)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """A part of a request, or all of it."""
        if self._head is not None:
            self._go_on(self._head, data)
        elif self._lent or not data:  # aiohttp sends itself nothing to look once more at what it has
            self._hand_to_aiohttp(data, self._lent - len(data))
        else:
            self._begin(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Nobody waits any more."""
        self._taken()
        super().connection_lost(exc)

    def take_received_at(self) -> int:
        """When the head was there of the request that aiohttp asks about."""
        since, self._since = self._since, None
        return self._clock() if since is None else since

    @property
    def is_due(self) -> bool:
        """Whether the next reply is the last."""
        return self._clock() >= self._due

    def end(self, why: str) -> bool:
        """Answer nothing more: close it if nobody waits for an answer, else say so to him. Whether it was closed."""
        self.peer.ends = self._due = 0
        self.peer.why = why
        if self._head is not None:
            self._give_up(self._head)
        elif self._is_idle():
            self.force_close()
            return True
        return False

    def _begin(self, data: bytes) -> None:
        head = _HEAD.match(data, 0, _LONGEST)
        if head is None:
            self._hand_to_aiohttp(data, _UNKNOWN)
            return
        missing, now = head.end() + int(head[2]) - len(data), self._clock()
        work = None if missing < 0 or now >= self._due else self._work(head)
        if work is None:
            self._hand_to_aiohttp(data, missing)
            return
        if not missing:
            self._reply(work, data[head.end() :], now)
            return
        self._stay()
        self._head = head
        self._held.append(data[head.end() :])
        self._missing, self._since = missing, now
        self._timer = self._loop.call_later(self._body_s, self._give_up, head)

    def _go_on(self, head: re.Match[bytes], data: bytes) -> None:
        self._held.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        # The server, or the connection, may be about to end by now.
        work = None if self._missing or self.is_due else self._work(head)
        if work is None:
            self._give_up(head)
        else:
            self._reply(work, self._taken(), self.take_received_at())

    def _give_up(self, head: re.Match[bytes]) -> None:
        """Let aiohttp go on with what is held."""
        self._hand_to_aiohttp(head[0] + self._taken(), self._missing)

    def _hand_to_aiohttp(self, data: bytes, missing: int) -> None:
        self._lent = missing
        super().data_received(data)

    def _taken(self) -> bytes:
        """What was held of a body, which is held no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held = b"".join(self._held)
        self._held.clear()
        self._head = None
        return held

    def _reply(self, work: Work, body: bytes, since: int) -> None:
        reply = work(body, since)
        content, status = reply.body, reply.status
        if self.transport is not None:
            start = _START % (status, _PHRASES[status], len(content))
            if len(content) < _LONG:
                self.transport.write(start + content)
            else:  # a copy takes longer than another packet
                self.transport.write(start)
                self.transport.write(content)
        self._stay()

    def _work(self, head: re.Match[bytes]) -> Work | None:
        """Who answers, if it is this connection's turn: nobody waits for an answer, or does not read the last ones."""
        if self.transport is None or self.writing_paused or not self._is_idle():
            return None
        return self._find(self.peer, head[1].decode(), int(head[2]))

    # What follows is all that is used of what is aiohttp's own; tests/unit/webhook/https/test_fast_path.py looks
    # after it.

    def _is_idle(self) -> bool:
        """Whether aiohttp waits for a request, and has no part of one."""
        return self._waiter is not None and not self._waiter.done()

    def _stay(self) -> None:
        """A connection is idle from now on, not since aiohttp answered last."""
        self._next_keepalive_close_time = self._loop.time() + self.keepalive_timeout
