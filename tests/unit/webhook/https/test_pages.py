"""Pages of the operator's port: what they have, for whom, and what is not there."""

import asyncio
from pathlib import Path

import pytest

from fairlead.webhook.extender.call import Reply
from fairlead.webhook.https.pages import pages_for
from fairlead.webhook.https.server import WebhookServer
from fairlead.webhook.https.tls import Tls
from support.policy import SECOND
from support.webhook.tls import ANYBODY, NOW, Ground, connect


def values(caller: str, path: str) -> bytes | None:
    if caller != "scheduler":
        return None
    return {"/data/p/load": b"{}"}[path]


@pytest.mark.parametrize(
    ("caller", "path", "want"),
    [
        ("operator", "/devices/n1", b'{"n":1}'),
        ("operator", "/devices/", b'{"n":0}'),
        ("operator", "/devices/n2", LookupError),
        ("scheduler", "/devices/n1", None),
        ("scheduler", "/devices/n2", None),
    ],
)
def test_pages_are_for_one_reader(caller: str, path: str, want: object) -> None:
    read = pages_for("operator", {"": {"n": 0}, "n1": {"n": 1}}.get)
    if want is LookupError:
        with pytest.raises(LookupError):
            read(caller, path)
    else:
        assert read(caller, path) == want


@pytest.mark.parametrize(
    ("path", "method", "status", "said"),
    [
        ("/data/p/load", "GET", 200, b"{}"),
        ("/data/p/other", "GET", 404, b"there is nothing at /data/p/other"),
        ("/data/p/load", "POST", 405, b"POST is not allowed; use GET"),
        ("/data", "GET", 404, b"no such path: /data; there are /filter"),
        ("/other", "GET", 403, b"may not read /other"),
    ],
)
def test_a_page(path: str, method: str, status: int, said: bytes, tmp_path: Path) -> None:
    async def ask() -> None:
        ground = Ground(tmp_path)
        pages = {"/data/": values, "/other": lambda *_: None}
        routes = {"/filter": lambda call: Reply(call.body)}
        server = WebhookServer(
            Tls(ground.files),
            routes,
            lambda *_: ANYBODY,
            lambda *_: None,
            pages=pages,
            time=lambda: int(NOW.timestamp() * SECOND),
        )
        connection = await connect(await server.start("127.0.0.1", 0), ground.client())
        try:
            found = await connection.call(path, b"", method)
            assert (found.status, said in found.body) == (status, True), found.body
        finally:
            await connection.close()
            await server.stop(0)

    asyncio.run(ask())
