"""Whether a node takes a pod, by what kube-scheduler itself looks at."""

from typing import Any

import pytest

from support.simulation.snapshot import Object, judged, node, pod, unfit

GPU = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
TAINTED = "node(s) had untolerated taint(s) (gpu=a100:NoSchedule)"
CORDONED = "node(s) were unschedulable (it is cordoned)"
CORDON = "node.kubernetes.io/unschedulable"


def _affinity(*terms: dict[str, Any]) -> Object:
    required = {"nodeSelectorTerms": [*terms]}
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def _needs(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": [*values]}


@pytest.mark.parametrize(
    ("asked", "there", "want"),
    {
        "nothing is asked for": (pod(), node(), []),
        "as much as there is": (pod(asks={"cpu": "8", "memory": "32Gi"}), node(), []),
        "a little more": (
            pod(asks={"cpu": "8001m", "memory": "33Gi"}),
            node(),
            ["Insufficient cpu (requests 8.001, 8 is free)", "Insufficient memory (requests 33Gi, 32Gi is free)"],
        ),
        "a device that the node has": (pod(asks={"x.io/gpu": "1"}), node(room={"x.io/gpu": "1"}), []),
        "a device that the node has not": (
            pod(asks={"x.io/gpu": "1"}),
            node(),
            ["Insufficient x.io/gpu (requests 1, 0 is free)"],
        ),
        "none of what the node has not": (pod(asks={"x.io/gpu": "0"}), node(), []),
        "a node for no pods": (pod(), node(room={"pods": "0"}), ["Too many pods (no capacity for another pod)"]),
        "a taint": (pod(), node(taints=[GPU]), [TAINTED]),
        "a taint that only prefers": (pod(), node(taints=[GPU | {"effect": "PreferNoSchedule"}]), []),
        "a taint that evicts": (
            pod(),
            node(taints=[GPU | {"effect": "NoExecute", "value": ""}]),
            ["node(s) had untolerated taint(s) (gpu:NoExecute)"],
        ),
        "the taint is tolerated by value": (pod(tolerations=[{"key": "gpu", "value": "a100"}]), node(taints=[GPU]), []),
        "another value": (pod(tolerations=[{"key": "gpu", "value": "t4"}]), node(taints=[GPU]), [TAINTED]),
        "by key": (pod(tolerations=[{"key": "gpu", "operator": "Exists"}]), node(taints=[GPU]), []),
        "everything is tolerated": (pod(tolerations=[{"operator": "Exists"}]), node(taints=[GPU]), []),
        "no key and no Exists": (
            pod(tolerations=[{"operator": "Equal", "value": "a100"}]),
            node(taints=[GPU]),
            [TAINTED],
        ),
        "another effect": (
            pod(tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]),
            node(taints=[GPU]),
            [TAINTED],
        ),
        "the node is cordoned": (
            pod(),
            node(unschedulable=True, taints=[{"key": CORDON, "effect": "NoSchedule"}]),
            [CORDONED],
        ),
        "that is tolerated": (
            pod(tolerations=[{"key": CORDON, "operator": "Exists"}]),
            node(unschedulable=True, taints=[{"key": CORDON, "effect": "NoSchedule"}]),
            [],
        ),
        "the pod names the node": (pod(on="n1"), node(), []),
        "the pod names another": (
            pod(on="n2"),
            node(),
            ["node(s) didn't match the requested node name (spec.nodeName is n2)"],
        ),
        "another scheduler has put it elsewhere": (
            pod(on="n2", status={"conditions": [{"type": "PodScheduled", "status": "True"}]}),
            node(),
            [],
        ),
        "the selector matches": (pod(nodeSelector={"gpu": "a100"}), node(labels={"gpu": "a100"}), []),
        "the selector does not": (
            pod(nodeSelector={"gpu": "a100"}),
            node(labels={"gpu": "t4"}),
            ["node(s) didn't match Pod's node affinity/selector (gpu=a100)"],
        ),
    }.values(),
)
def test_a_node_takes_a_pod_or_says_why_not(asked: Object, there: Object, want: list[str]) -> None:
    assert unfit(asked, there).get("n1", []) == want


