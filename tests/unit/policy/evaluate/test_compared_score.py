"""Scores that compare the nodes of a call: asked once, about those that are known, and never kept."""

from typing import Any

import pytest

from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.explain.explainer import NOT_LEFT, explain, explain_compared, explain_scores
from fairlead.strategies.contract import (
    DemandsRead,
    Reads,
    Score,
    Strategy,
    SystemRead,
    Timed,
    Unknown,
    Use,
)
from fairlead.strategies.guard import StrategyGuard
from support.policy import INSTALLED, NOW, Clock, Evaluation, faults, node, pod, policy
from support.policy.comparing import COMPARED, Compared, Counting, Over, comparing

RULE: dict[str, Any] = {"scores": {"s": COMPARED}}
NODES = [("a", 2.0), ("b", 4.0), ("c", 8.0)]


def cluster(over: Over, spec: dict[str, Any] | None = None) -> Evaluation:
    return Evaluation(
        [policy(rules=comparing(over), **(spec or RULE))], [node(name, used=used) for name, used in NODES]
    )


def test_it_is_asked_once_a_call_and_nothing_is_kept() -> None:
    over = Counting()
    found = cluster(over)
    assert found.scores(pod()) == [25.0, 50.0, 100.0]
    assert found.scores(pod(), ["b", "a"]) == [100.0, 50.0]
    assert found.scores(pod()) == [25.0, 50.0, 100.0]
    assert over.calls == [["a", "b", "c"], ["b", "a"], ["a", "b", "c"]]


def test_a_change_of_one_node_changes_all_scores() -> None:
    found = cluster(Counting())
    found.scores(pod())
    found.nodes.put(node("c", used=4.0))
    assert found.scores(pod()) == [50.0, 100.0, 100.0]


def test_one_node_is_a_call_too() -> None:
    assert cluster(Counting()).scores(pod(), ["b"]) == [100.0]


def test_no_node_is_no_question() -> None:
    over = Counting()
    assert cluster(over).scores(pod(), []) == []
    assert over.calls == []


def test_a_node_that_is_not_known_gets_the_mean() -> None:
    over = Counting()
    assert cluster(over).scores(pod(), ["a", "z", "c"]) == [25.0, 62.5, 100.0]
    assert over.calls == [["a", "c"]]


def test_what_it_cannot_decide_gets_the_mean_of_the_others() -> None:
    found = cluster(lambda *_: [Unknown("a", "b"), 40, Timed(80.0, NOW + 1)])
    assert found.scores(pod()) == [60.0, 40.0, 80.0]


def test_it_stands_beside_other_scores_with_its_weight() -> None:
    spec = {
        "scores": [
            {"name": "s", "weight": 2, "custom": {"name": "compared"}},
            {"name": "t", "expression": "node.metadata.name == 'a' ? 100 : 0"},
        ]
    }
    assert cluster(Counting(), spec).scores(pod()) == [150.0, 100.0, 200.0]


def raises(*_: object) -> Any:
    raise KeyError("what")


@pytest.mark.parametrize(
    ("over", "why"),
    [
        (raises, "KeyError: 'what'"),
        (lambda *_: [1.0], "ValueError: the score returned 1 values for 3 nodes"),
        (lambda *_: 5, "TypeError: object of type 'int' has no len()"),
        (lambda *_: [1.0, "b", 2.0], "TypeError: the score returned 'b', not a number or an Unknown"),
        (lambda *_: [1.0, None, 2.0], "TypeError: the score returned None, not a number or an Unknown"),
        (lambda *_: [1.0, float("nan"), 2.0], "ValueError: the score returned nan, which is not a number"),
        (lambda *_: [1.0, float("inf"), 2.0], "ValueError: the score returned inf, which is not a number"),
    ],
)
def test_an_error_stays_in_its_rule(over: Over, why: str) -> None:
    found = cluster(over)
    assert found.scores(pod()) == [0.0, 0.0, 0.0]
    views = explain_scores(pod(), found.matched(pod()), found.nodes, ["a", "b", "c"], NOW)
    assert all(why in view.scores[0].why for view in views)


def test_a_call_that_takes_too_long_names_the_policy() -> None:
    with pytest.raises(TooSlowError) as error:
        cluster(Counting()).scores(pod(), clock=Clock(step=5), deadline_ns=4)
    assert error.value.policy == "p"


