"""The authority is written where those look who verify a replica, and nowhere else."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from fairlead.control.certificates.ca_bundle import publish_authority
from fairlead.kube.http.client import Client
from scripted.server import Server

PATH = "/api/v1/namespaces/system/configmaps/fairlead-ca"


async def _writes(live: dict[str, Any] | None) -> list[Any]:
    """What is written, by what there is."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        assert request.path == PATH
        if live is None:
            return web.json_response({"kind": "Status", "code": 404, "message": "not found"}, status=404)
        return web.json_response(live)

    async with Server(answer) as api, Client(api.login()) as client:
        await publish_authority(client, "system", b"an authority\n")
        return [one.json for one in api.seen if one.method != "GET"]


@pytest.mark.parametrize(
    ("live", "written"),
    [
        pytest.param(None, 0, id="without-secure-metrics"),
        pytest.param({"metadata": {}}, 1, id="as-the-chart-has-it"),
        pytest.param({"metadata": {}, "data": {"ca.crt": "another"}}, 1, id="rotated"),
        pytest.param({"metadata": {}, "data": {"ca.crt": "an authority\n"}}, 0, id="there"),
    ],
)
def test_the_config_map_of_the_chart_gets_the_authority(live: dict[str, Any] | None, written: int) -> None:
    bodies = asyncio.run(_writes(live))
    assert len(bodies) == written
    for body in bodies:
        assert (body["kind"], body["metadata"]) == ("ConfigMap", {"name": "fairlead-ca", "namespace": "system"})
        assert body["data"] == {"ca.crt": "an authority\n"}
