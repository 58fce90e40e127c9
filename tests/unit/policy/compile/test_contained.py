"""No exception leaves a rule: it becomes a rule error, and its `onError` says what happens."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.api.params import Params
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import policy_model
from fairlead.cel.lowering.program import Program
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.annotations import annotations
from fairlead.policy.evaluate.preemption import PROTECTED, dropped
from fairlead.policy.explain.explainer import explain, explain_scores
from fairlead.policy.explain.trace_steps import steps
from fairlead.policy.nodes import annotated_values
from fairlead.strategies.contract import Filter, Reads, Score, Strategy, Use
from support.policy import INSTALLED, NOW, Evaluation, node, obj, placed, pod, policy

SECRET = "a value of a fact"
ERRORS = [
    ValueError(SECRET),
    MemoryError(SECRET),
    RecursionError(SECRET),
    StopIteration(SECRET),
    AttributeError(SECRET),
]
GOOD = "node.metadata.name == 'a'"
BAD = "node.metadata.name == 'never mind'"
KEY = "fairlead.dev/x"


def _fails(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


@pytest.fixture(params=ERRORS, ids=lambda error: type(error).__name__)
def error(request: pytest.FixtureRequest) -> Exception:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["as it evaluates", "as it is bound to the pod"])
def broken(request: pytest.FixtureRequest, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expressions with these words raise unexpected exceptions."""
    for name in ("for_pod", "for_pod_with_expiry"):
        before = getattr(CompiledExpression, name)

        def bind(self: CompiledExpression, *facts: Any, before: Any = before) -> Any:
            if "never mind" not in self.expression.text:
                return before(self, *facts)
            return _fails(error) if "evaluates" in request.param else _fails(error)()

        monkeypatch.setattr(CompiledExpression, name, bind)


def _faults(cluster: Evaluation) -> dict[tuple[str, str], tuple[int, str]]:
    return {(one.policy, one.rule): (one.faults, one.last_message) for one in cluster.evaluator.tally.drain()}


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(("on_error", "passed"), [("Reject", []), ("Pass", ["a"])])
def test_a_filter(error: Exception, on_error: str, passed: list[str]) -> None:
    rules = policy(filters={"bad": {"expression": BAD, "onError": on_error}, "good": GOOD})
    cluster = Evaluation([rules, policy("q", filters={"good": GOOD})], [node("a"), node("b")])
    assert cluster.filter(pod()).passed == passed
    told = f"an internal fault ({type(error).__name__}); the log of the operator says where"
    assert _faults(cluster) == {("p", "bad"): (2, told)}


@pytest.mark.usefixtures("broken")
def test_one_that_reads_the_time() -> None:
    cluster = Evaluation([policy(filters={"bad": f"{BAD} || now > timestamp(0)"})], [node("a")])
    assert cluster.filter(pod()).passed == []


@pytest.mark.usefixtures("broken")
def test_a_score_is_the_mean_of_the_others() -> None:
    cluster = Evaluation(
        [policy(scores={"bad": f"{BAD} ? 1.0 : 2.0", "good": f"{GOOD} ? 50.0 : 0.0"})], [node("a"), node("b")]
    )
    assert cluster.scores(pod()) == [50.0, 0.0]
    assert _faults(cluster).keys() == {("p", "bad")}


@pytest.mark.usefixtures("broken")
def test_a_condition_refuses_the_pods_of_its_policy() -> None:
    text = "pod.metadata.name == 'never mind'"
    rules = policy(match={"conditions": {"c": text}}, filters={"f": "true"})
    cluster = Evaluation([rules, policy("q", filters={"good": GOOD})], [node("a"), node("b")])
    assert cluster.filter(pod()).passed == []
    assert _faults(cluster).keys() == {("p", "c")}


@pytest.mark.usefixtures("broken")
def test_a_victim_is_protected_and_an_annotation_left_out() -> None:
    victim = placed("v")
    rules = policy(
        protect={"bad": "victim.metadata.name == 'never mind'"},
        annotations={KEY: {"expression": "node.metadata.name + 'never mind'"}, "fairlead.dev/y": "'y'"},
    )
    cluster = Evaluation([rules], [node("a", pods=[victim])])
    tally, matched = cluster.evaluator.tally, cluster.matched(pod())
    said = dropped(pod(), matched, cluster.nodes, "a", ["u-v"], requests=lambda _: {}, now=NOW, tally=tally)
    assert said is not None
    assert said.why == PROTECTED
    made = annotations(pod(), matched, cluster.nodes, "a", now=NOW, tally=tally)
    assert (made.values, made.refusal) == ({"fairlead.dev/y": "y"}, None)
    assert _faults(cluster).keys() == {("p", "bad"), ("p", KEY)}


