"""Guard of the page: only its own address, its own pages and the user who was given the token."""

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import aiohttp
import pytest
from aiohttp import hdrs

from fairlead.cli.console.exits import CommandError
from fairlead.cli.main import parser
from fairlead.cli.ui.page_guard import HEADERS, PageGuard, new_token
from fairlead.cli.ui.page_reader import PageReader
from fairlead.cli.ui.page_server import BODY_MAX, HOST, serve
from support.cli.page import node, pod, policy, write

TOKEN: Final = "t" * 32
GUARD: Final = PageGuard(8090, TOKEN)
HOST_HEADER: Final = {"Host": "127.0.0.1:8090"}
COOKIE: Final = {GUARD.cookie: TOKEN}

CASES: dict[str, tuple[str, Mapping[str, str], Mapping[str, str], str, int]] = {
    "the printed address": ("GET", HOST_HEADER, {}, TOKEN, 0),
    "with the cookie": ("GET", HOST_HEADER, COOKIE, "", 0),
    "by the name localhost": ("GET", {"Host": "localhost:8090"}, COOKIE, "", 0),
    "from the page": ("POST", {**HOST_HEADER, "Origin": "http://127.0.0.1:8090", "X-Fairlead": "page"}, COOKIE, "", 0),
    "no Host": ("GET", {}, COOKIE, TOKEN, 421),
    "a name that leads here": ("GET", {"Host": "evil.example:8090"}, COOKIE, TOKEN, 421),
    "another port": ("GET", {"Host": "127.0.0.1:8091"}, COOKIE, TOKEN, 421),
    "no port": ("GET", {"Host": "127.0.0.1"}, COOKIE, TOKEN, 421),
    "a name that begins alike": ("GET", {"Host": "127.0.0.1:8090.evil.example"}, COOKIE, TOKEN, 421),
    "another page": ("GET", {**HOST_HEADER, "Origin": "http://evil.example"}, COOKIE, TOKEN, 403),
    "a page on another port": ("GET", {**HOST_HEADER, "Origin": "http://127.0.0.1:8091"}, COOKIE, TOKEN, 403),
    "a page in a sandbox": ("GET", {**HOST_HEADER, "Origin": "null"}, COOKIE, TOKEN, 403),
    "its own address over TLS": ("GET", {**HOST_HEADER, "Origin": "https://127.0.0.1:8090"}, COOKIE, TOKEN, 403),
    "no token": ("GET", HOST_HEADER, {}, "", 403),
    "a wrong token": ("GET", HOST_HEADER, {}, TOKEN[:-1] + "x", 403),
    "a token that is no ASCII": ("GET", HOST_HEADER, {}, "\u00fc\udc80", 403),
    "a part of the token": ("GET", HOST_HEADER, {}, TOKEN[:-1], 403),
    "a wrong cookie": ("GET", HOST_HEADER, {GUARD.cookie: "x"}, "", 403),
    "the cookie of a page on another port": ("GET", HOST_HEADER, {"fairlead-ui-8091": TOKEN}, "", 403),
    "a POST with a token and no cookie": ("POST", {**HOST_HEADER, "X-Fairlead": "page"}, {}, TOKEN, 403),
    "a POST without the header": ("POST", HOST_HEADER, COOKIE, "", 403),
    "a POST of another header": ("POST", {**HOST_HEADER, "X-Fairlead": "1"}, COOKIE, "", 403),
    "a DELETE": ("DELETE", HOST_HEADER, COOKIE, "", 403),
}


@pytest.mark.parametrize(("method", "headers", "cookies", "token", "status"), CASES.values(), ids=CASES)
def test_who_is_let_in(
    method: str, headers: Mapping[str, str], cookies: Mapping[str, str], token: str, status: int
) -> None:
    refusal = GUARD.refusal(method, headers, cookies, token)
    assert (0 if refusal is None else refusal.status) == status


def test_a_token_has_192_bits_and_is_never_the_same() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[\w-]{32}", token) for token in tokens)  # 6 bits each


Visit = Callable[[aiohttp.ClientSession, str], Awaitable[None]]


