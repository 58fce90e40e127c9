"""What `fairlead data` prints for somebody who was woken up."""

from datetime import UTC, datetime
from typing import Any

from fairlead.cli.reports.data_text import data_lines, data_of

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
WELL: dict[str, Any] = {
    "name": "one",
    "nodes": 40,
    "withValue": 40,
    "onDefault": 0,
    "oldestAgeSeconds": 20,
    "medianAgeSeconds": 5,
    "lastSuccess": "2026-01-01T00:09:55Z",
}
ILL: dict[str, Any] = {
    "name": "two",
    "nodes": 40,
    "withValue": 0,
    "onDefault": 0,
    "withoutValue": [{"reason": "Stale", "nodes": 40, "names": "w-1 7m, w-2 7m"}],
    "lastError": "connection refused",
    "failedPolls": 28,
}
ENTRY = {
    "name": "load",
    "source": "prometheus default: load",
    "intervalSeconds": 15,
    "maxAgeSeconds": 60,
    "observedTime": "2026-01-01T00:09:00Z",
    "replicas": [WELL, ILL],
}


def policy(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": {"conditions": [*conditions], **status}}


def test_each_replica_and_what_is_wrong_on_it() -> None:
    bad = {"type": "DataReady", "status": "False", "reason": "PollFailed", "message": "load: \x1b[31m"}
    found = data_of(policy(bad, data=[ENTRY]))
    assert found["ready"] is False
    assert [*data_lines(found, NOW)] == [
        "p: PollFailed: load: \\x1b[31m",
        "",
        "load: prometheus default: load, every 15s, values at most 60s old, as of 60s ago",
        "  REPLICA   NODES   WITH VALUE   DEFAULT   OLDEST   MEDIAN   LAST SUCCESS   FAILED POLLS",
        "  one       40      40           0         20s      5s       5s ago         0",
        "  two       40      0            0         -        -        never          28",
        "  two: 40 too old: w-1 7m, w-2 7m",
        "  two: the last poll failed: connection refused",
    ]


def test_a_policy_that_measures_nothing_says_so() -> None:
    found = data_of({"metadata": {"name": "p"}})
    assert found["ready"] is None
    assert [*data_lines(found, NOW)] == ["p: nothing is measured for it, or the operator has not looked at it yet"]
