"""A replica that alone cannot reach Prometheus is called no more; it is called again when it can, or when none can."""

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.replica_state import ASIDE_PATH
from scripted.loop import run_to_its_end
from support.kube.crd import let_all_go, policies_served
from support.process.operating import Operating
from support.webhook.exporter import exporting
from testbed import prometheus
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes
from testbed.layout import free_ports

HOSTS = ("127.0.0.2", "127.0.0.3")
LOAD = {"query": "load", "nodeLabel": "node", "interval": "5s"}


@pytest.fixture
def pair(ground: Cluster, namespace: str, tmp_path: Path) -> Iterator[list[Operating]]:
    """Two replicas, on addresses of their own, as pods are."""
    with policies_served(ground.api):
        ports = free_ports(3)
        made = [Operating(ground, namespace, tmp_path / host, ports=ports, host=host, admits=False) for host in HOSTS]
        for one in made:
            one.folder.mkdir()
        yield made
        for one in made:
            one.kill()
        let_all_go(ground.api)


class Pods:
    """The replicas' pods, ready as their probes say."""

    def __init__(self, replicas: list[Operating]) -> None:
        self._replicas = replicas

    async def all(self, *_: object, **__: str) -> list[Object]:
        return [
            {
                "metadata": {"name": one.host, "creationTimestamp": "2026-01-01T00:00:00Z"},
                "status": {
                    "phase": "Running",
                    "podIP": one.host,
                    "conditions": [
                        {
                            "type": "Ready",
                            "status": "True" if await asyncio.to_thread(one.is_ready) else "False",
                            "lastTransitionTime": "2026-01-01T00:10:00Z",
                        }
                    ],
                    "containerStatuses": [{"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
                },
            }
            for one in self._replicas
        ]


def leader_of(replicas: list[Operating], namespace: str) -> Callable[[], frozenset[str]]:
    """Return a poll of the leader, which returns whom the next one asks to step aside."""

    class Objects(ObjectClient):
        all = Pods(replicas).all  # type: ignore[assignment]

    async def poll() -> frozenset[str]:
        await client.poll()
        return client.aside

    made = replicas[0].context(OPERATOR)

    async def context() -> object:
        return made

    client = ReplicaClient(
        objects=Objects.__new__(Objects),
        namespace=namespace,
        selector="",
        host=f"fairlead.{namespace}.svc",
        port=replicas[0].ports[0],
        context=context,  # type: ignore[arg-type]
    )
    return lambda: run_to_its_end(poll())


@pytest.mark.usefixtures("prometheus_program")
def test_a_replica_that_alone_cannot_reach_its_server_steps_aside(
    pair: list[Operating], kwok_nodes: MakeNodes, namespace: str
) -> None:
    (node,) = kwok_nodes(1)
    exporter_port, shared, cut = free_ports(3)
    well, alone = pair
    for one, port in ((well, shared), (alone, cut)):
        one.settings = json.dumps({"prometheus": [{"name": "default", "url": f"http://127.0.0.1:{port}"}]})

    def is_aside(one: Operating) -> bool:
        status, said = one.probe("readyz")
        return status == http.client.SERVICE_UNAVAILABLE and "[-] serving: stepped aside, because" in said

    with ExitStack() as parts, ExitStack() as server, ExitStack() as other:
        parts.enter_context(exporting(f'load{{node="{node}"}} 0.2\n', exporter_port))
        server.enter_context(prometheus.running(well.folder, [f"127.0.0.1:{exporter_port}"], port=shared))
        for one in pair:
            one.start()
        poll = leader_of(pair, namespace)
        well.put(
            "load",
            data=[{"name": "load", "prometheus": LOAD, "maxAge": "10s"}],
            filters=[{"name": "calm", "expression": "data.load < 0.5"}],
        )
        wait_for("one of them to have the values", lambda: poll() == {alone.host}, timeout_s=60)
        assert alone.ask(scheduler_identity(namespace), ASIDE_PATH)[0] == http.client.FORBIDDEN
        poll()
        wait_for("it to step aside", lambda: is_aside(alone))
        assert well.is_ready()
        assert poll() == {alone.host}, "the leader goes on to ask"

        other.enter_context(prometheus.running(alone.folder, [f"127.0.0.1:{exporter_port}"], port=cut))
        wait_for("it to come back with the values", alone.is_ready, timeout_s=60)
        assert not poll()

        server.close()
        other.close()
        wait_for(
            "both to lack the values",
            lambda: all(one.state().policies["load"].data[0].is_cut_off for one in pair),
            timeout_s=60,
        )
        assert not poll(), "nobody is asked when nobody is well"
        assert all(one.is_ready() for one in pair)
