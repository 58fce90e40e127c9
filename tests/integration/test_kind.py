import pytest

from testbed import machine
from testbed.api import Api, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster
from testbed.providers import Kind, kind_nodes

_DAEMON = {
    "metadata": {"name": "kindnet"},
    "spec": {
        "selector": {"matchLabels": {"app": "kindnet"}},
        "template": {
            "metadata": {"labels": {"app": "kindnet"}},
            "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}, "containers": [{"name": "one", "image": "none"}]},
        },
    },
}
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_LEASE = {"metadata": {"name": "spec-control-plane"}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}
_READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def test_a_node_of_kind_gets_its_network_and_what_kind_runs_stays_on_it(control_plane: Cluster) -> None:
    api, node = control_plane.api, "/api/v1/nodes/spec-control-plane"
    daemons = "/apis/apps/v1/namespaces/kube-system/daemonsets"
    api.create("/api/v1/nodes", {"metadata": {"name": "spec-control-plane"}})
    api.create(daemons, _DAEMON)
    try:
        with pytest.raises(ClusterError, match="waited 0 s for the node spec-control-plane to be ready"):
            kind_nodes.settle(api, ["spec-control-plane"], renewed=False, within_s=0)
        assert api.get(node)["spec"]["podCIDRs"] == ["10.244.0.0/24"]
        selector = api.get(f"{daemons}/kindnet")["spec"]["template"]["spec"]["nodeSelector"]
        assert selector == {"kubernetes.io/os": "linux", "fairlead.dev/testbed": "real"}
        api.patch(f"{node}/status", _READY)
        kind_nodes.settle(api, ["spec-control-plane"], renewed=False)
        api.create(_LEASES, _LEASE)
        with pytest.raises(ClusterError, match="waited 0 s for the kubelet of spec-control-plane to renew its Lease"):
            kind_nodes.settle(api, ["spec-control-plane"], renewed=True, within_s=0)
    finally:
        api.delete(f"{_LEASES}/spec-control-plane")
        api.delete(f"{daemons}/kindnet")
        api.delete(node)


@pytest.mark.kind
def test_kind_raises_a_cluster_and_leaves_nothing_of_it(this_run: str) -> None:
    if why := machine.docker_obstacle():
        pytest.skip(f"kind cannot run here: {why}")
    provider = Kind(f"test-kind-{this_run}")
    provider.down()
    try:
        provider.up()
        api = Api(provider.kubeconfig())
        nodes = wait_for("the nodes", lambda: api.items("/api/v1/nodes", labelSelector="fairlead.dev/testbed=real"))
        api.close()
        assert [node["metadata"]["name"] for node in nodes] == [f"{provider.cluster}-control-plane"]
        assert all(part.is_well for part in provider.status())
        assert any(name.endswith("kubelet") for name in provider.logs())
        provider.up()
    finally:
        provider.down()
    assert provider.status() == []
