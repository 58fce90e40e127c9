"""Whether a node can take pods."""

from testbed.api import Object


def is_ready(node: Object) -> bool:
    """Whether the kubelet, or who plays it, says so."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
