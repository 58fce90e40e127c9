"""What is counted of a call, and when policies are too slow."""

import json
from typing import Any

import pytest

from fairlead.webhook.extender.call import FailurePolicy, Outcome, VerbReply
from fairlead.webhook.extender.circuit_breaker import PAUSE_NS, OpenCircuit, PolicyGeneration
from support.policy import SECOND, node, ns, placed, policy
from support.policy.asking import Clock
from support.webhook import Asking, Passing, at, body, go, names_of

GPU = {"gpu": "node.metadata.labels[?'gpu'].hasValue()"}
MANY = [node(f"n{number:03}", labels={"gpu": "x"} if number >= 150 else {}) for number in range(200)]
NAMES = [f"n{number:03}" for number in range(200)]

FILTERED: dict[str, tuple[dict[str, Any], list[str], Outcome]] = {
    "nobody had a say, and nobody counted": ({"scores": {"s": "1.0"}}, NAMES, Outcome(verb="filter")),
    "all pass": ({"filters": GPU}, NAMES[150:], Outcome(verb="filter", candidates=50)),
    "some are refused": (
        {"filters": GPU},
        NAMES[148:],
        Outcome(verb="filter", result="refused", candidates=52, refusals={("p", "gpu"): 2}),
    ),
    "by the first rule that does": (
        {"filters": {"b": "node.metadata.name != 'n149'", "a": "node.metadata.name < 'n198'", "c": "false"}},
        NAMES[148:],
        Outcome(verb="filter", result="empty", candidates=52, refusals={("p", "a"): 2, ("p", "b"): 1, ("p", "c"): 49}),
    ),
    "some are not known": (
        {"filters": GPU},
        ["z", "n199", "y"],
        Outcome(verb="filter", result="refused", candidates=3, unknown=("z", "y")),
    ),
    "a whole sample is refused, and another node would pass": (
        {"filters": GPU},
        NAMES[:100],
        Outcome(verb="filter", result="empty", candidates=100, refusals={("p", "gpu"): 100}, missed_sample=True),
    ),
    "no sample: the scheduler looks for more": (
        {"filters": GPU},
        NAMES[:99],
        Outcome(verb="filter", result="empty", candidates=99, refusals={("p", "gpu"): 99}),
    ),
    "no other would pass": (
        {"filters": {"never": "false"}},
        NAMES[:100],
        Outcome(verb="filter", result="empty", candidates=100, refusals={("p", "never"): 100}),
    ),
}


@pytest.mark.parametrize("case", FILTERED)
def test_a_filter_call(case: str) -> None:
    spec, asked, want = FILTERED[case]
    asking = Asking([policy(**spec)], MANY)
    asking.filter(body(NAMES))
    found = asking.filter(body(asked)).outcome
    given = {"entry": "Fail", "pod": "u-x", "waits": ("ml", "x") if want.result == "empty" else None}
    assert found == Outcome(**{name: getattr(want, name) for name in want.__slots__} | given)


def test_nobody_says_that_another_node_would_pass_before_it_is_known() -> None:
    assert not Asking([policy(filters=GPU)], MANY).filter(body(NAMES[:100])).outcome.missed_sample


def test_a_preempt_call() -> None:
    asking = Asking(
        [policy(filters=GPU, protect={"k": "victim.metadata.name == 'q'"})],
        [*MANY, node("b", labels={"gpu": "x"}, pods=[placed("q")])],
    )
    found = asking.preempt(body(victims={"n000": ["u"], "n199": ["u"], "b": ["u-q"], "z": []})).outcome
    want = {("p", "gpu"): 1, ("p", "k"): 1}
    assert (found.result, found.candidates, found.refusals, found.unknown) == ("refused", 4, want, ("z",))
    assert asking.preempt(body(victims={"n000": []})).outcome.result == "empty"
    assert asking.preempt(body(victims={"n199": []})).outcome.result == "passed"


def test_a_prioritize_call() -> None:
    found = Asking([policy(scores={"s": "1.0"})], MANY).prioritize(body(NAMES)).outcome
    assert found == Outcome(verb="prioritize", pod="u-x", candidates=200)


