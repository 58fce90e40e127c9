"""Hostile objects: pods, nodes and namespaces as large as the API server takes them, in different ways."""

from functools import cache
from random import Random
from typing import Any

from fairlead.cel.values.structs import from_json
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.policy.views.policy_data import Data

KEYS = ("a", "b", "c", "example.com/long")
PODS = 9_990
MANY = 5_000
_TEXTS = (
    "x" * 16_000,
    "ab," * 5_000,
    "1" * 9_000 + "x",
    "0" * 4_400,
    "1." + "7" * 1_000,
    "1ns" * 341,
    "2026-01-01T00:00:00." + "1" * 900 + "Z",
    r"\pL{1000}",
    "(a|b)*c(a|b){30}",
    "é" * 9_000,
    "😀" * 16_384,
    " " * 16_384,
    "QUJD" * 4_096,
    "",
)
_LONG = "x,é" * 80_000
"""Of what all annotations of an object may have together."""


@cache
def objects() -> tuple[tuple[PodView, NodeView], ...]:
    """Pods, each with a node."""
    return tuple(_object(Random(f"object/{at}")) for at in range(6))


def _metadata(random: Random, name: str) -> dict[str, Any]:
    annotations = {key: random.choice(_TEXTS) for key in KEYS} | random.choice(({}, {"b": _LONG}, _many("k", 20_000)))
    labels = random.choice(({"app": "a"}, _many("example.com/label-with-a-name", MANY)))
    made = {"name": name, "namespace": "n" * 63, "labels": labels | {"app": "a" * 63}, "annotations": annotations}
    return made | {"creationTimestamp": "2026-01-01T00:00:00Z"}


def _many(name: str, count: int) -> dict[str, str]:
    return {f"{name}-{at}": f"v{at}" for at in range(count)}


def _object(random: Random) -> tuple[PodView, NodeView]:
    args = random.choice((["z" * 700_000, "z" * 700_000], ["ab"] * 200_000, [",".join(["a"] * 1_000)] * 9))
    containers = random.choice((1, 500))
    spec = {
        "priority": 5,
        "containers": [
            {"name": f"c{at}", "args": args if not at else [], **_container(at)} for at in range(containers)
        ],
        "volumes": [{"name": f"v{at}"} for at in range(random.choice((1, 1_000)))],
        "tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(random.choice((1, MANY)))],
        "nodeSelector": _many("zone", random.choice((1, MANY))),
    }
    many = random.choice((1, MANY))
    extended = {f"example.com/r{at}": float(at) for at in range(random.choice((0, 2_000)))}
    node = {
        "metadata": _metadata(random, "n"),
        "spec": {"taints": [{"key": f"k{at}", "value": "v", "effect": "NoSchedule"} for at in range(many)]},
        "status": {
            "images": [{"names": [f"r/{at}", f"r/{at}@x"], "sizeBytes": at} for at in range(many)],
            "conditions": [{"type": f"t{at}", "status": "True"} for at in range(many)],
            "allocatable": {name: str(amount) for name, amount in extended.items()} | {"cpu": "4", "memory": "16Gi"},
            "config": {},
        },
    }
    pod = from_json("Pod", {"metadata": _metadata(random, "p"), "spec": spec})
    namespace = from_json("Namespace", {"metadata": _metadata(random, "n")})
    return (
        PodView(pod, namespace, {"cpu": 1.0, "memory": 2.0**30}),
        NodeView(
            from_json("Node", node),
            pods=_placed()[: random.choice((0, 100, 3_000, PODS))],
            allocatable=extended | {"cpu": 4.0},
            requested={"cpu": 0.5},
            data=Data({"load": 0.5}),
        ),
    )


def _container(at: int) -> dict[str, Any]:
    env = [{"name": f"E{one}", "value": "v"} for one in range(20)]
    return {"image": f"registry/{at}", "env": env, "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}


@cache
def _placed() -> list[Any]:
    """Pods on a node."""
    return [
        from_json(
            "PlacedPod",
            {
                "metadata": {"name": f"p{at}", "namespace": "n", "uid": f"{at}", "labels": {"app": "a", "k": f"{at}"}},
                "spec": {
                    "priority": at % 7,
                    "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}] * (at % 3),
                },
                "status": {"phase": "Running"},
            },
        )
        for at in range(PODS)
    ]
