"""What the kubelet and a device plugin make of a Binding's annotations, without any part of Fairlead.

Pods are bound by hand. Two pods of equal amounts that are bound in parallel may get one another's card from a plugin
that matches as gpushare's does: that is its way, and nothing here relies on it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from testbed.api import Object, wait_for
from testbed.device_plugin import CARD_FILE, MEMORY, DevicePlugin
from testbed.fixtures import Cluster, Kubectl
from testbed.node_config import NODE, POD_IMAGE

_GRANTED = "fairlead.dev/devices.gpu"
_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


def _bound(
    cluster: Cluster,
    namespace: str,
    name: str,
    *arguments: str,
    annotations: Mapping[str, str],
    units: int = 0,
    fields: Mapping[str, object] = _NO_FIELDS,
) -> None:
    """Make a pod that no scheduler sees to, and bind it to the real node with these annotations."""
    limits = {MEMORY: str(units)} if units else {}
    container = {
        "name": "pod",
        "image": POD_IMAGE,
        "imagePullPolicy": "Never",
        "args": [*arguments],
        "resources": {"limits": limits},
        **fields,
    }
    spec: Object = {"schedulerName": "nobody", "restartPolicy": "Never", "containers": [container]}
    path = f"/api/v1/namespaces/{namespace}/pods"
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: cluster.api.exists(account))
    made = cluster.api.create(path, {"metadata": {"name": name}, "spec": spec})["metadata"]
    named = {key: made[key] for key in ("name", "uid", "resourceVersion")}
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {**named, "annotations": {**annotations}}}
    cluster.api.create(f"{path}/{name}/binding", binding | {"target": target})


def _gpushare(card: int, units: int, order: int) -> dict[str, str]:
    """What gpushare's scheduler extender writes."""
    return {
        "ALIYUN_COM_GPU_MEM_IDX": str(card),
        "ALIYUN_COM_GPU_MEM_POD": str(units),
        "ALIYUN_COM_GPU_MEM_DEV": "8",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": str(1_700_000_000_000_000_000 + order),
    }


def _printed(cluster: Cluster, kubectl: Kubectl, namespace: str, name: str) -> str:
    """What the pod's container wrote, once it has ended well."""

    def phase() -> str | None:
        seen = str(cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")["status"].get("phase", ""))
        return seen if seen in ("Succeeded", "Failed") else None

    ended = wait_for(f"{name} to end", phase)
    said = kubectl("logs", "-n", namespace, name)
    assert ended == "Succeeded", said
    return said.strip()


def test_annotations_of_a_binding_are_on_the_pod_before_its_containers_start(
    cluster: Cluster, namespace: str, kubectl: Kubectl
) -> None:
    source = {"fieldRef": {"fieldPath": f"metadata.annotations['{_GRANTED}']"}}
    fields = {"env": [{"name": "CARDS", "valueFrom": source}]}
    for number in range(8):
        grant = {_GRANTED: f"{number},{number + 1}"}
        _bound(cluster, namespace, f"pod-{number}", "env", "CARDS", annotations=grant, fields=fields)
    said = [_printed(cluster, kubectl, namespace, f"pod-{number}") for number in range(8)]
    assert said == [f"{number},{number + 1}" for number in range(8)]


def test_a_plugin_that_matches_as_gpushare_gives_a_pod_the_card_of_its_annotations(
    cluster: Cluster, namespace: str, kubectl: Kubectl, device_plugin: DevicePlugin
) -> None:
    device_plugin.up("gpushare")
    for order, (card, units) in enumerate([(1, 3), (0, 2), (1, 4)]):
        name, grant = f"pod-{units}", _gpushare(card, units, order)
        _bound(cluster, namespace, name, "env", "ALIYUN_COM_GPU_MEM_IDX", annotations=grant, units=units)
    assert {units: _printed(cluster, kubectl, namespace, f"pod-{units}") for units in (2, 3, 4)} == {
        2: "0",
        3: "1",
        4: "1",
    }
    taken = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/pod-3")["metadata"]["annotations"]
    assert taken["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true"


def test_a_plugin_that_matches_as_gpushare_takes_the_first_assumed_pod_of_an_amount_for_the_one_that_starts(
    cluster: Cluster, namespace: str, kubectl: Kubectl, device_plugin: DevicePlugin
) -> None:
    device_plugin.up("gpushare")
    path = f"/api/v1/namespaces/{namespace}/pods/waiting"
    key = "ALIYUN_COM_GPU_MEM_ASSIGNED"
    grant, fields = _gpushare(1, 3, 0), {"image": "missing"}
    _bound(cluster, namespace, "waiting", "exit", "0", annotations=grant, units=3, fields=fields)
    wait_for("the plugin to take the pod", lambda: cluster.api.get(path)["metadata"]["annotations"][key] == "true")
    cluster.api.patch(path, {"metadata": {"annotations": {key: "false"}}})  # as if it were still to be taken
    for name, units, order in (("other", 2, 1), ("equal", 3, 2)):
        grant = _gpushare(0, units, order)
        _bound(cluster, namespace, name, "env", "ALIYUN_COM_GPU_MEM_IDX", annotations=grant, units=units)
    assert _printed(cluster, kubectl, namespace, "other") == "0"
    assert _printed(cluster, kubectl, namespace, "equal") == "1", "the card of the pod that waits"


def test_a_plugin_that_matches_as_gpushare_gives_no_card_to_a_pod_that_nobody_assumed(
    cluster: Cluster, namespace: str, kubectl: Kubectl, device_plugin: DevicePlugin
) -> None:
    device_plugin.up("gpushare")
    _bound(cluster, namespace, "web", "env", "ALIYUN_COM_GPU_MEM_IDX", annotations={}, units=5)
    assert _printed(cluster, kubectl, namespace, "web") == "-1"


def test_a_plugin_that_matches_exactly_gives_equal_pods_their_own_cards(
    cluster: Cluster, namespace: str, kubectl: Kubectl, device_plugin: DevicePlugin
) -> None:
    device_plugin.up("exact", cards=4)
    cards = {f"pod-{number}": str(number % 4) for number in range(8)}
    for name, card in cards.items():
        _bound(cluster, namespace, name, "cat", CARD_FILE, annotations={_GRANTED: card}, units=2)
    assert {name: _printed(cluster, kubectl, namespace, name) for name in cards} == cards


def test_a_sick_card_is_no_longer_allocatable_and_still_capacity(device_plugin: DevicePlugin) -> None:
    """Of both resources: so their capacity tells how large one card is, and what is allocatable does not."""
    device_plugin.up("gpushare", cards=2, units=8)
    device_plugin.sicken([1])
    device_plugin.wait_for_amounts(capacity=(16, 2), allocatable=(8, 1))
    device_plugin.sicken([])
    device_plugin.wait_for_amounts(capacity=(16, 2), allocatable=(16, 2))
    device_plugin.stop()
    device_plugin.wait_for_amounts(capacity=(16, 2), allocatable=(0, 0))
