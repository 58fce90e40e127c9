"""An API server that knows nodes and pods, lists them, and tells of what becomes different: as fast as it is told to.

It has a loop in a thread of its own, and no more than what a mirror asks for.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml
from aiohttp import web

PAGE: Final = 250
OF_A_SCHEDULER: Final = "pods-of-a-scheduler"
_EMPTY: Final = b'{"metadata":{"resourceVersion":"1"},"items":[]}'


def write_kubeconfig(file: Path, port: int) -> Path:
    """Kubeconfig of an API server on this machine."""
    cluster = {"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "bench", "context": {"cluster": "bench", "user": "bench"}}
    users = [{"name": "bench", "user": {}}]
    written = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "bench"}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **written}))
    return file


@dataclass(eq=False)
class ApiServer:
    """Replies by what is asked for: `nodes`, `pods` (on nodes), those of a scheduler, and `node-metrics` (one page)."""

    pages: dict[str, list[bytes]] = field(default_factory=dict)
    port: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    """Number of reads, by what was asked for."""
    _watches: dict[str, list[web.StreamResponse]] = field(default_factory=dict)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def have(self, kind: str, items: Iterable[bytes]) -> None:
        """These are all."""
        listed: Sequence[bytes] = list(items)
        parts = [listed[start : start + PAGE] for start in range(0, len(listed), PAGE)] or [[]]
        last = len(parts) - 1
        self.pages[kind] = [
            b'{"metadata":{"resourceVersion":"1","continue":"%s"},"items":[%s]}'
            % (b"%d" % (at + 1) if at < last else b"", b",".join(part))
            for at, part in enumerate(parts)
        ]

    def tell(self, kind: str, events: bytes) -> None:
        """Lines to all who watch; from any thread."""
        asyncio.run_coroutine_threadsafe(self._tell(kind, events), self._loop).result()

    def kubeconfig(self, file: Path) -> Path:
        """Kubeconfig that reaches it."""
        return write_kubeconfig(file, self.port)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Listen meanwhile."""
        runner = self._loop.run_until_complete(self._start())
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(self._stop(runner), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    async def _start(self) -> web.ServerRunner:
        runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = int(runner.addresses[0][1])
        return runner

    async def _stop(self, runner: web.ServerRunner) -> None:
        await runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _tell(self, kind: str, events: bytes) -> None:
        for watch in [*self._watches.get(kind, ())]:
            with suppress(ConnectionResetError):  # its client has ended
                await watch.write(events)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        kind = request.path.rpartition("/")[2]
        if "/metrics.k8s.io/" in request.path:
            kind = "node-metrics"
        if request.query.get("fieldSelector", "").startswith("spec.nodeName=,"):
            kind = "unplaced"
        if request.query.get("fieldSelector", "").startswith("spec.schedulerName="):
            kind = OF_A_SCHEDULER
        if "watch" in request.query:
            return await self._watch(kind, request)
        self.asked[kind] += request.method == "GET"
        if request.method != "GET":
            return web.Response(body=await request.read(), status=201, content_type="application/json")
        pages = self.pages.get(kind, [_EMPTY])
        return web.Response(body=pages[int(request.query.get("continue") or 0)], content_type="application/json")

    async def _watch(self, kind: str, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n')
        watches = self._watches.setdefault(kind, [])
        watches.append(response)
        try:
            await asyncio.sleep(float(request.query["timeoutSeconds"]))
        finally:
            watches.remove(response)
        return response
