"""Server of the page, on 127.0.0.1 only. It reads the cluster for each visit and changes nothing anywhere."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, TypeVar

from aiohttp import web

from fairlead.cli.console.exits import CommandError
from fairlead.cli.console.output import clean, complain
from fairlead.cli.ui.page_guard import HEADERS, PageGuard
from fairlead.cli.ui.page_templates import STATIC, page_templates, static_file
from fairlead.cli.ui.page_view import PageInput, PageView, page_view
from fairlead.cli.ui.what_if import Line, compare, lint_text
from fairlead.kube.errors import ClusterError
from fairlead.simulation.snapshot_error import SnapshotError
from fairlead.strategies.contract import Strategy

if TYPE_CHECKING:
    from fairlead.cli.ui.shown_pods import ShownPods

HOST: Final = "127.0.0.1"
BODY_MAX: Final = 1 << 20
_EXPECTED: Final = (ClusterError, CommandError, SnapshotError)
_NAME: Final = "fairlead ui"
_SUPERSEDED: Final = 409
_FAILED: Final = 502
T = TypeVar("T")
Reader = Callable[[], Awaitable[PageInput]]


class PageServer:
    """Server of the page. Everything is judged in one thread, so that the page still answers meanwhile."""

    def __init__(
        self, reader: Reader, guard: PageGuard, custom: Mapping[str, Strategy], first: PageInput | None = None
    ) -> None:
        self._reader: Final = reader
        self._first = first
        self._guard: Final = guard
        self._custom: Final = custom
        self._templates: Final = page_templates()
        self._static: Final = {name: static_file(name) for name in STATIC}
        self._thread: Final = ThreadPoolExecutor(1, "judge")
        self._reading: asyncio.Task[PageView] | None = None
        self._shown: ShownPods | None = None
        self._texts: Mapping[str, str] = {}
        self._turn = 0

    def application(self) -> web.Application:
        """Return the application."""
        made = web.Application(middlewares=[self._guarded], client_max_size=BODY_MAX)
        made.add_routes(
            [
                web.get("/", self._index),
                web.get("/policy", self._policy),
                web.get("/static/{name}", self._file),
                web.post("/lint", self._lint),
                web.post("/diff", self._diff),
            ]
        )
        made.on_cleanup.append(self._close)
        return made

    async def _close(self, _: web.Application) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    @web.middleware
    async def _guarded(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        token = request.query.get("token", "")
        refusal = self._guard.refusal(request.method, request.headers, request.cookies, token)
        reply: web.StreamResponse
        if refusal is not None:
            reply = web.Response(status=refusal.status, text=refusal.message)
        elif request.path == "/" and token:
            reply = self._opened()
        else:
            try:
                reply = await handler(request)
            except web.HTTPException as error:
                reply = web.Response(status=error.status, text=f"{error.reason}\n")
            except Exception as error:  # noqa: BLE001 - the last place that can report it
                complain(_NAME, f"a bug in Fairlead, please report it: {type(error).__name__}: {error}")
                reply = web.Response(status=500, text="This is a bug: the terminal has more.\n")
        reply.headers.update(HEADERS)
        return reply

    def _opened(self) -> web.Response:
        """Return a page that has the cookie and leads to the page without the token.

        A redirect would not do: a browser that comes from elsewhere sends no strict cookie along it.
        """
        reply = self._html("opened.html")
        reply.set_cookie(self._guard.cookie, self._guard.token, httponly=True, samesite="Strict", path="/")
        return reply

    async def _index(self, _: web.Request) -> web.Response:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        try:
            view = await asyncio.shield(self._reading)
        except _EXPECTED as error:
            return self._html("failed.html", status=_FAILED, why=str(error))
        return await self._in_thread(lambda: self._html("page.html", view=view))

    async def _read(self) -> PageView:
        read, self._first = self._first or await self._reader(), None
        view, self._shown = await self._in_thread(lambda: page_view(read))
        self._texts = view.texts
        return view

    async def _policy(self, request: web.Request) -> web.Response:
        text = self._texts.get(request.query.get("name", ""))
        if text is None:
            raise web.HTTPNotFound
        return web.Response(text=text, content_type="text/plain")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in STATIC:
            raise web.HTTPNotFound
        return web.Response(body=self._static[name], content_type=STATIC[name], charset="utf-8")

    async def _lint(self, request: web.Request) -> web.Response:
        text = await request.read()
        return _answer((await self._in_thread(lambda: lint_text(text, self._custom))).lines)

    async def _diff(self, request: web.Request) -> web.Response:
        """Answer with the difference; an older question than the newest is not answered."""
        text, shown = await request.read(), self._shown
        self._turn += 1
        turn = self._turn

        def work() -> Sequence[Line] | None:
            if turn != self._turn:
                return None
            policies = lint_text(text, self._custom).policies
            return [] if policies is None or shown is None else compare(shown, policies)

        try:
            lines = await self._in_thread(work)
        except _EXPECTED as error:
            lines = [Line("Error", str(error))]
        return web.Response(status=_SUPERSEDED) if lines is None else _answer(lines)

    def _html(self, template: str, *, status: int = 200, **values: object) -> web.Response:
        text = self._templates.get_template(template).render(values)
        return web.Response(status=status, text=text, content_type="text/html")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _answer(lines: Sequence[Line]) -> web.Response:
    return web.json_response({"lines": [{**asdict(line), "text": clean(line.text)} for line in lines]})


async def serve(
    reader: Reader, port: int, token: str, custom: Mapping[str, Strategy], ready: Callable[[PageGuard], None]
) -> None:
    """Read once, then serve the page until this is cancelled. Raises CommandError, ClusterError and SnapshotError.

    `ready` is told the guard, which has the address.
    """
    listener = _listen(port)
    guard = PageGuard(listener.getsockname()[1], token)
    first = await reader()
    runner = web.AppRunner(
        PageServer(reader, guard, custom, first).application(), access_log=None, handle_signals=False
    )
    try:
        await runner.setup()
        await web.SockSite(runner, listener).start()
        ready(guard)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
        listener.close()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        cure = "give another one with --port, or --port 0 for any that is free"
        raise CommandError(f"cannot listen on {HOST}:{port}: {error.strerror}; {cure}") from None
