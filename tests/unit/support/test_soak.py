"""Times of what happens during a soak, and its judgement: each bound fails when it is passed."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from support.soak import (
    FOLLOWER,
    LEADER,
    Disturbance,
    Finding,
    Life,
    Observed,
    ProcessSample,
    as_json,
    as_table,
    judge,
    lives,
    schedule,
)
from support.soak.histograms import HistogramSample, between, quantile_ms
from support.soak.observation import Living
from support.stream import StreamedPod, tally

SETTLED_S = 600.0
ROLES = "operator", "scheduler fairlead", "scheduler other"
_MIB = 2**20


def life(
    role: str = "operator",
    *,
    pid: int = 1,
    since_s: float = 0.0,
    until_s: float = 3600.0,
    growth: Mapping[str, int] | None = None,
) -> list[ProcessSample]:
    """Samples of a process each ten seconds; in the last quarter of its life it has so much more of something."""
    usual = {"rss": 200 * _MIB, "files": 20, "sockets": 10}
    grown = {name: value + (growth or {}).get(name, 0) for name, value in usual.items()}
    return [
        ProcessSample(
            at_s=since_s + at_s, role=role, pod=role, pid=pid, **(usual if at_s < 0.75 * (until_s - since_s) else grown)
        )
        for at_s in range(0, int(until_s - since_s) + 1, 10)
    ]


def observed(**other: Any) -> Observed:
    """All as it has to be, but for what is given."""
    well: dict[str, Any] = {
        "settled_s": SETTLED_S,
        "leads_s": SETTLED_S / 2,
        "full_s": 510.0,
        "roles": ROLES,
        "lives": lives([sample for role in ROLES for sample in life(role)]),
        "p99_first_ms": 10.0,
        "p99_last_ms": 11.0,
        "keys_before": {"pods": 6, "configmaps": 10, "events": 5, "replicasets": 3},
        "keys_after": {"pods": 6, "configmaps": 12, "events": 70_000, "replicasets": 6},
        "living": {"configmaps": 2, "replicasets": 3},
        "grants": 24,
        "grants_max": 24,
        "pods": {"lost": 0, "misplaced": 0, "placed twice": 0},
        "steps": {"edit of a policy": (59, 59)},
    }
    return Observed(**(well | other))


def wrong(seen: Observed) -> list[str]:
    """Return what is not kept to."""
    return [one.what for one in judge(seen) if not one.is_kept]


def grown(growth: Mapping[str, int], role: str = "operator") -> Sequence[Life]:
    others = [sample for other in ROLES if other != role for sample in life(other)]
    return lives([*life(role, growth=growth), *others])


def test_a_process_that_was_not_looked_at_in_time_is_not_judged() -> None:
    looks = [sample for sample in life() if not SETTLED_S <= sample.at_s <= 2 * SETTLED_S]
    others = [sample for role in ROLES[1:] for sample in life(role)]
    assert wrong(observed(lives=lives([*looks, *others]))) == ["operator: processes that lived long enough"]


PROCESS = "operator operator, process 1"


def test_nothing_is_wrong_up_to_each_bound() -> None:
    assert wrong(observed()) == []
    assert wrong(observed(lives=grown({"rss": 10 * _MIB}))) == []


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"lives": grown({"rss": 11 * _MIB})}, [f"{PROCESS}: resident"]),
        ({"lives": grown({"files": 1})}, [f"{PROCESS}: files"]),
        ({"lives": grown({"sockets": 1})}, [f"{PROCESS}: connections"]),
        (
            {"lives": grown({"rss": 11 * _MIB}, "scheduler other")},
            ["scheduler other scheduler other, process 1: resident"],
        ),
        (
            {"lives": lives([sample for role in ROLES[:2] for sample in life(role)])},
            ["scheduler other: processes that lived long enough"],
        ),
        ({"p99_last_ms": 11.01}, ["filter, p99"]),
        ({"p99_first_ms": math.nan, "p99_last_ms": math.nan}, ["filter, p99"]),
        (
            {"keys_after": {"pods": 7, "configmaps": 12, "replicasets": 6}},
            ["etcd: pods", "etcd: all that do not pass"],
        ),
        (
            {"keys_after": {"pods": 6, "configmaps": 13, "replicasets": 6}},
            ["etcd: configmaps", "etcd: all that do not pass"],
        ),
        ({"keys_after": {"pods": 6, "configmaps": 10, "replicasets": 3, "leases": 1}}, ["etcd: leases"]),
        ({"grants": 25}, ["entries of the longest ledger"]),
        ({"pods": {"lost": 1, "misplaced": 0, "placed twice": 0}}, ["pods lost"]),
        ({"pods": {"lost": 0, "misplaced": 1, "placed twice": 0}}, ["pods misplaced"]),
        ({"pods": {"lost": 0, "misplaced": 0, "placed twice": 1}}, ["pods placed twice"]),
        ({"late": ["waited for 2 replicas"]}, ["waited for 2 replicas"]),
        ({"steps": {"leader killed": (5, 4)}}, ["leader killed: as planned, and done"]),
    ],
)
def test_each_bound_fails_when_it_is_passed(other: Mapping[str, Any], expected: list[str]) -> None:
    assert wrong(observed(**other)) == expected


def test_a_process_that_was_killed_is_compared_with_itself() -> None:
    """What grows in it is not hidden by its successor, which begins with little."""
    leaks = [*life(pid=1, until_s=1200.0, growth={"rss": 50 * _MIB}), *life(pid=2, since_s=1210.0, until_s=3600.0)]
    rest = [sample for role in ROLES[1:] for sample in life(role)]
    assert wrong(observed(lives=lives([*leaks, *rest]))) == [f"{PROCESS}: resident"]


@pytest.mark.parametrize(
    ("begins", "grows", "expected"),
    [
        (210, 0, []),
        (211, 0, ["resident, and before it led"]),
        (210, 10, []),
        (210, 11, ["resident"]),
    ],
)
def test_a_leader_is_compared_with_itself_before_it_led_and_in_the_middle(
    begins: int, grows: int, expected: list[str]
) -> None:
    """It has more files and connections than one that does not lead, and is compared with other leaders in those."""
    follows = life(until_s=1800.0)
    leads = [
        replace(one, pod=FOLLOWER, files=22, sockets=30, rss=one.rss + (begins - 200) * _MIB)
        for one in life(LEADER, since_s=1810.0, until_s=2410.0, growth={"rss": grows * _MIB})
    ]
    rest = [sample for role in ROLES[1:] for sample in life(role)]
    found = wrong(observed(lives=lives([*follows, *leads, *rest])))
    assert found == [f"{LEADER} {FOLLOWER}, process 1: {one}" for one in expected]


def test_who_is_called_may_open_what_another_one_had_open() -> None:
    """One more than that is growth."""
    leads = [replace(one, files=22) for one in life(pid=1)]
    followed = life(pid=2, growth={"files": 2})
    rest = [sample for role in ROLES[1:] for sample in life(role)]
    assert wrong(observed(lives=lives([*leads, *followed, *rest]))) == []
    followed = life(pid=2, growth={"files": 3})
    assert wrong(observed(lives=lives([*leads, *followed, *rest]))) == ["operator operator, process 2: files"]


def test_what_is_kept_of_what_lives_is_counted_from_the_begin() -> None:
    begun, ended = Living({"configmaps": 2, "replicasets": 3}, 0), Living({"configmaps": 6, "replicasets": 2}, 9)
    assert ended.more_than(begun) == {"configmaps": 4, "replicasets": 0}


def test_a_process_that_lived_for_less_than_a_quarter_of_an_hour_is_not_judged() -> None:
    short = life(pid=3, since_s=0.0, until_s=880.0, growth={"rss": 50 * _MIB})
    assert wrong(observed(lives=[*observed().lives, *lives(short)])) == []


def test_memory_is_judged_from_when_what_is_kept_of_pods_is_full() -> None:
    """In ten minutes it is not, and growth until then says nothing."""
    leaks = [sample for role in ROLES for sample in life(role, until_s=600.0, growth={"rss": 50 * _MIB})]
    assert wrong(observed(settled_s=100.0, lives=lives(leaks))) == []
    leaks = [sample for role in ROLES for sample in life(role, until_s=800.0, growth={"rss": 50 * _MIB})]
    assert len(wrong(observed(settled_s=100.0, lives=lives(leaks)))) == len(ROLES)
    assert wrong(observed(settled_s=100.0, full_s=833.0, lives=lives(leaks))) == [], "fewer pods a second"


def test_the_end_and_the_age_of_ten_minutes_are_what_is_compared() -> None:
    (one,) = lives(life(since_s=100.0, until_s=3600.0))
    assert [(each[0].at_s, each[-1].at_s) for each in (one.early(SETTLED_S), one.late(SETTLED_S))] == [
        (700.0, 820.0),
        (3480.0, 3600.0),
    ]


@pytest.mark.parametrize("lasts_s", [600, 1800, 3600])
def test_less_than_an_hour_has_everything_that_an_hour_has(lasts_s: float) -> None:
    plan = schedule(lasts_s)
    assert {step: plan.count(step) for step in Disturbance} == {
        Disturbance.EDIT: 59,
        Disturbance.KILL: 5,
        Disturbance.ROTATE: 2,
        Disturbance.RESTART: 2,
    }
    assert plan.window_s == lasts_s / 6
    assert [at_s for at_s, _ in plan.steps] == sorted(at_s for at_s, _ in plan.steps)
    assert all(0 < at_s < lasts_s for at_s, _ in plan.steps)


def test_a_day_edits_each_minute_and_kills_each_ten() -> None:
    plan = schedule(86_400)
    assert {step: plan.count(step) for step in Disturbance} == {
        Disturbance.EDIT: 1439,
        Disturbance.KILL: 143,
        Disturbance.ROTATE: 2,
        Disturbance.RESTART: 2,
    }
    assert (plan.window_s, plan.sample_s) == (600, 10)
    assert [at_s for at_s, step in plan.steps if step is Disturbance.EDIT][:2] == [60, 120]


@pytest.mark.parametrize("step", [Disturbance.ROTATE, Disturbance.RESTART])
@pytest.mark.parametrize("lasts_s", [600, 3600])
def test_what_is_compared_is_not_of_a_time_without_api_server_or_of_a_rotation(
    lasts_s: float, step: Disturbance
) -> None:
    plan = schedule(lasts_s)
    times = [at_s for at_s, what in plan.steps if what is step]
    assert all(plan.window_s < at_s < plan.lasts_s - plan.window_s for at_s in times)


def at(at_s: float, pod: str = "a", **counts: float) -> HistogramSample:
    """Histogram with buckets of one, two and five milliseconds."""
    untils = {"one": 0.001, "two": 0.002, "five": 0.005}
    return HistogramSample(at_s, pod, {until: counts.get(name, 0.0) for name, until in untils.items()})


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([at(0, one=5), at(10, one=7, two=1)], {0.001: 2, 0.002: 1, 0.005: 0}),
        ([at(0, one=5), at(10, one=7), at(20, one=90)], {0.001: 2, 0.002: 0, 0.005: 0}),
        ([at(0, one=5), at(10, two=3)], {0.001: 0, 0.002: 3, 0.005: 0}),  # its process is another one
        ([at(0, one=5), at(0, "b", one=9), at(10, one=6), at(10, "b", one=9, five=1)], {0.001: 1, 0.002: 0, 0.005: 1}),
        ([at(0, one=5)], {}),
    ],
)
def test_calls_between_two_moments(samples: Sequence[HistogramSample], expected: Mapping[float, float]) -> None:
    assert between(samples, 0.0, 10.0) == expected


@pytest.mark.parametrize(
    ("buckets", "share", "expected"),
    [
        ({0.001: 100, 0.002: 0}, 0.99, 0.99),
        ({0.001: 50, 0.002: 50}, 0.99, 1.98),
        ({0.001: 50, 0.002: 50}, 0.5, 1.0),
        ({0.001: 98, 0.002: 0, math.inf: 2}, 0.99, 2.0),
        ({}, 0.99, math.nan),
        ({0.001: 0.0}, 0.99, math.nan),
    ],
)
def test_the_slowest_of_a_hundred_is_found_within_a_bucket(
    buckets: Mapping[float, float], share: float, expected: float
) -> None:
    assert quantile_ms(buckets, share) == pytest.approx(expected, nan_ok=True)


_POD = StreamedPod(name="p", pool="a", created=1.0, bound=1.5, node_pool="a", codes=[201])
_REPORTS: Mapping[str, Callable[[Sequence[Finding]], str]] = {
    "table": lambda findings: as_table(findings, [tally("0 to 10 min", [_POD], 0.0, 600.0)]),
    "data": lambda findings: json.dumps(as_json({"lasts_s": 3600}, findings, [], []), allow_nan=False),
}


@pytest.mark.parametrize(("report", "wrong_lines"), [("table", ("WRONG", [0, 2])), ("data", ('"ok": false', [0, 3]))])
def test_the_report_tells_what_is_wrong(report: str, wrong_lines: tuple[str, list[int]]) -> None:
    """As data it has a verdict of the whole, too."""
    mark, expected = wrong_lines
    seen = observed(), observed(p99_last_ms=12.0, pods={"lost": 3})
    assert [_REPORTS[report](judge(one)).count(mark) for one in seen] == expected
