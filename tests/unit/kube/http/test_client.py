"""What goes over the wire, what is made again, and what is said when it comes to nothing."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from fairlead.kube.access.login import Connection, Login
from fairlead.kube.access.secret_files import FileSecret
from fairlead.kube.errors import (
    AccessError,
    ConflictError,
    ForbiddenError,
    NotLeadingError,
    RequestError,
    UnreachableError,
)
from fairlead.kube.http.client import Client
from fairlead.kube.resources import NODE_METRICS, PODS, ObjectRef, Resource
from scripted.clock import Wound
from scripted.loop import in_loop
from scripted.server import Server, Step
from scripted.steps import answer, broken, refuse, watch

POLICIES = ObjectRef(Resource("fairlead.dev", "v1alpha1", "schedulerextenderpolicies"))
SOME = POLICIES.named("", "some")
POD = PODS.named("default", "web-1")
Call = Callable[[Client], Coroutine[Any, Any, object]]
anything = msgspec.json.decode

WIRE: dict[str, tuple[Call, str, dict[str, str], str, object]] = {
    "get": (lambda client: client.get(POD, anything), "GET /api/v1/namespaces/default/pods/web-1", {}, "", None),
    "create": (
        lambda client: client.create(PODS.named("default", ""), {"a": 1}, anything),
        "POST /api/v1/namespaces/default/pods",
        {},
        "application/json",
        {"a": 1},
    ),
    "replace": (
        lambda client: client.replace(SOME, {"a": 1}, anything),
        "PUT /apis/fairlead.dev/v1alpha1/schedulerextenderpolicies/some",
        {},
        "application/json",
        {"a": 1},
    ),
    "merge into the status": (
        lambda client: client.merge(POLICIES.named("", "some", "status"), {"status": {}}, anything),
        "PATCH /apis/fairlead.dev/v1alpha1/schedulerextenderpolicies/some/status",
        {},
        "application/merge-patch+json",
        {"status": {}},
    ),
    "apply": (
        lambda client: client.apply(SOME, {"a": 1}, anything, manager="fairlead"),
        "PATCH /apis/fairlead.dev/v1alpha1/schedulerextenderpolicies/some",
        {"fieldManager": "fairlead", "force": "false"},
        "application/apply-patch+yaml",
        {"a": 1},
    ),
    "apply with force": (
        lambda client: client.apply(SOME, {"a": 1}, anything, manager="fairlead", force=True),
        "PATCH /apis/fairlead.dev/v1alpha1/schedulerextenderpolicies/some",
        {"fieldManager": "fairlead", "force": "true"},
        "application/apply-patch+yaml",
        {"a": 1},
    ),
    "delete": (lambda client: client.delete(POD), "DELETE /api/v1/namespaces/default/pods/web-1", {}, "", None),
    "delete that very one": (
        lambda client: client.delete(POD, uid="u", version="7"),
        "DELETE /api/v1/namespaces/default/pods/web-1",
        {},
        "application/json",
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": "u", "resourceVersion": "7"},
        },
    ),
    "all at once": (
        lambda client: client.read_list(NODE_METRICS, within_s=5),
        "GET /apis/metrics.k8s.io/v1beta1/nodes",
        {},
        "",
        None,
    ),
    "post": (
        lambda client: client.post(PODS.named("default", "web-1", "binding"), {"a": 1}, within_s=5),
        "POST /api/v1/namespaces/default/pods/web-1/binding",
        {},
        "application/json",
        {"a": 1},
    ),
}


@pytest.mark.parametrize(("call", "line", "query", "content_type", "body"), WIRE.values(), ids=WIRE)
@in_loop
async def test_a_request_is(call: Call, line: str, query: dict[str, str], content_type: str, body: object) -> None:
    async with Server(answer({})) as server, Client(server.login()) as client:
        await call(client)
        (seen,) = server.seen
        assert f"{seen.method} {seen.path}" == line
        assert seen.query == query
        assert (json.loads(seen.body) if seen.body else None) == body
        assert not body or seen.headers["Content-Type"] == content_type
        assert seen.headers["Accept"] == "application/json"
        assert seen.headers["Accept-Encoding"] == "identity"


_get: Call = lambda client: client.get(POD, anything)  # noqa: E731
_create: Call = lambda client: client.create(PODS, {}, anything)  # noqa: E731
_post: Call = lambda client: client.post(PODS, {}, within_s=5)  # noqa: E731
_apply: Call = lambda client: client.apply(POD, {}, anything, manager="m")  # noqa: E731
_good = answer({})
AGAIN: dict[str, tuple[Call, list[Step], list[float], int]] = {
    "too many": (_get, [refuse(429, Retry_After="3"), _good], [3], 2),
    "errors of the server": (_get, [refuse(500), refuse(503, Retry_After="9"), _good], [0.25, 9], 3),
    "a broken connection": (_get, [broken, broken, _good], [0.25], 3),
    "applied": (_apply, [refuse(500), broken, _good], [0.25, 0.5], 3),
    "created, too many": (_create, [refuse(429), _good], [0.25], 2),
}
ONCE: dict[str, tuple[Call, Step, type[RequestError]]] = {
    "created, an error of the server": (_create, refuse(500), RequestError),
    "created, not available": (_create, refuse(503, Retry_After="1"), RequestError),
    "created, a broken connection": (_create, broken, UnreachableError),
    "created, a conflict": (_create, refuse(409, "AlreadyExists"), ConflictError),
    "all at once, not available": (
        lambda client: client.read_list(NODE_METRICS, within_s=5),
        refuse(503, Retry_After="1"),
        RequestError,
    ),
    "posted, too many": (_post, refuse(429, Retry_After="1"), RequestError),
    "posted, a broken connection": (_post, broken, UnreachableError),
    "read, forbidden": (_get, refuse(403), ForbiddenError),
    "read, moved": (_get, refuse(302, Location="/elsewhere"), RequestError),
    "read, not what it should be": (_get, watch(b"<html>"), RequestError),
}


@pytest.mark.parametrize(("call", "script", "waits", "asked"), AGAIN.values(), ids=AGAIN)
@in_loop
async def test_a_request_is_made_again(call: Call, script: list[Step], waits: list[float], asked: int) -> None:
    time = Wound()
    async with Server(script=[*script]) as server, Client(server.login(), clock=time.clock) as client:
        await call(client)
        assert time.waited == waits
        assert len(server.seen) == asked


_delete: Call = lambda client: client.delete(POD)  # noqa: E731
_merge: Call = lambda client: client.merge(POD, {}, anything)  # noqa: E731
_replace: Call = lambda client: client.replace(POD, {}, anything)  # noqa: E731


@pytest.mark.parametrize("write", [_create, _replace, _merge, _apply, _delete, _post])
@in_loop
async def test_who_leads_no_more_writes_nothing_and_goes_on_reading(write: Call) -> None:
    left = [0.0]
    async with Server(answer({})) as server, Client(server.login(), writes_for_s=lambda: left[0]) as client:
        with pytest.raises(NotLeadingError, match="another replica may lead by now"):
            await write(client)
        assert server.seen == []
        await _get(client)
        left[0] = 5.0
        await write(client)
        assert len(server.seen) == 2


@in_loop
async def test_a_write_is_made_again_only_while_we_lead() -> None:
    time, left = Wound(), iter([5.0, 4.0, 0.0])
    script = [refuse(500), refuse(500)]
    async with (
        Server(script=script) as server,
        Client(server.login(), clock=time.clock, writes_for_s=lambda: next(left)) as client,
    ):
        with pytest.raises(NotLeadingError):
            await _apply(client)
        assert len(server.seen) == 2


@in_loop
async def test_a_write_is_given_up_when_we_may_lead_no_more() -> None:
    left = iter([0.01, 0.0])
    async with Server(_silent) as server, Client(server.login(), writes_for_s=lambda: next(left)) as client:
        with pytest.raises(NotLeadingError):
            await _apply(client)


async def _silent(_: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(("call", "step", "kind"), ONCE.values(), ids=ONCE)
@in_loop
async def test_a_request_is_not_made_again(call: Call, step: Step, kind: type[RequestError]) -> None:
    async with Server(script=[step]) as server, Client(server.login(), clock=Wound().clock) as client:
        with pytest.raises(kind) as error:
            await call(client)
        assert type(error.value) is kind
        assert len(server.seen) == 1
        assert not isinstance(error.value, UnreachableError) or not error.value.not_sent, "it may have happened"


@in_loop
async def test_what_was_surely_not_sent_is_made_again() -> None:
    time = Wound()
    server = Server(answer({}))
    async with server:
        pass  # its port is free now
    raised = False

    async def sleep(seconds: float) -> None:
        nonlocal raised
        if not raised:
            raised = True
            await server.__aenter__()

    clock = type(time.clock)(time.clock.now, sleep, time.clock.random)
    async with Client(server.login(), clock=clock) as client:
        await _create(client)
        assert raised
    await server.__aexit__(None, None, None)
    async with Client(server.login()) as client:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:\d+ cannot be reached: Connection refused$") as error:
            await _post(client)
        assert error.value.not_sent


@in_loop
async def test_it_gives_up_when_time_is_up() -> None:
    time = Wound()
    away = Server(refuse(503, "ServiceUnavailable", "starting"))
    async with away as server, Client(server.login(), clock=time.clock, deadline_s=10) as client:
        with pytest.raises(RequestError, match="get pods default/web-1: 503 ServiceUnavailable: starting"):
            await _get(client)
        assert time.waited == [0.25, 0.5, 1, 2, 4], "another 8 s would be too long"
        server.script.append(refuse(429, Retry_After="60"))
        with pytest.raises(RequestError, match="429"):
            await _create(client)


@in_loop
async def test_a_body_that_stays_away_is_not_waited_for() -> None:
    slow = watch(b'{"half":', then="hold")
    async with Server(slow) as server, Client(server.login(), deadline_s=0.05) as client:
        with pytest.raises(UnreachableError, match="does not answer") as error:
            await client.post(POD, {}, within_s=0.05)
        assert not error.value.not_sent
        with pytest.raises(UnreachableError, match="does not answer"):
            await _get(client)


@in_loop
async def test_a_long_refusal_is_not_read_to_its_end() -> None:
    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=400)
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async with Server(endless) as server, Client(server.login()) as client:
        with pytest.raises(RequestError) as error:
            await _get(client)
        assert len(str(error.value)) < 1000


def _bearer(good: str) -> Step:
    async def step(request: web.BaseRequest) -> web.StreamResponse:
        known = request.headers.get("Authorization") == f"Bearer {good}"
        return await (answer({}) if known else refuse(401, "Unauthorized"))(request)

    return step


@in_loop
async def test_a_token_is_read_again_when_it_was_replaced(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    kept = FileSecret(file, "tokenFile", "mend it")
    async with Server(_bearer("one")) as server, Client(server.login(kept)) as client:
        await _get(client)
        file.write_text("second")
        server.handler = _bearer("second")
        await _get(client)
        await _post(client)
        file.unlink()
        await _get(client)  # it is just being replaced
        assert [one.headers["Authorization"] for one in server.seen] == [
            *["Bearer one"] * 2,  # a refusal is the reason to read it
            *["Bearer second"] * 3,
        ]


@in_loop
async def test_a_token_of_two_lines_is_no_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\r\ntwo\n")
    async with (
        Server() as server,
        Client(server.login(FileSecret(file, "tokenFile", "mend it"))) as client,
    ):
        for call in (_get, _post, _watch):
            with pytest.raises(AccessError, match=r"tokenFile: has more than one line; a token is one line$"):
                await call(client)


@in_loop
async def test_a_token_that_was_replaced_while_we_asked_is_another_try(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")

    async def replace(request: web.BaseRequest) -> web.StreamResponse:
        file.write_text("second")
        return await refuse(401)(request)

    kept = FileSecret(file, "tokenFile", "mend it")
    async with Server(_bearer("second"), script=[replace]) as server, Client(server.login(kept)) as client:
        await _create(client)
        server.handler = refuse(401, "Unauthorized", "who are you")
        with pytest.raises(RequestError, match="get pods default/web-1: 401 Unauthorized: who are you"):
            await _get(client)
        assert len(server.seen) == 3, "the same token is not shown twice"


def _endless(server: str, loaded: list[str]) -> Login:
    """Credentials that are always new, and never any good."""

    def load() -> Connection:
        loaded.append(f"Bearer {len(loaded)}")
        return Connection(Configuration(host=server, api_key={"BearerToken": loaded[-1]}))

    return Login(server, load)


async def _watch(client: Client) -> None:
    async with aclosing(client.watch(PODS, {})) as lines:
        await anext(lines)


REFUSED = {"read": (_get, 2), "posted": (_post, 2), "watched": (_watch, 1)}


@pytest.mark.parametrize(("call", "asked"), REFUSED.values(), ids=REFUSED)
@in_loop
async def test_credentials_that_are_refused_are_renewed_for_whoever_comes_next(call: Call, asked: int) -> None:
    loaded: list[str] = []
    async with Server(refuse(401)) as server, Client(_endless(server.url, loaded)) as client:
        with pytest.raises(RequestError, match="401"):
            await call(client)
        assert len(server.seen) == asked
        assert len(loaded) == 2, "and once only"
        assert (await client.login.connection()).authorization == "Bearer 1"


@in_loop
async def test_a_client_is_a_context() -> None:
    async with Server() as server:
        with pytest.raises(RuntimeError, match="as a context manager"):
            await _get(Client(server.login()))
