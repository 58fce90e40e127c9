"""ConfigMaps of unhealthy devices, as a watch tells of them."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from fairlead.kube.http.client import Client
from fairlead.kube.watch.config_maps import ConfigMap
from fairlead.kube.watch.store import Meta
from fairlead.mirror import decode
from fairlead.mirror.mirror import Mirror
from fairlead.strategies.facts import Unknown
from fairlead.webhook.binding.unhealthy_devices_feed import UnhealthyFeed, UnhealthySink
from policies.good import device_share
from scripted.loop import in_loop
from scripted.server import Server
from support.policy import policy
from support.simulation.snapshot import node, written

SOURCE = ("kube-system", "sick-", "ids")


def sick(name: str, text: str) -> ConfigMap:
    return ConfigMap(Meta(name, "kube-system"), {"ids": text})


def mirror_of(*names: str) -> Mirror:
    made = Mirror(lambda: 0)
    for name in names:
        made.node_sink.put(decode.node(written(node(name))))
    return made


def texts(mirror: Mirror, source: tuple[str, str, str] = SOURCE) -> list[Any]:
    return [mirror.nodes.view_of(name).unhealthy(*source) for name in ("n1", "n2")]  # type: ignore[union-attr]


@in_loop
async def test_lists_count_once_all_are_listed() -> None:
    mirror = mirror_of("n1", "n2")
    sink = UnhealthySink(mirror)
    sink.set_sources([SOURCE])
    sink.put(sick("sick-n1", "0"))
    assert all(isinstance(one, Unknown) for one in texts(mirror))
    sink.end()
    assert texts(mirror) == ["0", ""]
    sink.put(sick("sick-n2", "1,2"))
    sink.put(sick("other", "3"))
    assert texts(mirror) == ["0", "1,2"]
    sink.remove(("kube-system", "sick-n1"))
    assert texts(mirror) == ["", "1,2"]


@in_loop
async def test_a_node_that_comes_later_has_its_list() -> None:
    mirror = mirror_of("n1")
    sink = UnhealthySink(mirror)
    sink.set_sources([SOURCE])
    sink.put(sick("sick-n2", "1"))
    sink.end()
    mirror.node_sink.put(decode.node(written(node("n2"))))
    assert texts(mirror) == ["", "1"]


@in_loop
async def test_a_source_that_no_policy_names_any_more_is_not_read() -> None:
    mirror = mirror_of("n1", "n2")
    sink = UnhealthySink(mirror)
    sink.put(sick("sick-n1", "0"))
    sink.end()
    sink.set_sources([SOURCE])
    assert texts(mirror) == ["0", ""]
    sink.set_sources([("kube-system", "bad-", "ids")])
    assert all(isinstance(one, Unknown) for one in texts(mirror))
    assert texts(mirror, ("kube-system", "bad-", "ids")) == ["", ""]


@in_loop
async def test_what_may_not_be_listed_is_told() -> None:
    source = {"configMap": {"namespace": "kube-system", "prefix": "sick-", "key": "ids"}}
    served = policy(binding={"deviceShare": [device_share(unhealthy=source)]})

    async def refused(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "message": "may not list configmaps"}, status=403)

    async with Server(refused) as server, Client(server.login()) as client:
        feed = UnhealthyFeed(client, mirror_of("n1"))
        running, following = asyncio.ensure_future(feed.run()), asyncio.ensure_future(feed.follow([served]))
        while not any("may not list configmaps" in one.state.last_error for one in feed.reflectors.values()):
            await asyncio.sleep(0.01)
        assert [*feed.reflectors] == ["unhealthy devices in kube-system"]
        following.cancel()
        await feed.follow([])
        assert [*feed.reflectors] == []
        running.cancel()


@in_loop
async def test_a_fault_in_a_list_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"configMap": {"namespace": "kube-system", "prefix": "sick-", "key": "ids"}}
    served = policy(binding={"deviceShare": [device_share(unhealthy=source)]})

    def slip(*_: object) -> None:
        raise ValueError("a slip")

    async def listed(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    monkeypatch.setattr(UnhealthySink, "end", slip)
    async with Server(listed) as server, Client(server.login()) as client, asyncio.timeout(20):
        feed = UnhealthyFeed(client, mirror_of("n1"))
        running, following = asyncio.ensure_future(feed.run()), asyncio.ensure_future(feed.follow([served]))
        while not any("an internal fault" in one.state.last_error for one in feed.reflectors.values()):
            await asyncio.sleep(0.01)
        for task in (following, running):
            task.cancel()
