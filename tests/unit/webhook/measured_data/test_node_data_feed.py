"""The feed with real sources: what one of them does not say keeps back nobody else's values."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic, time_ns
from typing import Any

import pytest
from aiohttp import web

from fairlead.api.parse import parse_params
from fairlead.kube.http.client import Client
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.node_table import Nodes
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.strategies.facts import Unknown
from fairlead.webhook.data_sources.sources import DocumentQuestions
from fairlead.webhook.measured_data.node_data_feed import NodeDataFeed, query_owners
from scripted.loop import in_loop
from scripted.server import Server, Step
from scripted.steps import page, watch
from support.policy import node, policy
from support.webhook.polled import reply, series

GOOD = {"name": "good", "prometheus": {"server": "good", "query": "up"}}
HUNG = {"name": "hung", "prometheus": {"server": "hung", "query": "up"}}
PRICE = {"name": "price", "configMap": {"name": "prices"}}
PRICES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "prices", "namespace": "here", "uid": "u", "resourceVersion": "1"},
    "data": {"values.json": json.dumps({"values": {"a": 3}})},
}
SOON_S = 2.0
"""Well below the five seconds after which a server that hangs is given up."""


def says(body: bytes) -> Step:
    async def step(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body)

    return step


async def hang(request: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def config_maps(request: web.BaseRequest) -> web.StreamResponse:
    return await (watch(then="hold") if "watch" in request.query else page(PRICES, version=5))(request)


class Fed:
    """A feed that runs for one node, and what its entries give."""

    def __init__(self, feed: NodeDataFeed, nodes: Nodes) -> None:
        self.feed, self._nodes = feed, nodes
        self._policy = policy(filters={"f": "true"})

    def follow(self, *data: dict[str, Any]) -> asyncio.Task[None]:
        """Begin to follow one policy; its own waiting goes on meanwhile."""
        self._policy = policy(data=[*data], filters={"f": f"data.{data[0]['name']} < 9.0"})
        return asyncio.create_task(self.feed.follow([self._policy]))

    def value(self, entry: str) -> float | str:
        view = self._nodes.view_of("a")
        assert view is not None
        found = self._nodes.with_measured(view, self._policy.data, time_ns()).data(entry)
        return str(found) if isinstance(found, Unknown) else found

    async def seconds_until(self, wanted: Callable[[], bool]) -> float:
        begun = monotonic()
        while not wanted():
            await asyncio.sleep(0.005)
        return monotonic() - begun


@asynccontextmanager
async def feeding(folder: Path, **servers: Step) -> AsyncIterator[Fed]:
    """A feed with Prometheus servers of these names, and an API server with one ConfigMap."""
    nodes = Nodes()
    nodes.put(node("a", created="2020-01-01T00:00:00Z"))
    running = {name: Server(step) for name, step in servers.items()}
    async with Server(config_maps) as api, Client(api.login()) as client:
        for one in running.values():
            await one.__aenter__()
        feed = NodeDataFeed(client, nodes, "here", folder, now=time_ns, is_synced=lambda: True)
        feed.set_servers(
            parse_params({"name": name, "url": one.url}, PrometheusServer) for name, one in running.items()
        )
        task = asyncio.create_task(feed.run())
        try:
            yield Fed(feed, nodes)
        finally:
            task.cancel()
            await asyncio.wait([task])
            for one in running.values():
                await one.__aexit__(None, None, None)


@in_loop
async def test_a_server_that_hangs_keeps_back_no_value_of_another_source(tmp_path: Path) -> None:
    async with feeding(tmp_path, good=says(reply(series("0.5", instance="a"))), hung=hang) as fed:
        waiting = fed.follow(HUNG, GOOD, PRICE)
        took_s = await fed.seconds_until(lambda: fed.value("good") == 0.5 and fed.value("price") == 3.0)
        assert took_s < SOON_S
        assert fed.value("hung") == "data hung is missing"
        assert not waiting.done()
        waiting.cancel()


@in_loop
async def test_a_set_waits_for_a_config_map_until_it_is_read(tmp_path: Path) -> None:
    async with feeding(tmp_path) as fed:
        assert await fed.seconds_until(fed.follow(PRICE).done) < SOON_S
        assert fed.value("price") == 3.0
        assert fed.feed.readiness() == (True, "1 polls")


@in_loop
async def test_what_only_rules_in_shadow_read_is_polled_and_not_waited_for(tmp_path: Path) -> None:
    filters = {"f": {"expression": "data.hung < 9.0", "mode": "Shadow"}, "g": "data.price < 9.0"}
    async with feeding(tmp_path, hung=hang) as fed:
        await fed.feed.follow([policy(data=[HUNG, PRICE], filters=filters)])
        assert len(fed.feed.poll_states) == 2
        assert fed.feed.readiness() == (True, "1 polls")
        assert fed.feed.awaits_values
        await fed.feed.follow([policy(mode="Shadow", data=[HUNG], filters={"f": "data.hung < 9.0"})])
        assert (len(fed.feed.poll_states), fed.feed.readiness()) == (1, None)


@in_loop
async def test_a_set_waits_for_a_server_that_refuses_at_first(tmp_path: Path) -> None:
    refused = 0

    async def first_refuse(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal refused
        if refused == 0:
            refused += 1
            return web.Response(status=503)
        return await says(reply(series("0.5", instance="a")))(request)

    async with feeding(tmp_path, good=first_refuse) as fed:
        waiting = fed.follow(GOOD)
        await fed.seconds_until(lambda: any("503" in one.error for one in fed.feed.poll_states.values()))
        assert [*fed.feed.remarks()] == [
            "prometheus good: up: the last poll failed, 1 failure so far; the log says why (data.poll_failed)"
        ]
        assert fed.feed.readiness() == (False, "1 polls, without values yet: prometheus good: up")
        await waiting
        assert fed.value("good") == 0.5


@in_loop
async def test_a_fault_of_one_source_is_no_failure_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slip(*_: object) -> None:
        raise ValueError("a slip")

    monkeypatch.setattr(DocumentQuestions, "_read", slip)
    async with feeding(tmp_path, good=says(reply(series("0.5", instance="a")))) as fed:
        waiting = fed.follow(GOOD, PRICE)
        assert await fed.seconds_until(lambda: fed.value("good") == 0.5) < SOON_S
        assert [one for one in fed.feed.poll_states.values() if "internal fault (ValueError)" in one.error]
        waiting.cancel()


def test_a_query_is_of_the_policy_that_asks_the_fewest() -> None:
    """So that an author who asks what another one asks makes him wait for nothing."""

    def of(name: str, *queries: str) -> CompiledPolicy:
        data = [{"name": f"e{at}", "prometheus": {"query": query}} for at, query in enumerate(queries)]
        return policy(name=name, data=data, filters={"f": "true"})

    owners = query_owners([of("much", *"abcd"), of("one", "a"), of("two", "a", "b"), of("none")])
    assert {poll.query: owner for poll, owner in owners.items()} == {"a": "one", "b": "two", "c": "much", "d": "much"}


@in_loop
async def test_what_is_wrong_with_series_is_in_the_log_and_not_for_everyone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairlead")
    async with feeding(tmp_path, good=says(reply(series("0.5", instance="secret-of-a-tenant")))) as fed:
        fed.follow(GOOD)
        await fed.seconds_until(lambda: any(one.note for one in fed.feed.poll_states.values()))
        (remark,) = fed.feed.remarks()
        assert remark == "prometheus good: up: there is advice in the log (data.poll_note)"
        assert "secret-of-a-tenant" in str([vars(one) for one in caplog.records])
