"""Policies whose spread is compared."""

from collections.abc import Mapping
from typing import Any

MAX_AGE_S = 10
_LAG = "5s"
_WEIGHT = 10
"""Of the rule, so that it outweighs the scheduler's own scores, which are by requests."""
_RESOURCES = [{"name": "cpu", "mean": "load", "deviation": "deviation"}]
_SAFE = {"resources": _RESOURCES, "limitPercent": 90, "tolerancePercent": 30, "lag": _LAG}
_TARGET = {"value": "load", "targetPercent": 70, "multiplierPercent": 100, "lag": _LAG}
_COOLEST = {"name": "coolest", "weight": _WEIGHT, "telemetry": {"value": "load", "prefer": "Lowest"}}
_WINDOWS = [{"within": "10s", "count": 1, "points": 10}]
_QUERIES = {"load": "node_load", "deviation": "stddev_over_time(node_load[15s])"}


def _measured(*names: str) -> list[dict[str, Any]]:
    about = {"nodeLabel": "node", "interval": "5s", "timeQuery": "timestamp(node_load)"}
    return [
        {"name": name, "prometheus": {"query": _QUERIES[name], **about}, "maxAge": f"{MAX_AGE_S}s"} for name in names
    ]


VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "none": {"filters": [{"name": "any", "expression": "true"}]},
    "telemetry": {"data": _measured("load"), "scores": [_COOLEST]},
    "hotSpot": {
        "data": _measured("load"),
        "scores": [_COOLEST, {"name": "burst", "weight": _WEIGHT, "hotSpot": {"windows": _WINDOWS}}],
    },
    "targetLoad": {
        "data": _measured("load"),
        "scores": [{"name": "target", "weight": _WEIGHT, "targetLoad": _TARGET}],
    },
    "safe": {
        "data": _measured("load", "deviation"),
        "filters": [{"name": "overload", "safe": _SAFE}],
        "scores": [{"name": "risk", "weight": _WEIGHT, "safe": _SAFE}],
    },
}


def spec(variant: str, scheduler: str) -> dict[str, Any]:
    """Return the spec of a variant's policy."""
    return {"schedulerName": scheduler, **VARIANTS[variant]}
