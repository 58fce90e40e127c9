"""Nodes that filters reject, and why: reasons, onError, several policies."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.params import Params
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import policy_model
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.strategies.contract import Filter, Reads, Reject, Strategy, Unknown, Use
from support.policy import INSTALLED, NOW, SECOND, Evaluation, node, obj, pod, policy

LOAD = [{"name": "load", "nodeAnnotation": {"key": "load", "timeKey": "at"}, "maxAge": "60s"}]
KEY = "node.metadata.labels['gpu'] == 'a'"
REFUSALS: dict[str, tuple[dict[str, Any], str | None]] = {
    "a filter that is true passes": ({"filters": {"f": "true"}}, None),
    "a filter that is false refuses with its name": ({"filters": {"f": "false"}}, "f"),
    "or with its reason": ({"filters": {"f": {"expression": "false", "reason": "wrong GPU"}}}, "wrong GPU"),
    "one that raises refuses": ({"filters": {"f": KEY}}, "rule f cannot be decided"),
    "unless onError is Pass": ({"filters": {"f": {"expression": KEY, "onError": "Pass"}}}, None),
    "onError Pass does not make false true": ({"filters": {"f": {"expression": "false", "onError": "Pass"}}}, "f"),
    "division by zero": ({"filters": {"f": "1 / (pod.spec.priority - 5) > 0"}}, "rule f cannot be decided"),
    "a variable raises in whoever uses it": (
        {"variables": {"v": "node.metadata.labels['gpu']"}, "filters": {"a": "true", "f": "variables.v == 'a'"}},
        "rule f cannot be decided",
    ),
    "and only if it is needed": (
        {"variables": {"v": "node.metadata.labels['gpu']"}, "filters": {"f": "true || variables.v == 'a'"}},
        None,
    ),
    "data that is missing": ({"data": LOAD, "filters": {"f": "data.load < 1.0"}}, "data load is missing"),
    "data that is missing, on the engine": (
        {"data": LOAD, "filters": {"f": "'%d'.format([data.load < 1.0 ? 1 : 2]) == '1'"}},
        "data load is missing",
    ),
    "who asks for optional data decides": ({"data": LOAD, "filters": {"f": "data[?'load'].orValue(0.0) < 1.0"}}, None),
    "a strategy says its own reason": (
        {"filters": {"f": {"nodeReadiness": {"labels": [{"key": "gpu"}]}}}},
        "label gpu is missing",
    ),
    "unless the policy has one": (
        {"filters": {"f": {"nodeReadiness": {"labels": [{"key": "gpu"}]}, "reason": "not ready"}}},
        "not ready",
    ),
    "on the engine variables are computed only if needed": (
        {
            "variables": {"v": "node.metadata.labels['gpu']"},
            "filters": {"f": "true || '%s'.format([variables.v]) == 'a'"},
        },
        None,
    ),
    "on the engine variables that use others": (
        {
            "variables": {"b": "variables.a + 1 // sum", "a": "pod.spec.priority", "d": "duration('1h')"},
            "filters": {"f": "'%d %s'.format([variables.b, variables.d]) == '6 3600s' && variables.d > duration('1s')"},
        },
        None,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_filter_refuses_with_the_reason_that_the_policy_gives(name: str) -> None:
    spec, want = REFUSALS[name]
    why = Evaluation([policy(**spec)], [node()]).refusal(pod(priority=5))
    assert (why and why.reason) == want


def test_data_that_is_stale_says_so_once_it_is() -> None:
    at = str(NOW // SECOND)
    cluster = Evaluation(
        [policy(data=LOAD, filters={"f": "data.load < 1.0"})], [node(annotations={"load": "0.5", "at": at})]
    )
    assert cluster.refusal(pod(), NOW + 60 * SECOND) is None
    why = cluster.refusal(pod(), NOW + 60 * SECOND + 1)
    assert why is not None
    assert why.reason == "data load is stale"


def test_the_first_refusal_in_the_order_of_priority_policy_and_rule_is_the_reason() -> None:
    made = [
        policy("b", priority=5, filters={"z": "node.metadata.name == 'n0'", "y": "node.metadata.name != 'n1'"}),
        policy("a", priority=5, filters={"x": "node.metadata.name != 'n2'"}),
        policy("c", priority=6, filters={"x": "node.metadata.name != 'n3'"}),
        policy("0", priority=-1, filters={"never": "false"}),
    ]
    want = {"n0": "0/never", "n1": "b/y", "n2": "a/x", "n3": "c/x", "n4": "b/z"}
    for order in permutations(made):
        cluster = Evaluation(order, [node(f"n{at}") for at in range(5)])
        assert {name: why.split(":")[0] for name, why in cluster.reasons(pod()).items()} == want


EXPRESSIONS = ["node.metadata.name > 'n2'", "free['cpu'] > 3.0", "node.metadata.labels['gpu'] == 'a'", "true"]
SETS = st.lists(
    st.fixed_dictionaries(
        {
            "filters": st.dictionaries(st.sampled_from("abc"), st.sampled_from(EXPRESSIONS), max_size=2),
            "scores": st.dictionaries(
                st.sampled_from("xyz"), st.sampled_from(["free['cpu']", "33.3", "0.1"]), max_size=3
            ),
            "priority": st.integers(0, 1),
        }
    ),
    max_size=4,
)


@settings(max_examples=60)
@given(specs=SETS, random=st.randoms(use_true_random=False))
def test_policies_compose_to_the_same_in_whatever_order_they_arrive(specs: list[dict[str, Any]], random: Any) -> None:
    made = [policy(f"p{at}", **spec) for at, spec in enumerate(specs)]
    nodes = [node(f"n{at}", cpu=float(at), labels={"gpu": "a"} if at % 2 else {}) for at in range(6)]
    answers = []
    for _ in range(2):
        cluster = Evaluation(made, nodes)
        found = cluster.filter(pod())
        answers.append((found.passed, dict(found.rejected), cluster.scores(pod())))
        random.shuffle(made)
    assert answers[0] == answers[1]


def test_a_node_that_is_not_known_is_refused_by_any_filter_and_only_by_one() -> None:
    found = Evaluation([policy(filters={"f": "true"})], [node("a")]).filter(pod(), ["a", "b"])
    assert (found.passed, found.unknown, dict(found.rejected)) == (["a"], ["b"], {})
    found = Evaluation([policy(scores={"s": "1.0"})], [node("a")]).filter(pod(), ["a", "b"])
    assert (found.passed, found.unknown) == (["a", "b"], ())


def test_refusals_are_of_the_nodes_asked_about_only() -> None:
    found = Evaluation([policy(filters={"f": "false"})], [node("a"), node("b")]).filter(pod(), ["b"])
    assert list(found.rejected) == ["b"]
    assert list(found.passed) == []


RESOLVABLE: dict[str, tuple[dict[str, Any], bool]] = {
    "what the policy says counts for an expression": ({"expression": "false", "resolvable": True}, True),
    "without it nothing is resolvable": ({"expression": "false"}, False),
    "a strategy tells it of each refusal": ({"rooms": {"full": True}}, True),
    "also that one is not": ({"rooms": {"full": False}}, False),
    "the policy may say no": ({"rooms": {"full": True}, "resolvable": False}, False),
    "the policy may say yes": ({"rooms": {"full": False}, "resolvable": True}, True),
    "what could not be decided is never resolvable": ({"expression": KEY, "resolvable": True}, False),
}


def _cluster_with_rooms(rule: dict[str, Any]) -> Evaluation:
    class Rooms(Params):
        full: bool = False

    def compiled(params: Rooms) -> Filter:
        verdict = Reject("no room", resolvable=params.full)
        return Filter(reads=Reads(), for_pod=lambda _: lambda *_: verdict, reasons=("no room",), resolvable=True)

    rooms = Strategy(name="rooms", filter=Use(Rooms, compiled))
    written = parse_policy(obj(filters={"f": rule}), policy_model({"rooms": Rooms}, {}))
    return Evaluation([compile_policy(written, CompileOptions(INSTALLED | {"rooms": rooms}))], [node()])


@pytest.mark.parametrize("name", RESOLVABLE)
def test_whether_a_refusal_is_resolvable(name: str) -> None:
    rule, want = RESOLVABLE[name]
    why = _cluster_with_rooms(rule).refusal(pod())
    assert why is not None
    assert why.resolvable is want


SAID = {
    "dyn(pod.spec.priority) < dyn('a')": "No matching overloads found : <(int, string)",
    "dyn(pod.spec.priority) + dyn('a') == 1": "No matching overloads found : +(int, string)",
    "math.greatest(dyn('a'), dyn(pod.spec.priority)) == 1": "No matching overloads found : math.greatest(string, int)",
}


@pytest.mark.parametrize(("expression", "want"), SAID.items())
def test_what_raised_is_told_in_words_of_the_language(expression: str, want: str) -> None:
    cluster = Evaluation([policy(filters={"f": expression})], [node("a")])
    cluster.filter(pod(priority=1))
    assert [one.last_message for one in cluster.evaluator.tally.drain()] == [want]


def test_what_could_not_be_decided_is_counted_by_policy_and_rule_with_the_last_message() -> None:
    both = policy(
        filters={"f": KEY, "g": {"expression": "data.load > 0.0", "onError": "Pass"}},
        data=LOAD,
        scores={"s": "1.0 / 0.0"},
    )
    cluster = Evaluation([both], [node("a"), node("b")])
    cluster.filter(pod())
    cluster.scores(pod())
    said = {(one.policy, one.rule): (one.count, one.last_message) for one in cluster.evaluator.tally.drain()}
    assert {rule: count for rule, (count, _) in said.items()} == {("p", "f"): 2, ("p", "g"): 2, ("p", "s"): 2}
    assert "gpu" in said["p", "f"][1]
    assert said["p", "g"][1] == "data load is missing"
    assert "inf" in said["p", "s"][1]
    cluster.filter(pod())
    assert cluster.evaluator.tally.drain() == []


def test_an_unknown_is_said_as_it_is() -> None:
    assert str(Unknown("data load", "is stale")) == "data load is stale"
