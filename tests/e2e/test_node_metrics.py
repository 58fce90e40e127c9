"""The usage of a real node and of kwok nodes, through metrics-server to what polls are told."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from time import time_ns

import pytest

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.values.structs import from_json
from fairlead.cooperative import finish
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import NodeMetricsPoll, PollError, Reading
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.data_sources.node_metrics import NodeMetricsSource
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl
from testbed.layout import load
from testbed.metered_nodes import MeteredNodes
from testbed.metrics_server import NODES, MetricsServer
from testbed.node_config import NODE
from testbed.node_template import equal

SECOND = 1_000_000_000
CPU, MEMORY = NodeMetricsPoll("cpu", "Base", 30), NodeMetricsPoll("memory", "Base", 30)
CPU_RATIO, MEMORY_RATIO = NodeMetricsPoll("cpu", "Ratio", 30), NodeMetricsPoll("memory", "Ratio", 30)
_MEASURED_S = 120
_TOP = re.compile(rf"^{NODE}\s+(\d+m)\s+\d+%\s+(\d+Mi)\s", re.MULTILINE)


def _poll(cluster: Cluster) -> Mapping[NodeMetricsPoll, Reading]:
    nodes = Nodes()
    for one in cluster.api.items("/api/v1/nodes"):
        nodes.put(NodeView(from_json("Node", one)))

    async def poll() -> Mapping[NodeMetricsPoll, Reading]:
        async with Client(from_kubeconfig([cluster.kubeconfig])) as client:
            source = NodeMetricsSource(client, nodes)
            return finish(await source.read([CPU, MEMORY, CPU_RATIO, MEMORY_RATIO], within_s=5))

    return asyncio.run(poll())


def test_cores_bytes_ratios_and_times_are_those_that_kubectl_top_shows(
    cluster: Cluster, metrics_server: MetricsServer, kubectl: Kubectl
) -> None:
    capacity = cluster.api.get(f"/api/v1/nodes/{NODE}")["status"]["capacity"]

    def same() -> tuple[Mapping[NodeMetricsPoll, Reading], str] | None:
        """Until no new measurement came in between."""
        before = cluster.api.get(f"{NODES}/{NODE}")["timestamp"]
        found, shown = _poll(cluster), kubectl("top", "nodes")
        return (found, shown) if cluster.api.get(f"{NODES}/{NODE}")["timestamp"] == before else None

    readings, shown = wait_for("one measurement to be seen by both", same)
    top = _TOP.search(shown)
    assert top, shown
    cpu, memory = readings[CPU].values[NODE], readings[MEMORY].values[NODE]
    assert cpu == pytest.approx(to_float(top[1]), abs=0.001)
    assert memory == pytest.approx(to_float(top[2]), abs=1 << 20)
    assert readings[CPU_RATIO].values[NODE] == pytest.approx(cpu / float(capacity["cpu"]))
    total = to_float(capacity["memory"])
    assert total
    assert readings[MEMORY_RATIO].values[NODE] == pytest.approx(memory / total)
    assert 0 < cpu < float(capacity["cpu"])
    assert 0 < memory < total
    for reading in readings.values():
        assert isinstance(reading.times, Mapping)
        assert reading.times[NODE] % SECOND == 0
        assert 0 <= time_ns() - reading.times[NODE] < 90 * SECOND
        assert (reading.several, reading.no_number, reading.note) == (frozenset(), frozenset(), "")


@pytest.fixture
def metered(cluster: Cluster, metrics_server: MetricsServer) -> Iterator[MeteredNodes]:
    layout = load(cluster.provider.cluster)
    assert layout is not None, "metrics-server would not be here without"
    made = MeteredNodes(layout, cluster.api)
    yield made
    made.down()


def test_usage_of_several_nodes_is_what_their_pods_use_and_follows_it(
    cluster: Cluster, namespace: str, metered: MeteredNodes
) -> None:
    names = busy, calm = metered.up(2, equal(cpu="8", memory="16Gi", name="metered"))
    pods, accounts = (f"/api/v1/namespaces/{namespace}/{kind}" for kind in ("pods", "serviceaccounts/default"))
    wait_for("the namespace's account", lambda: cluster.api.exists(accounts))
    using = (busy, "6", "12Gi"), (busy, "500m", "1Gi"), (calm, "1", "1Gi")
    *_, changing = [cluster.api.create(pods, _pod(*one))["metadata"]["name"] for one in using]

    def used(poll: NodeMetricsPoll) -> list[float]:
        found = _poll(cluster)[poll].values
        return [found.get(name, -1.0) for name in names]

    before, after = ([pytest.approx(one, abs=0.01) for one in ratios] for ratios in ((6.5 / 8, 1 / 8), (6.5 / 8, 0.5)))
    wait_for("usage", lambda: used(CPU_RATIO) == before or None, timeout_s=_MEASURED_S)
    assert used(CPU) == pytest.approx([6.5, 1.0], abs=0.1)
    assert used(MEMORY) == pytest.approx([13 * 2**30, 2**30])
    assert used(MEMORY_RATIO) == pytest.approx([13 / 16, 1 / 16])

    cluster.api.patch(f"{pods}/{changing}", {"metadata": {"annotations": _usage("4", "1Gi")}})
    wait_for("it to follow", lambda: used(CPU_RATIO) == after or None, timeout_s=_MEASURED_S)


def _usage(cpu: str, memory: str) -> dict[str, str]:
    return {"kwok.x-k8s.io/usage-cpu": cpu, "kwok.x-k8s.io/usage-memory": memory}


def _pod(node: str, cpu: str, memory: str) -> Object:
    """A pod on a node, which kwok runs."""
    return {
        "metadata": {"generateName": "uses-", "annotations": _usage(cpu, memory)},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "none.example/none"}],
        },
    }


def test_without_metrics_server_the_poll_fails_and_says_what_to_look_at(
    cluster: Cluster, metrics_server: MetricsServer
) -> None:
    metrics_server.stop()

    def failed() -> str | None:
        try:
            _poll(cluster)
        except PollError as error:
            return str(error)
        return None

    said = wait_for("the poll to fail", failed)
    assert said.startswith("the metrics API does not answer: the APIService v1beta1.metrics.k8s.io is not available, ")
    metrics_server.up()
    assert NODE in _poll(cluster)[CPU].values
