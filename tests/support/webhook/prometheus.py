"""A Prometheus server, the client that asks it, and the files with its credentials."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead.api.parse import parse_params
from fairlead.policy.nodes.polls import PollError, PrometheusPoll, Reading
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.webhook.data_sources.prometheus_client import PrometheusClient
from scripted.server import Step
from support.webhook.polled import reply, series
from testbed import cache

SENT = 1_800_000_000_000_000_000
POLL = PrometheusPoll("default", "up", "node", None, 15)
GOOD = reply(series("0.5", node="a"))
SECRET = {"secret": "s", "key": "k"}


def answers(body: bytes = GOOD, status: int = 200, **headers: str) -> Step:
    async def step(request: web.BaseRequest) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, status=status, headers=named)

    return step


@asynccontextmanager
async def asking(folder: Path, url: str, **fields: Any) -> AsyncIterator[PrometheusClient]:
    """A client of one server, with its files in `folder`."""
    async with PrometheusClient(folder, lambda: SENT) as client:
        client.set_servers([parse_params({"name": "default", "url": url} | fields, PrometheusServer)])
        yield client


async def read(client: PrometheusClient, poll: PrometheusPoll = POLL) -> Reading:
    return await client.read(poll, 60, lambda label: label if label in ("a", "b") else None)


async def failure(client: PrometheusClient, poll: PrometheusPoll = POLL) -> str:
    with pytest.raises(PollError) as failed:
        await read(client, poll)
    said = str(failed.value)
    assert said.isprintable()
    return said


def write_file(folder: Path, name: str, content: bytes | str) -> None:
    """Replace a file, as the kubelet does."""
    path = folder / "prometheus" / "default" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    cache.write(path, content)
