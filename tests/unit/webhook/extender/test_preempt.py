"""preempt: which candidates are left; decision 12."""

from typing import Any

import pytest

from support.policy import node, placed, policy
from support.webhook import Asking, body, go

KEEP = {"keepers": "victim.metadata.labels[?'never-evict'].orValue('') == 'true'"}
GPU = {"gpu": "node.metadata.labels[?'gpu'].hasValue()"}
NODES = [
    node("a", labels={"gpu": "x"}, pods=[placed("keep", labels={"never-evict": "true"}), placed("p")], used=8.0),
    node("b", pods=[placed("q")], used=8.0),
]
BOTH = {"a": ["u-p"], "b": ["u-q"]}

CASES: dict[str, tuple[dict[str, Any], dict[str, list[str]], list[str]]] = {
    "no policy that has a say": ({"scores": {"s": "1.0"}}, BOTH, ["a", "b"]),
    "a filter that would refuse": ({"filters": GPU}, BOTH, ["a"]),
    "a filter that passes once the victim is gone": ({"filters": {"room": "free['cpu'] >= 1.0"}}, BOTH, ["a", "b"]),
    "and one that wants more": ({"filters": {"room": "free['cpu'] >= 2.0"}}, BOTH, []),
    "a victim is protected": ({"protect": KEEP}, {"a": ["u-keep"], "b": ["u-q"]}, ["b"]),
    "no victims, and the filter passes": ({"filters": GPU}, {"a": [], "b": []}, ["a"]),
    "no victims, and nobody is protected": ({"protect": KEEP}, {"a": []}, ["a"]),
    "victims that have gone": ({"protect": {"all": "true"}}, {"a": ["u-gone"]}, ["a"]),
    "a node that is not known": ({"filters": {"f": "true"}}, {"a": ["u-p"], "z": ["u-z"]}, ["a"]),
    "a node that is not known, to scores": ({"scores": {"s": "1.0"}}, {"z": ["u-z"]}, ["z"]),
    "no candidates": ({"filters": GPU}, {}, []),
    "a policy for other pods": ({"filters": {"f": "false"}, "match": {"namespaces": ["other"]}}, BOTH, ["a", "b"]),
}


def full(victims: dict[str, list[str]]) -> bytes:
    """With whole pods."""
    uids = b'{"UID":"'
    sent = body(victims=victims).replace(b'"NodeNameToVictims":null,"NodeNameToMetaVictims"', b'"NodeNameToVictims"')
    sent = sent.replace(uids, b'{"metadata":{"uid":"').replace(b'"}],"Num', b'"}}],"Num').replace(b'"},{', b'"}},{')
    return sent[:-1] + b',"NodeNameToMetaVictims":null}'


@pytest.mark.parametrize("case", CASES)
def test_candidates_that_are_left(case: str) -> None:
    spec, victims, want = CASES[case]
    asking = Asking([policy(**spec)], NODES)
    for sent in (body(victims=victims), full(victims)):
        answer = asking.preempt(sent)
        left = go.decode("preempt", answer.body)["NodeNameToMetaVictims"]
        assert left == {name: {"Pods": [{"UID": uid} for uid in victims[name]], "NumPDBViolations": 0} for name in want}
        assert answer.outcome.simulated is (sent != body(victims=victims))


@pytest.mark.parametrize("rules", [[], [policy(filters={"f": "false"})]])
def test_no_candidates_in_either_form(rules: list[Any]) -> None:
    sent = body(victims={}).replace(b'"NodeNameToMetaVictims":{}', b'"NodeNameToMetaVictims":null')
    assert Asking(rules, NODES).preempt(sent).body == b'{"NodeNameToMetaVictims":{}}'


def test_violations_are_sent_back() -> None:
    sent = body(victims=BOTH).replace(b'"NumPDBViolations":0', b'"NumPDBViolations":7')
    left = go.decode("preempt", Asking([policy(filters=GPU)], NODES).preempt(sent).body)
    assert left == {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u-p"}], "NumPDBViolations": 7}}}


def test_a_gate_asks_its_own_policies() -> None:
    asking = Asking([policy(filters=GPU, failurePolicy="Ignore")], NODES)
    for entry, want in (("Fail", {"a", "b"}), ("Ignore", {"a"})):
        left = go.decode("preempt", asking.preempt(body(victims=BOTH), entry).body)  # type: ignore[arg-type]
        assert {*left["NodeNameToMetaVictims"]} == want


def test_a_simulation_counts_nothing() -> None:
    asking = Asking([policy(filters={"f": "node.metadata.labels['none'] == 'x'"})], NODES)
    asking.preempt(full(BOTH))
    assert asking.tally.drain() == []
    asking.preempt(body(victims=BOTH))
    assert [each.count for each in asking.tally.drain()] == [2]
