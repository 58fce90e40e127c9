"""Nodes that polls name, and replies of Prometheus."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.cel.values.structs import from_json
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView


def nodes(addresses: Mapping[str, Mapping[str, Sequence[str]]]) -> Nodes:
    """Return nodes by name, with their addresses by type."""
    made = Nodes()
    for name, types in addresses.items():
        listed = [{"type": kind, "address": one} for kind, all_ in types.items() for one in all_]
        made.put(NodeView(from_json("Node", {"metadata": {"name": name}, "status": {"addresses": listed}})))
    return made


def series(value: object = "1", at: float = 1_700_000_000.123, **labels: str) -> dict[str, Any]:
    """Return a series of an instant vector."""
    return {"metric": labels, "value": [at, value]}


def reply(*found: object, kind: str = "vector", **more: object) -> bytes:
    """Return a reply as Prometheus writes it."""
    body = {"status": "success", "data": {"resultType": kind, "result": [*found]}, **more}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
