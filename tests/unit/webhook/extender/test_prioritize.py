"""prioritize: points on the wire, zeros left out."""

from typing import Any

import pytest

from support.policy import node, placed, policy
from support.policy.comparing import COMPARED, Counting, comparing
from support.webhook import Asking, body, go

NODES = [node(name, cpu=cpu) for name, cpu in (("a", 10.0), ("b", 20.0), ("c", 24.9), ("d", 25.0))]
ALL = ["a", "b", "c", "d"]
CPU = {"s": "allocatable['cpu']"}

CASES: dict[str, tuple[list[dict[str, Any]], list[str], dict[str, int]]] = {
    "no policy": ([], ALL, {}),
    "one without scores": ([{"filters": {"f": "false"}}], ALL, {}),
    "the lowest is 0, ten points of ours are one, halves go up": ([{"scores": CPU}], ALL, {"b": 1, "c": 1, "d": 2}),
    "of these nodes only": ([{"scores": CPU}], ["b", "d"], {"d": 1}),
    "all the same": ([{"scores": {"s": "70.0"}}], ALL, {}),
    "policies add up": ([{"scores": CPU}, {"scores": {"s": {"expression": CPU["s"], "weight": 3}}}], ALL[:2], {"b": 4}),
    "of both entries": ([{"scores": CPU}, {"scores": CPU, "failurePolicy": "Ignore"}], ALL[:2], {"b": 2}),
    "a node that is not known gets the mean": ([{"scores": CPU}], ["a", "z", "d"], {"z": 1, "d": 2}),
    "a policy that cannot tell adds nothing": (
        [{"scores": CPU, "match": {"conditions": {"c": "pod.metadata.labels['x'] == 'y'"}}}],
        ALL,
        {},
    ),
    "a single node": ([{"scores": CPU}], ["d"], {}),
    "no nodes": ([{"scores": CPU}], [], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_points(case: str) -> None:
    specs, asked, want = CASES[case]
    answer = Asking([policy(f"p{at}", **spec) for at, spec in enumerate(specs)], NODES).prioritize(body(asked))
    assert {each["Host"]: each["Score"] for each in go.decode("prioritize", answer.body)} == want


def test_nodes_of_the_request() -> None:
    given = [
        {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu}}} for name, cpu in (("x", 5), ("y", 25))
    ]
    written = body(nodes=given).replace(b'"cpu":5', b'"cpu":"5"').replace(b'"cpu":25', b'"cpu":"25"')
    answer = Asking([policy(scores=CPU)], NODES).prioritize(written)
    assert go.decode("prioritize", answer.body) == [{"Host": "y", "Score": 2}]
    assert answer.outcome.simulated


COMPARING = policy(rules=comparing(Counting()), scores={"s": COMPARED})


@pytest.mark.parametrize(
    ("asked", "want"), [(["a", "b", "c"], {"b": 5, "c": 10}), (["a", "b"], {"b": 10}), (["b"], {})]
)
def test_a_score_that_compares_the_nodes_of_the_call(asked: list[str], want: dict[str, int]) -> None:
    nodes = [node(name, used=used) for name, used in (("a", 0.0), ("b", 4.0), ("c", 8.0))]
    answer = Asking([COMPARING], nodes).prioritize(body(asked))
    assert {each["Host"]: each["Score"] for each in go.decode("prioritize", answer.body)} == want


def test_it_compares_nodes_of_the_request() -> None:
    nodes = [node("x", pods=[placed("p"), placed("q")]), node("y", pods=[placed("r")])]
    given = [{"metadata": {"name": name}} for name in ("x", "y")]
    answer = Asking([COMPARING], nodes).prioritize(body(nodes=given))
    assert go.decode("prioritize", answer.body) == [{"Host": "x", "Score": 5}]
    assert answer.outcome.simulated


def test_a_pod_of_a_scheduler_that_the_caller_does_not_place() -> None:
    rules = [policy(scores=CPU, schedulerName="other")]
    assert Asking(rules, NODES).prioritize(body(ALL, scheduler="other")).body == b"[]"


def test_hosts_are_escaped() -> None:
    odd = 'a"\\\n\u2028'
    answer = Asking([policy(scores={"s": "allocatable['cpu']"})], [node(odd, cpu=90.0), NODES[0]]).prioritize(
        body([odd, "a"])
    )
    assert go.decode("prioritize", answer.body) == [{"Host": odd, "Score": 8}]
