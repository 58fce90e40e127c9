"""Makes a kind cluster fit for nodes that are only objects, through its API server.

Nothing that has to run may land on such a node, where it would only seem to. And kind's network daemon makes a route to
every node that has a share of the pods' network, which none of them can be reached by: so only the real node gets one.
"""

from collections.abc import Sequence

from testbed.api import Api, wait_for
from testbed.control_plane import PODS
from testbed.providers.kind_config import REAL
from testbed.readiness import is_ready

_NAMESPACES = ("kube-system", "local-path-storage")
SHARE = PODS.replace("/16", "/24")


def settle(api: Api, nodes: Sequence[str], *, renewed: bool, within_s: float = 180) -> None:
    """See that the API server and the nodes are ready, and on the way there make the cluster what it is to be.

    `renewed` asks each kubelet for a sign of life: conditions stay as they were for 40 s after a node was stopped.
    """
    wait_for("the API server to be ready", lambda: api.text("/readyz") == "ok", timeout_s=within_s)
    old = {node: _renew_time(api, node) for node in nodes} if renewed else {}
    for node in nodes:
        _give_network(api, node, within_s)
    _bind_workloads(api)
    for node, time in old.items():
        _wait_until_renewed(api, node, time, within_s)
    for node in nodes:
        _wait_until_ready(api, node, within_s)


def _give_network(api: Api, node: str, within_s: float) -> None:
    path = f"/api/v1/nodes/{node}"
    wait_for(f"the node {node} to register", lambda: api.exists(path), timeout_s=within_s)
    if not api.get(path)["spec"].get("podCIDR"):
        api.patch(path, {"spec": {"podCIDR": SHARE, "podCIDRs": [SHARE]}})


def _wait_until_ready(api: Api, node: str, within_s: float) -> None:
    wait_for(f"the node {node} to be ready", lambda: is_ready(api.get(f"/api/v1/nodes/{node}")), timeout_s=within_s)


def _wait_until_renewed(api: Api, node: str, old: str, within_s: float) -> None:
    wait_for(f"the kubelet of {node} to renew its Lease", lambda: _renew_time(api, node) != old, timeout_s=within_s)


def _renew_time(api: Api, node: str) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"
    return str(api.get(path)["spec"].get("renewTime", "")) if api.exists(path) else ""


def _bind_workloads(api: Api) -> None:
    name, value = REAL
    for namespace in _NAMESPACES:
        for kind in ("daemonsets", "deployments"):
            path = f"/apis/apps/v1/namespaces/{namespace}/{kind}"
            for workload in api.items(path):
                selector = workload["spec"]["template"]["spec"].get("nodeSelector") or {}
                if selector.get(name) != value:
                    body = {"spec": {"template": {"spec": {"nodeSelector": {name: value}}}}}
                    api.patch(f"{path}/{workload['metadata']['name']}", body)
