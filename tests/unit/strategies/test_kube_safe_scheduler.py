"""A cluster of IBM's kube-safe-scheduler, with its annotations and settings, as a policy."""

from typing import Any

import pytest

from fairlead.policy.views.node_view import NodeView
from support.policy import Evaluation, node, pod, policy

GI = 2.0**30
DATA = [
    {"name": "memFree", "nodeAnnotation": {"key": "mean-free-memory"}},
    {"name": "memDev", "nodeAnnotation": {"key": "std-free-memory"}, "default": 0.0},
    {"name": "memNext", "nodeAnnotation": {"key": "forcasted-free-memory"}},
    {"name": "cpuFree", "nodeAnnotation": {"key": "mean-free-cpu"}, "factor": 0.001},
    {"name": "cpuDev", "nodeAnnotation": {"key": "std-free-cpu"}, "factor": 0.001, "default": 0.0},
    {"name": "cpuNext", "nodeAnnotation": {"key": "forcasted-free-cpu"}, "factor": 0.001},
]
RESOURCES = [
    {"name": "cpu", "mean": "cpuFree", "deviation": "cpuDev", "forecast": "cpuNext", "measure": "Free"},
    {"name": "memory", "mean": "memFree", "deviation": "memDev", "forecast": "memNext", "measure": "Free"},
]
SAFE: dict[str, Any] = {"resources": RESOURCES, "limitPercent": 90, "tolerancePercent": 30, "lag": "0s"}
SAFE_POLICY: dict[str, Any] = {
    "data": DATA,
    "filters": {"safe-overload": {"onError": "Pass", "safe": SAFE | {"forecastPercent": 20}}},
    "scores": {
        "least-overload-risk": {"weight": 1, "safe": SAFE},
        "safe-balance": {"weight": 10, "safe": {"resources": RESOURCES, "objective": "Balance", "lag": "0s"}},
    },
}
BATCH = pod(request={"cpu": 0.5, "memory": GI})
CPU = {"mean-free-cpu": "2500", "std-free-cpu": "400", "forcasted-free-cpu": "2000"}
MEMORY = {"mean-free-memory": "4294967296", "std-free-memory": "536870912"}


def annotated(**annotations: str) -> NodeView:
    made = node(annotations={key.replace("_", "-"): value for key, value in annotations.items()})
    return NodeView(made.node, allocatable={"cpu": 4.0, "memory": 8 * GI})


NODES = {
    # Annotations, the reason if there is one, and the points of Overload and Balance.
    # cpu: used 0.8 * 1.5 + 0.2 * 2 = 1.6, with the pod 2.1 of 4, deviation 0.1; memory: 5 of 8 with the pod, 0.0625.
    "an idle node": (CPU | MEMORY, None, (99.75125, 56.25)),
    "a busy one": (CPU | MEMORY | {"mean-free-cpu": "1300", "forcasted-free-cpu": "1300"}, None, (27.34557, 44.18861)),
    "an overloaded one": (
        CPU | MEMORY | {"mean-free-cpu": "1100", "forcasted-free-cpu": "1100"},
        "p/safe-overload: overload risk on cpu",
        None,
    ),
    "one without memory": (
        CPU | MEMORY | {"mean-free-memory": "1073741824"}, "p/safe-overload: overload risk on memory", None,
    ),
    "only cpu is annotated": (CPU, None, (99.75125, 57.93861)),
    "nothing is annotated": ({}, None, (0.0, 0.0)),
    "only deviations are annotated": ({"std-free-cpu": "400"}, None, (0.0, 0.0)),
    "no deviation is none": (
        {"mean-free-cpu": "2500", "mean-free-memory": "4294967296"}, None, (100.0, 100 * (1 - 0.625 / 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("annotations", "reason", "want"), NODES.values(), ids=NODES)
def test_its_nodes(annotations: dict[str, str], reason: str | None, want: tuple[float, float] | None) -> None:
    cluster = Evaluation([policy(**SAFE_POLICY)], [annotated(**annotations)])
    assert cluster.reasons(BATCH) == ({} if reason is None else {"n": reason})
    if want is not None:
        overload, balance = want
        assert cluster.scores(BATCH) == [pytest.approx(overload + 10 * balance, abs=1e-3)]


def test_its_pods_are_judged_by_their_requests() -> None:
    cluster = Evaluation([policy(**SAFE_POLICY)], [annotated(**CPU)])
    asked = [0.5, 1.0, 1.7, 1.8, 2.0, 2.5]
    assert [cores for cores in asked if cluster.reasons(pod(request={"cpu": cores}))] == [1.8, 2.0, 2.5]
