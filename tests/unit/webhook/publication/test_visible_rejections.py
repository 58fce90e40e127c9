"""Pods that wait because of one policy alone, as their node affinity says: who is counted, and who is not."""

from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.cooperative import Pauses, finish
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.extender.call import CallClock
from fairlead.webhook.publication.pod_findings import manifest_of
from fairlead.webhook.publication.visible_rejections import (
    PODS_MAX,
    WaitingPods,
    is_unschedulable,
    visible_rejections,
)
from support.policy import NOW, node, policy
from support.published import required, requirement
from support.webhook import SCHEDULER, Asking

POOL, DISK, ZONE = requirement("pool", "a"), requirement("disk"), requirement("zone", "x")
ALL = [("p", [[POOL]]), ("q", [[DISK]])]
EITHER = [("p", [[POOL], [requirement("pool", "b")]])]
P = policy("p", filters={"pool": "node.metadata.labels[?'pool'].orValue('') == 'a'"})
Q = policy("q", filters={"disk": "'disk' in node.metadata.labels"})
ROOM = policy("room", filters={"room": "free['cpu'] > 100.0"}, failurePolicy="Ignore")
TAINT = [{"key": "x", "value": "y", "effect": "NoSchedule"}]


def pod(name: str, *terms: Any, cpu: str = "1", owner: str = "", **spec: Any) -> Any:
    owners = [{"apiVersion": "v1", "kind": "Job", "name": owner, "uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "ml", "uid": f"u-{name}", "ownerReferences": owners}
    containers = [{"name": "a", "resources": {"requests": {"cpu": cpu}}}]
    whole = {"schedulerName": SCHEDULER, "containers": containers, **spec}
    return from_json(
        "Pod", {"metadata": metadata, "spec": {**whole, **({"affinity": required(*terms)} if terms else {})}}
    )


def counted(nodes: Sequence[NodeView], pods: Sequence[Any], published: Any, *policies: Any) -> Mapping[str, int]:
    asking, waiting = Asking(policies, nodes), WaitingPods()
    for one in pods:
        waiting.add(one, lambda each: (manifest_of(each), published))
    return finish(visible_rejections(asking.serving, waiting, lambda: CallClock(NOW, perf_counter_ns, 0)))


class Case(NamedTuple):
    nodes: Sequence[NodeView]
    pods: Sequence[Any]
    expected: Mapping[str, int]
    policies: Sequence[Any] = (P,)
    published: Any = ALL[:1]


THEIRS, OURS = node("n", labels={"pool": "b"}), node("m", labels={"pool": "a"}, used=8.0)
CASES = {
    "a node with room that p rejects": Case([THEIRS, OURS], [pod("x", [POOL])], {"p": 1}),
    "two pods": Case([THEIRS], [pod("x", [POOL]), pod("y", [POOL])], {"p": 2}),
    "pods of one controller": Case([THEIRS], [pod(str(at), [POOL], owner="j") for at in range(100)], {"p": 100}),
    "no room on it": Case([THEIRS], [pod("x", [POOL], cpu="9")], {}),
    "a taint keeps it from it": Case([node("n", labels={"pool": "b"}, taints=TAINT)], [pod("x", [POOL])], {}),
    "its own selector does": Case([THEIRS], [pod("x", [POOL], nodeSelector={"zone": "x"})], {}),
    "its own terms do": Case([THEIRS], [pod("x", [ZONE, POOL])], {}),
    "its own terms select it": Case([node("n", labels={"pool": "b", "zone": "x"})], [pod("x", [ZONE, POOL])], {"p": 1}),
    "one of its own terms does": Case(
        [node("n", labels={"disk": "x", "zone": "x"})], [pod("x", [ZONE, POOL], [requirement("y"), POOL])], {"p": 1}
    ),
    "another node passes and has room, so the scheduler asks": Case(
        [THEIRS, node("m", labels={"pool": "a"})], [pod("x", [POOL])], {}
    ),
    "a second policy rejects it, too": Case([THEIRS], [pod("x", [POOL, DISK])], {}, (P, Q), ALL),
    "a second policy accepts it": Case(
        [node("n", labels={"pool": "b", "disk": "x"})], [pod("x", [POOL, DISK])], {"p": 1}, (P, Q), ALL
    ),
    "each rejects another node alone": Case(
        [node("n", labels={"pool": "b", "disk": "x"}), node("m", labels={"pool": "a"})],
        [pod("x", [POOL, DISK])],
        {},
        (P, Q),
        ALL,
    ),
    "one rejects one node, and both the other": Case(
        [node("m", labels={"pool": "b", "disk": "x"}), THEIRS], [pod("x", [POOL, DISK])], {"p": 1}, (P, Q), ALL
    ),
    "a second policy that publishes nothing rejects it": Case([THEIRS], [pod("x", [POOL])], {}, (P, ROOM)),
    "its rule accepts the node by now": Case(
        [node("n", labels={"pool": "b", "disk": "x"})], [pod("x", [POOL])], {}, (Q,)
    ),
    "its affinity selects a node that another filter rejects, so the scheduler asks": Case(
        [THEIRS, node("m", labels={"pool": "a"})],
        [pod("x", [POOL])],
        {},
        (
            policy(
                "p", filters={"pool": "node.metadata.labels[?'pool'].orValue('') == 'a'", "room": "free['cpu'] > 9.0"}
            ),
        ),
    ),
    "no rule rejects one of the nodes": Case(
        [node("n", labels={"pool": "b", "disk": "x"}), node("m", labels={"pool": "b"})],
        [pod("x", [POOL])],
        {},
        (Q,),
    ),
    "alternatives, of which none is there": Case(
        [node("n", labels={"pool": "c"})],
        [pod("x", [POOL], [requirement("pool", "b")])],
        {"p": 1},
        (policy("p", filters={"pool": "node.metadata.labels[?'pool'].orValue('') in ['a', 'b']"}),),
        EITHER,
    ),
    "no nodes at all": Case([], [pod("x", [POOL])], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_pods_that_are_counted(case: str) -> None:
    nodes, pods, expected, policies, published = CASES[case]
    assert counted(nodes, pods, published, *policies) == expected


def test_of_many_pods_some_are_looked_at_and_there_are_pauses() -> None:
    asking, waiting = Asking([P], [node(f"n{at}", labels={"pool": "b"}) for at in range(300)]), WaitingPods()
    for at in range(PODS_MAX + 10):
        waiting.add(pod(str(at), [POOL]), lambda each: (manifest_of(each), ALL[:1]))
    pauses = Pauses(visible_rejections(asking.serving, waiting, lambda: CallClock(NOW, perf_counter_ns, 0)))
    assert len([*pauses]) >= 3 * PODS_MAX
    assert pauses.result == {"p": PODS_MAX}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}, True),
        ({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}, False),
        ({"type": "PodScheduled", "status": "True", "reason": ""}, False),
    ],
)
def test_pods_that_found_no_node(condition: Mapping[str, str], *, expected: bool) -> None:
    made = from_json("Pod", {"status": {"conditions": [condition]}})
    assert is_unschedulable(made) is expected
