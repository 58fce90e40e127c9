"""A NodeMetricsList becomes readings: what is a number, what has a time, what is a share of the capacity."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.values.structs import from_json
from fairlead.cooperative import finish
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import NodeMetricsPoll, PollError, Reading
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.data_sources.node_metrics_reply import node_metrics_readings

SECOND = 1_000_000_000
AT, AT_NS = "2026-01-31T08:00:05Z", 1_769_846_405 * SECOND
CPU, MEMORY = NodeMetricsPoll("cpu", "Base", 30), NodeMetricsPoll("memory", "Base", 30)
CPU_RATIO, MEMORY_RATIO = NodeMetricsPoll("cpu", "Ratio", 30), NodeMetricsPoll("memory", "Ratio", 30)
ALL = (CPU, MEMORY, CPU_RATIO, MEMORY_RATIO)
_QUANTITIES = st.one_of(
    st.builds("{}{}".format, st.integers(0, 10**12), st.sampled_from(["n", "u", "m", "", "k", "Ki", "Mi", "Gi"])),
    st.sampled_from(["", "x", "1.5.5", "1e400", "9" * 320, "-1"]),
)


def nodes(**capacity: Mapping[str, str]) -> Nodes:
    made = Nodes()
    for name, amounts in capacity.items():
        made.put(NodeView(from_json("Node", {"metadata": {"name": name}, "status": {"capacity": amounts}})))
    return made


def item(name: str, timestamp: str | None = AT, **usage: str) -> dict[str, Any]:
    """As metrics-server sends it: the object's creation is the time of the reply, not of the measurement."""
    metadata = {"name": name, "creationTimestamp": "2026-01-31T08:00:20Z", "labels": {"kubernetes.io/os": "linux"}}
    return {"metadata": metadata, "timestamp": timestamp, "window": "15.03s", "usage": usage}