def test_what_others_took_before_it_counts() -> None:
    slow = policy("slow", scores={"s": "allocatable['cpu']"})
    quick = policy("quick", rules=comparing(Counting()), **RULE)
    first, second = (Evaluation([slow, quick], [node(name, used=used) for name, used in NODES]) for _ in range(2))
    needed = Clock(step=5)
    first.scores(pod(), clock=needed)
    with pytest.raises(TooSlowError) as error:
        second.scores(pod(), clock=Clock(step=5), deadline_ns=needed.time - 1)
    assert {name: took > 0 for name, took in error.value.spent.items()} == {"quick": True, "slow": True}


def test_its_scores_are_not_computed_ahead() -> None:
    found = cluster(Counting())
    found.scores(pod())
    assert found.evaluator.scores_hold_until(pod(), found.matched(pod())) is None


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"scale": ""}, "its score has over, so it says in scale what its values score, and has no normalize"),
        (
            {"normalize": "MinMax"},
            "its score has over, so it says in scale what its values score, and has no normalize",
        ),
        ({"for_pod": lambda _: None}, "its score has for_pod or over, and not both"),
        ({"over": None}, "its score has for_pod or over, and not both"),
    ],
)
def test_a_score_is_of_one_kind(fields: dict[str, Any], why: str) -> None:
    made = Score(**{"reads": Reads(), "over": Counting(), "scale": "of", **fields})
    strategy = Strategy(name="compared", score=Use(Compared, lambda _: made))
    for custom in ({"compared": strategy}, StrategyGuard().guard({"compared": strategy})):
        (said,) = faults(CompileOptions(INSTALLED, custom=custom), **RULE).values()
        assert said.startswith(f"the strategy compared failed: TypeError: {why}")


@pytest.mark.parametrize(
    "reads",
    [
        Reads(system=frozenset({SystemRead(("cpu",))})),
        Reads(demands=frozenset({DemandsRead(("cpu",), 10, (0.0,))})),
    ],
)
def test_a_system_is_for_scores_that_compare(reads: Reads) -> None:
    made = Score(reads=reads, for_pod=lambda _: lambda *_: 1.0)
    strategy = Strategy(name="compared", score=Use(Compared, lambda _: made))
    (said,) = faults(CompileOptions(INSTALLED, custom={"compared": strategy}), **RULE).values()
    assert said.startswith("the strategy compared failed: TypeError: it reads a system, a topology or learned")


def test_a_rule_with_normalize_does_not_compile() -> None:
    spec = {"scores": [{"name": "s", "normalize": "MinMax", "custom": {"name": "compared"}}]}
    assert faults(comparing(Counting()), **spec) == {
        "spec.scores[0].normalize": "compared has of, which stands in place of normalize; leave out normalize or of"
    }


def test_explain_has_what_was_compared_and_says_who_was_not() -> None:
    found = cluster(Counting(), RULE | {"filters": {"f": "node.metadata.name != 'c'"}})
    matched = found.matched(pod())
    compared = explain_compared(pod(), matched, found.nodes, ["a", "b"], NOW)
    (of_b,) = explain(pod(), matched, found.nodes, "b", NOW, compared).scores
    assert (of_b.outcome, of_b.value) == ("Scored", 100.0)
    assert of_b.noted is not None
    assert of_b.noted.values == {"most": 4.0, "used": 4.0}
    (of_c,) = explain(pod(), matched, found.nodes, "c", NOW, compared).scores
    assert (of_c.outcome, of_c.reason) == ("LeftOut", NOT_LEFT)
    rows = explain_scores(pod(), matched, found.nodes, ["a", "b", "z"], NOW)
    assert [row.scores[0].value for row in rows] == [50.0, 100.0, None]
    assert rows[2].scores[0].why == "node is not known yet"


def test_a_guarded_strategy_compares_too() -> None:
    made = comparing(Counting())
    guarded = CompileOptions(INSTALLED, custom=StrategyGuard().guard(made.custom))
    found = Evaluation([policy(rules=guarded, **RULE)], [node(name, used=used) for name, used in NODES])
    assert found.scores(pod()) == [25.0, 50.0, 100.0]
