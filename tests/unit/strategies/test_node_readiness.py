"""nodeReadiness, as a table: what is asked for, how the node is, what comes of it."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fairlead.strategies.builtin import node_readiness
from fairlead.strategies.builtin.node_readiness import WAITING
from fairlead.strategies.builtin.node_readiness_params import NodeReadiness
from fairlead.strategies.contract import (
    PASS,
    ControllerRef,
    NodeCondition,
    PodsRead,
    Reads,
    Reject,
    Stamped,
    Unknown,
    Verdict,
)
from support.strategies.facts import Node, Notes, OnNode, Pod
from support.strategies.watched import WatchedNode

S = 1_000_000_000
NOW = 1_800_000_000 * S

CILIUM = {"daemonSets": [{"namespace": "kube-system", "name": "cilium"}]}
CILIUM_IF_ANY = {"daemonSets": [{"namespace": "kube-system", "name": "cilium", "whenAbsent": "Pass"}]}
FACADES = {"name": "facades", "namespace": "images", "selector": {"matchLabels": {"part": "facade"}}}
NETWORK = {"conditions": [{"type": "NetworkReady"}]}
WARM = {"labels": [{"key": "warm"}]}
WARM_YES = {"labels": [{"key": "warm", "value": "yes"}]}
CHECKED = {"annotations": [{"key": "checked"}]}
CHECKED_YES = {"annotations": [{"key": "checked", "value": "yes"}]}
HOLD = {"holdOff": "20s"}
CHOOSE = {"choose": {"podAnnotation": "needs"}}
STRANGER = Unknown("choose", "names something that is no item of the rule")
ALL = CILIUM | {"pods": [FACADES]} | NETWORK | WARM | CHECKED

BARE = Node()
PICKY = Pod(annotations={"needs": "x"})
NO_CILIUM = Reject("daemon cilium is not ready")
NO_FACADES = Reject("pods facades are not ready")
NO_NETWORK = Reject("condition NetworkReady is not True")


def cilium(**changed: Any) -> OnNode:
    usual: dict[str, Any] = {"controller": ControllerRef("DaemonSet", "cilium"), "ready_since": NOW - 60 * S}
    return OnNode(**usual | changed)


def facade(**changed: Any) -> OnNode:
    usual: dict[str, Any] = {"namespace": "images", "labels": {"part": "facade"}, "ready_since": NOW - 60 * S}
    return OnNode(**usual | changed)


def network(status: str = "True", since: int | None = NOW - 60 * S) -> dict[str, NodeCondition]:
    return {"NetworkReady": NodeCondition(status, since)}


@dataclass(frozen=True)
class Case:
    params: dict[str, Any]
    want: Verdict
    node: Node = BARE
    needs: str | None = None
    """The pod's own annotation."""


def facades(**changed: Any) -> dict[str, Any]:
    return {"pods": [FACADES | changed]}


def labelled(since: int | None, **labels: str) -> Node:
    stamps: dict[tuple[Stamped, str], int] = {} if since is None else {("labels", key): since for key in labels}
    return Node(labels=labels, stamps=stamps)


