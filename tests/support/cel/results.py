"""Results of an expression on pods and nodes such as a cluster has, with every label that it asks for."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.placed_pod import placed_pod
from support.policy import NOW

_RESOURCES: Final = {
    "cpu": "7910m",
    "memory": "32Gi",
    "ephemeral-storage": "100Gi",
    "pods": "110",
    "nvidia.com/gpu": "8",
}
_AMOUNTS: Final = {"cpu": 7.91, "memory": 2.0**35, "ephemeral-storage": 1e11, "pods": 110.0, "nvidia.com/gpu": 8.0}
_CREATED: Final = "2026-01-01T00:00:00Z"
VALUES: Final = ("1", "true", "x", "0.5")
"""Values of labels and annotations."""


def results(compiled: CompiledExpression) -> list[Any]:
    """Return the results, or the errors, on each pair of a pod and a node."""
    found: list[Any] = []
    for pod, node in _facts([str(one) for one in compiled.written if isinstance(one, str)]):
        try:
            found.append(compiled.for_pod(pod)(node, NOW))
        except RAISED as error:
            found.append(error)
    return found


def _facts(keys: list[str]) -> Iterator[tuple[Any, Any]]:
    for value in VALUES:
        labels = dict.fromkeys(keys, value)
        metadata = {
            "name": "web-1",
            "namespace": "ml",
            "labels": labels,
            "annotations": labels,
            "creationTimestamp": _CREATED,
        }
        container = {"name": "main", "image": "nginx:1", "resources": {"requests": _RESOURCES, "limits": _RESOURCES}}
        spec = {"priority": 10, "containers": [container], "nodeName": "n", "hostNetwork": True, "nodeSelector": labels}
        owner = {"kind": "DaemonSet", "name": "web", "controller": True}
        pod = {"metadata": metadata | {"ownerReferences": [owner]}, "spec": spec}
        condition = {"type": "Ready", "status": "True"}
        status = {"allocatable": _RESOURCES, "capacity": _RESOURCES, "conditions": [condition]}
        status |= {"nodeInfo": {"kubeletVersion": "v1.37.1"}}
        status |= {"addresses": [{"type": "InternalIP", "address": "10.1.2.3"}]}
        node = {"metadata": metadata | {"name": "n"}, "spec": {}, "status": status}
        namespace = {"metadata": {"name": "ml", "labels": labels}}
        yield (
            SimpleNamespace(
                pod=from_json("Pod", pod),
                namespaceObject=from_json("Namespace", namespace),
                request={
                    "cpu": 0.5,
                    "memory": 2.0**30,
                    "ephemeral-storage": 0.0,
                    "pods": 1.0,
                    "nvidia.com/gpu": 1.0,
                },
            ),
            SimpleNamespace(
                node=from_json("Node", node),
                pods=[placed_pod(pod | {"status": {"phase": "Running"}})] * 3,
                allocatable=_AMOUNTS,
                requested={name: amount / 4 for name, amount in _AMOUNTS.items()},
                free={name: amount * 0.75 for name, amount in _AMOUNTS.items()},
                data={"load": 0.4, "rackPower": 800.0, "load1": 1.5},
            ),
        )
