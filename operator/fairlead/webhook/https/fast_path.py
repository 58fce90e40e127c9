"""Fast path: a request in exactly kube-scheduler's form is answered inside `data_received`.

Everything else goes to aiohttp, byte for byte: another method or header, chunks, a slow or large body, a call that may
be refused or whose handler waits, and a connection that is about to close. So the fast path decides nothing about HTTP
except what is plain. Once aiohttp has answered, and if only whole requests came, the next call can take the fast path
again.
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

# What Go's client writes, in its order. aiohttp must read all of it in the same way.
_HEAD: Final = re.compile(
    rb"POST (/[a-z/]{1,64}) HTTP/1\.1\r\n"
    rb"Host: [\w.:\[\]-]{1,255}\r\n"
    rb"User-Agent: [\w./()-][\w./() -]{0,255}\r\n"
    rb"Content-Length: ([1-9]\d{0,9})\r\n"
    rb"Content-Type: application/json\r\n"
    rb"Accept-Encoding: gzip\r\n"
    rb"\r\n"
)
_LONGEST: Final = 1024  # heads are shorter; limits the search in a body
_START: Final = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_LONG: Final = 1 << 18
_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}
_UNKNOWN: Final = -1
Work = Callable[[bytes, int], Reply]
"""Returns the reply to a body whose head was complete at this time."""
Find = Callable[[Peer, str, int], Work | None]
"""Returns the handler for a client, a path and a body length; None leaves the call to aiohttp."""
Identify = Callable[[asyncio.BaseTransport], Peer]


class FastPathConnection(RequestHandler):
    """A connection, answered here or by aiohttp."""

    __slots__ = (
        "_age_ns", "_aiohttp_bytes_left", "_body_s", "_clock", "_due", "_find", "_head", "_identify", "_missing",
        "_parts", "_received_at", "_timer", "peer",
    )  # fmt: skip
    peer: Peer

    def __init__(
        self,
        manager: web.Server,
        identify: Identify,
        find: Find,
        clock: Callable[[], int],
        body_s: float,
        age_ns: int,
        **options: Any,
    ) -> None:
        """`age_ns`: the next reply after it is the connection's last."""
        super().__init__(manager, loop=asyncio.get_running_loop(), **options)
        self._identify, self._find, self._clock, self._body_s, self._age_ns = identify, find, clock, body_s, age_ns
        self._due = 0  # from then on aiohttp answers, because it can announce the last reply
        self._aiohttp_bytes_left = 0  # bytes that aiohttp's request still lacks; negative if only aiohttp knows
        self._head: re.Match[bytes] | None = None  # of an incomplete request
        self._parts: list[bytes] = []  # the parts of its body so far
        self._missing = 0
        self._received_at: int | None = None  # when its head was complete
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Identify the client."""
        self.peer = self._identify(transport)
        self._due = min(self.peer.valid_until, self._clock() + self._age_ns)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, or all of it."""
        if self._head is not None:
            self._continue(self._head, data)
        elif self._aiohttp_bytes_left or not data:  # aiohttp feeds itself empty data to parse what it has
            self._hand_to_aiohttp(data, self._aiohttp_bytes_left - len(data))
        else:
            self._start(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Drop what was buffered."""
        self._take_buffer()
        super().connection_lost(exc)

    def take_received_at(self) -> int:
        """Return when the head of aiohttp's current request was complete."""
        since, self._received_at = self._received_at, None
        return self._clock() if since is None else since

    @property
    def is_due(self) -> bool:
        """Return whether the next reply is the last."""
        return self._clock() >= self._due

    def end(self, why: str) -> bool:
        """Answer nothing more; return whether the connection was closed.

        An idle connection is closed; on a busy one the client gets a reply that says why.
        """
        self.peer.valid_until = self._due = 0
        self.peer.invalid_reason = why
        if self._head is not None:
            self._hand_over(self._head)
        elif self._is_idle():
            self.force_close()
            return True
        return False

    def _start(self, data: bytes) -> None:
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
        self._restart_keepalive()
        self._head = head
        self._parts.append(data[head.end() :])
        self._missing, self._received_at = missing, now
        self._timer = self._loop.call_later(self._body_s, self._hand_over, head)

    def _continue(self, head: re.Match[bytes], data: bytes) -> None:
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return
        # The server or the connection may be about to close by now.
        work = None if self._missing or self.is_due else self._work(head)
        if work is None:
            self._hand_over(head)
        else:
            self._reply(work, self._take_buffer(), self.take_received_at())

    def _hand_over(self, head: re.Match[bytes]) -> None:
        """Hand what is buffered to aiohttp."""
        self._hand_to_aiohttp(head[0] + self._take_buffer(), self._missing)

    def _hand_to_aiohttp(self, data: bytes, missing: int) -> None:
        self._aiohttp_bytes_left = missing
        super().data_received(data)

    def _take_buffer(self) -> bytes:
        """Return the buffered body, and clear the buffer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        body = b"".join(self._parts)
        self._parts.clear()
        self._head = None
        return body

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
        self._restart_keepalive()
        if reply.sent is not None:
            reply.sent()

    def _work(self, head: re.Match[bytes]) -> Work | None:
        """Return the handler; None while a reply is pending, or the client does not read the last ones."""
        if self.transport is None or self.writing_paused or not self._is_idle():
            return None
        return self._find(self.peer, head[1].decode(), int(head[2]))

    # The rest uses private parts of aiohttp, and nothing else does; tests/unit/webhook/https/test_fast_path.py checks
    # that they are as expected.

    def _is_idle(self) -> bool:
        """Return whether aiohttp waits for a request, and has no part of one."""
        return self._waiter is not None and not self._waiter.done()

    def _restart_keepalive(self) -> None:
        """Restart the keep-alive time: the connection is idle from now on, not since aiohttp's last reply."""
        self._next_keepalive_close_time = self._loop.time() + self.keepalive_timeout
