"""Nodes with amounts of several resources, and requests that rules have learned."""

from collections.abc import Mapping

from fairlead.cel.values.structs import from_json
from fairlead.learned.demands import Demands, Moments, moments, newest
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.reads import DemandsRead


def machine(
    name: str,
    amounts: Mapping[str, tuple[float, float]],
    *,
    uid: str = "",
    labels: Mapping[str, str] | None = None,
    ready: str = "True",
    is_cordoned: bool = False,
) -> NodeView:
    """A node with what is requested and what is allocatable of each resource; `ready` may be "" for no condition."""
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    whole = {
        "metadata": {"name": name, "uid": uid or f"u-{name}", "labels": dict(labels or {})},
        "spec": {"unschedulable": True} if is_cordoned else {},
        "status": {"conditions": conditions},
    }
    return NodeView(
        from_json("Node", whole),
        allocatable={resource: allocatable for resource, (_, allocatable) in amounts.items()},
        requested={resource: requested for resource, (requested, _) in amounts.items()},
    )


def cores(name: str, requested: float, allocatable: float) -> NodeView:
    """A node of which only cpu matters."""
    return machine(name, {"cpu": (requested, allocatable)})


def learn(nodes: Nodes, demands: Demands) -> None:
    """Let every rule have learned these requests."""

    def learned(_policy_uid: str, _rule: str, read: DemandsRead) -> Moments:
        return moments(newest(demands, read.samples), read.floors)

    nodes.learned_demands = learned
