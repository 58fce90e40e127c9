"""Secrets on the wire: made by one of several, replaced as they were seen, followed one alone."""

import asyncio
import base64
from typing import Any

import pytest

from fairlead.kube.errors import ConflictError, ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secret, Secrets
from fairlead.kube.watch.store import Key
from scripted.loop import in_loop
from scripted.server import Server
from scripted.steps import answer, line, page, refuse, watch

PATH = "/api/v1/namespaces/here/secrets"


def wire(value: bytes = b"a", version: str = "1", **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "ca",
            "namespace": "here",
            "uid": "u",
            "resourceVersion": version,
            **({"annotations": annotations} if annotations else {}),
        },
        "type": "kubernetes.io/tls",
        "data": {"k": base64.b64encode(value).decode()},
    }


@in_loop
async def test_the_one_that_is_there_is_taken() -> None:
    async with Server(script=[answer(wire())]) as server, Client(server.login()) as client:
        found = await Secrets(client, "here").ensure("ca", lambda: {"k": b"b"})
        assert found.data == {"k": b"a"}
        assert [(one.method, one.path) for one in server.seen] == [("GET", f"{PATH}/ca")]


@in_loop
async def test_one_that_is_not_there_is_made() -> None:
    script = [refuse(404, "NotFound"), answer(wire(b"b"), 201)]
    async with Server(script=script) as server, Client(server.login()) as client:
        found = await Secrets(client, "here").ensure("ca", lambda: {"k": b"b"}, labels={"l": "x"})
        assert found.data == {"k": b"b"}
        sent = server.seen[1].json
        assert (server.seen[1].method, server.seen[1].path) == ("POST", PATH)
        assert sent == wire(b"b") | {"metadata": {"name": "ca", "namespace": "here", "labels": {"l": "x"}}}


@in_loop
async def test_who_comes_second_takes_what_the_first_has_made() -> None:
    script = [refuse(404, "NotFound"), refuse(409, "AlreadyExists"), answer(wire(b"theirs"))]
    async with Server(script=script) as server, Client(server.login()) as client:
        found = await Secrets(client, "here").ensure("ca", lambda: {"k": b"ours"})
        assert found.data == {"k": b"theirs"}


@in_loop
async def test_a_refusal_is_one() -> None:
    script = [refuse(404, "NotFound"), refuse(403, "Forbidden")]
    async with Server(script=script) as server, Client(server.login()) as client:
        with pytest.raises(ForbiddenError):
            await Secrets(client, "here").ensure("ca", dict)


@in_loop
async def test_it_is_replaced_as_it_was_seen() -> None:
    script = [answer(wire(version="7", drop="x", keep="y")), answer(wire(b"b", "8"))]
    async with Server(script=script) as server, Client(server.login()) as client:
        secrets = Secrets(client, "here")
        seen = await secrets.get("ca")
        assert seen is not None
        assert "YQ" not in repr(seen)
        assert "b'a'" not in repr(seen)
        assert (await secrets.replace(seen, {"k": b"b"}, drop="drop")).data == {"k": b"b"}
        assert server.seen[1].json == wire(b"b", "7", keep="y")
        server.script.append(refuse(409, "Conflict"))
        with pytest.raises(ConflictError):
            await secrets.replace(seen, {"k": b"c"})


class Told:
    """What a sink is told."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.told = asyncio.Event()

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def put(self, item: Secret) -> None:
        self.said.append(item.data["k"])
        self.told.set()

    def remove(self, key: Key) -> None:
        self.said.append(key)
        self.told.set()


@in_loop
async def test_one_alone_is_followed() -> None:
    lines = [line("MODIFIED", wire(b"b", "2")), line("DELETED", wire(b"b", "3"))]
    script = [page(wire(), version=1), watch(*lines, then="hold")]
    async with Server(script=script) as server, Client(server.login()) as client:
        told = Told()
        running = asyncio.create_task(Secrets(client, "here").follow("ca", told).run())
        while len(told.said) < 3:
            await told.told.wait()
            told.told.clear()
        assert told.said == [b"a", b"b", ("here", "ca")]
        assert [(one.path, one.query["fieldSelector"]) for one in server.seen] == [(PATH, "metadata.name=ca")] * 2
        running.cancel()