@pytest.mark.usefixtures("broken")
def test_the_explanation() -> None:
    rules = policy(filters={"bad": BAD}, scores={"s": f"{BAD} ? 1.0 : 2.0"}, match={"conditions": {"c": "true"}})
    cluster = Evaluation([rules], [node("a")])
    said = explain(pod(), cluster.matched(pod()), cluster.nodes, "a", NOW)
    assert [(one.outcome, one.reason) for one in said.filters] == [("Rejected", "rule bad cannot be decided")]
    assert [one.outcome for one in said.scores] == ["Unknown"]
    assert [one.total for one in explain_scores(pod(), cluster.matched(pod()), cluster.nodes, ["a"], NOW)] == [0.0]


def test_the_steps_of_an_explanation(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation shows the message, because it is evaluated with the user's own rights."""
    monkeypatch.setattr(Program, "_tracing", _fails(error))
    (filter_,) = policy(filters={"f": GOOD}).filters
    assert filter_.expression is not None
    (step,) = steps(filter_.expression, pod(), node("a"), NOW)
    assert (step.text, step.value) == ("raised", f"{type(error).__name__}: {error}")


def _strategic(make: Callable[..., Any], kind: str) -> CompiledPolicy:
    class Odd(Params):
        pass

    filters = Strategy(
        name="odd",
        filter=Use(Odd, lambda _: Filter(reads=Reads(), for_pod=make, reasons=())),
        score=Use(Odd, lambda _: Score(reads=Reads(), for_pod=make)),
    )
    spec: dict[str, Any] = {f"{kind}s": {"odd": {"odd": {}}}}
    model = policy_model({"odd": Odd}, {"odd": Odd})
    return compile_policy(parse_policy(obj(**spec), model), CompileOptions(INSTALLED | {"odd": filters}))


STRATEGIES: dict[str, Callable[[Exception], Callable[..., Any]]] = {
    "raises as it is bound": lambda error: _fails(error),
    "raises as it decides": lambda error: lambda _: _fails(error),
    "says what is no verdict": lambda _: lambda _: lambda *_: "yes",
}


@pytest.mark.parametrize("case", STRATEGIES)
def test_a_strategy(case: str, error: Exception) -> None:
    make = STRATEGIES[case](error)
    cluster = Evaluation([_strategic(make, "filter"), policy("q", filters={"good": GOOD})], [node("a"), node("b")])
    assert cluster.filter(pod()).passed == []
    assert _faults(cluster)["p", "odd"][0] == 2
    cluster = Evaluation(
        [_strategic(make, "score"), policy("q", scores={"good": f"{GOOD} ? 50.0 : 0.0"})], [node("a"), node("b")]
    )
    assert cluster.scores(pod()) == [50.0, 0.0]
    assert _faults(cluster)["p", "odd"][0] == 2
    said = explain(pod(), cluster.matched(pod()), cluster.nodes, "a", NOW)
    if "verdict" not in case:
        assert said.scores[0].outcome == "Unknown"


def test_an_entry_of_data(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotated_values, "_number", _fails(error))
    rules = policy(data=[{"name": "load", "nodeLabel": {"key": "load"}}], filters={"f": "data.load < 1.0", "g": GOOD})
    cluster = Evaluation([rules], [node("a", labels={"load": "0.5"})])
    assert [one.reason for one in cluster.filter(pod()).rejected.values()] == ["data load cannot be read"]
    assert _faults(cluster)["p", "f"][0] == 1


def test_what_cannot_be_a_part_of_a_key_is_a_pod_like_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Evaluation([policy(filters={"f": "pod.metadata.labels['x'] == 'y'"})], [node("a")])
    monkeypatch.setattr("fairlead.policy.evaluate.matching._key", _fails(TypeError()))
    assert cluster.filter(pod(labels={"x": "y"})).passed == ["a"]
    assert len(cluster.evaluator.classes) == 0