def reply(*items: dict[str, Any]) -> bytes:
    kind = {"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}}
    return json.dumps(kind | {"items": items}).encode()


def read(body: bytes, of: Nodes, *polls: NodeMetricsPoll) -> dict[NodeMetricsPoll, Reading]:
    return finish(node_metrics_readings(body, polls or ALL, of))


def test_one_list_answers_all_polls() -> None:
    of = nodes(a={"cpu": "4", "memory": "8Gi"}, b={"cpu": "16", "memory": "64Gi"})
    body = reply(item("a", cpu="1000000000n", memory="2Gi"), item("b", cpu="156340123n", memory="1024Ki"))
    readings = read(body, of)
    assert {poll: reading.values for poll, reading in readings.items()} == {
        CPU: {"a": 1.0, "b": 0.156340123},
        MEMORY: {"a": float(2 << 30), "b": float(1 << 20)},
        CPU_RATIO: {"a": 0.25, "b": 0.156340123 / 16},
        MEMORY_RATIO: {"a": 0.25, "b": 1 / 65536},
    }
    assert {(reading.no_number, reading.note) for reading in readings.values()} == {(frozenset(), "")}


def test_the_time_is_that_of_the_measurement_of_each_node() -> None:
    body = reply(item("a", cpu="1"), item("b", "2026-01-31T08:00:04Z", cpu="1"))
    assert read(body, nodes(), CPU)[CPU].times == {"a": AT_NS, "b": AT_NS - SECOND}


_ONE_NODE: dict[str, tuple[dict[str, str], NodeMetricsPoll, dict[str, float], set[str]]] = {
    "cores of a node that is not mirrored yet": ({"cpu": "5m"}, CPU, {"n": 0.005}, set()),
    "a resource that the kubelet does not measure": ({"memory": "1Ki"}, CPU, {}, set()),
    "text that is no quantity": ({"cpu": "much"}, CPU, {}, {"n"}),
    "text that is no quantity, as a ratio": ({"cpu": "much"}, CPU_RATIO, {}, {"n"}),
    "more than a float holds": ({"cpu": "9" * 320}, CPU, {}, {"n"}),
    "nothing used": ({"cpu": "0"}, CPU, {"n": 0.0}, set()),
}


@pytest.mark.parametrize(("usage", "poll", "values", "no_number"), _ONE_NODE.values(), ids=_ONE_NODE)
def test_the_usage_of_a_node_is(
    usage: dict[str, str], poll: NodeMetricsPoll, values: dict[str, float], no_number: set[str]
) -> None:
    reading = read(reply(item("n", **usage)), nodes(), poll)[poll]
    assert (reading.values, {*reading.no_number}) == (values, no_number)


_CAPACITIES: dict[str, tuple[Nodes, dict[str, float], set[str]]] = {
    "known": (nodes(n={"cpu": "4"}), {"n": 0.25}, set()),
    "of a node that is not mirrored yet": (nodes(), {}, set()),
    "not told": (nodes(n={"memory": "4Gi"}), {}, set()),
    "no quantity": (nodes(n={"cpu": "four"}), {}, set()),
    "zero": (nodes(n={"cpu": "0"}), {}, {"n"}),
    "less than zero": (nodes(n={"cpu": "-4"}), {}, {"n"}),
}


@pytest.mark.parametrize(("of", "values", "no_number"), _CAPACITIES.values(), ids=_CAPACITIES)
def test_with_a_capacity_the_ratio_is(of: Nodes, values: dict[str, float], no_number: set[str]) -> None:
    reading = read(reply(item("n", cpu="1")), of, CPU_RATIO)[CPU_RATIO]
    assert (reading.values, {*reading.no_number}) == (values, no_number)


@pytest.mark.parametrize("timestamp", [None, "", "yesterday", "2026-02-30T08:00:05Z"])
def test_a_value_without_a_time_is_none(timestamp: str | None) -> None:
    reading = read(reply(item("a", timestamp, cpu="1"), item("b", cpu="1")), nodes(), CPU)[CPU]
    assert (reading.values, reading.times) == ({"b": 1.0}, {"b": AT_NS})
    assert reading.note == "the metrics API gives no time for node a: its values are not used"


@pytest.mark.parametrize("items", ["[]", "null"])
def test_that_no_node_is_measured_is_noted(items: str) -> None:
    reading = read(b'{"items": %s}' % items.encode(), nodes(), CPU)[CPU]
    assert (reading.values, reading.times) == ({}, {})
    assert reading.note.startswith("the metrics API serves no nodes: metrics-server has just started, or cannot reach")


_NONSENSE = {
    "nothing": b"",
    "a page": b"<html>502 Bad Gateway</html>",
    "a list of something": b"[]",
    "an object that is no list": b'{"kind": "Status", "status": "Failure"}',
    "half of it": reply(item("a", cpu="1"))[:-9],
    "numbers for quantities": b'{"items": [{"metadata": {"name": "a"}, "usage": {"cpu": 1}}]}',
    "a node without a name": b'{"items": [{"metadata": {}, "usage": {"cpu": "1"}}]}',
    "no usage": b'{"items": [{"metadata": {"name": "a"}}]}',
    "bytes that are no text": b'{"items": [{"metadata": {"name": "\xff"}, "usage": {}}]}',
    "deeper than anything": b'{"items": [' + b"[" * 100_000,
}


@pytest.mark.parametrize("body", _NONSENSE.values(), ids=_NONSENSE)
def test_nonsense_is_a_failed_poll(body: bytes) -> None:
    with pytest.raises(PollError, match=r"^the metrics API sent no NodeMetricsList: .* v1beta1\.metrics\.k8s\.io$"):
        read(body, nodes(), CPU)


def test_a_long_list_is_read_in_pieces() -> None:
    body = reply(*(item(f"n{number}", cpu="1") for number in range(1001)))
    pauses = list(node_metrics_readings(body, [CPU], nodes()))
    assert 20 <= len(pauses) <= 22


def test_a_node_that_leaves_while_a_list_is_read_harms_nothing() -> None:
    of = nodes(**{f"n{number}": {"cpu": "2"} for number in range(100)})
    steps = node_metrics_readings(reply(*(item(f"n{number}", cpu="1") for number in range(100))), [CPU_RATIO], of)
    next(steps)
    next(steps)
    of.remove("n99")
    assert finish(steps)[CPU_RATIO].values.keys() == {f"n{number}" for number in range(99)}


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.tuples(_QUANTITIES, _QUANTITIES, st.booleans()), max_size=8))
def test_each_value_is_the_quantity_or_its_share(usage: dict[str, tuple[str, str, bool]]) -> None:
    """A name is in the values or has no number, never both; and values always have a time."""
    of = nodes(**{name: {"cpu": capacity} for name, (_, capacity, is_known) in usage.items() if is_known})
    readings = read(reply(*(item(name, cpu=used) for name, (used, _, _) in usage.items())), of, CPU, CPU_RATIO)
    for reading in readings.values():
        assert reading.values.keys().isdisjoint(reading.no_number)
        assert isinstance(reading.times, Mapping)
        assert reading.values.keys() <= reading.times.keys()
    for name, (used, capacity, is_known) in usage.items():
        amount, total = to_float(used), to_float(capacity) if is_known else None
        is_number = amount is not None and abs(amount) != float("inf")
        assert readings[CPU].values.get(name) == (amount if is_number else None)
        assert (name in readings[CPU].no_number) is not is_number
        share = readings[CPU_RATIO].values.get(name)
        if share is not None:
            assert amount is not None
            assert total
            assert share == amount / total
