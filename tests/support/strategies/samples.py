"""Parameters that the contract tests give to each use of a strategy. The first fills every field there is."""

from typing import Any

SAMPLES: dict[str, list[dict[str, Any]]] = {
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
}
