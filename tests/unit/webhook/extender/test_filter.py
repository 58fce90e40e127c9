"""filter: who passes, what is said of the others, and in which bytes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fairlead.webhook.extender.call import FailurePolicy, VerbReply
from support.policy import node, ns, placed, policy
from support.webhook import Asking, body, go, names_of

GPU = {"expression": "node.metadata.labels[?'gpu'].hasValue()", "reason": "no GPU"}
ROOM = {"expression": "free['cpu'] >= 2.0", "reason": "full", "resolvable": True}
NODES = [node("a", labels={"gpu": "x"}), node("b"), node("c", labels={"gpu": "x"}, used=7.0)]
ALL = ["a", "b", "c"]


def reply(answer: VerbReply) -> dict[str, Any]:
    assert answer.status == 200
    found: dict[str, Any] = go.decode("filter", answer.body)
    return found


CASES: dict[str, tuple[Mapping[str, Any], dict[str, Any], Sequence[str], list[str], Any, Any]] = {
    # the policy, the caller, the nodes; who passes, FailedNodes, FailedAndUnresolvableNodes
    "nobody is refused": ({"filters": {"f": "true"}}, {}, ALL, ALL, None, None),
    "reasons are not sent while a node is left": ({"filters": {"f": GPU}}, {}, ALL, ["a", "c"], None, None),
    "unless another entry comes after": (
        {"filters": {"f": GPU}},
        {"ignore_entry": True},
        ALL,
        ["a", "c"],
        None,
        {"b": "no GPU"},
    ),
    "or others write the configuration": (
        {"filters": {"f": GPU}},
        {"wants_all_reasons": True},
        ALL,
        ["a", "c"],
        None,
        {"b": "no GPU"},
    ),
    "they are when no node is left": ({"filters": {"f": GPU}}, {}, ["b"], [], None, {"b": "no GPU"}),
    "resolvable is unresolvable where the scheduler cannot evict for it": (
        {"filters": {"f": ROOM}},
        {},
        ["c"],
        [],
        None,
        {"c": "full"},
    ),
    "and resolvable where it can": ({"filters": {"f": ROOM}}, {"resolvable": True}, ["c"], [], {"c": "full"}, None),
    "both kinds": (
        {"filters": {"f": GPU, "g": ROOM}},
        {"resolvable": True},
        ["b", "c"],
        [],
        {"c": "full"},
        {"b": "no GPU"},
    ),
    "a node that is not known": ({"filters": {"f": "true"}}, {}, ["z"], [], None, {"z": "node is not known yet"}),
    "and nobody filters": ({"scores": {"s": "1.0"}}, {}, ["z"], ["z"], None, None),
    "and the policy is for others": (
        {"filters": {"f": "true"}, "match": {"namespaces": ["other"]}},
        {},
        ["z"],
        ["z"],
        None,
        None,
    ),
    "a single node": ({"filters": {"f": GPU}}, {}, ["a"], ["a"], None, None),
    "no nodes": ({"filters": {"f": GPU}}, {}, [], [], None, None),
    "a namespace that is not known": (
        {"filters": {"f": "true"}, "match": {"namespaceSelector": {"matchLabels": {"team": "ml"}}}},
        {},
        ["a"],
        [],
        None,
        {"a": "cannot tell whether policy p applies to this pod"},
    ),
    "a policy that is off": ({"filters": {"f": "false"}, "mode": "Disabled"}, {}, ALL, ALL, None, None),
}


@pytest.mark.parametrize("case", CASES)
def test_who_passes_and_what_is_said(case: str) -> None:
    spec, caller, asked, want, want_failed, want_unresolvable = CASES[case]
    asking = Asking([policy(**spec)], NODES, **caller)
    found = reply(asking.filter(body(asked)))
    assert found == {
        "Nodes": None,
        "NodeNames": want,
        "FailedNodes": want_failed,
        "FailedAndUnresolvableNodes": want_unresolvable,
        "Error": "",
    }


def test_a_gate_asks_the_policies_of_its_failure_policy_and_its_own_reasons() -> None:
    rules = [policy("f", filters={"f": GPU}), policy("i", filters={"f": ROOM}, failurePolicy="Ignore")]
    asking = Asking(rules, NODES, ignore_entry=True)
    for entry, want, reasons in (("Fail", ["a", "c"], {"b": "no GPU"}), ("Ignore", ["a", "b"], None)):
        found = reply(asking.filter(body(ALL), entry))  # type: ignore[arg-type]
        assert (found["NodeNames"], found["FailedAndUnresolvableNodes"]) == (want, reasons)


def test_a_namespace_that_is_known_is_looked_at() -> None:
    spec: dict[str, Any] = {"match": {"namespaceSelector": {"matchLabels": {"team": "ml"}}}, "filters": {"f": GPU}}
    for labels, want in (({"team": "ml"}, ["a", "c"]), ({"team": "web"}, ALL)):
        asking = Asking([policy(**spec)], NODES, namespaces={"ml": ns("ml", labels)})
        assert names_of(asking.filter(body(ALL))) == want


@pytest.mark.parametrize("entry", ["Fail", "Ignore"])
def test_for_pods_of_schedulers_that_the_caller_does_not_place_no_policy_is(entry: FailurePolicy) -> None:
    strict: dict[str, Any] = {"filters": {"f": "false"}, "schedulerName": "other"}
    rules = [policy(**strict), policy("i", **strict, failurePolicy="Ignore")]
    assert names_of(Asking(rules, NODES).filter(body(ALL, scheduler="other"), entry)) == ALL
    assert names_of(Asking(rules, NODES, schedulers=["other"]).filter(body(ALL, scheduler="other"), entry)) == []


def test_a_pod_that_cannot_be_read_is_none_of_our_business_while_no_policy_is_for_it() -> None:
    asked = body(["a"], containers=[{"resources": {"requests": {"cpu": "lots"}}}])
    assert names_of(Asking([], NODES).filter(asked)) == ["a"]


COPIED: dict[str, bytes] = {
    "with spaces": b'[ "a" ,\t"b"]',
    "written with escapes": rb'["\u0061","b"]',
    "in another order": b'["b","a"]',
}


@pytest.mark.parametrize("case", COPIED)
def test_when_nobody_is_refused_the_names_go_back_as_they_came(case: str) -> None:
    for rules in ([], [policy(filters={"f": "true"})]):
        sent = body(["a", "b"]).replace(b'["a","b"]', COPIED[case])
        answer = Asking(rules, NODES).filter(sent)
        assert b',"NodeNames":' + COPIED[case] + b',"FailedNodes":null' in answer.body


def given(name: str, gpu: bool = False, cpu: str = "8") -> dict[str, Any]:
    labels = {"gpu": "x"} if gpu else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": {"cpu": cpu}}}


def test_nodes_that_come_with_the_request_are_judged_as_they_came_and_go_back_so() -> None:
    asking = Asking([policy(filters={"f": GPU})], [node("a"), node("b", labels={"gpu": "x"})])
    sent = [given("a", gpu=True), given("b"), given("new", gpu=True)]
    answer = asking.filter(body(nodes=sent))
    assert reply(answer)["Nodes"] == {"metadata": {}, "items": [sent[0], sent[2]]}
    assert reply(answer)["NodeNames"] is None
    assert reply(asking.filter(body(nodes=sent[1:2])))["FailedAndUnresolvableNodes"] == {"b": "no GPU"}


def test_the_list_of_nodes_goes_back_as_it_came_when_all_pass() -> None:
    written = b'{"metadata": {"resourceVersion":"7"},"items":[ ' + json.dumps(given("a", gpu=True)).encode() + b"]}"
    sent = body(nodes=[]).replace(b'{"metadata":{},"items":[]}', written)
    for rules in ([], [policy(filters={"f": GPU})]):
        assert b'{"Nodes":' + written + b',"NodeNames":null' in Asking(rules).filter(sent).body


def test_pods_on_nodes_of_a_request_are_those_that_the_mirror_knows_there() -> None:
    rules = [policy(filters={"f": {"expression": "free['cpu'] >= 3.0 && pods.size() < 2", "reason": "full"}})]
    held = [node("a", pods=[placed("p"), placed("q")]), node("b", pods=[placed("r")])]
    answer = Asking(rules, held).filter(body(nodes=[given("a"), given("b"), given("c"), given("b2", cpu="2")]))
    assert names_of(answer) == ["b", "c"]


@pytest.mark.parametrize(
    "expression",
    [
        "node.status.images.exists(image, 'app' in image.names)",
        "node.status.images.size() == 1",
        "has(node.status) && node.status.images.all(image, image.sizeBytes > 1)  && node.status.images.size() > 0",
    ],
)
def test_images_of_nodes_are_there_for_rules_that_read_them(expression: str) -> None:
    sent = given("a")
    sent["status"]["images"] = [{"names": ["app"], "sizeBytes": 7}]
    asking = Asking([policy(filters={"f": expression})])
    assert names_of(asking.filter(body(nodes=[sent, given("b")]))) == ["a"]


def test_images_of_nodes_are_left_out_where_nobody_reads_them() -> None:
    sent, lean = given("a"), {"f": "node.metadata.name != ''"}
    sent["status"]["images"] = [{"names": ["app"], "sizeBytes": 7}]
    world = Asking([policy(filters=lean, scores={"s": "free['cpu']"})]).serving
    assert [*world.full_node_view(json.dumps(sent).encode()).node.status.images] == []


def test_a_simulation_leaves_no_trace() -> None:
    asking = Asking([policy(filters={"f": "node.metadata.labels['gpu'] == 'x'"})], NODES)
    before = asking.nodes.head
    answer = asking.filter(body(nodes=[given("new"), given("b", gpu=True)]))
    assert answer.outcome.simulated
    assert asking.nodes.head == before
    assert "new" not in asking.nodes.slots
    assert (asking.tally.drain(), asking.tally.evaluations) == ([], {})


def test_names_are_taken_where_both_forms_are_sent() -> None:
    sent = body(["b", "a"]).replace(b'"Nodes":null', b'"Nodes":' + json.dumps({"items": [given("z")]}).encode())
    for rules, want in (([], ["b", "a"]), ([policy(filters={"f": GPU})], ["a"])):
        found = reply(Asking(rules, NODES).filter(sent))
        assert (found["NodeNames"], found["Nodes"]) == (want, None)


@pytest.mark.parametrize("rules", [[], [policy(filters={"f": "false"})]])
def test_neither_form_is_no_node(rules: list[Any]) -> None:
    found = reply(Asking(rules, NODES).filter(body()))
    assert found == {
        "Nodes": None,
        "NodeNames": None,
        "FailedNodes": None,
        "FailedAndUnresolvableNodes": None,
        "Error": "",
    }


def test_the_same_name_twice_passes_or_is_refused_twice() -> None:
    asking = Asking([policy(filters={"f": GPU})], NODES)
    assert names_of(asking.filter(body(["a", "b", "a", "b"]))) == ["a", "a"]
