"""Decisions of all replicas as they are shown."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from fairlead.cli.inputs.replica_decisions import ReplicaDecisions
from fairlead.cli.reports.decision_text import DecisionFilter, decisions_report, decisions_text

NOW: Final = datetime(2027, 1, 15, 8, 1, tzinfo=UTC)


def decision(name: str, at: str = "08:00:00.000", **fields: Any) -> dict[str, Any]:
    return {
        "time": f"2027-01-15T{at}Z",
        "scheduler": "fairlead",
        "pod": {"namespace": "ml", "name": name, "uid": f"u-{name}"},
        "policies": [{"name": "p", "generation": "2"}],
        "result": "refused",
        "candidates": 5,
        "passed": 3,
        "rules": [{"policy": "p", "rule": "f", "reason": "no GPU", "nodes": 2, "examples": ["b"]}],
        "error": None,
        "best": [{"node": "a", "points": 8}],
        "node": "a",
        "waits": False,
        "attempts": 1,
        "effects": [],
        "milliseconds": 0.8,
    } | fields


EFFECT: Final = {"policy": "q", "effects": ["unschedulable"], "rules": ["g"]}
WAITS: Final = decision("w", "08:00:50.000", passed=0, node=None, waits=True, best=[], attempts=4, result="empty")
GONE: Final = decision("g", "07:00:00.000", node=None, error="policy p was too slow", effects=[EFFECT])
REPLICAS: Final = [
    ReplicaDecisions("r-0", "2027-01-15T06:00:00.000Z", [decision("a"), GONE], unreadable=3),
    ReplicaDecisions("r-1", "2027-01-15T07:30:00.000Z", [WAITS]),
    ReplicaDecisions("r-2", unread="it does not answer"),
]


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        (DecisionFilter(), ["w", "a", "g"]),
        (DecisionFilter(namespace="other"), []),
        (DecisionFilter(pod="a", namespace="ml"), ["a"]),
        (DecisionFilter(policy="p"), ["w", "a", "g"]),
        (DecisionFilter(policy="q"), ["g"]),
        (DecisionFilter(policy="r"), []),
        (DecisionFilter(waiting=True), ["w"]),
        (DecisionFilter(effects=True), ["g"]),
        (DecisionFilter(since=datetime(2027, 1, 15, 8, tzinfo=UTC)), ["w", "a"]),
    ],
)
def test_selection_of_all_replicas_the_newest_first(chosen: DecisionFilter, names: list[str]) -> None:
    report = decisions_report(REPLICAS, chosen)
    assert [one["pod"]["name"] for one in report["decisions"]] == names
    assert report["replicas"] == [
        {"replica": "r-0", "since": "2027-01-15T06:00:00.000Z", "unread": None, "unreadable": 3},
        {"replica": "r-1", "since": "2027-01-15T07:30:00.000Z", "unread": None, "unreadable": 0},
        {"replica": "r-2", "since": None, "unread": "it does not answer", "unreadable": 0},
    ]


def test_table() -> None:
    text = [*decisions_text(decisions_report(REPLICAS, DecisionFilter()), NOW, details=False)]
    assert text == [
        "AGE   POD    NODE      PASSED   WHY",
        "10s   ml/w   (waits)   0 of 5   p/f: no GPU (2)",
        "60s   ml/a   a         3 of 5   p/f: no GPU (2)",
        "61m   ml/g   (gone)    3 of 5   policy p was too slow; p/f: no GPU (2); in shadow: q unschedulable",
        "",
        "r-0 remembers since 2027-01-15T06:00:00.000Z",
        "r-1 remembers since 2027-01-15T07:30:00.000Z",
    ]


def test_details() -> None:
    text = [*decisions_text(decisions_report(REPLICAS[1:2], DecisionFilter(pod="w")), NOW, details=True)]
    assert text == [
        "ml/w  2027-01-15T08:00:50.000Z (10s ago)",
        "  scheduler: fairlead, answered by r-1 in 0.8 ms",
        "  policies: p (generation 2)",
        "  passed: 0 of 5 nodes",
        "    p/f rejected 2: no GPU (b, ...)",
        "  node: (waits)",
        "  attempts since it was first left without a node: 4",
        "",
        "r-1 remembers since 2027-01-15T07:30:00.000Z",
    ]


def test_nothing() -> None:
    text = [*decisions_text(decisions_report([], DecisionFilter()), NOW, details=True)]
    assert text == ["no decision that fits is kept", ""]


def test_hostile_names_and_reasons_are_text() -> None:
    rule = {"policy": "p", "rule": "f", "reason": "\x1b[2Jgone\u202e", "nodes": 1, "examples": ["\x07"]}
    one = [ReplicaDecisions("r", "2027-01-15T06:00:00.000Z", [decision("a", rules=[rule])])]
    for details in (False, True):
        text = "\n".join(decisions_text(decisions_report(one, DecisionFilter()), NOW, details=details))
        assert not {"\x1b", "\u202e", "\x07"} & {*text}
