"""hotSpot, as tables: when pods were placed on a node, and what comes of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies.builtin.hot_spot import STRATEGY, TOO_MANY, HotSpotFilter, HotSpotScore
from fairlead.strategies.contract import (
    PASS,
    ControllerRef,
    Filter,
    Pass,
    PodsRead,
    Reads,
    Reject,
    Score,
    Timed,
    Unknown,
    Value,
    Verdict,
)
from support.policy import building
from support.strategies.facts import Node, Notes, OnNode, Pod
from support.suites import running

S = 1_000_000_000
NOW = 1_800_000_000 * S

NO_CPU = Unknown("allocatable cpu", "is missing or 0")


def filters(*windows: tuple[str, int], **params: Any) -> Filter:
    assert STRATEGY.filter is not None
    listed = [{"within": within, "limit": limit} for within, limit in windows]
    return STRATEGY.filter.compile(HotSpotFilter.model_validate({"windows": listed} | params))


def scores(**params: Any) -> Score:
    assert STRATEGY.score is not None
    return STRATEGY.score.compile(HotSpotScore.model_validate(params))


def placed(*ages_s: float, **fields: Any) -> list[OnNode]:
    """Pods that were placed so many seconds ago."""
    usual: dict[str, Any] = {"namespace": "ml", "controller": ControllerRef("ReplicaSet", "web")}
    return [OnNode(placed_at=NOW - int(age_s * S), uid=f"u{at}", **usual | fields) for at, age_s in enumerate(ages_s)]


def verdict(rule: Filter, pods: Sequence[OnNode], now: int = NOW, **node: Any) -> Verdict:
    return rule.for_pod(Pod())(Node(pods=pods, **node), now)


def value(rule: Score, pods: Sequence[OnNode], now: int = NOW, **node: Any) -> Value:
    return rule.for_pod(Pod())(Node(pods=pods, **node), now)


def rejected(until_s: float) -> Reject:
    """The rejection that ends so many seconds from now."""
    return Reject(TOO_MANY, until=NOW + int(until_s * S))


_DAEMONS = placed(1, 2, 3, controller=ControllerRef("DaemonSet", "cilium"))
_MIRRORS = placed(1, 2, 3, controller=ControllerRef("Node", "n1"))

_LIMITS: dict[str, tuple[Filter, list[OnNode], Verdict]] = {
    "no pods": (filters(("30s", 1)), [], PASS),
    "fewer than the limit": (filters(("30s", 3)), placed(1, 2), PASS),
    "as many as the limit": (filters(("30s", 3)), placed(1, 2, 5), rejected(25)),
    "more than the limit are waited for until one less than the limit is left": (
        filters(("30s", 3)), placed(1, 2, 5, 7, 29), rejected(25)
    ),
    "in no particular order": (filters(("30s", 3)), placed(29, 2, 7, 1, 5), rejected(25)),
    "older pods do not count": (filters(("30s", 2)), placed(1, 31, 400), PASS),
    "a pod placed exactly so long ago does not count": (filters(("30s", 2)), placed(1, 30), PASS),
    "a pod placed a moment less long ago does": (
        filters(("30s", 2)), [*placed(1), OnNode(placed_at=NOW - 30 * S + 1)], Reject(TOO_MANY, until=NOW + 1)
    ),
    "a pod placed now counts": (filters(("30s", 1)), placed(0), rejected(30)),
    "a pod placed in the future counts as one placed now": (filters(("30s", 1)), placed(-3600), rejected(3630)),
    "a pod of the far future counts": (filters(("30s", 1)), [OnNode(placed_at=NOW * 4)],
                                       Reject(TOO_MANY, until=NOW * 4 + 30 * S)),
    "of several windows one is enough": (filters(("5m", 4), ("30s", 2)), placed(1, 2, 100), rejected(28)),
    "until the last window lets the node go": (filters(("30s", 2), ("5m", 3)), placed(1, 2, 100), rejected(200)),
    "and its order does not matter": (filters(("5m", 3), ("30s", 2)), placed(1, 2, 100), rejected(200)),
    "daemons do not count": (filters(("30s", 1)), _DAEMONS, PASS),
    "pods of the node itself do not count": (filters(("30s", 1)), _MIRRORS, PASS),
    "pods that nobody controls count": (filters(("30s", 1)), placed(1, controller=None), rejected(29)),
    "pods that are being deleted count": (filters(("30s", 1)), placed(1, deleting=True), rejected(29)),
    "pods that the selector finds count": (
        filters(("30s", 2), selector={"matchLabels": {"a": "b"}}),
        [*placed(1, 4, labels={"a": "b"}), *placed(2, 3)],
        rejected(26),
    ),
    "others do not": (
        filters(("30s", 2), selector={"matchLabels": {"a": "b"}}), [*placed(1, labels={"a": "b"}), *placed(2, 3)], PASS
    ),
    "pods of the namespaces count": (
        filters(("30s", 2), namespaces=["ml", "web"]), [*placed(1), *placed(3, namespace="web")], rejected(27)
    ),
    "pods of others do not": (
        filters(("30s", 2), namespaces=["ml", "web"]), [*placed(1), *placed(3, namespace="x")], PASS
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "pods", "want"), _LIMITS.values(), ids=_LIMITS)
def test_limits(rule: Filter, pods: list[OnNode], want: Verdict) -> None:
    assert verdict(rule, pods) == want
    assert rule.for_pod(Pod())(Node(pods=pods), NOW, Notes()) == want


def test_a_node_that_passes_does_so_until_a_pod_is_placed() -> None:
    assert verdict(filters(("30s", 3)), placed(1, 2)) is PASS


_BY_CPU: dict[str, tuple[Filter, list[tuple[float, float]], dict[str, float], Verdict]] = {
    "less than the percentage": (filters(("30s", 30), resource="cpu"), [(1, 1.0), (2, 1.0)], {"cpu": 8.0}, PASS),
    "as much as the percentage": (
        filters(("30s", 30), resource="cpu"), [(1, 1.0), (2, 1.4)], {"cpu": 8.0}, rejected(28)
    ),
    "as much, in tenths that add up to less": (
        filters(("30s", 28), resource="cpu"), [(1, 0.7), (2, 0.7)], {"cpu": 5.0}, rejected(28)
    ),
    "what frees the node leaves last": (
        filters(("30s", 30), resource="cpu"), [(1, 0.1), (2, 2.4), (3, 9.0)], {"cpu": 8.0}, rejected(28)
    ),
    "pods that request none of it do not count": (
        filters(("30s", 1), resource="cpu"), [(1, 0.0), (2, 0.0)], {"cpu": 8.0}, PASS
    ),
    "a node without the resource": (filters(("30s", 1), resource="cpu"), [(1, 0.0)], {"memory": 8.0}, NO_CPU),
    "a node with none of it": (filters(("30s", 1), resource="cpu"), [(1, 1.0)], {"cpu": 0.0}, NO_CPU),
    "a node with a trace of it": (filters(("30s", 1), resource="cpu"), [(1, 1.0)], {"cpu": 5e-324}, NO_CPU),
    "pods that request more than there is": (
        filters(("30s", 1000), resource="cpu"), [(1, 1e18)], {"cpu": 1e-9}, rejected(29)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "pods", "allocatable", "want"), _BY_CPU.values(), ids=_BY_CPU)
def test_limits_by_a_resource(
    rule: Filter, pods: list[tuple[float, float]], allocatable: dict[str, float], want: Verdict
) -> None:
    on_node = [replace(placed(age_s)[0], request={"cpu": cpu}) for age_s, cpu in pods]
    assert verdict(rule, on_node, allocatable=allocatable) == want


def timed(score: float, until_s: float) -> Timed:
    return Timed(score, until=NOW + int(until_s * S))


_ONE_WINDOW = [{"within": "1m", "count": 4, "points": 20}]
_SCORES: dict[str, tuple[Score, list[OnNode], Value]] = {
    "no pods": (scores(), [], 100.0),
    "five within 5m, two of them within 1m": (scores(), placed(1, 2, 70, 80, 90), timed(80.0, 58)),
    "the default, one pod": (scores(), placed(3), timed(93.0, 57)),
    "one pod of the longer window": (scores(), placed(70), timed(98.0, 230)),
    "older pods cost nothing": (scores(), placed(300, 301, 4000), 100.0),
    "eight daemons of a new node cost nothing": (scores(), _DAEMONS * 3, 100.0),
    "a part of the points": (scores(windows=_ONE_WINDOW), placed(1), timed(95.0, 59)),
    "all points": (scores(windows=_ONE_WINDOW), placed(1, 2, 3, 4), timed(80.0, 56)),
    "more than all points": (scores(windows=_ONE_WINDOW), placed(*range(1, 13)), timed(40.0, 48)),
    "never below zero": (scores(windows=_ONE_WINDOW), placed(*[1] * 50), timed(0.0, 59)),
    "ten points if nothing is said": (
        scores(windows=[{"within": "1m", "count": 1}]), placed(1, 2, 3), timed(70.0, 57)
    ),
    "no points": (scores(windows=[{"within": "1m", "count": 1, "points": 0}]), placed(1), timed(100.0, 59)),
    "a part of a count": (
        scores(windows=[{"within": "1m", "count": 0.5, "points": 0.25}]), placed(1), timed(99.5, 59)
    ),
    "until the first pod leaves a window": (scores(), placed(1, 299), timed(91.0, 1)),
    "a pod placed in the future": (scores(windows=_ONE_WINDOW), placed(-30), timed(95.0, 90)),
    "pods that the selector finds": (
        scores(selector={"matchLabels": {"a": "b"}}), [*placed(1, labels={"a": "b"}), *placed(2)], timed(93.0, 59)
    ),
    "pods of the namespaces": (scores(namespaces=["web"]), [*placed(1, namespace="web"), *placed(2)], timed(93.0, 59)),
    "a node without the resource": (scores(resource="cpu"), placed(1), NO_CPU),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "pods", "want"), _SCORES.values(), ids=_SCORES)
def test_scores(rule: Score, pods: list[OnNode], want: Value) -> None:
    for notes in (None, Notes()):
        found = rule.for_pod(Pod())(Node(pods=pods), NOW, notes)
        if isinstance(want, Timed):
            assert isinstance(found, Timed)
            assert found.value == pytest.approx(want.value)
            assert found.until == want.until
        else:
            assert found == want


def test_a_score_by_a_resource() -> None:
    rule = scores(resource="cpu", windows=[{"within": "1m", "count": 20, "points": 10}])
    pods = [replace(one, request={"cpu": 1.6}) for one in placed(1, 2)]
    assert value(rule, pods, allocatable={"cpu": 8.0}) == timed(80.0, 58)
    assert value(rule, placed(1, 2), allocatable={"cpu": 8.0}) == 100.0, "nothing changes when they leave"


_AGES = st.lists(st.integers(-20, 100), max_size=8)


@given(_AGES, st.integers(1, 4), st.integers(1, 4), st.integers(0, 100))
def test_a_rejection_ends_exactly_when_enough_pods_have_left(ages: list[int], one: int, two: int, later: int) -> None:
    rule, pods = filters(("30s", one), ("1m", two)), placed(*ages)

    def full(now_s: int, within_s: int, limit: int) -> bool:
        return sum(age + now_s < within_s for age in ages) >= limit

    def by_count(now_s: int) -> bool:
        return full(now_s, 30, one) or full(now_s, 60, two)

    found = verdict(rule, pods)
    assert isinstance(found, Reject) is by_count(0)
    if isinstance(found, Reject):
        assert found.until is not None
        end_s = (found.until - NOW) // S
        assert all(by_count(moment) for moment in range(end_s))
        assert not by_count(end_s)
        assert isinstance(verdict(rule, pods, found.until), Pass)
    else:
        assert verdict(rule, pods, NOW + later * S) is PASS


@given(_AGES)
def test_more_pods_never_score_more_and_time_never_less(ages: list[int]) -> None:
    rule = scores(windows=[{"within": "30s", "count": 2, "points": 7}, {"within": "1m", "count": 3}])

    def points(pods: Sequence[OnNode], now: int = NOW) -> float:
        found = value(rule, pods, now)
        assert not isinstance(found, Unknown)
        return found.value if isinstance(found, Timed) else found

    pods = placed(*ages)
    by_time = [points(pods, NOW + moment * S) for moment in range(0, 130, 10)]
    assert by_time == sorted(by_time)
    assert by_time[-1] == 100.0
    assert all(points(pods[:count]) >= points(pods[: count + 1]) for count in range(len(pods)))


def test_reads_name_the_pods_that_count() -> None:
    assert filters(("30s", 1)).reads == Reads(placements=frozenset({PodsRead()}), now=True)
    assert scores(namespaces=["a", "b"], resource="cpu", selector={}).reads == Reads(
        placements=frozenset({PodsRead("a"), PodsRead("b")}), allocatable=frozenset({"cpu"}), now=True
    )
    assert filters(("30s", 1)).reasons == ("too many pods placed recently",)
    assert not filters(("30s", 1)).resolvable, "an eviction does not undo a placement"


def test_the_trace_of_a_filter_shows_every_window() -> None:
    notes = Notes()
    rule = filters(("30s", 2), ("5m", 9), selector={"matchLabels": {"a": "b"}})
    pods = [*placed(1, 2, 50, labels={"a": "b"}), *placed(3)]
    rule.for_pod(Pod())(Node(pods=pods), NOW, notes)
    assert notes.items == {"30s": {"placed": 2.0, "limit": 2}, "5m": {"placed": 3.0, "limit": 9}}
    assert notes.values == {"placed": 4, "counted": 3, "allocatable": None, "now": NOW, "until": NOW + 28 * S}


def test_the_trace_of_a_score_shows_every_window() -> None:
    notes = Notes()
    scores().for_pod(Pod())(Node(pods=placed(1, 70)), NOW, notes)
    assert notes.items == {
        "5m": {"placed": 2.0, "count": 5.0, "points": 10.0, "cost": 4.0},
        "1m": {"placed": 1.0, "count": 2.0, "points": 10.0, "cost": 5.0},
    }
    assert notes.values == {"placed": 2, "counted": 2, "allocatable": None, "now": NOW, "until": NOW + 59 * S}


_BAD: dict[str, dict[str, Any]] = {
    "no windows": {},
    "an empty list of windows": {"windows": []},
    "a window of points": {"windows": [{"within": "30s", "count": 1, "points": 10}]},
    "a window without a limit": {"windows": [{"within": "30s"}]},
    "no limit at all": {"windows": [{"within": "30s", "limit": 0}]},
    "a short window": {"windows": [{"within": "4s", "limit": 1}]},
    "a long window": {"windows": [{"within": "25h", "limit": 1}]},
    "no namespaces": {"windows": [{"within": "30s", "limit": 1}], "namespaces": []},
}


@pytest.mark.parametrize("params", _BAD.values(), ids=_BAD)
def test_a_filter_that_is_written_wrongly_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HotSpotFilter.model_validate(params)


@pytest.mark.parametrize("window", [{"within": "1m"}, {"within": "1m", "count": 0}, {"within": "1m", "limit": 1}])
def test_a_score_that_is_written_wrongly_is_refused(window: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HotSpotScore.model_validate({"windows": [window]})


def scheduled(name: str, node: str, at: str, **metadata: Any) -> dict[str, Any]:
    """A pod that was placed at a time, though it was created long before."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    return {"metadata": {"name": name, **metadata}, "spec": {"nodeName": node}, "status": {"conditions": [condition]}}


