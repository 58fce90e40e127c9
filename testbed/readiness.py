"""Readiness of a node for pods."""

from testbed.api import Object


def is_ready(node: Object) -> bool:
    """Tell whether the kubelet, or who plays it, says so."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
