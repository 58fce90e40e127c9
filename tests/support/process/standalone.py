"""An app between a scheduler and an API server on loopback that lists and watches what a test says."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from aiohttp import web

from fairlead.kube.http.client import Client
from fairlead.process.health import FRESH_S
from fairlead.process.serving_core import ServingCore
from fairlead.process.settings import Address, Settings
from fairlead.process.settings_file import SettingsFile
from fairlead.process.standalone import StandaloneReplica
from fairlead.strategies.contract import Strategy
from fairlead.webhook.capability import Capability
from scripted.server import Server
from scripted.steps import answer, refuse
from support.webhook.tls import Connection, Ground, connect

POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: p}
spec:
  filters:
  - {name: f, expression: "%s"}
"""
GOOD, OTHER, BAD = "node.metadata.name == 'a'", "node.metadata.name == 'b'", "node.metadata.nam == 'a'"


@dataclass
class World:
    """Objects by the plural of their kind; watches say nothing."""

    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    """Kinds that we have no rights to."""
    bindings: list[Any] = field(default_factory=list)

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        kind = request.path.rstrip("/").split("/")[-1]
        if kind in self.refused:
            return await refuse(403, "Forbidden", "no rights")(request)
        if request.method == "POST":
            made = json.loads(await request.read())
            if kind == "binding":
                self.bindings.append(made)
            else:
                name, held = made["metadata"]["name"], self.objects.setdefault(kind, [])
                if any(one["metadata"]["name"] == name for one in held):
                    return await refuse(409, "AlreadyExists")(request)
                made["metadata"]["uid"] = f"uid-{name}"
                held.append(made)
            return await answer(made, 201)(request)
        if request.method == "DELETE":
            kind, name = request.path.split("/")[-2:]
            self.objects[kind] = [one for one in self.objects[kind] if one["metadata"]["name"] != name]
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.Event().wait()
        items = [*self.objects.get(kind, ())]
        if "nodeName!=" in request.query.get("fieldSelector", ""):
            items = []
        return await answer({"metadata": {"resourceVersion": "1", "continue": ""}, "items": items})(request)


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "1"}, "spec": {}, "status": {}}


def waiting(name: str, uid: str = "u-x") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ml", "uid": uid, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"schedulerName": "fairlead"}, "status": {}}


@dataclass
class Running:
    """One that runs."""

    app: StandaloneReplica
    ground: Ground
    folder: Path
    apiserver: World
    stop: asyncio.Event
    task: "asyncio.Task[None]"
    opened: list[Connection] = field(default_factory=list)
    later: Iterator[float] = field(default_factory=lambda: count(step=FRESH_S))

    @property
    def core(self) -> ServingCore:
        """Return the core that it answers from."""
        return self.app.core

    async def connect(self, name: str = "scheduler") -> Connection:
        self.opened.append(await connect(self.app.replica.port, self.ground.client(name)))
        return self.opened[-1]

    async def probe(self, path: str) -> tuple[int, str]:
        """As if the last one was long ago."""
        self.app.replica.probes.clock = self.later.__next__
        connection = await connect(self.app.replica.probes_port, None)
        reply = await connection.call(path, b"", "GET")
        await connection.close()
        return reply.status, reply.body.decode()

    async def until(self, wanted: Callable[[], bool]) -> None:
        while not wanted():
            if self.task.done():
                self.task.result()
            await asyncio.sleep(0.01)

    async def ready(self) -> None:
        await self.until(lambda: self.core.mirror_feed.synced and self.core.reloader.state is not None)

    async def served(self, expression: str) -> str:
        """Write the policy; how it is with it once that was seen."""
        return await self.served_text(POLICY % expression)

    async def served_text(self, text: str) -> str:
        """Write the file of policy "p"; how it is with it once calls are answered by it, a moment after it compiled."""
        before = self.core.policies.states.get("p")
        (self.folder / "p.yaml").write_text(text)
        await self.app.policies.reload()

        def is_seen() -> bool:
            now, state = self.core.policies.states.get("p"), self.core.reloader.state
            if now is None or now == before or state is None:
                return False
            return not now.serving or any(one.generation == now.serving for one in state.policies.policies)

        await self.until(is_seen)
        return str(self.core.policies.states["p"])

    def write(self, expression: str) -> None:
        (self.folder / "p.yaml").write_text(POLICY % expression)


@asynccontextmanager
async def running(
    folder: Path,
    apiserver: World | None = None,
    *,
    drain_s: float = 0.0,
    custom: Mapping[str, Strategy] | None = None,
    file: SettingsFile | None = None,
    capabilities: Sequence[Callable[[ServingCore], Capability]] = (),
) -> AsyncIterator[Running]:
    apiserver = apiserver or World({"nodes": [node("a"), node("b")], "pods": [waiting("x")]})
    ground, policies = Ground(Path(mkdtemp(dir=folder))), folder / "policies"
    policies.mkdir(exist_ok=True)
    settings = Settings(
        policies=policies,
        listen=Address("127.0.0.1", 0),
        probes=Address("127.0.0.1", 0),
        tls=ground.files,
        callers={"scheduler": None, "looker": {"fairlead": frozenset({"filter"})}},
        drain_s=drain_s,
        custom=custom or {},
    )
    async with Server(apiserver.serve) as server, Client(server.login()) as client:
        app, stop = StandaloneReplica(settings, client, file), asyncio.Event()
        for capability in capabilities:
            app.core.add(capability(app.core))
        task = asyncio.create_task(app.replica.run(stop))
        one = Running(app, ground, policies, apiserver, stop, task)
        try:
            await one.until(lambda: app.replica.port != 0)
            yield one
        finally:
            for connection in one.opened:
                await connection.close()
            stop.set()
            await task
