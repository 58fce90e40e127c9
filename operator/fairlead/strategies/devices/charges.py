"""Usage of the devices of a node by what is known of its pods, as filters and scores see them."""

from collections.abc import Collection, Iterable, Sequence

from fairlead.grants.device_usage import Charge, DeviceUsage, Grants, RequestingPod, charges_of, foreign_pods
from fairlead.strategies.devices.layout import Devices
from fairlead.strategies.facts import NodeFacts


def charges_on(node: NodeFacts, resources: Collection[str], *, but: str | None = None) -> list[Charge]:
    """Return what pods use of the devices of a node with these resources, without the pod of one UID."""
    newer = [Charge(one.uid, None, None) for one in node.granted if one.is_newer]
    placed = {one.uid for one in node.granted if one.is_placed}
    placed |= {pod.uid for resource in resources for pod in node.pods_requesting(resource)}
    return newer + charges_of(resources, _grants_on(node), node.pods_requesting, placed, but=but)


def foreign_pods_on(node: NodeFacts, resource: str) -> Sequence[RequestingPod]:
    """Return the pods on a node that request a resource and were granted nothing of it."""
    return foreign_pods(resource, node.pods_requesting, _grants_on(node))


def usage_with(devices: Devices, charges: Iterable[Charge]) -> DeviceUsage:
    """Return the usage of devices with these charges."""
    resources = devices[0].capacity if devices else ()
    return DeviceUsage({one: {device.id: device.capacity[one] for device in devices} for one in resources}, charges)


def _grants_on(node: NodeFacts) -> Grants:
    return {one.uid: one.grants for one in node.granted if not one.is_newer}
