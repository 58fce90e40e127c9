"""Calls of members that are passed on to the replica which holds: over its port, with the operator's certificate."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

import aiohttp
import msgspec

from fairlead.webhook.binding.poster import ABANDONED, IsAbandoned
from fairlead.webhook.extender import bind
from fairlead.webhook.extender.call import VerbReply

PATH: Final = "/passed-on/bind"
LOOK_S: Final = 0.1
_CONNECT_S: Final = 2.0
_OK: Final = 200
_NOWHERE: Final = "no replica holds groups at the moment"


class PassedCall(msgspec.Struct, frozen=True):
    """Bind call of a scheduler, as one replica passes it on to another."""

    scheduler: str
    address: str
    """Address of the scheduler's process."""
    arguments: msgspec.Raw
    """What the scheduler has sent."""


encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(PassedCall).decode


class PassingOn:
    """Client of the replica that holds."""

    def __init__(
        self,
        holder: Callable[[], str],
        context: Callable[[], ssl.SSLContext],
        host: str,
        on_passed: Callable[[str], None],
    ) -> None:
        """`holder` returns its address and port, "" if none is known; `host` is the name in its certificate.

        `context` raises TlsError; `on_passed` is called with the result of each call.
        """
        self._holder, self._context, self._host, self._on_passed = holder, context, host, on_passed

    async def bind(self, uid: str, call: PassedCall, within_s: float, is_abandoned: IsAbandoned) -> VerbReply:
        """Return the reply of the replica that holds, or an error at once if there is none."""
        if not (where := self._holder()):
            self._on_passed("no holder")
            return bind.refuse(uid, _NOWHERE)
        asking = asyncio.ensure_future(self._ask(where, encode(call), within_s))
        try:
            while not asking.done():
                await asyncio.wait({asking}, timeout=LOOK_S)
                if is_abandoned():
                    self._on_passed("hung up")
                    return bind.refuse(uid, ABANDONED.why)
            status, body = asking.result()
        except (aiohttp.ClientError, OSError, TimeoutError, ssl.SSLError) as error:
            self._on_passed("failed")
            return bind.refuse(
                uid, f"the replica that holds groups did not answer: {str(error) or type(error).__name__}"
            )
        finally:
            asking.cancel()
        self._on_passed("answered")
        if status != _OK:
            return bind.refuse(uid, f"the replica that holds groups answered with status {status}")
        return bind.passed_back(uid, body)

    async def _ask(self, where: str, body: bytes, within_s: float) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=within_s, connect=_CONNECT_S)
        connector = aiohttp.TCPConnector(ssl=self._context(), force_close=True)
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
            session.post(
                f"https://{where}{PATH}",
                data=body,
                headers={"Content-Type": "application/json"},
                server_hostname=self._host,
            ) as answer,
        ):
            return answer.status, await answer.read()
