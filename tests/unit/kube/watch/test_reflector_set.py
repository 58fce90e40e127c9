"""Watches on demand."""

import asyncio
from functools import partial

from aiohttp import web
from msgspec.json import Decoder

from fairlead.kube.http.client import Client
from fairlead.kube.resources import NODES, PODS, ObjectRef
from fairlead.kube.watch.config_maps import ConfigMap
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import EventSink, Key
from scripted.loop import in_loop
from scripted.server import Server


class Kept(EventSink):
    """Sink that keeps names."""

    def __init__(self) -> None:
        self.names = set[str]()

    def put(self, item: ConfigMap, /) -> None:
        self.names.add(item.metadata.name)

    def remove(self, key: Key, /) -> None:
        self.names.discard(key[1])


class Faulty(Kept):
    """Sink that fails at the end of a list."""

    is_mended = False

    def end(self) -> None:
        if not self.is_mended:
            raise ValueError("a slip")


async def serve(request: web.BaseRequest) -> web.StreamResponse:
    """Lists one object that is named as its kind is; watches say nothing."""
    if "watch" in request.query:
        await asyncio.Event().wait()
    metadata = {"name": request.path.split("/")[-1], "namespace": "", "uid": "u", "resourceVersion": "1"}
    return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [{"metadata": metadata}]})


def follow(client: Client, where: ObjectRef, sink: Kept) -> Reflector[ConfigMap]:
    return Reflector(client, where, decode=Decoder(ConfigMap).decode, sink=sink)


@in_loop
async def test_what_is_wanted_runs_and_what_is_not_ends() -> None:
    async with Server(serve) as server, Client(server.login()) as client, asyncio.timeout(20):
        watches, sink = ReflectorSet(), Kept()
        running = asyncio.ensure_future(watches.run())
        wanted = {name: partial(follow, client, where, sink) for name, where in (("pods", PODS), ("nodes", NODES))}
        watches.want({"pods": wanted["pods"]})
        first = watches.reflectors["pods"]
        await first.wait_until_listed()
        watches.want(wanted)
        assert watches.reflectors["pods"] is first, "it goes on"
        await watches.reflectors["nodes"].wait_until_listed()
        assert sink.names == {"pods", "nodes"}
        watches.want({})
        assert watches.reflectors == {}
        while len([task for task in asyncio.all_tasks() if "Reflector.run" in str(task)]) > 0:
            await asyncio.sleep(0.01)
        assert not running.done()
        running.cancel()


@in_loop
async def test_a_fault_of_a_sink_is_shown_ends_no_other_watch_and_is_tried_again() -> None:
    async with Server(serve) as server, Client(server.login()) as client, asyncio.timeout(20):
        watches, faulty, good = ReflectorSet(retry_s=0.01), Faulty(), Kept()
        watches.want({"bad": partial(follow, client, PODS, faulty), "good": partial(follow, client, NODES, good)})
        running = asyncio.ensure_future(watches.run())
        while "an internal fault (ValueError)" not in watches.reflectors["bad"].state.last_error:
            await asyncio.sleep(0.01)
        await watches.reflectors["good"].wait_until_listed()
        assert good.names == {"nodes"}
        assert not running.done()
        faulty.is_mended = True
        await watches.reflectors["bad"].wait_until_listed()
        assert faulty.names == {"pods"}
        running.cancel()