def test_pods_of_a_guarded_namespace_are_refused_by_the_gate_that_is_always_asked() -> None:
    """Whatever policies say, and none has to; the scores and the other entry leave it to that one."""
    why = "pods of namespace ml must not depend on Fairlead: give them another scheduler"
    for policies in ([], [policy(filters={"f": "true"}, scores={"s": "100.0"}, failurePolicy="Ignore")]):
        asking = Asking(policies, MANY, excluded_namespaces=frozenset({"kube-system", "ml"}))
        found = asking.filter(body(NAMES[:2]))
        reply = go.decode("filter", found.body)
        want = dict.fromkeys(NAMES[:2], why)
        assert (reply["NodeNames"], reply["FailedAndUnresolvableNodes"]) == ([], want)
        assert (found.outcome.result, found.outcome.refusals) == ("empty", {("", "guard"): 2})
        assert asking.preempt(body(victims={"n000": []})).body == b'{"NodeNameToMetaVictims":{}}'
        assert asking.prioritize(body(NAMES)).body == b"[]"
        assert names_of(asking.filter(body(NAMES), "Ignore")) == NAMES
        elsewhere = body(NAMES, pod={"namespace": "default"})
        assert names_of(asking.filter(elsewhere)) == NAMES
        assert names_of(asking.filter(body(NAMES, scheduler="other"))) == NAMES, "no business of ours"


def test_what_is_no_request_is_answered_with_what_is_wrong() -> None:
    asking = Asking()
    for answer, verb, status in (
        (asking.filter(b"{}"), "filter", 200),
        (asking.prioritize(b"{}"), "prioritize", 400),
        (asking.preempt(b"{}"), "preempt", 400),
    ):
        assert (answer.status, answer.outcome.verb, answer.outcome.result) == (status, verb, "error")
        assert json.loads(answer.body)["Error"] == answer.outcome.error == "the request has no Pod"
    go.decode("filter", asking.filter(b"{}").body)