def _visited(folder: Path, visit: Visit) -> None:
    """Serve a page and visit it with a client that has the cookie."""
    options = write(folder, [node("a"), pod("p")], [policy("p", ("true", "why"))])

    async def main() -> None:
        ready: asyncio.Future[PageGuard] = asyncio.get_running_loop().create_future()
        reader = PageReader(parser().parse_args(["ui", *options]))
        serving = asyncio.create_task(serve(reader.read, 0, TOKEN, {}, ready.set_result))
        serving.add_done_callback(lambda _: ready.cancel())
        guard = await ready
        base = f"http://127.0.0.1:{guard.port}"
        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                async with session.get(guard.address) as reply:
                    assert reply.status == 200
                    cookie = reply.headers[hdrs.SET_COOKIE]
                    assert cookie == f"{guard.cookie}={TOKEN}; HttpOnly; Path=/; SameSite=Strict"
                    assert TOKEN not in await reply.text()
                await visit(session, base)
        finally:
            serving.cancel()
            await asyncio.wait([serving])

    asyncio.run(main())


def test_every_reply_has_the_headers_that_keep_the_page_to_itself(tmp_path: Path) -> None:
    async def visit(session: aiohttp.ClientSession, base: str) -> None:
        wanted = {
            "/": 200,
            "/policy?name=p": 200,
            "/policy?name=none": 404,
            "/static/page.css": 200,
            "/static/page.js": 200,
            "/static/..%2fpage_server.py": 404,
            "/static/page.html": 404,
            "/favicon.ico": 404,
            "/lint": 405,
        }
        for path, status in wanted.items():
            async with session.get(base + path) as reply:
                assert (path, reply.status) == (path, status)
                assert HEADERS.items() <= reply.headers.items()
        async with session.get(base, headers={"Host": "evil.example"}) as reply:
            assert (reply.status, HEADERS.items() <= reply.headers.items()) == (421, True)
        async with session.post(f"{base}/lint", data="") as reply:
            assert (reply.status, HEADERS.items() <= reply.headers.items()) == (403, True)
        large = io.BytesIO(b"x" * (BODY_MAX + 1))
        async with session.post(f"{base}/lint", data=large, headers={"X-Fairlead": "page"}) as reply:
            assert (reply.status, HEADERS.items() <= reply.headers.items()) == (413, True)

    _visited(tmp_path, visit)


def test_the_policy_of_contents_allows_nothing_but_the_pages_own_files() -> None:
    rules = HEADERS["Content-Security-Policy"].split("; ")
    assert rules[:4] == ["default-src 'none'", "style-src 'self'", "script-src 'self'", "connect-src 'self'"]
    assert {rule.split()[1] for rule in rules} == {"'none'", "'self'"}
    assert HEADERS["Cache-Control"] == "no-store"


def test_lint_and_difference_are_answered_as_text(tmp_path: Path) -> None:
    async def visit(session: aiohttp.ClientSession, base: str) -> None:
        async with session.get(base) as reply:
            await reply.read()
        async with session.get(f"{base}/policy?name=p") as reply:
            text = await reply.text()
        headers = {"X-Fairlead": "page", "Origin": base}
        never = text.replace("'true'", "'false'")
        assert never != text
        async with session.post(f"{base}/lint", data=never, headers=headers) as reply:
            linted = (await reply.json())["lines"]
        async with session.post(f"{base}/diff", data=never, headers=headers) as reply:
            lines = (await reply.json())["lines"]
        odd = {**headers, "Content-Type": "text/plain; charset=unheard-of"}
        async with session.post(f"{base}/lint", data=b"\xff", headers=odd) as reply:
            assert (reply.status, (await reply.json())["lines"][0]["kind"]) == (200, "Error")
        assert [line["kind"] for line in linted if line["kind"] == "Error"] == []
        assert {"kind": "Worse", "text": "    has no node left"} in lines

    _visited(tmp_path, visit)


def test_the_page_is_on_the_loopback_address_only() -> None:
    assert HOST == "127.0.0.1"
    options = {option for action in parser()._actions for option in action.option_strings}
    assert "--host" not in options


def test_a_port_that_is_taken_is_an_error_with_a_cure(tmp_path: Path) -> None:
    async def visit(_: aiohttp.ClientSession, base: str) -> None:
        options = write(tmp_path, [node("a")], [policy("p", ("true", "why"))])
        reader = PageReader(parser().parse_args(["ui", *options]))
        with pytest.raises(CommandError, match=r"cannot listen on 127\.0\.0\.1:\d+: .*--port 0"):
            await serve(reader.read, int(base.rpartition(":")[2]), TOKEN, {}, lambda _: None)

    _visited(tmp_path, visit)
