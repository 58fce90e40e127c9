"""Nodes of the demo: kwok nodes, which run no pods but are scheduled like real ones."""

from testbed import node_template
from testbed.api import Object

GPU = "nvidia.com/gpu"
CLASS = "example.com/gpu"
TENANT = "example.com/tenant"
_TAINT = {"key": "fairlead.dev/testbed", "value": "kwok", "effect": "NoSchedule"}
TOLERATION = {**_TAINT, "operator": "Equal"}
"""Keeps pods that must run, such as the operator's, off these nodes; the demo's pods tolerate it."""


def nodes() -> list[Object]:
    """Return all nodes."""
    return [
        _node("a100-small", labels={CLASS: "a100"}, gpus=2),
        _node("a100-large", labels={CLASS: "a100"}, gpus=8),
        _node("h100-large", labels={CLASS: "h100"}, gpus=8),
        _node("red-1", labels={TENANT: "red"}),
        _node("red-2", labels={TENANT: "red"}),
        _node("common-1"),
    ]


def row(node: Object) -> tuple[str, str, str, str]:
    """Return a node's name, GPU class, number of GPUs, and tenant."""
    labels = node["metadata"]["labels"]
    gpus = node["status"]["capacity"].get(GPU, "")
    return node["metadata"]["name"], labels.get(CLASS, ""), gpus, labels.get(TENANT, "any")


def _node(name: str, *, labels: dict[str, str] | None = None, gpus: int = 0) -> Object:
    extended = {GPU: str(gpus)} if gpus else {}
    kind = node_template.equal(labels=labels, taints=[_TAINT], extended=extended, name=name)
    (node,) = node_template.make(1, kind)
    node["metadata"] |= {"name": name, "labels": node["metadata"]["labels"] | {"kubernetes.io/hostname": name}}
    return node
