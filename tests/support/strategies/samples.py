"""Parameters that the contract tests give to each use of a strategy. The first fills every field there is."""

from typing import Any

from fairlead.api.devices import DeviceShare
from fairlead.strategies.contract import CompiledShare, CompiledShares, Reads
from fairlead.strategies.reads import ANNOTATIONS

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "allocation score": [
        {
            "objective": "Pack",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "nvidia.com/gpu", "weight": 5}],
        },
        {"objective": "Pack"},
        {"objective": "Spread"},
        {"objective": "Spread", "resources": [{"name": "memory"}]},
        {"objective": "Balance"},
        {"objective": "Balance", "resources": [{"name": "cpu", "weight": 3}, {"name": "memory"}, {"name": "pods"}]},
    ],
    "congestion score": [
        {"value": "congestion", "max": 10.0},
        {"value": "congestion"},
        {"value": "congestion", "max": 0.1},
        {"value": "congestion", "max": 1e-9},
        {"value": "congestion", "max": 1e18},
    ],
    "deviceShare filter": [{"name": "gpu"}, {"name": "cards"}, {"name": "v100"}, {"name": "lowest"}],
    "deviceShare score": [
        {"name": "gpu", "objective": "Pack"},
        {"name": "cards", "objective": "Pack"},
        {"name": "cards", "objective": "Spread"},
        {"name": "v100", "objective": "Spread"},
    ],
    "hotSpot filter": [
        {
            "windows": [{"within": "30s", "limit": 2}],
            "selector": {
                "matchLabels": {"tier": "batch"},
                "matchExpressions": [{"key": "retired", "operator": "NotIn", "values": ["yes"]}],
            },
            "namespaces": ["ml", "batch"],
            "resource": "cpu",
        },
        {"windows": [{"within": "30s", "limit": 1}]},
        {"windows": [{"within": "1m", "limit": 2}, {"within": "10s", "limit": 1}], "namespaces": ["ml"]},
        {"windows": [{"within": "1m30s", "limit": 30}, {"within": "20s", "limit": 10}], "resource": "memory"},
        {
            "windows": [{"within": "24h", "limit": 2}],
            "selector": {"matchExpressions": [{"key": "retired", "operator": "DoesNotExist"}]},
        },
    ],
    "hotSpot score": [
        {
            "windows": [{"within": "5m", "count": 5, "points": 10}],
            "selector": {
                "matchLabels": {"tier": "batch"},
                "matchExpressions": [{"key": "retired", "operator": "NotIn", "values": ["yes"]}],
            },
            "namespaces": ["ml", "batch"],
            "resource": "cpu",
        },
        {},
        {"windows": [{"within": "30s", "count": 0.1, "points": 0.3}, {"within": "20s", "count": 1, "points": 100}]},
        {"windows": [{"within": "1m", "count": 30}], "resource": "memory", "namespaces": ["ml"]},
        {"windows": [{"within": "24h", "count": 2, "points": 0}]},
    ],
    "kubeRL score": [
        {
            "type": "pod.metadata.labels[?'podtype'].orValue('')",
            "settle": "1m",
            "priorPercent": 80,
            "halfLife": "12h",
            "maxTypes": 10,
        },
        {},
        {"priorPercent": 0},
        {"priorPercent": 50, "halfLife": "10m"},
    ],
    "nodeReadiness filter": [
        {
            "daemonSets": [{"namespace": "kube-system", "name": "cilium", "whenAbsent": "Reject"}],
            "pods": [
                {
                    "name": "registry",
                    "namespace": "images",
                    "selector": {
                        "matchLabels": {"part": "registry"},
                        "matchExpressions": [{"key": "retired", "operator": "NotIn", "values": ["yes"]}],
                    },
                    "minReady": 2,
                    "whenAbsent": "Pass",
                }
            ],
            "conditions": [{"type": "NetworkReady", "status": "True"}],
            "labels": [{"key": "example.org/warm", "value": "yes"}],
            "annotations": [{"key": "example.org/checked", "value": "yes"}],
            "holdOff": "20s",
            "choose": {"podAnnotation": "example.org/needs"},
        },
        {"daemonSets": [{"namespace": "kube-system", "name": "cilium"}]},
        {"daemonSets": [{"namespace": "kube-system", "name": "cilium", "whenAbsent": "Pass"}], "holdOff": "30s"},
        {"pods": [{"name": "any", "namespace": "images", "selector": {}}], "holdOff": "1s"},
        {"conditions": [{"type": "NetworkReady"}], "holdOff": "1m"},
        {"conditions": [{"type": "NetworkReady", "status": "False"}], "labels": [{"key": "warm"}]},
        {"labels": [{"key": "warm"}], "annotations": [{"key": "checked"}], "choose": {"podAnnotation": "needs"}},
    ],
    "pigeon score": [
        {
            "objective": "Adaptive",
            "resources": ["cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu"],
            "system": {
                "matchLabels": {"pool": "batch"},
                "matchExpressions": [{"key": "retired", "operator": "NotIn", "values": ["yes"]}],
            },
            "floors": [{"name": "cpu", "quantity": "10m"}],
            "samples": 4000,
            "minSamples": 10,
        },
        {},
        {"objective": "Balance"},
        {"objective": "Balance", "resources": ["memory"], "system": {}},
        {"objective": "Consolidate", "floors": [{"name": "memory", "quantity": "16Mi"}]},
        {"objective": "Consolidate", "resources": ["cpu"]},
        {"resources": ["cpu"], "samples": 2},
        {"samples": 13, "minSamples": 13},
    ],
    "telemetry filter": [
        {"rejectWhen": "AllOf", "rules": [{"value": "heat", "operator": "GreaterThan", "target": 7.1}]},
        {"rules": [{"value": "heat", "operator": "Equals", "target": 0}]},
        {"rules": [{"value": "heat", "operator": "LessThan", "target": 0}]},
        *(
            {
                "rejectWhen": how,
                "rules": [
                    {"value": "heat", "operator": "GreaterThan", "target": 1.2},
                    {"value": "power", "operator": "LessThan", "target": 8.5},
                    {"value": "heat", "operator": "GreaterThan", "target": 0.3},
                ],
            }
            for how in ("AnyOf", "AllOf")
        ),
    ],
    "telemetry score": [
        {"value": "heat", "prefer": "Lowest", "range": {"from": 0.1, "to": 7.1}},
        {"value": "heat", "prefer": "Highest", "range": {"from": -1e18, "to": 1e18}},
        {"value": "heat", "prefer": "Lowest"},
        {"value": "heat", "prefer": "Highest"},
    ],
    "template filter": [{}],
    "template score": [{"value": 70.0}, {}],
    "safe filter": [
        {
            "resources": [
                {"name": "cpu", "mean": "used", "deviation": "spread", "measure": "UsedRatio", "forecast": "ahead"}
            ],
            "limitPercent": 85,
            "tolerancePercent": 25,
            "forecastPercent": 40,
            "lag": "5m",
        },
        {"resources": [{"name": "cpu", "mean": "used", "measure": "Used"}], "limitPercent": 60, "tolerancePercent": 1},
        {
            "resources": [
                {"name": "cpu", "mean": "used", "deviation": "spread", "measure": "Free"},
                {"name": "memory", "mean": "free", "deviation": "spread", "measure": "FreeRatio"},
            ],
            "lag": "0s",
        },
    ],
    "safe score": [
        {
            "resources": [
                {"name": "cpu", "mean": "used", "deviation": "spread", "measure": "UsedRatio", "forecast": "ahead"}
            ],
            "limitPercent": 85,
            "tolerancePercent": 25,
            "forecastPercent": 40,
            "objective": "Overload",
            "lag": "5m",
        },
        {
            "resources": [{"name": "cpu", "mean": "used", "deviation": "spread", "measure": "Used"}],
            "limitPercent": 100,
            "tolerancePercent": 100,
        },
        {
            "resources": [
                {"name": "cpu", "mean": "used", "deviation": "spread", "measure": "Free"},
                {"name": "memory", "mean": "free", "deviation": "spread", "measure": "FreeRatio"},
            ],
            "objective": "Balance",
            "lag": "24h",
        },
    ],
    "targetLoad score": [
        {
            "value": "used",
            "measure": "UsedRatio",
            "resource": "cpu",
            "targetPercent": 40,
            "multiplierPercent": 150,
            "defaultRequest": "500m",
            "lag": "60s",
        },
        {"value": "used", "measure": "Used", "targetPercent": 99, "multiplierPercent": 1, "defaultRequest": "0"},
        {"value": "free", "measure": "Free", "resource": "memory", "targetPercent": 1, "defaultRequest": "256Mi"},
        {"value": "free", "measure": "FreeRatio", "multiplierPercent": 1000},
    ],
    "loadRisk score": [
        {
            "resources": [{"name": "cpu", "mean": "used", "deviation": "spread", "measure": "UsedRatio"}],
            "margin": 1.0,
            "sensitivity": 2.0,
            "lag": "60s",
        },
        {
            "resources": [
                {"name": "cpu", "mean": "used", "measure": "Used"},
                {"name": "memory", "mean": "free", "deviation": "spread", "measure": "Free"},
            ],
            "margin": 10,
            "sensitivity": 0,
        },
        {
            "resources": [{"name": "cpu", "mean": "free", "deviation": "spread", "measure": "FreeRatio"}],
            "sensitivity": 5e-324,
        },
    ],
    "lowRisk score": [
        {
            "resources": [
                {
                    "name": "cpu",
                    "mean": "used",
                    "deviation": "spread",
                    "measure": "UsedRatio",
                    "limitWeightPercent": 30,
                }
            ],
            "windows": 5,
        },
        {
            "resources": [
                {"name": "cpu", "mean": "used", "measure": "Used", "limitWeightPercent": 0},
                {"name": "memory", "mean": "free", "deviation": "spread", "measure": "Free", "limitWeightPercent": 100},
            ],
            "windows": 60,
        },
    ],
    "topology score": [
        {"levels": ["example.org/block", "tier"], "group": "pod.metadata.labels['job-name']", "size": "4"},
        {"levels": ["retired", "tier"]},
        {"levels": ["tier"], "size": "2"},
    ],
    "topology filter": [
        {
            "levels": ["example.org/block", "example.org/rack"],
            "require": "example.org/block",
            "group": "pod.metadata.labels['job-name']",
            "size": "4",
        },
        {"levels": ["retired", "tier"], "require": "tier"},
        {"levels": ["retired", "tier"], "require": "retired"},
    ],
}

