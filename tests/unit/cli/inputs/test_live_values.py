"""Measured values that live commands read with the caller's own rights."""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli.inputs.cluster_access import ClusterAccess
from fairlead.cli.inputs.data_file import MeasuredInput
from fairlead.cli.inputs.live_values import add_live_values, nodes_of_snapshot
from fairlead.policy.nodes.polls import ConfigMapPoll, NodeMetricsPoll, Poll, Reading
from support.cli.status import pod as operator_pod
from support.cli.status_api import api_server, items
from support.policy import NOW, policy
from support.simulation.snapshot import node, snapshot

METRICS: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
PRICES: Final = "/api/v1/namespaces/ours/configmaps/prices"
_POD: Final = operator_pod("fairlead-a")
OPERATOR: Final = {"/api/v1/pods": items({**_POD, "metadata": {**_POD["metadata"], "namespace": "ours"}})}
USED: Final = {
    "metadata": {"name": "a"},
    "timestamp": "2027-01-15T12:00:00Z",
    "window": "10s",
    "usage": {"cpu": "1500m"},
}
CPU: Final = NodeMetricsPoll("cpu", "Base", 30)
PRICE: Final = ConfigMapPoll("prices", "values.json", None)
DATA: Final[dict[str, Any]] = {
    "busy": {"nodeMetrics": {"resource": "cpu"}},
    "price": {"configMap": {"name": "prices"}},
}


def read(folder: Path, answers: dict[str, Any], *, given: Poll | None = None) -> MeasuredInput:
    """What is read of a cluster with one node."""
    found = MeasuredInput({} if given is None else {given: Reading({"a": 7.0}, NOW)})
    nodes = nodes_of_snapshot(snapshot(node("a")), NOW)

    async def add(options: argparse.Namespace) -> None:
        async with ClusterAccess(options) as access:
            await add_live_values(found, await access.client(), [policy(data=DATA)], nodes)

    with api_server({"/version": {}, **answers}, folder) as file:
        asyncio.run(add(argparse.Namespace(kubeconfig=file, context=None)))
    return found


def document(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "prices"}, "data": {"values.json": json.dumps({"values": {"a": 0.3}, **fields})}}


def test_the_metrics_api_and_the_config_map_of_the_operators_namespace(tmp_path: Path) -> None:
    found = read(tmp_path, {**OPERATOR, METRICS: items(USED), PRICES: document()})
    assert found.readings[CPU].values == {"a": 1.5}
    assert found.readings[PRICE].values == {"a": 0.3}
    assert found.notes == []


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        (
            {**OPERATOR, METRICS: 403, PRICES: document()},
            "the permission to list nodes.metrics.k8s.io",
        ),
        ({**OPERATOR, METRICS: 404, PRICES: document()}, "nodeMetrics cpu: there is no metrics API"),
        ({**OPERATOR, METRICS: items(USED)}, "configMap prices/values.json: there is no ConfigMap prices in ours"),
        ({**OPERATOR, METRICS: items(USED), PRICES: {"data": {}}}, "the ConfigMap ours/prices has no key values.json"),
        ({**OPERATOR, METRICS: items(USED), PRICES: document(no=1)}, 'has the unknown field "no"'),
        ({METRICS: items(USED), "/api/v1/pods": items()}, "no operator is found"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_rest_is_read(tmp_path: Path, answers: dict[str, Any], want: str) -> None:
    found = read(tmp_path, answers)
    [note] = found.notes
    assert want in note
    assert len(found.readings) == 1


def test_what_a_file_gives_is_not_asked_for(tmp_path: Path) -> None:
    found = read(tmp_path, {**OPERATOR, PRICES: document()}, given=CPU)
    assert found.readings[CPU].values == {"a": 7.0}
    assert found.notes == []
