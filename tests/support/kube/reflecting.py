"""A reflector that runs against a script of answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import pytest

from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from scripted.clock import Wound
from scripted.kept import Kept, Thing, decode
from scripted.server import Seen, Server, Step
from scripted.steps import (
    thing,
    watch,
)

THINGS = ObjectRef(Resource("test.dev", "v1", "things"))
HOLD = watch(then="hold")


@dataclass
class ReflectorScene:
    server: Server
    reflector: Reflector[Thing]
    time: Wound
    sink: Kept = field(default_factory=Kept)

    @property
    def requests(self) -> list[str]:
        """Requests so far: `list`, `list c1` with the place that it goes on from, `watch 3` with the version."""
        return [_request(one) for one in self.server.seen]

    async def until(self, *requests: str) -> None:
        """Wait until this was what was asked."""
        while len(self.requests) < len(requests):
            await asyncio.sleep(0)
        assert self.requests == [*requests]


def _request(seen: Seen) -> str:
    if "watch" in seen.query:
        return f"watch {seen.query['resourceVersion']}"
    return f"list {seen.query['continue']}" if "continue" in seen.query else "list"


@asynccontextmanager
async def reflecting(
    *script: Step,
    query: dict[str, str] | None = None,
    puts_deleted: bool = False,
    read: Callable[[msgspec.Raw], Thing] = decode,
    piece: int = 50,
) -> AsyncIterator[ReflectorScene]:
    """A reflector that runs against a script; what comes after the script is silence."""
    time, sink = Wound(), Kept()
    async with Server(HOLD, script=[*script]) as server, Client(server.login(), clock=time.clock) as client:
        reflector = Reflector(
            client,
            THINGS,
            decode=read,
            sink=sink,
            query=query or {},
            clock=time.clock,
            piece=piece,
            puts_deleted=puts_deleted,
        )
        running = asyncio.create_task(reflector.run())
        try:
            yield ReflectorScene(server, reflector, time, sink)
        finally:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
    assert server.script == [], "some of the script was not asked for"


A, B, C = thing("a", 1, value=1), thing("b", 2, value=2), thing("c", 3, value=3)