UNREADABLE = {
    "the names": body(["a"]).replace(b'["a"]', b"[1]"),
    "the list of nodes": body(nodes=[]).replace(b'"items":[]', b'"items":{}'),
    "a node": body(nodes=[]).replace(b'"items":[]', b'"items":[{"metadata":[]}]'),
    "a quantity of the pod": body(["a"], containers=[{"resources": {"requests": {"cpu": "lots"}}}]),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_a_policy_needs_and_cannot_be_read(case: str) -> None:
    asking = Asking([policy(filters=GPU, scores={"s": "1.0"})], MANY)
    assert "cannot be read" in go.decode("filter", asking.filter(UNREADABLE[case]).body)["Error"]
    assert asking.prioritize(UNREADABLE[case]).status == 400


SLOW: dict[str, Any] = {"filters": {"f": "true"}, "scores": {"s": "1.0"}, "protect": {"p": "true"}}


class Time(Passing):
    """A clock that is told how long a look takes."""

    def call(self, asking: Asking, verb: str, entry: FailurePolicy = "Fail", *, slow: bool) -> VerbReply:
        """About all nodes."""
        return self.ask(asking, verb, NAMES, entry, slow=slow)


@pytest.mark.parametrize(("verb", "status"), [("filter", 200), ("prioritize", 503), ("preempt", 503)])
def test_past_the_deadline_the_answer_names_the_policy(verb: str, status: int) -> None:
    answer = Time().call(Asking([policy(**SLOW)], MANY), verb, slow=True)
    assert (answer.status, json.loads(answer.body)["Error"]) == (status, "policy p is too slow")
    assert (answer.outcome.too_slow, answer.outcome.switched) == ("p", None)


def test_the_policy_that_took_longest_over_candidates_is_named() -> None:
    class Uneven(Clock):
        def __call__(self) -> int:
            self.looks += 1
            self.time += 1 if self.looks % 2 else 10  # even looks come after the second policy
            return self.time

    rules = [policy(name, filters={"f": "true"}) for name in ("a", "b")]
    answer = Asking(rules, MANY).preempt(
        body(victims={name: [] for name in NAMES}), when=at(clock=Uneven(), deadline_ns=40)
    )
    assert answer.outcome.too_slow == "b"


def test_twice_in_a_minute_is_too_slow_for_five_minutes() -> None:
    """Fail: refused, everywhere, for that. What was computed meanwhile is kept."""
    asking, time = Asking([policy(**SLOW)], MANY), Time()
    assert not time.call(asking, "filter", slow=True).outcome.switched
    assert time.call(asking, "preempt", slow=True).outcome.switched == "class"
    assert [*asking.pace.open_circuits(time.time)] == [
        OpenCircuit(PolicyGeneration("p", "u-p", "1"), "filters", "class", 1)
    ]

    reply = go.decode("filter", time.call(asking, "filter", slow=False).body)
    assert (reply["NodeNames"], {*reply["FailedAndUnresolvableNodes"].values()}) == ([], {"policy p is too slow"})
    preempted = time.call(asking, "preempt", slow=False)
    assert preempted.body == b'{"NodeNameToMetaVictims":{}}'
    assert preempted.outcome.refusals == {("p", ""): 200}
    nodes = [{"metadata": {"name": "a"}}]
    assert go.decode("filter", asking.filter(body(nodes=nodes), when=at(clock=time)).body)["Nodes"]["items"] == []

    for answer in (asking.filter(body([]), when=at(clock=time)), asking.preempt(body(victims={}), when=at(clock=time))):
        assert (answer.outcome.result, answer.outcome.candidates) == ("passed", 0), "nobody was asked about"

    time.time += PAUSE_NS
    assert names_of(time.call(asking, "filter", slow=False)) == NAMES
    assert not asking.pace.open_circuits(time.time)


def test_ignore_lets_its_pods_pass_and_others_are_asked_still() -> None:
    rules = [policy(**SLOW, failurePolicy="Ignore"), policy("q", filters=GPU, failurePolicy="Ignore")]
    asking, time = Asking(rules, MANY), Time()
    for switched in (None, "class"):
        answer = time.call(asking, "filter", "Ignore", slow=True)
        assert (answer.outcome.too_slow, answer.outcome.switched) == ("p", switched)
    assert names_of(time.call(asking, "filter", "Ignore", slow=False)) == NAMES[150:]


def test_slow_scores_are_left_out_and_refuse_nobody() -> None:
    rules = [policy(**SLOW), policy("q", scores={"s": "node.metadata.name == 'n007' ? 50.0 : 0.0"})]
    asking, time = Asking(rules, MANY), Time()
    for switched in (None, "class"):
        answer = time.call(asking, "prioritize", slow=True)
        assert (answer.outcome.too_slow, answer.outcome.switched) == ("p", switched)
    assert go.decode("prioritize", time.call(asking, "prioritize", slow=False).body) == [{"Host": "n007", "Score": 5}]
    assert names_of(time.call(asking, "filter", slow=False)) == NAMES


def test_another_generation_of_a_policy_that_is_too_slow_is_asked() -> None:
    asking, time = Asking([policy(**SLOW)], MANY), Time()
    for _ in range(2):
        time.call(asking, "filter", slow=True)
    asking.serve([policy(**SLOW)])
    assert names_of(time.call(asking, "filter", slow=False)) == []
    asking.serve([policy(**SLOW, generation=2)])
    assert names_of(time.call(asking, "filter", slow=False)) == NAMES


def test_a_simulation_that_is_too_slow_is_told_so_and_counts_nothing() -> None:
    asking, time = Asking([policy(**SLOW)], []), Time()
    nodes = [{"metadata": {"name": name}} for name in NAMES]
    time.step = SECOND
    for _ in range(3):
        answer = asking.filter(body(nodes=nodes), when=at(clock=time, deadline_ns=0))
        assert (answer.outcome.too_slow, answer.outcome.switched) == ("p", None)
    assert not asking.pace.open_circuits(time.time)


def test_waiting_rules_are_computed_in_idle_time() -> None:
    asking = Asking([policy(**SLOW), policy("i", filters=GPU, failurePolicy="Ignore")], MANY)
    asking.filter(body(NAMES))
    asking.prioritize(body(NAMES))
    asking.nodes.put(node("new"))
    assert asking.serving.precompute(at())
    before = dict(asking.tally.evaluations)
    asking.filter(body(["new"]))
    asking.prioritize(body(["new"]))
    assert asking.tally.evaluations == before


def test_a_namespace_is_asked_for_by_its_name() -> None:
    rules = [policy(filters={"f": "namespaceObject.metadata.labels[?'team'].orValue('') == 'ml'"})]
    asking = Asking(rules, MANY, namespaces={"default": ns("default", {"team": "ml"})})
    assert names_of(asking.filter(body(["n000"], pod={"namespace": ""}))) == ["n000"]
    assert names_of(asking.filter(body(["n000"]))) == []


def test_what_scores_read_does_not_tell_pods_apart_for_filters() -> None:
    asking = Asking([policy(filters=GPU, scores={"s": "pod.metadata.name == node.metadata.name ? 1.0 : 0.0"})], MANY)
    for name in ("one", "two"):
        asking.filter(body(NAMES, pod={"name": name}))
    assert asking.tally.evaluations == {("p", "gpu"): len(NAMES)}
