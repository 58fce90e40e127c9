"""A port of their own for probes and metrics: plain HTTP, nothing secret."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that has to be so, and what there is to say about it."""

    name: str
    ok: bool
    text: str = ""

    def __str__(self) -> str:
        return f"[{'+' if self.ok else '-'}] {self.name}{': ' if self.text else ''}{self.text}"


@dataclass(slots=True, eq=False)
class Probes:
    """Answers to whoever watches this process."""

    checks: Callable[[], Iterable[Check]]
    metrics: Callable[[], bytes]
    _runner: web.AppRunner = field(init=False)

    async def start(self, host: str | None, port: int) -> int:
        """Listen; gives the port."""
        application = web.Application()
        application.router.add_get("/livez", self._livez)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        chosen: int = self._runner.addresses[0][1]
        return chosen

    async def stop(self) -> None:
        """Close everything."""
        await self._runner.cleanup()

    async def _livez(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        checks = list(self.checks())
        ready = all(check.ok for check in checks)
        text = "".join(f"{check}\n" for check in checks) + ("ready\n" if ready else "not ready\n")
        return web.Response(text=text, status=200 if ready else 503)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self.metrics(), headers={"Content-Type": CONTENT_TYPE_LATEST})
