"""What rules compared, in words."""

import pytest

from fairlead.cli.reports.rule_text import of_change, of_items, of_rejection, of_step, value_of
from fairlead.policy.explain.explanation import Counterfactual, Element, Items, RuleExplained, Step

AT = (Element("pods", 0, "ml/web"),)


@pytest.mark.parametrize(
    ("change", "want"),
    {
        "two values": (Counterfactual("a == b", value=False, left="x", right=""), "'x' against ''"),
        "one is written out": (Counterfactual("a == 'x'", value=False, left="y", right="x"), "'y'"),
        "on the left": (Counterfactual("2.0 <= free['cpu']", value=False, left=2.0, right=1.5), "1.5"),
        "a number that is a part of a word": (Counterfactual("a1 == b1", value=False, left=1, right=2), "1 against 2"),
        "nothing, compared with nothing": (Counterfactual("pods.size() > 0", value=False, left=0, right=0), "0"),
        "bytes": (
            Counterfactual("a > b", value=False, left=3 * 1024.0**3, right=1024.0**4, unit="bytes"),
            "3Gi against 1Ti",
        ),
        "neither is known": (Counterfactual("a == b", value=None), "cannot be evaluated"),
        "it has no sides": (Counterfactual("node.spec.unschedulable", value=True), "true"),
        "in a loop": (
            Counterfactual("p.x == 'a'", value=False, left="b", right="a", at=AT),
            "'b', at pods[0] (ml/web)",
        ),
        "for all of them": (
            Counterfactual("p.x == 'a'", value=False, left="b", right="a", at=AT, everywhere=True),
            "'b', and likewise for all, such as pods[0] (ml/web)",
        ),
    }.values(),
)
def test_a_comparison_shows_the_values_that_it_does_not_say_itself(change: Counterfactual, want: str) -> None:
    assert of_change(change) == (change.text, want)


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, "nothing"),
        (True, "true"),
        (0.1, "0.1"),
        (3, "3"),
        (131910860800.0, "131910860800"),
        ("a", "'a'"),
        (["a", 1.0], "['a', 1]"),
        ((), "[]"),
    ],
)
def test_values_are_written_as_in_the_language(value: object, want: str) -> None:
    assert value_of(value) == want


def test_what_a_strategy_looked_at_is_told_in_the_terms_of_people() -> None:
    values = {"now": 1_800_000_000_000_000_000, "holdOff": 20_000_000_000, "until": None, "choose": "x"}
    items = Items(values, [("cilium", {"pods": 0, "state": "missing", "since": None})])
    assert [*of_items(items)] == [
        ("now", "2027-01-15T08:00:00Z"),
        ("holdOff", "20s"),
        ("choose", "'x'"),
        ("cilium", "pods 0, state 'missing'"),
    ]


def test_amounts_of_memory_that_a_strategy_looked_at_are_told_as_kubernetes_writes_them() -> None:
    items = Items({}, [("memory", {"requested": 2.0 * 1024**3, "share": 0.5}), ("cpu", {"requested": 2.0})])
    assert [*of_items(items)] == [("memory", "requested 2Gi, share 0.5"), ("cpu", "requested 2")]


def test_a_refusal_tells_what_would_have_to_be_otherwise_and_else_all_there_is() -> None:
    steps, changes = [Step("a", 1, AT)], [Counterfactual("b", value=False)]
    either = RuleExplained("p", "r", "Rejected", changes=changes, alternatives=[[Counterfactual("c", value=True)]])
    assert of_rejection(either) == [("b", "false"), ("or", ""), ("c", "true")]
    noted = Items({"x": 1}, [])
    assert of_rejection(RuleExplained("p", "r", "Rejected", steps=steps, changes=changes, noted=noted)) == [
        ("b", "false")
    ]
    assert of_rejection(RuleExplained("p", "r", "Rejected", steps=steps, noted=noted)) == [("x", "1")]
    assert of_rejection(RuleExplained("p", "r", "Rejected", steps=steps)) == [("a", "1, at pods[0] (ml/web)")]
    assert of_step(steps[0]) == ("a", "1, at pods[0] (ml/web)")
