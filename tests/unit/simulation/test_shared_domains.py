"""Domains that groups share, as simulations and explanations tell them."""

from typing import Any

import pytest

from fairlead.grants.entry import LedgerEntry
from fairlead.grants.ledger import OF_GROUPS, create_body
from support.policy import policy
from support.simulation.snapshot import node, pod, simulation, written

BLOCK, RACK = "example.org/block", "example.org/rack"
TOPOLOGY = {"levels": [BLOCK, RACK], "require": RACK, "group": "pod.metadata.labels['job']", "size": "2"}
RACKS = policy("racks", filters=[{"name": "one-rack", "topology": TOPOLOGY}])
OUTSIDE, NONE = f"not in the group's {RACK}", f"no {RACK} holds the group"
LABELS = {"job": "train"}


def nodes(**rooms: str) -> list[dict[str, Any]]:
    """Return nodes, whose first letter is their rack, with so many CPUs."""
    return [node(name, labels={BLOCK: "1", RACK: name[0]}, room={"cpu": room}) for name, room in rooms.items()]


def ledger(pod_name: str, rack: str, rv: str = "5") -> dict[str, Any]:
    entry = LedgerEntry(f"ml/{pod_name}", rv, "racks", domain={BLOCK: "1", RACK: rack})
    made = create_body("ml/train", {f"u-{pod_name}": entry}, OF_GROUPS)
    made["metadata"]["namespace"] = "fairlead-system"
    return made


def member(name: str, on: str = "", version: str = "5") -> dict[str, Any]:
    made = pod(name, on=on, labels=LABELS, asks={"cpu": "1"})
    made["metadata"]["resourceVersion"] = version
    return made


def reasons(there: Any, asked: dict[str, Any]) -> dict[str, list[str]]:
    return {one.name: [*one.reasons] for one in there.judge(written(asked)).nodes if one.reasons}


@pytest.mark.parametrize(
    ("other", "want"),
    [
        ([], {}),
        ([ledger("w-0", "b"), member("w-0", on="b1")], {"a1": [OUTSIDE]}),
        ([ledger("w-0", "b"), member("w-0")], {"a1": [OUTSIDE]}),
        ([ledger("w-0", "b"), member("w-0", version="6")], {}),
        ([ledger("w-0", "b")], {}),
        ([ledger("x", "b"), member("x", on="b1")], {}),
    ],
    ids=["none", "placed", "being bound", "refused since", "gone", "the pod itself"],
)
def test_what_the_ledger_of_a_group_leaves(other: list[dict[str, Any]], want: dict[str, list[str]]) -> None:
    there = simulation(*nodes(a1="4", b1="4"), *other, policies=[RACKS])
    on = "b1" if any(one["kind"] == "Pod" and one["metadata"]["name"] == "x" for one in other) else ""
    assert reasons(there, member("x", on=on)) == want


def test_room_counts_on_nodes_that_the_scheduler_leaves() -> None:
    there = simulation(*nodes(a1="1", a2="0", b1="1", b2="1"), policies=[RACKS])
    assert reasons(there, member("x")) == {"a1": [NONE]}


def test_explanations_name_the_rule() -> None:
    there = simulation(*nodes(a1="1", b1="2"), policies=[RACKS])
    asked = written(member("x"))
    rejected, passed = there.explain(asked, there.judge(asked), ["a1", "b1"])
    (rule,) = rejected.filters
    assert (rule.rule, rule.outcome, rule.reason, rejected.passed) == ("one-rack", "Rejected", NONE, False)
    assert passed.passed
    assert [one.outcome for one in passed.filters] == ["Passed"]


def test_pods_of_different_groups_are_not_taken_for_alike() -> None:
    there = simulation(*nodes(a1="4", b1="4"), ledger("w-0", "b"), member("w-0", on="b1"), policies=[RACKS])
    other = member("y")
    other["metadata"]["labels"] = {"job": "another"}
    assert reasons(there, member("x")) == {"a1": [OUTSIDE]}
    assert reasons(there, other) == {}
