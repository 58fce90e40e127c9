"""What a replica says of measured values: to the leader, to Prometheus, and to who asks for each node."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.metrics import Metrics
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, Poll, PrometheusPoll, Reading
from fairlead.replica_state import DataEntryState, FaultState
from fairlead.webhook.data_sources.poller import PollStatus
from fairlead.webhook.measured_data.data_report import SPENT_S, DataReport
from support.policy import NOW, SECOND, node, policy
from support.policy.building import ns

LOAD: Poll = PrometheusPoll("default", "load", "instance", None, 15)
PRICES: Poll = ConfigMapPoll("prices", "values.json", None)
QUERY: dict[str, Any] = {"prometheus": {"query": "load"}}
RULE = {"f": "true"}
READING = Reading({"a": 0.25}, NOW)
GOOD = PollStatus(is_answered=True, succeeded_at=NOW)


def made(*policies: CompiledPolicy, polls: Mapping[Poll, PollStatus] | None = None, second: int = 5) -> DataReport:
    """A report on two nodes, one of which was measured."""
    nodes = Nodes()
    for one in policies:
        nodes.measure(one.data)
    for name in "ab":
        nodes.put(node(name))
    nodes.publish({LOAD: READING, PRICES: Reading({"a": 3.0, "b": 4.0}, None)}, NOW)
    states = {LOAD: GOOD, PRICES: GOOD} if polls is None else polls
    return DataReport(lambda: policies, nodes, lambda: states, lambda: NOW + second * SECOND)


def test_the_state_of_an_entry() -> None:
    failing = PollStatus(is_answered=True, succeeded_at=NOW, error="connection refused", failures=3)
    reads = {"f": "data.load < 0.5"}
    told = made(policy(data={"load": QUERY}, filters=reads), polls={LOAD: failing}).entries()
    assert told == {
        "p": (
            DataEntryState(
                name="load",
                source="prometheus default: load",
                interval_s=15,
                greatest_age_s=60,
                answered=True,
                succeeded_s_ago=5,
                error="connection refused",
                failures=3,
                nodes=2,
                with_value=1,
                oldest_s=5,
                median_s=5,
                faults=(FaultState(why="is missing", nodes=1, names=("b",)),),
            ),
        )
    }


def test_a_node_that_the_policy_rejects_for_every_pod_needs_no_value() -> None:
    only_a = policy(data={"load": QUERY}, filters={"f": "node.metadata.name == 'a'", "g": "data.load < 0.5"})
    on_b = {"f": "node.metadata.name == 'b'", "g": "data.load < 0.5"}
    only_b = policy("q", schedulerName="s", data={"load": QUERY}, filters=on_b)
    every = policy("r", schedulerName="t", data={"load": QUERY}, filters={"g": "data.load < 0.5"})
    told = {name: one for name, (one,) in made(only_a, only_b, every).entries().items()}
    missing = (FaultState(why="is missing", nodes=1, names=("b",)),)
    assert {name: (one.nodes, one.with_value, one.faults) for name, one in told.items()} == {
        "p": (1, 1, ()),
        "q": (2, 1, missing),
        "r": (2, 1, missing),
    }


def test_what_is_polled_and_serves_is_told_and_nothing_else() -> None:
    data = {"load": QUERY, "rack": {"nodeLabel": {"key": "rack"}}}
    on, off = policy(data=data, filters=RULE), policy("off", data=data, filters=RULE, mode="Disabled")
    assert {name: [one.name for one in found] for name, found in made(on, off).entries().items()} == {"p": ["load"]}


@pytest.mark.parametrize(
    ("spec", "is_cut_off"),
    [
        pytest.param({"filters": {"f": "data.load < 0.5"}}, True, id="a filter reads it"),
        pytest.param(
            {"preemption": {"protect": [{"name": "n", "expression": "data.load < 0.5"}]}}, True, id="protection"
        ),
        pytest.param({"filters": {"f": "data.load < 0.5"}, "mode": "Shadow"}, False, id="the policy is in shadow"),
        pytest.param({"filters": {"f": {"expression": "data.load < 0.5", "mode": "Shadow"}}}, False, id="the rule is"),
        pytest.param({"filters": RULE}, False, id="no rule reads it"),
    ],
)
def test_only_what_decides_is_lacked(spec: dict[str, Any], is_cut_off: bool) -> None:
    nodes, of = Nodes(), policy(data={"load": QUERY}, **spec)
    nodes.measure(of.data)
    nodes.put(node("a"))
    failing = PollStatus(is_answered=True, error="connection refused", failures=3)
    (told,) = DataReport(lambda: [of], nodes, lambda: {LOAD: failing}, lambda: NOW).entries()["p"]
    assert told.is_cut_off == is_cut_off


def test_a_poll_that_nobody_knows_yet_was_not_answered() -> None:
    (told,) = made(policy(data={"load": QUERY}, filters=RULE), polls={}).entries()["p"]
    assert (told.answered, told.succeeded_s_ago, told.error) == (False, None, "")


def test_a_document_whose_values_may_be_of_any_age_says_what_is_missing_in_it() -> None:
    data = {"price": {"configMap": {"name": "prices"}, "maxAge": "1h"}, "any": {"configMap": {"name": "prices"}}}
    aged, any_ = made(policy(data=data, filters=RULE)).entries()["p"]
    assert "no time `at`" in aged.note
    assert (any_.note, any_.with_value) == ("", 2)


def samples(second: int = 5) -> dict[tuple[str, str], float]:
    """What is counted of two entries, one of which is of a poll that fails."""
    metrics = Metrics()
    failing = PollStatus(is_answered=True, succeeded_at=NOW, error="connection refused", failures=3)
    data = {"load": QUERY, "price": {"configMap": {"name": "prices"}}}
    made(policy(data=data, filters=RULE), polls={LOAD: failing}, second=second).register(metrics)
    return {
        (sample.name, sample.labels["entry"]): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
    }


def test_metrics_by_policy_and_entry() -> None:
    assert samples() == {
        ("fairlead_data_oldest_value_age_seconds", "load"): 5,
        ("fairlead_data_nodes_without_value", "load"): 1,
        ("fairlead_data_nodes_without_value", "price"): 0,
        ("fairlead_data_nodes_in_the_future", "load"): 0,
        ("fairlead_data_nodes_in_the_future", "price"): 0,
        ("fairlead_data_failed_polls_total", "load"): 3,
        ("fairlead_data_failed_polls_total", "price"): 0,
    }


def test_values_from_the_future_are_counted_by_themselves() -> None:
    found = samples(second=-301)
    assert found["fairlead_data_nodes_without_value", "load"] == 2
    assert found["fairlead_data_nodes_in_the_future", "load"] == 1
    assert found["fairlead_data_nodes_in_the_future", "price"] == 0


def test_metrics_have_a_bound() -> None:
    metrics = Metrics()
    entries = {f"e{at}": QUERY for at in range(16)}
    made(*(policy(f"p{at:02}", data=entries, filters=RULE) for at in range(33))).register(metrics)
    families = {one.name: one.samples for one in text_string_to_metric_families(metrics.exposition().decode())}
    assert {name: len(samples) for name, samples in families.items()} == {
        "fairlead_data_oldest_value_age_seconds": 512,
        "fairlead_data_nodes_without_value": 512,
        "fairlead_data_nodes_in_the_future": 512,
        "fairlead_data_failed_polls": 512,
    }


def test_the_values_of_each_node() -> None:
    report = made(policy(data={"load": QUERY | {"default": 0.5, "defaultFor": "24h"}}, filters=RULE))
    told = json.loads(json.dumps(report.values("p", "load")))
    assert told == {
        "policy": "p",
        "entry": "load",
        "source": "prometheus default: load",
        "now": "2027-01-15T08:00:05Z",
        "nodes": {
            "a": {"value": 0.25, "time": "2027-01-15T08:00:00Z", "ageSeconds": 5.0},
            "b": {"fault": "is missing"},
        },
    }
    assert report.values("p", "other") is report.values("q", "load") is None


def test_summaries_take_a_part_of_each_second_and_the_oldest_are_made_first() -> None:
    """Policies may have thousands of entries that differ in maxAge, and calls wait while they are summarized."""
    time_ns, spent = [NOW], [0.0]

    def clock() -> float:
        spent[0] += SPENT_S / 3.9  # a summary reads it twice
        return spent[0]

    nodes = Nodes()
    nodes.put(node("a"))
    data = [{"name": f"e{at}", "prometheus": {"query": "load"}, "maxAge": f"{60 + at}s"} for at in range(10)]
    serving = [policy("many", data=data, filters={"f": "true"})]
    nodes.measure(serving[0].data)
    made = DataReport(lambda: serving, nodes, dict, lambda: time_ns[0], clock)

    def known() -> list[str]:
        return [one.name for one in made.entries().get("many", ())]

    assert known() == ["e0", "e1", "e2", "e3"]
    assert known() == ["e0", "e1", "e2", "e3"]
    time_ns[0] += SECOND
    assert known() == [f"e{at}" for at in range(8)]
    time_ns[0] += SECOND
    assert known() == [f"e{at}" for at in range(10)]
    assert max(now for now, _ in made._known.values()) == time_ns[0]
    assert len({now for now, _ in made._known.values()}) == 3


def test_a_node_that_another_policy_keeps_from_the_namespace_needs_no_value() -> None:
    tenants = "namespaceObject.metadata.labels[?'node'].orValue('') == node.metadata.name"
    mine = policy(data={"load": QUERY}, match={"namespaces": ["red"]}, filters={"g": "data.load < 0.5"})
    serving, namespaces, time_ns = [mine], {"red": ns("red", {"node": "a"})}, [NOW]
    nodes = Nodes()
    nodes.measure(mine.data)
    for name in "ab":
        nodes.put(node(name))
    nodes.publish({LOAD: READING}, NOW)
    report = DataReport(lambda: serving, nodes, dict, lambda: time_ns[0], namespaces=namespaces)

    def lacking() -> list[tuple[str, ...]]:
        time_ns[0] += SECOND
        return [fault.names for fault in report.entries()["p"][0].faults]

    assert lacking() == [("b",)]
    serving.append(policy("tenants", filters={"f": tenants}))
    assert lacking() == []
    namespaces["red"] = ns("red", {"node": "b"})
    assert lacking() == [("b",)]
    namespaces["red"] = ns("red", {"node": "a"})
    assert lacking() == []
    serving.pop()
    assert lacking() == [("b",)]
