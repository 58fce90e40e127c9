"""The metrics API as it answers, refuses, fails and is silent; and what a poll then says to do."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from fairlead.cooperative import finish
from fairlead.kube.access.secret_files import FileSecret
from fairlead.kube.http.client import Client
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import NodeMetricsPoll, PollError, Reading
from fairlead.webhook.data_sources.node_metrics import NodeMetricsSource
from scripted.loop import in_loop
from scripted.server import Server, Step
from scripted.steps import answer, broken, refuse

PATH = "/apis/metrics.k8s.io/v1beta1/nodes"
CPU, MEMORY = NodeMetricsPoll("cpu", "Base", 30), NodeMetricsPoll("memory", "Base", 30)
LIST = {
    "kind": "NodeMetricsList",
    "items": [
        {"metadata": {"name": "a"}, "timestamp": "2026-01-31T08:00:05Z", "usage": {"cpu": "250m", "memory": "1Ki"}}
    ],
}
_FORBIDDEN = (
    'nodes.metrics.k8s.io is forbidden: User "u" cannot list resource "nodes" in API group "metrics.k8s.io"'
    " at the cluster scope"
)


def text(body: str, status: int) -> Step:
    async def step(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=body, status=status)

    return step


async def silent(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def endless(request: web.BaseRequest) -> web.StreamResponse:
    """Send a list that does not end."""
    reply = web.StreamResponse(headers={"Content-Type": "application/json"})
    await reply.prepare(request)
    with suppress(OSError):
        while True:
            await reply.write(b" " * (1 << 20))
    return reply


async def read(server: Server, *polls: NodeMetricsPoll, within_s: float = 5) -> dict[NodeMetricsPoll, Reading]:
    async with Client(server.login()) as client:
        return finish(await NodeMetricsSource(client, Nodes()).read(polls, within_s=within_s))


@in_loop
async def test_all_polls_take_one_request() -> None:
    async with Server(script=[answer(LIST)]) as server:
        readings = await read(server, CPU, MEMORY)
        assert [(one.method, one.path, one.query) for one in server.seen] == [("GET", PATH, {})]
    assert (readings[CPU].values, readings[MEMORY].values) == ({"a": 0.25}, {"a": 1024.0})


_LIST = "list nodes.metrics.k8s.io"
_LACKS = 'a ClusterRole of that user lacks the rule {apiGroups: ["metrics.k8s.io"], resources: [nodes], verbs: [list]}'
_NOT_INSTALLED = (
    "there is no metrics API: the APIService v1beta1.metrics.k8s.io is missing or serves no nodes; install"
    " metrics-server, or another program that serves it"
)
_NOT_READY = (
    "the metrics API does not answer: the APIService v1beta1.metrics.k8s.io is not available, most often because"
    ' metrics-server is not ready; "kubectl get apiservice v1beta1.metrics.k8s.io" says why ({})'
)
_FAILED: dict[str, tuple[Step, str]] = {
    "the API server does not know the group": (text("404 page not found\n", 404), _NOT_INSTALLED),
    "what serves the group knows no nodes": (refuse(404, "NotFound"), _NOT_INSTALLED),
    "no endpoint": (text("service unavailable\n", 503), _NOT_READY.format("service unavailable")),
    "not ready": (refuse(503, "ServiceUnavailable", "not now"), _NOT_READY.format("not now")),
    "no right": (
        refuse(403, "Forbidden", _FORBIDDEN),
        f"the permission to list nodes.metrics.k8s.io is missing: {_LIST}: 403 Forbidden: {_FORBIDDEN}; {_LACKS}",
    ),
    "an error of its own": (
        refuse(500, "InternalError", "failed reading nodes metrics"),
        f"{_LIST}: 500 InternalError: failed reading nodes metrics",
    ),
    "too many requests": (refuse(429, "TooManyRequests", "wait", Retry_After="9"), "429 TooManyRequests: wait"),
    "nobody": (refuse(401, "Unauthorized"), "401 Unauthorized"),
    "a redirect": (text("elsewhere", 302), "302: elsewhere"),
    "an endless list": (endless, f"{_LIST}: the reply is larger than 16 MiB"),
    "an error with lines of its own": (
        refuse(500, "InternalError", "no\n[-] serving: stopped\x1b[31m"),
        f"{_LIST}: 500 InternalError: no [-] serving: stopped",
    ),
    "a long error": (refuse(500, "InternalError", "x" * 4000), f"{_LIST}: 500 InternalError: xxx"),
    "a page": (text("<html></html>", 200), "the metrics API sent no NodeMetricsList: JSON is malformed"),
}


@pytest.mark.parametrize(("step", "said"), _FAILED.values(), ids=_FAILED)
@in_loop
async def test_a_poll_that_fails_says_what_to_do(step: Step, said: str) -> None:
    """It is asked once: the next poll is the next attempt."""
    async with Server(script=[step]) as server:
        with pytest.raises(PollError) as error:
            await read(server, CPU)
        assert said in str(error.value)
        assert str(error.value).isprintable()
        assert len(str(error.value)) < 1000
        assert len(server.seen) == 1


@in_loop
async def test_a_server_that_is_silent_fails_the_poll_in_time() -> None:
    async with Server(handler=silent) as server:
        with pytest.raises(PollError, match=r"does not answer$"):
            await read(server, CPU, within_s=0.05)


@in_loop
async def test_a_connection_that_breaks_fails_the_poll() -> None:
    async with Server(script=[broken] * 2) as server:  # aiohttp itself tries a second connection
        with pytest.raises(PollError, match=rf"^{_LIST}: the connection to .* was lost"):
            await read(server, CPU)


@in_loop
async def test_credentials_that_cannot_be_read_fail_the_poll(tmp_path: Path) -> None:
    token = FileSecret(tmp_path / "token", "tokenFile", "write it again")
    async with Server() as server, Client(server.login(token)) as client:
        with pytest.raises(PollError, match=r"/token: tokenFile: .*; write it again$"):
            await NodeMetricsSource(client, Nodes()).read([CPU], within_s=1)