@pytest.mark.parametrize(
    ("needed", "is_matched"),
    {
        "one of several": (_needs("zone", "In", "a", "b"), True),
        "none of several": (_needs("zone", "In", "b", "c"), False),
        "not one of several": (_needs("zone", "NotIn", "b"), True),
        "not this one": (_needs("zone", "NotIn", "a"), False),
        "a label that is not there is none of several": (_needs("rack", "NotIn", "a"), True),
        "nor any of them": (_needs("rack", "In", ""), False),
        "there": (_needs("zone", "Exists"), True),
        "not there": (_needs("zone", "DoesNotExist"), False),
        "absent": (_needs("rack", "DoesNotExist"), True),
        "more": (_needs("size", "Gt", "7"), True),
        "not more": (_needs("size", "Gt", "8"), False),
        "less": (_needs("size", "Lt", "9"), True),
        "not less": (_needs("size", "Lt", "8"), False),
        "more than what is not a number": (_needs("zone", "Gt", "1"), False),
        "what nobody knows": (_needs("zone", "Like", "a"), False),
    }.values(),
)
def test_affinity_is_read_as_the_scheduler_reads_it(needed: dict[str, Any], is_matched: bool) -> None:
    asked = _affinity({"matchExpressions": [needed]})
    assert (not unfit(asked, node(labels={"zone": "a", "size": "8"}))) is is_matched


def test_terms_of_affinity_are_alternatives_and_what_stands_in_one_is_needed_together() -> None:
    zone, size = _needs("zone", "In", "a"), _needs("size", "Gt", "9")
    by_name = _needs("metadata.name", "In", "n3")
    asked = _affinity({"matchExpressions": [zone, size]}, {"matchFields": [by_name]}, {})
    nodes = [node("n1", labels={"zone": "a", "size": "8"}), node("n2", labels={"zone": "a", "size": "10"}), node("n3")]
    said = "node(s) didn't match Pod's node affinity/selector (zone=a and size > 9 or metadata.name=n3)"
    assert unfit(asked, *nodes) == {"n1": [said]}


@pytest.mark.parametrize(
    ("mine", "its", "are_apart"),
    {
        "the same": ({"hostPort": 80}, {"hostPort": 80}, False),
        "another port": ({"hostPort": 80}, {"hostPort": 81}, True),
        "another protocol": ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        "another address": ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        "one wants all addresses": ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        "none of the host's": ({"containerPort": 80}, {"hostPort": 80}, True),
    }.values(),
)
def test_a_port_of_the_host_is_taken_once(mine: Object, its: Object, are_apart: bool) -> None:
    found = unfit(pod(ports=[mine]), node(), pod("web", on="n1", ports=[its]))
    said = "node(s) didn't have free ports for the requested pod ports (TCP 80 is taken by ml/web)"
    assert found == ({} if are_apart else {"n1": [said]})


def test_a_pod_on_the_network_of_the_host_takes_the_ports_of_its_containers() -> None:
    found = unfit(
        pod(ports=[{"containerPort": 80}], hostNetwork=True), node(), pod("web", on="n1", ports=[{"hostPort": 80}])
    )
    assert [*found] == ["n1"]


def test_what_runs_on_a_node_has_its_room_and_what_has_ended_does_not() -> None:
    big = {"cpu": "6"}
    there = [pod("a", on="n1", asks=big), pod("b", on="n2", asks=big, status={"phase": "Succeeded"})]
    assert unfit(pod(asks=big), node("n1"), node("n2"), *there) == {"n1": ["Insufficient cpu (requests 6, 2 is free)"]}


def test_what_a_pod_does_not_ask_for_may_be_overdrawn() -> None:
    there = [node("n1", room={"cpu": "1"}), pod("a", on="n1", asks={"cpu": "2"})]
    assert unfit(pod(asks={"cpu": "0", "memory": "1Gi"}), *there) == {}
    assert unfit(pod(asks={"cpu": "1m"}), *there) == {"n1": ["Insufficient cpu (requests 1m, 0 is free)"]}


def test_a_pod_that_is_placed_is_judged_as_if_it_were_not() -> None:
    big = pod("big", on="n1", asks={"cpu": "6"}, ports=[{"hostPort": 80}])
    there = [node("n1"), node("n2"), big, pod("other", on="n2", asks={"cpu": "6"})]
    assert unfit(big, *there) == {"n2": ["Insufficient cpu (requests 6, 2 is free)"]}


def test_what_is_not_simulated_is_named_where_a_pod_asks_for_it() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "v"}}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    term = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
    asked = pod(
        volumes=[claim],
        topologySpreadConstraints=[spread],
        affinity={"podAntiAffinity": term},
        resourceClaims=[{"name": "gpu"}],
    )
    assert judged(asked, node()).unsimulated == (
        "affinity between pods",
        "topology spread",
        "volumes",
        "resource claims",
    )
    assert judged(pod(), node()).unsimulated == ()