CASES = {
    # daemonSets
    "a daemon's pod that is ready passes": Case(CILIUM, PASS, Node(pods=[cilium()])),
    "a node without the daemon's pod is refused": Case(CILIUM, NO_CILIUM),
    "a pod that is not Ready is refused": Case(CILIUM, NO_CILIUM, Node(pods=[cilium(ready=False)])),
    "a pod that is Ready and still Pending is refused": Case(CILIUM, NO_CILIUM, Node(pods=[cilium(phase="Pending")])),
    "a pod that is Ready and has ended is refused": Case(CILIUM, NO_CILIUM, Node(pods=[cilium(phase="Failed")])),
    "a pod without a phase is refused": Case(CILIUM, NO_CILIUM, Node(pods=[cilium(phase="")])),
    "a pod that is being deleted is refused": Case(CILIUM, NO_CILIUM, Node(pods=[cilium(deleting=True)])),
    "beside a pod that goes, the one that came in its place counts": Case(
        CILIUM, PASS, Node(pods=[cilium(deleting=True), cilium(uid="u2")])
    ),
    "a DaemonSet of the name in another namespace is another one": Case(
        CILIUM, NO_CILIUM, Node(pods=[cilium(namespace="default")])
    ),
    "a pod of another DaemonSet is no help": Case(
        CILIUM, NO_CILIUM, Node(pods=[cilium(controller=ControllerRef("DaemonSet", "calico"))])
    ),
    "a controller of the name that is no DaemonSet is no help": Case(
        CILIUM, NO_CILIUM, Node(pods=[cilium(controller=ControllerRef("ReplicaSet", "cilium"))])
    ),
    "a pod that only has the name and no controller is no help": Case(
        CILIUM, NO_CILIUM, Node(pods=[cilium(controller=None, name="cilium")])
    ),
    "whenAbsent Pass lets a node without the pod through": Case(CILIUM_IF_ANY, PASS),
    "whenAbsent Pass refuses while the pod is there and not ready": Case(
        CILIUM_IF_ANY, NO_CILIUM, Node(pods=[cilium(ready=False)])
    ),
    "whenAbsent Pass refuses while the pod that is there is being deleted": Case(
        CILIUM_IF_ANY, NO_CILIUM, Node(pods=[cilium(deleting=True)])
    ),
    "what is not needed has no hold-off": Case(CILIUM_IF_ANY | HOLD, PASS),
    # pods
    "a pod that the selector finds passes": Case(facades(), PASS, Node(pods=[facade()])),
    "a pod without the label is no help": Case(facades(), NO_FACADES, Node(pods=[facade(labels={})])),
    "a pod of another namespace is no help": Case(facades(), NO_FACADES, Node(pods=[facade(namespace="ml")])),
    "one ready pod is not two": Case(facades(minReady=2), NO_FACADES, Node(pods=[facade(), facade(ready=False)])),
    "two ready pods are two": Case(facades(minReady=2), PASS, Node(pods=[facade(), facade()])),
    "with whenAbsent Pass no pods at all pass, however many are wanted": Case(
        facades(minReady=2, whenAbsent="Pass"), PASS, Node(pods=[cilium()])
    ),
    "with whenAbsent Pass one pod of two is refused": Case(
        facades(minReady=2, whenAbsent="Pass"), NO_FACADES, Node(pods=[facade()])
    ),
    "the hold-off counts from when there were enough": Case(
        facades(minReady=2) | HOLD,
        Reject(WAITING, until=NOW + 15 * S),
        Node(pods=[facade(ready_since=NOW - since * S) for since in (1, 5, 60)]),
    ),
    # conditions
    "a condition that is True passes": Case(NETWORK, PASS, Node(conditions=network())),
    "a condition that is not there is refused": Case(NETWORK, NO_NETWORK),
    "a condition that is Unknown is refused": Case(NETWORK, NO_NETWORK, Node(conditions=network("Unknown"))),
    "a condition in the wrong case is refused": Case(NETWORK, NO_NETWORK, Node(conditions=network("true"))),
    "a condition that must be False and is passes": Case(
        {"conditions": [{"type": "Sick", "status": "False"}]},
        PASS,
        Node(conditions={"Sick": NodeCondition("False", 0)}),
    ),
    "a condition that must be False and is not there is refused": Case(
        {"conditions": [{"type": "Sick", "status": "False"}]}, Reject("condition Sick is not False")
    ),
    # labels and annotations
    "a label that is there passes": Case(WARM, PASS, labelled(0, warm="")),
    "a label that is not there is refused": Case(WARM, Reject("label warm is missing")),
    "a label with the value passes": Case(WARM_YES, PASS, labelled(0, warm="yes")),
    "a label with another value is refused": Case(WARM_YES, Reject("label warm is not yes"), labelled(0, warm="no")),
    "a label that must be empty says so": Case(
        {"labels": [{"key": "warm", "value": ""}]}, Reject('label warm is not ""'), labelled(0, warm="no")
    ),
    "an annotation is no label": Case(WARM, Reject("label warm is missing"), Node(annotations={"warm": "yes"})),
    "an annotation that is there passes": Case(CHECKED, PASS, Node(annotations={"checked": "x"})),
    "an annotation that is not there is refused": Case(CHECKED, Reject("annotation checked is missing")),
    "an annotation with the value passes": Case(CHECKED_YES, PASS, Node(annotations={"checked": "yes"})),
    "an annotation with another value is refused": Case(
        CHECKED_YES,
        Reject("annotation checked does not have the required value"),
        Node(annotations={"checked": ""}),
    ),
    # several
    "the first that is missing is said, in the order of the lists": Case(ALL, NO_CILIUM),
    "what is there is not said": Case(ALL, NO_FACADES, Node(pods=[cilium()])),
    "within a list the order is the policy's": Case(
        {"labels": [{"key": "b"}, {"key": "a"}]}, Reject("label b is missing")
    ),
    "all there passes": Case(
        ALL,
        PASS,
        Node(labels={"warm": ""}, annotations={"checked": ""}, pods=[cilium(), facade()], conditions=network()),
    ),
    # hold-off
    "a node waits until the hold-off is over": Case(
        NETWORK | HOLD, Reject(WAITING, until=NOW + 1), Node(conditions=network(since=NOW - 20 * S + 1))
    ),
    "a node is free in the moment the hold-off is over": Case(
        NETWORK | HOLD, PASS, Node(conditions=network(since=NOW - 20 * S))
    ),
    "the last that became ready counts": Case(
        NETWORK | CILIUM | HOLD,
        Reject(WAITING, until=NOW + 10 * S),
        Node(conditions=network(), pods=[cilium(ready_since=NOW - 10 * S)]),
    ),
    "a time from the future counts as now": Case(
        NETWORK | HOLD, Reject(WAITING, until=NOW + 20 * S), Node(conditions=network(since=NOW + 3600 * S))
    ),
    "without a hold-off a time from the future does not matter": Case(
        NETWORK, PASS, Node(conditions=network(since=NOW + 3600 * S))
    ),
    "what is missing is said before what is waited for": Case(
        NETWORK | WARM | HOLD, Reject("label warm is missing"), Node(conditions=network(since=NOW))
    ),
    "a label counts from when it was seen": Case(
        WARM | HOLD, Reject(WAITING, until=NOW + 15 * S), labelled(NOW - 5 * S, warm="yes")
    ),
    "a label that was there when the process came counts from the node's creation": Case(
        WARM | HOLD, PASS, labelled(NOW - 86400 * S, warm="yes")
    ),
    "an annotation counts from when it was seen": Case(
        CHECKED_YES | HOLD,
        Reject(WAITING, until=NOW + 15 * S),
        Node(annotations={"checked": "yes"}, stamps={("annotations", "checked"): NOW - 5 * S}),
    ),
    "a condition without a time cannot be waited for": Case(
        NETWORK | HOLD,
        Unknown("the time of condition NetworkReady", "is missing"),
        Node(conditions=network(since=None)),
    ),
    "without a hold-off a time that is not there does not matter": Case(
        NETWORK, PASS, Node(conditions=network(since=None))
    ),
    "a label without a time cannot be waited for": Case(
        WARM | HOLD, Unknown("the time of label warm", "is missing"), labelled(None, warm="yes")
    ),
    "pods with a time are counted before one without": Case(
        CILIUM | HOLD, PASS, Node(pods=[cilium(ready_since=None), cilium()])
    ),
    "too few pods with a time cannot be waited for": Case(
        facades(minReady=2) | HOLD,
        Unknown("the time of pods facades", "is missing"),
        Node(pods=[facade(ready_since=None), facade()]),
    ),
    "who waits for one thing waits, whatever is not known of another": Case(
        NETWORK | WARM | HOLD,
        Reject(WAITING, until=NOW + 20 * S),
        Node(conditions=network(since=NOW), labels={"warm": ""}),
    ),
    "what is missing is said, whatever is not known of another": Case(
        NETWORK | WARM | HOLD, Reject("label warm is missing"), Node(conditions=network(since=None))
    ),
    # choose
    "a pod without the annotation needs all": Case(ALL | CHOOSE, NO_CILIUM),
    "a pod needs what it names": Case(ALL | CHOOSE, PASS, Node(conditions=network()), needs="NetworkReady"),
    "a pod is refused for what it names": Case(
        ALL | CHOOSE, NO_NETWORK, Node(pods=[cilium()]), needs="cilium,NetworkReady"
    ),
    "the order is the policy's and not the pod's": Case(ALL | CHOOSE, NO_CILIUM, needs="NetworkReady,cilium"),
    "spaces, empty names and repetitions do not matter": Case(
        ALL | CHOOSE, NO_NETWORK, Node(pods=[cilium()]), needs=" ,, cilium ,cilium,\tNetworkReady\n,"
    ),
    "a pod that names nothing needs nothing": Case(ALL | CHOOSE, PASS, needs=" , "),
    "a name that no item has cannot be decided": Case(ALL | CHOOSE, STRANGER, needs="cilium,celium"),
    "a name in the wrong case is no item": Case(ALL | CHOOSE, STRANGER, needs="Cilium"),
    "a name that is far too long is shortened": Case(ALL | CHOOSE, STRANGER, needs="x" * 250_000),
    "only what a pod names is waited for": Case(
        NETWORK | WARM | HOLD | CHOOSE, PASS, labelled(0, warm=""), needs="warm"
    ),
    "what a pod names is waited for": Case(
        NETWORK | WARM | HOLD | CHOOSE,
        Reject(WAITING, until=NOW + 20 * S),
        Node(conditions=network(since=NOW)),
        needs="NetworkReady",
    ),
    "without choose the annotation means nothing": Case(ALL, NO_CILIUM, needs="NetworkReady"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_node_readiness(case: Case) -> None:
    pod = Pod(annotations={} if case.needs is None else {"needs": case.needs})
    rule = node_readiness.compile_filter(NodeReadiness.model_validate(case.params))
    assert rule.for_pod(pod)(case.node, NOW) == case.want
    assert rule.for_pod(pod)(case.node, NOW, Notes()) == case.want


def test_a_verdict_that_needs_no_time_is_made_once() -> None:
    one = node_readiness.compile_filter(NodeReadiness.model_validate(CILIUM)).for_pod(Pod())
    assert one(Node(), NOW) is one(Node(name="n2"), NOW)
    assert one(Node(pods=[cilium()]), NOW) is PASS


def test_without_a_trace_nothing_is_asked_behind_the_first_that_is_missing() -> None:
    rule = node_readiness.compile_filter(NodeReadiness.model_validate(CILIUM | NETWORK))
    blind = WatchedNode(Node(), Reads(pods=rule.reads.pods))
    assert rule.for_pod(Pod())(blind, NOW) == NO_CILIUM


def test_reads_name_what_is_used_and_no_more() -> None:
    plain = node_readiness.compile_filter(NodeReadiness.model_validate(ALL))
    assert plain.reads == Reads(
        node=frozenset(
            {
                ("status", "conditions", "NetworkReady"),
                ("metadata", "labels", "warm"),
                ("metadata", "annotations", "checked"),
            }
        ),
        pods=frozenset({PodsRead("kube-system", ControllerRef("DaemonSet", "cilium")), PodsRead("images")}),
    )
    timed = node_readiness.compile_filter(NodeReadiness.model_validate(WARM | HOLD | CHOOSE))
    assert timed.reads == Reads(
        pod=frozenset({("metadata", "annotations", "needs")}),
        node=frozenset({("metadata", "labels", "warm")}),
        now=True,
    )
    assert not plain.resolvable, "evicting pods does not start a daemon"


def test_reasons_are_all_that_may_be_said_in_the_order_of_the_items() -> None:
    rule = node_readiness.compile_filter(NodeReadiness.model_validate(ALL | HOLD))
    assert rule.reasons == (
        "daemon cilium is not ready",
        "pods facades are not ready",
        "condition NetworkReady is not True",
        "label warm is missing",
        "annotation checked is missing",
        "waiting after becoming ready",
    )


def test_a_trace_lists_every_item_also_behind_the_first_that_is_missing() -> None:
    notes = Notes()
    node = Node(conditions=network(since=NOW - S), labels={"warm": "yes"}, stamps={("labels", "warm"): 7})
    one = node_readiness.compile_filter(NodeReadiness.model_validate(ALL | HOLD)).for_pod(Pod())
    assert one(node, NOW, notes) == NO_CILIUM
    assert notes.items == {
        "cilium": {"pods": 0, "ready": 0, "minReady": 1, "whenAbsent": "Reject", "state": "missing"},
        "facades": {"pods": 0, "ready": 0, "minReady": 1, "whenAbsent": "Reject", "state": "missing"},
        "NetworkReady": {"status": "True", "wanted": "True", "since": NOW - S},
        "warm": {"value": "yes", "wanted": None, "since": 7},
        "checked": {"value": None, "wanted": None, "state": "missing"},
    }
    assert notes.values == {"now": NOW, "holdOff": 20 * S, "since": NOW - S, "until": NOW + 19 * S}


def test_a_trace_says_why_choose_cannot_be_followed() -> None:
    notes = Notes()
    one = node_readiness.compile_filter(NodeReadiness.model_validate(ALL | CHOOSE)).for_pod(
        Pod(annotations={"needs": "x" * 250_000})
    )
    one(Node(), NOW, notes)
    assert notes.values == {"choose": f"choose names '{'x' * 62}…', which is no item of the rule"}


@settings(derandomize=True, database=None)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.integers(1, 8), st.integers(0, 200))
def test_the_node_is_free_exactly_when_enough_pods_have_held_for_long_enough(
    ready: list[int], least: int, now: int
) -> None:
    params = NodeReadiness.model_validate(facades(minReady=least) | HOLD)
    node = Node(pods=[facade(ready_since=since * S) for since in ready])
    verdict = node_readiness.compile_filter(params).for_pod(Pod())(node, now * S)
    enough = len(ready) >= least
    held = enough and min(sorted(ready)[least - 1], now) + 20 <= now
    assert (verdict is PASS) == held
    assert (verdict == NO_FACADES) == (not enough)


_BAD: dict[str, tuple[dict[str, Any], tuple[str | int, ...], str]] = {
    "nothing to wait for": (HOLD, (), "give at least one item in daemonSets, pods, conditions, labels or annotations"),
    "lists that are empty": ({"labels": [], "pods": []}, (), "give at least one item"),
    "one name in two lists": (WARM | {"annotations": [{"key": "warm"}]}, (), "may be used in one list only"),
    "one name twice in a list": ({"labels": [{"key": "a"}, {"key": "a"}]}, ("labels", 1), "key 'a' is a duplicate"),
    "a daemon in no namespace": ({"daemonSets": [{"name": "x"}]}, ("daemonSets", 0, "namespace"), "required"),
    "a status that YAML took for a boolean": (
        {"conditions": [{"type": "X", "status": True}]}, ("conditions", 0, "status"), "'True', 'False' or 'Unknown'",
    ),
    "a hold-off that is too long": (WARM | {"holdOff": "61m"}, ("holdOff",), "from 0s to 1h"),
    "pods without a selector": (
        {"pods": [{"name": "x", "namespace": "y"}]}, ("pods", 0, "selector"), "required",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("params", "path", "want"), _BAD.values(), ids=_BAD)
def test_what_is_written_wrongly_is_refused_with_its_place(
    params: dict[str, Any], path: tuple[str | int, ...], want: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        NodeReadiness.model_validate(params)
    faults = [fault for error in refused.value.errors() for fault in _faults(error)]
    assert [said for where, said in faults if where == path and want in said], faults


def _faults(error: Any) -> list[tuple[tuple[str | int, ...], str]]:
    failed = error.get("ctx", {}).get("failed")
    if failed is None:
        return [(error["loc"], error["msg"])]
    return [((*error["loc"], *where), said) for where, said in failed]
