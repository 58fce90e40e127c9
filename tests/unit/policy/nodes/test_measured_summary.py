"""What owners are told of measured values: ages, and which nodes lack them and why."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.policy.nodes.measured_summary import (
    FaultyNodes,
    MeasuredSummary,
    ReportedValue,
    node_values,
    summarize,
)
from fairlead.policy.nodes.measured_table import FUTURE, MISSING, NO_NUMBER, SEVERAL, STALE, MeasuredEntry
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, Poll, PrometheusPoll, Reading
from fairlead.time_units import age_text
from support.policy import NOW, SECOND, node, policy

LOAD: Poll = PrometheusPoll("default", "load", "instance", None, 15)
PRICES: Poll = ConfigMapPoll("prices", "values.json", None)
DATA: dict[str, dict[str, Any]] = {
    "load": {"prometheus": {"query": "load"}, "maxAge": "60s"},
    "young": {"prometheus": {"query": "load"}, "maxAge": "60s", "default": 0.9},
    "price": {"configMap": {"name": "prices"}},
    "aged": {"configMap": {"name": "prices"}, "maxAge": "1h"},
}
POLICY = policy(data=DATA, filters={"f": "data.load < 1.0"})
OLD, YOUNG = "2026-01-01T00:00:00Z", "2027-01-15T07:55:00Z"


def cluster(*readings: tuple[int, Reading], poll: Poll = LOAD, old: str = "abc", young: str = "") -> Nodes:
    """Nodes after these readings, each at its second."""
    nodes = Nodes()
    nodes.measure(POLICY.data)
    for name in old + young:
        nodes.put(node(name, created=YOUNG if name in young else OLD))
    for second, reading in readings:
        nodes.publish({poll: reading}, NOW + second * SECOND)
    return nodes


def entry(nodes: Nodes, name: str) -> MeasuredEntry:
    return next(one for one in nodes.measurements.entries(POLICY.data) if one.name == name)


def summary(nodes: Nodes, name: str = "load", second: int = 0) -> MeasuredSummary:
    return summarize(entry(nodes, name), nodes, NOW + second * SECOND)


def at(second: int, **values: float) -> tuple[int, Reading]:
    return second, Reading(values, NOW + second * SECOND)


ABC = at(0, a=0.1, b=0.2, c=0.3)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param(summary(Nodes()), MeasuredSummary(0, 0, 0, 0, None, None, ()), id="no node"),
        pytest.param(summary(cluster(ABC), second=12), MeasuredSummary(3, 3, 0, 0, 12, 12, ()), id="fresh"),
        pytest.param(
            summary(cluster(ABC, at(40, b=0.2, c=0.3)), second=61),
            MeasuredSummary(3, 2, 0, 0, 61, 21, (FaultyNodes(STALE, 1, ("a 61s",)),)),
            id="one is stale, by more than its greatest age",
        ),
        pytest.param(
            summary(cluster(ABC, at(300, b=0.2, c=0.3)), second=420),
            MeasuredSummary(3, 0, 0, 0, 420, 120, (FaultyNodes(STALE, 3, ("a 7m", "b 2m", "c 2m")),)),
            id="all are stale, the oldest first",
        ),
        pytest.param(
            summary(cluster((0, Reading({"a": 0.1, "b": 0.2, "c": 0.3}, {"a": NOW + 7200 * SECOND, "b": NOW})))),
            MeasuredSummary(3, 1, 0, 0, 0, 0, (FaultyNodes(STALE, 1, ("c",)), FaultyNodes(FUTURE, 1, ("a 2h ahead",)))),
            id="one is ahead, and one has no time",
        ),
        pytest.param(
            summary(cluster(at(0, a=0.1), young="d")),
            MeasuredSummary(4, 1, 0, 1, 0, 0, (FaultyNodes(MISSING, 3, ("b", "c", "d")),)),
            id="missing, those that joined first come first",
        ),
        pytest.param(
            summary(cluster(at(0, a=0.1), young="d"), "young"),
            MeasuredSummary(4, 1, 1, 0, 0, 0, (FaultyNodes(MISSING, 2, ("b", "c")),)),
            id="a young node has the default, and so a value to go by",
        ),
        pytest.param(
            summary(cluster((0, Reading({"a": 0.1}, NOW, frozenset("b"), frozenset("c"))))),
            MeasuredSummary(3, 1, 0, 0, 0, 0, (FaultyNodes(SEVERAL, 1, ("b",)), FaultyNodes(NO_NUMBER, 1, ("c",)))),
            id="several, and no number",
        ),
        pytest.param(
            summary(cluster((0, Reading(dict.fromkeys("abc", 1.0), None)), poll=PRICES), "price", 10_000),
            MeasuredSummary(3, 3, 0, 0, None, None, ()),
            id="without times and greatest age",
        ),
        pytest.param(
            summary(cluster((0, Reading(dict.fromkeys("abc", 1.0), None)), poll=PRICES), "aged"),
            MeasuredSummary(3, 0, 0, 0, None, None, (FaultyNodes(STALE, 3, ("a", "b", "c")),)),
            id="without times, and so of any age",
        ),
        pytest.param(
            summary(cluster(old="abcdefg")),
            MeasuredSummary(7, 0, 0, 0, None, None, (FaultyNodes(MISSING, 7, tuple("abcde")),)),
            id="a few are named",
        ),
    ],
)
def test_a_summary(told: MeasuredSummary, expected: MeasuredSummary) -> None:
    assert told == expected


def test_a_node_that_left_counts_no_more() -> None:
    nodes = cluster(ABC, at(50, b=0.2, c=0.3))
    nodes.remove("a")
    assert summary(nodes, second=61) == MeasuredSummary(2, 2, 0, 0, 11, 11, ())


def test_the_values_of_each_node() -> None:
    nodes = cluster(at(0, a=0.1, b=0.2), at(50, b=0.3), young="d")
    told = {one.name: one for one in node_values(entry(nodes, "young"), nodes, NOW + 61 * SECOND)}
    assert told == {
        "a": ReportedValue("a", None, NOW, STALE, is_default=False),
        "b": ReportedValue("b", 0.3, NOW + 50 * SECOND, "", is_default=False),
        "c": ReportedValue("c", None, None, MISSING, is_default=False),
        "d": ReportedValue("d", 0.9, None, "", is_default=True),
    }


_SECONDS = st.integers(-400, 400)


@given(
    st.lists(st.tuples(_SECONDS, st.dictionaries(st.sampled_from("abcd"), _SECONDS), st.sets(st.sampled_from("abcd")))),
    st.sampled_from(["load", "young"]),
    st.integers(400, 900),
)
def test_the_counts_are_what_rules_read_of_each_node(
    readings: list[tuple[int, dict[str, int], set[str]]], name: str, second: int
) -> None:
    nodes = cluster(old="ab", young="cd")
    for when, times, several in readings:
        known = {node: NOW + moment * SECOND for node, moment in times.items() if node not in several}
        nodes.publish({LOAD: Reading(dict.fromkeys(known, 0.5), known, frozenset(several))}, NOW + when * SECOND)
    told, each = summary(nodes, name, second), [*node_values(entry(nodes, name), nodes, NOW + second * SECOND)]
    assert {one.why: one.nodes for one in told.faults} == {
        why: count for why in {one.fault for one in each} - {""} if (count := sum(one.fault == why for one in each))
    }
    assert told.with_value == sum(one.value is not None and not one.is_default for one in each)
    assert told.on_default == sum(one.is_default for one in each)
    assert told.nodes == told.with_value + told.on_default + sum(one.nodes for one in told.faults) == 4


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h"),
        (172_799, "47h"),
        (172_800, "2d"),
    ],
)
def test_ages_as_people_say_them(seconds: int, text: str) -> None:
    assert age_text(seconds * SECOND) == text
