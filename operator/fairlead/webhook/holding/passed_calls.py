"""Calls of members that are passed on to the replica which holds: over its port, with the operator's certificate."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import aiohttp
import msgspec

from fairlead.webhook.binding.poster import ABANDONED, LEAST_S, NO_TIME, IsAbandoned
from fairlead.webhook.extender import bind
from fairlead.webhook.extender.call import VerbReply

PATH: Final = "/passed-on/bind"
LOOK_S: Final = 0.1
"""Time between two looks whether callers have hung up, while calls are passed on."""
_CONNECT_S: Final = 3.0
"""Time for a connection and its handshake."""
CONNECTS: Final = 8
"""Connections that are made at once: with more, the port of the other side would close some of those that wait."""
_TURN_S: Final = 15.0
"""Time that a call waits until it may connect: hundreds of handshakes keep a busy processor for seconds."""
_OK: Final = 200
NOWHERE: Final = "no replica holds groups at the moment"


class PassedCall(msgspec.Struct, frozen=True):
    """Bind call of a scheduler, as one replica passes it on to another."""

    scheduler: str
    address: str
    """Address of the scheduler's process."""
    arguments: msgspec.Raw
    """What the scheduler has sent."""


encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(PassedCall).decode


class NoCertificateError(Exception):
    """Lack of a certificate of the operator with which calls can be passed on."""


@dataclass(slots=True, eq=False)
class _Passed:
    """A call that was passed on, while it is not answered."""

    asking: "asyncio.Task[tuple[int, bytes]]"
    is_abandoned: IsAbandoned
    has_hung_up: bool = False


class PassingOn:
    """Client of the replica that holds."""

    def __init__(
        self,
        holder: Callable[[], str],
        context: Callable[[], Awaitable[ssl.SSLContext]],
        host: str,
        on_passed: Callable[[str], None],
    ) -> None:
        """`holder` returns its address and port, "" if none is known; `host` is the name in its certificate.

        `context` raises NoCertificateError; `on_passed` is called with the result of each call.
        """
        self._holder, self._context, self._host, self._on_passed = holder, context, host, on_passed
        self._passed: dict[_Passed, None] = {}
        self._looks: asyncio.TimerHandle | None = None
        self._connecting = asyncio.Semaphore(CONNECTS)

    async def bind(self, uid: str, call: PassedCall, within_s: float, is_abandoned: IsAbandoned) -> VerbReply:
        """Return the reply of the replica that holds, or an error at once if there is none."""
        if within_s < LEAST_S:
            return bind.refuse(uid, NO_TIME.why)
        if not (where := self._holder()):
            self._on_passed("no holder")
            return bind.refuse(uid, NOWHERE)
        passed = _Passed(asyncio.create_task(self._ask(where, encode(call), within_s)), is_abandoned)
        self._passed[passed] = None
        self._look_soon()
        try:
            await asyncio.wait({passed.asking})
        finally:  # to be cancelled is a hang-up, too
            del self._passed[passed]
            passed.asking.cancel()
        if passed.has_hung_up or passed.asking.cancelled():
            self._on_passed("hung up")
            return bind.refuse(uid, ABANDONED.why)
        try:
            status, body = passed.asking.result()
        except (NoCertificateError, aiohttp.ClientError, OSError, TimeoutError) as error:
            self._on_passed("failed")
            why = str(error) or type(error).__name__
            return bind.refuse(uid, f"the replica that holds groups did not answer: {why}")
        if status != _OK:
            self._on_passed("failed")
            return bind.refuse(uid, f"the replica that holds groups answered with status {status}")
        self._on_passed("answered")
        return bind.passed_back(uid, body)

    async def _ask(self, where: str, body: bytes, within_s: float) -> tuple[int, bytes]:
        async with asyncio.timeout(within_s):
            context = await self._context()
            async with asyncio.timeout(_TURN_S):
                await self._connecting.acquire()
            return await self._post(where, body, context)

    async def _post(self, where: str, body: bytes, context: ssl.SSLContext) -> tuple[int, bytes]:
        """Post a call, and return its answer; once it is connected, another one may be."""
        with ExitStack() as connects:
            connects.callback(self._connecting.release)

            async def connected(*_: object) -> None:
                connects.close()

            tracing = aiohttp.TraceConfig()
            tracing.on_connection_create_end.append(connected)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
            connector = aiohttp.TCPConnector(ssl=context, force_close=True)
            async with (
                aiohttp.ClientSession(timeout=timeout, connector=connector, trace_configs=[tracing]) as session,
                session.post(
                    f"https://{where}{PATH}",
                    data=body,
                    headers={"Content-Type": "application/json"},
                    server_hostname=self._host,
                ) as answer,
            ):
                return answer.status, await answer.read()

    def _look_soon(self) -> None:
        if self._looks is None:
            self._looks = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Hang up where the callers have; look again while calls are passed on."""
        self._looks = None
        for passed in self._passed:
            if not passed.asking.done() and passed.is_abandoned():
                passed.has_hung_up = True
                passed.asking.cancel()
        if self._passed:
            self._look_soon()
