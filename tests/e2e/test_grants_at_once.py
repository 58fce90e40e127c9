"""Binds that wait for the ledger of one node share its writes."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from extender import Stage
from support.process.serving import Serving
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

LOG = logging.getLogger(__name__)
MEM, COUNT = "example.org/gpu-mem", "example.org/gpu-count"
PODS, CALLERS = 500, 64
CARDS, SIZE = 8, 63
WRITES_MAX = 100


def make(stage: Stage) -> dict[str, str]:
    """The UIDs of the pods by name."""
    resources = {MEM: "1"}
    container = {"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}
    spec = {"schedulerName": stage.name, "automountServiceAccountToken": False, "containers": [container]}
    stage.api.create_all(stage.path, [{"metadata": {"name": f"p-{at}"}, "spec": spec} for at in range(PODS)])
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in stage.api.items(stage.path)}


def bind_all(serving: Serving, namespace: str, node: str, uids: dict[str, str]) -> list[str]:
    """Bind with many callers, each of which keeps its connection; what went wrong."""

    def work(caller: int) -> list[str]:
        failed = list[str]()
        with serving.connected() as call:
            for name, uid in [*uids.items()][caller::CALLERS]:
                args = {"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node}
                if why := call("bind", args).get("Error"):
                    failed.append(f"{name}: {why}")
        return failed

    with ThreadPoolExecutor(CALLERS) as pool:
        return [why for found in pool.map(work, range(CALLERS)) for why in found]


def writes(stage: Stage, path: str, since: str) -> list[str]:
    """The versions of the ledgers since another version, as a watch tells them."""
    (ledger,) = stage.api.items(path, labelSelector="fairlead.dev/grants")
    last, found = ledger["metadata"]["resourceVersion"], list[str]()
    query = {"watch": "true", "resourceVersion": since, "labelSelector": "fairlead.dev/grants", "timeoutSeconds": "60"}
    with closing(stage.api.lines(path, **query)) as lines:
        for line in lines:
            event = json.loads(line)
            assert event["type"] in ("ADDED", "MODIFIED"), event
            found.append(event["object"]["metadata"]["resourceVersion"])
            if found[-1] == last:
                return found
    raise AssertionError(f"the watch has ended before {last}")


def test_binds_at_once_share_the_writes_of_a_ledger(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    (node,) = kwok_nodes(1, equal(pods=PODS, extended={MEM: str(CARDS * SIZE), COUNT: str(CARDS)}))
    share: dict[str, Any] = {"name": "gpu", "shares": [{"resource": MEM}], "layout": {"count": COUNT}}
    serving.put("gpu", binding={"deviceShare": [share]})
    serving.timeout = "30s"  # no bind is refused because the machine is busy
    uids, ledgers = make(stage), f"/api/v1/namespaces/{stage.name}/configmaps"
    serving.start()
    since = stage.api.get(ledgers, limit="1")["metadata"]["resourceVersion"]
    failed = bind_all(serving, stage.name, node, uids)
    versions = writes(stage, ledgers, since)
    LOG.info("%d pods were bound with %d writes of the ledger", PODS, len(versions))
    assert len(versions) <= WRITES_MAX
    assert failed == []
    (ledger,) = stage.api.items(ledgers, labelSelector="fairlead.dev/grants")
    assert ledger["data"].keys() == {*uids.values()}
    assert {*stage.places().values()} == {node}
