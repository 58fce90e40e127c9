"""Whatever happens, and whatever fails meanwhile: when all is quiet, what is held is what there is."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from scripted.clock import Wound
from scripted.kept import Kept, Thing, decode
from scripted.server import Server
from scripted.world import World

THINGS = ObjectRef(Resource("test.dev", "v1", "things"))
_TOO_LONG_S = 60
names = st.sampled_from([*"abcdefg"])
changes = st.tuples(st.sampled_from([World.put, World.put, World.delete, World.recreate]), names)
faults = st.sampled_from(
    [
        World.compact,
        World.bookmark,
        World.repeat,
        World.expire,
        World.break_all,
        World.break_within_a_line,
        World.stall,
        World.fail,
        World.forbid,
    ]
)
turns = st.integers(1, 40)  # how long the others have before the next thing happens
happenings = st.lists(
    st.one_of(changes, changes, faults, turns, turns, st.sampled_from(["relist", "advance"])), max_size=40
)


@settings(max_examples=150)
@given(happenings)
def test_what_is_held_is_what_there_is(happenings: list[Any]) -> None:
    asyncio.run(_live(happenings))


async def _live(happenings: list[Any]) -> None:
    time, world, sink = Wound(), World(), Kept()
    async with Server(world.serve) as server, Client(server.login(), clock=time.clock) as client:
        reflector = Reflector(client, THINGS, decode=decode, sink=sink, clock=time.clock)

        def is_true() -> bool:
            held = {key: (stamp.uid, stamp.version) for key, stamp in reflector.objects.items()}
            told = {
                ("default", name): (one.metadata.uid, one.metadata.resourceVersion) for name, one in sink.things.items()
            }
            return reflector.state.synced and held == told == world.stamps

        running = asyncio.create_task(reflector.run())
        for happening in happenings:
            await _befall(happening, world, reflector, time)
        world.faults.clear()
        quiet = asyncio.create_task(sink.until(is_true))
        ended: set[asyncio.Task[Any]] = set()
        async with asyncio.timeout(_TOO_LONG_S):
            while not ended:
                # Those who hear nothing look again; what comes late over the wire begins the silence anew.
                time.advance(100)
                ended, _ = await asyncio.wait({running, quiet}, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, quiet):
            task.cancel()
        await asyncio.wait({running, quiet})
        assert running.cancelled(), running.exception()
        assert is_true()


async def _befall(happening: Any, world: World, reflector: Reflector[Thing], time: Wound) -> None:
    match happening:
        case int():
            for _ in range(happening):
                await asyncio.sleep(0)
        case "relist":
            reflector.relist()
        case "advance":
            time.advance(100)
        case (change, name):
            change(world, name)
        case fault:
            fault(world)
