"""The server: mutual TLS, HTTP/1.1 with Content-Length, and every request kept as it came.

It has a thread and a loop of its own, because tests wait for the cluster in the main one. Replies run in threads of
their own, so that one may ask the API server, or be slow, without holding up the others.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from aiohttp import web

from extender.replies import DEFAULTS, Answer, Form, Reply
from testbed.api import Object
from testbed.certs import Authority

_HOST = "127.0.0.1"
# longer than the 90 s of the scheduler, which does not repeat a call that meets a connection just closed
_KEEP_ALIVE_S = 120.0
_SHUTDOWN_S = 1.0
_BY_NAME = ("NodeNames", "NodeNameToMetaVictims", "NodeNameToVictims")


@dataclass(frozen=True, slots=True)
class Call:
    """One request of the scheduler."""

    path: str
    """The entry of the configuration and the verb: `gate/filter`."""
    body: bytes
    headers: Mapping[str, str]
    connection: int
    """The port that the scheduler called from, which tells connections apart."""

    @property
    def request(self) -> Object:
        """The body, decoded."""
        decoded: Object = json.loads(self.body)
        return decoded

    @property
    def pod(self) -> str:
        """The name of the pod that it is about."""
        request = self.request
        return str(request["PodName"] if "PodName" in request else request["Pod"]["metadata"]["name"])

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes that it is about, sorted: the scheduler's order is by chance."""
        return sorted(nodes_of(self.request))


def nodes_of(request: Object) -> list[str]:
    """The names of the nodes in a request of any verb and either form, in its order."""
    if "Node" in request:
        return [request["Node"]]
    if request.get("Nodes"):
        return [node["metadata"]["name"] for node in request["Nodes"]["items"]]
    return next((list(request[key]) for key in _BY_NAME if request.get(key)), [])


class Recorder:
    """An extender on loopback. Tests read `calls` and set `replies`, by path; until then it lets everything pass."""

    def __init__(self, keys: Path) -> None:
        """`keys` is the folder of its authority and certificates, made there on first use."""
        self.calls: list[Call] = []
        self.replies: dict[str, Reply] = {}
        self.failures: list[Exception] = []
        self._authority = Authority(keys)
        self._server = self._authority.issue("extender", "extender", hosts=[_HOST])
        self._client = self._authority.issue("scheduler", "scheduler")
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
        self._thread = threading.Thread(target=self._run, name="recording-extender")

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result(timeout=60)
        return self

    def __exit__(self, *error: object) -> None:
        loop, stop, _ = self._ready.result()
        loop.call_soon_threadsafe(stop.set)
        self._thread.join()

    def entry(self, name: str, *verbs: str, **fields: object) -> Object:
        """An entry of `extenders` that calls us with those verbs; `fields` are added or replace what is there."""
        _, _, port = self._ready.result()
        weight = {"weight": 1} if "prioritize" in verbs else {}
        return {
            "urlPrefix": f"https://{_HOST}:{port}/{name}",
            **{f"{verb}Verb": verb for verb in verbs},
            **weight,
            "enableHTTPS": True,
            "tlsConfig": self.tls(),
            "httpTimeout": "5s",
            "nodeCacheCapable": True,
        } | fields

    def tls(self, *, certificate: bool = True) -> Object:
        """The scheduler's part of the keys; without its certificate it is a stranger."""
        mine = {"certFile": str(self._client.certificate), "keyFile": str(self._client.key)} if certificate else {}
        return {"caFile": str(self._authority.certificate), **mine}

    def of(self, path: str, *, pod: str | None = None) -> list[Call]:
        """The calls of an entry's verb so far, in the order in which they came; of one pod, if it is named."""
        return [call for call in [*self.calls] if call.path == path and pod in (None, call.pod)]

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self._authority.certificate))
        context.load_cert_chain(self._server.certificate, self._server.key)
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the authority of the tests has no key identifier
        server = web.Server(self._handle, keepalive_timeout=_KEEP_ALIVE_S, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, 0, ssl_context=context).start()
            stop = asyncio.Event()
            self._ready.set_result((asyncio.get_running_loop(), stop, int(runner.addresses[0][1])))
            await stop.wait()
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        port = int(request.transport.get_extra_info("peername")[1])
        call = Call(request.path.strip("/"), await request.read(), dict(request.headers), port)
        self.calls.append(call)
        try:
            reply = self.replies.get(call.path) or DEFAULTS[call.path.rpartition("/")[2]]
            answer = await asyncio.to_thread(reply, call.request)
        except Exception as error:  # noqa: BLE001  the test is told of it when it ends
            self.failures.append(error)
            answer = Answer(b"", status=500)
        if not isinstance(answer, Answer):
            answer = Answer(json.dumps(answer).encode())
        if answer.form in (Form.LENGTH, Form.LAST):
            whole = web.Response(body=answer.body, status=answer.status, content_type="application/json")
            if answer.form is Form.LAST:
                whole.force_close()
            return whole
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if answer.form is Form.CHUNKED_WHOLE:
            await response.write_eof(answer.body)
        else:
            await response.write(answer.body)
            await response.write_eof()
        return response