_NODES = [{"metadata": {"name": name}} for name in ("calm", "hot", "new")]
_PODS = [
    scheduled("old", "calm", "2027-01-15T11:00:00Z"),
    *(scheduled(f"hot{at}", "hot", f"2027-01-15T11:5{6 + at}:00Z") for at in range(3)),
    *(scheduled(f"hot{at}", "hot", f"2027-01-15T11:59:{10 * at - 10}Z") for at in range(3, 5)),
    *(
        scheduled(
            f"daemon{at}",
            "new",
            "2027-01-15T11:59:59Z",
            ownerReferences=[
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "1", "controller": True}
            ],
        )
        for at in range(8)
    ),
]


@pytest.mark.parametrize(
    ("now", "want"),
    [
        ("2027-01-15T12:00:00Z", 80),
        ("2027-01-15T12:00:19Z", 80),
        ("2027-01-15T12:00:20Z", 85),
        ("2027-01-15T12:00:30Z", 90),
        ("2027-01-15T12:01:00Z", 92),
        ("2027-01-15T12:05:00Z", 100),
    ],
)
def test_policies_score(now: str, want: float) -> None:
    made = building.policy(scores={"cool-down": {"hotSpot": {}}})
    found = running.result({"scores": {"calm": 100, "hot": want, "new": 100}}, made, nodes=_NODES, pods=_PODS, now=now)
    assert running.difference_lines(found) == []


@pytest.mark.parametrize(
    ("now", "passed"),
    [
        ("2027-01-15T12:00:00Z", ["calm", "new"]),
        ("2027-01-15T12:00:19Z", ["calm", "new"]),
        ("2027-01-15T12:00:20Z", ["calm", "hot", "new"]),
    ],
)
def test_policies_reject(now: str, passed: list[str]) -> None:
    made = building.policy(filters={"rate-limit": {"hotSpot": {"windows": [{"within": "1m", "limit": 2}]}}})
    wants = {"hot": "too many pods placed recently"} if "hot" not in passed else {}
    found = running.result({"passed": passed, "rejected": wants}, made, nodes=_NODES, pods=_PODS, now=now)
    assert running.difference_lines(found) == []
