"""allocation, as tables: what is requested of which node, and what it scores."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies.builtin.allocation import NO_RESOURCE, STRATEGY, TOO_FEW, Allocation
from fairlead.strategies.contract import Reads, Score
from support.policy import building
from support.strategies.facts import Node, Notes, Pod
from support.suites import running

GPU = "nvidia.com/gpu"
NAMES = ("cpu", "memory", "ephemeral-storage")


def compiled(objective: str, **weights: int) -> Score:
    """The strategy with these resources; without any, with those that it has by default."""
    assert STRATEGY.score is not None
    resources = [{"name": name, "weight": weight} for name, weight in weights.items()]
    params = {"objective": objective} | ({"resources": resources} if resources else {})
    return STRATEGY.score.compile(Allocation.model_validate(params))


def weighing(objective: str, weights: Sequence[int]) -> Score:
    return compiled(objective, **dict(zip(NAMES, weights, strict=False)))


def of_shares(rule: Score, shares: Sequence[float]) -> object:
    """What a node scores when its resources have these shares, of which the pod is a tenth."""
    whole = {name: 10.0 for name, _ in zip(NAMES, shares, strict=False)}
    requested = {name: 10.0 * share - 1.0 for name, share in zip(NAMES, shares, strict=False)}
    node = Node(allocatable=whole, requested=requested)
    return rule.for_pod(Pod(request=dict.fromkeys(whole, 1.0)))(node, 0)


_SHARES: dict[str, tuple[str, list[int], list[float], float]] = {
    "Pack with weights": ("Pack", [1, 3], [0.7, 0.4], 47.5),
    "Spread with weights": ("Spread", [1, 3], [0.7, 0.4], 52.5),
    "Balance of two": ("Balance", [1, 1], [0.7, 0.4], 70.0),
    "Balance of two that are equal": ("Balance", [1, 1], [0.4, 0.4], 100.0),
    "Balance of two that are as unequal as can be": ("Balance", [1, 1], [1.0, 0.1], 10.0),
    "Balance with weights": ("Balance", [1, 3], [0.7, 0.3], 100 * (1 - 2 * 0.4 * 3**0.5 / 4)),
    "Balance of three": ("Balance", [1, 1, 1], [0.2, 0.5, 0.8], 100 * (1 - 2 * 0.06**0.5)),
    "Pack of one": ("Pack", [7], [0.3], 30.0),
    "Spread of one": ("Spread", [7], [0.3], 70.0),
    "Pack of what is full": ("Pack", [1, 1], [1.0, 1.0], 100.0),
    "Spread of what is full": ("Spread", [1, 1], [1.0, 1.0], 0.0),
    "Pack of what is more than full": ("Pack", [1, 1], [1.7, 0.5], 75.0),
    "Spread of what is more than full": ("Spread", [1], [12.5], 0.0),
}


@pytest.mark.parametrize(("objective", "weights", "shares", "want"), _SHARES.values(), ids=_SHARES)
def test_shares(objective: str, weights: list[int], shares: list[float], want: float) -> None:
    assert of_shares(weighing(objective, weights), shares) == pytest.approx(want, abs=1e-9)


_NODES: dict[str, tuple[Score, Pod, Node, object]] = {
    "the pod's own request counts": (
        compiled("Pack"),
        Pod(request={"cpu": 2.0, "memory": 0.0}),
        Node(allocatable={"cpu": 8.0, "memory": 8.0}, requested={"cpu": 2.0, "memory": 4.0}),
        50.0,
    ),
    "a pod without requests sees what is requested already": (
        compiled("Spread"),
        Pod(),
        Node(allocatable={"cpu": 8.0, "memory": 8.0}, requested={"cpu": 2.0, "memory": 4.0}),
        62.5,
    ),
    "an empty node": (compiled("Pack"), Pod(), Node(allocatable={"cpu": 8.0, "memory": 8.0}), 0.0),
    "a resource that the node does not have does not count": (
        compiled("Pack", **{"cpu": 1, GPU: 5}), Pod(), Node(allocatable={"cpu": 8.0}, requested={"cpu": 2.0}), 25.0
    ),
    "nor does one of which it has none": (
        compiled("Pack", **{"cpu": 1, GPU: 5}),
        Pod(request={GPU: 1.0}),
        Node(allocatable={"cpu": 8.0, GPU: 0.0}, requested={"cpu": 2.0}),
        25.0,
    ),
    "what nobody named does not count": (
        compiled("Pack", cpu=1),
        Pod(request={GPU: 4.0}),
        Node(allocatable={"cpu": 8.0, GPU: 8.0}, requested={"cpu": 2.0}),
        25.0,
    ),
    "a node with none of the resources": (compiled("Pack"), Pod(), Node(allocatable={GPU: 8.0}), NO_RESOURCE),
    "a node with nothing": (compiled("Spread"), Pod(), Node(allocatable={"cpu": 0.0, "memory": 0.0}), NO_RESOURCE),
    "a node with a trace of it": (compiled("Pack", cpu=1), Pod(), Node(allocatable={"cpu": 5e-324}), NO_RESOURCE),
    "Balance on a node with one of them": (
        compiled("Balance"), Pod(), Node(allocatable={"cpu": 8.0}, requested={"cpu": 2.0}), TOO_FEW
    ),
    "Balance on a node with none of them": (compiled("Balance"), Pod(), Node(), NO_RESOURCE),
    "less than nothing requested": (
        compiled("Spread", cpu=1), Pod(), Node(allocatable={"cpu": 8.0}, requested={"cpu": -1e-9}), 100.0
    ),
    "more than there are atoms": (
        compiled("Pack", memory=1),
        Pod(request={"memory": 1e18}),
        Node(allocatable={"memory": 1e18}, requested={"memory": 1e18}),
        100.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "pod", "node", "want"), _NODES.values(), ids=_NODES)
def test_nodes(rule: Score, pod: Pod, node: Node, want: object) -> None:
    assert rule.for_pod(pod)(node, 0) == want
    assert rule.for_pod(pod)(node, 0, Notes()) == want


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=3),
    st.lists(st.integers(1, 100), min_size=3, max_size=3),
)
def test_objectives_have_one_scale(shares: list[float], weights: list[int]) -> None:
    found = {one: of_shares(weighing(one, weights[: len(shares)]), shares) for one in ("Pack", "Spread", "Balance")}
    assert all(isinstance(score, float) and -1e-9 <= score <= 100.0 + 1e-9 for score in found.values())
    total = sum(score for score in (found["Pack"], found["Spread"]) if isinstance(score, float))
    assert total == pytest.approx(100.0)
    equal = of_shares(weighing("Balance", weights[: len(shares)]), [shares[0]] * len(shares))
    assert equal == pytest.approx(100.0, abs=1e-5)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_two_equal_weights_balance_by_their_difference(one: float, other: float) -> None:
    shares = [max(one, 0.1), max(other, 0.1)]
    want = 100.0 * (1.0 - abs(shares[0] - shares[1]))
    assert of_shares(compiled("Balance"), shares) == pytest.approx(want, abs=1e-6)


def test_reads() -> None:
    names = frozenset({"cpu", "memory"})
    assert compiled("Pack").reads == Reads(request=names, requested=names, allocatable=names)
    assert compiled("Pack").normalize == "None"
    assert STRATEGY.filter is None


def test_the_trace_shows_what_was_read_and_what_came_of_it() -> None:
    notes = Notes()
    node = Node(allocatable={"cpu": 8.0, "memory": 8.0}, requested={"cpu": 4.6, "memory": 3.2})
    compiled("Balance", **{"cpu": 1, "memory": 1, GPU: 2}).for_pod(Pod(request={"cpu": 1.0}))(node, 0, notes)
    assert notes.items == {
        "cpu": {"requested": 4.6, "request": 1.0, "allocatable": 8.0, "share": pytest.approx(0.7), "weight": 1},
        "memory": {"requested": 3.2, "request": 0.0, "allocatable": 8.0, "share": pytest.approx(0.4), "weight": 1},
        GPU: {"requested": 0.0, "request": 0.0, "allocatable": None, "share": None, "weight": 2},
    }
    assert notes.values == {
        "objective": "Balance",
        "share": pytest.approx(0.55),
        "deviation": pytest.approx(0.15),
    }


_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no objective": ({}, "Field required"),
    "an objective that there is not": ({"objective": "Pack "}, "'Pack', 'Spread' or 'Balance'"),
    "Balance of one resource": (
        {"objective": "Balance", "resources": [{"name": "cpu"}]}, "Balance needs at least two resources"
    ),
    "one resource twice": (
        {"objective": "Pack", "resources": [{"name": "cpu"}, {"name": "cpu", "weight": 2}]}, "is a duplicate"
    ),
    "no resource": ({"objective": "Pack", "resources": []}, "at least 1 item"),
    "a weight of nothing": ({"objective": "Pack", "resources": [{"name": "cpu", "weight": 0}]}, "greater than"),
}  # fmt: skip


@pytest.mark.parametrize(("params", "want"), _BAD.values(), ids=_BAD)
def test_what_is_written_wrongly_is_refused(params: dict[str, Any], want: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Allocation.model_validate(params)
    assert any(want in str(one.get("ctx", {}).get("failed", one["msg"])) for one in refused.value.errors())


def asking(**amounts: float) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": amounts}}]}}


_CLUSTER: dict[str, Any] = {
    "nodes": [
        {"metadata": {"name": "half"}, "status": {"allocatable": {"cpu": 8, "memory": "8Gi"}}},
        {"metadata": {"name": "empty"}, "status": {"allocatable": {"cpu": 8, "memory": "8Gi"}}},
        {"metadata": {"name": "skewed"}, "status": {"allocatable": {"cpu": 8, "memory": "16Gi"}}},
    ],
    "pods": [
        {"metadata": {"name": "a"}, "spec": {"nodeName": "half", **asking(cpu=4, memory="4Gi")["spec"]}},  # type: ignore[arg-type]
        {
            "metadata": {"name": "ended"},
            "spec": {"nodeName": "empty", **asking(cpu=4)["spec"]},
            "status": {"phase": "Succeeded"},
        },
        {"metadata": {"name": "b"}, "spec": {"nodeName": "skewed", **asking(cpu=4)["spec"]}},
    ],
}
_EXPECTED = {
    "Pack": {"half": 62.5, "empty": 12.5, "skewed": 37.5},
    "Spread": {"half": 37.5, "empty": 87.5, "skewed": 62.5},
    "Balance": {"half": 75, "empty": 75, "skewed": 25},
}


@pytest.mark.parametrize("objective", _EXPECTED)
def test_policies(objective: str) -> None:
    made = building.policy(scores={"s": {"allocation": {"objective": objective}}})
    found = running.result({"scores": _EXPECTED[objective]}, made, pod=asking(cpu=2), **_CLUSTER)
    assert running.difference_lines(found) == []
