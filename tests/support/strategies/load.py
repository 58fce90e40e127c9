"""Nodes with measured load, for tests of the strategies that read it."""

from fairlead.strategies.contract import Predicted, Unknown
from support.strategies.facts import Node, OnNode, Pod

SECOND = 1_000_000_000
MEASURED_AT = 1_800_000_000 * SECOND
MISSING = Unknown("data mean", "is missing")
STALE = Unknown("data x", "is stale")
NOWHERE = Unknown("the node", "has none of the rule's resources")


def measured(
    allocatable: float = 16.0,
    *,
    capacity: float | None = None,
    requested: float = 0.0,
    limits: float | None = None,
    unlimited: int = 0,
    unmeasured: float = 0.0,
    **values: float | Unknown,
) -> Node:
    """Node with cores of which so much is said; `unmeasured` is requested by a pod that came after the measurement."""
    return Node(
        allocatable={"cpu": allocatable},
        capacity={"cpu": allocatable if capacity is None else capacity},
        requested={"cpu": requested},
        limits={"cpu": requested if limits is None else limits},
        unlimited={"cpu": unlimited},
        values=values,
        measured_at=dict.fromkeys(values, MEASURED_AT),
        pods=[placed(unmeasured, 0)] if unmeasured else [],
    )


def placed(cores: float, before_s: int, **expected: float) -> OnNode:
    """Pod that was placed so long before the measurement."""
    return OnNode(
        placed_at=MEASURED_AT - before_s * SECOND,
        request={"cpu": cores},
        expected={"cpu": Predicted(**expected) if expected else Predicted(cores)},  # type: ignore[arg-type]
    )


def asking(cores: float, limit: float | None = None) -> Pod:
    """Pod that requests so many cores."""
    return Pod(request={"cpu": cores}, limit={} if limit is None else {"cpu": limit})