_MEM, _CORE, _COUNT = "example.org/gpu-mem", "example.org/gpu-core", "example.org/gpus"
_CARDS = "example.org/cards"


def device_share(**fields: Any) -> CompiledShare:
    """An entry of binding.deviceShare; pods say in an annotation how many cards they need."""
    given = {"name": "gpu", "shares": [{"resource": _MEM}], "layout": {"count": _COUNT}} | fields
    return CompiledShare(
        entry=DeviceShare.model_validate(given),
        cards=lambda pod: int(pod.annotations[_CARDS]) if pod.annotations.get(_CARDS, "").isdigit() else 1,
        reads=Reads(pod=frozenset({(*ANNOTATIONS, _CARDS)})),
    )


SHARES: CompiledShares = {
    "gpu": device_share(record="Gpushare"),
    "cards": device_share(
        shares=[{"resource": _MEM}, {"resource": _CORE}],
        layout={"annotation": "example.org/devices"},
        unhealthy={"annotation": "example.org/sick"},
    ),
    "v100": device_share(split="Each", choose="WorstFit", unhealthy={"annotation": "example.org/sick"}),
    "lowest": device_share(
        choose="Lowest", unhealthy={"configMap": {"namespace": "gpu", "prefix": "unhealthy-", "key": "ids"}}
    ),
}
"""Device shares that the samples name."""
