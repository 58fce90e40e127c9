"""Decisions that are kept: what waits, what had an effect, and a sample of the rest."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.time_units import SECOND_NS
from fairlead.webhook.decisions import kept_decisions
from fairlead.webhook.decisions.decision_record import BestNode, DecisionRecord, Effect, RuleRejections
from fairlead.webhook.decisions.kept_decisions import EFFECTS, PLACED, WAITING, KeptDecisions


def record(pod: str, at_s: float = 0.0, passed: int = 1, *, reason: str = "no") -> DecisionRecord:
    rules = (RuleRejections("p", "r", reason, 2 - passed, ("a",)),)
    time_ns, result = int(at_s * SECOND_NS), "refused" if passed else "empty"
    return DecisionRecord(
        time_ns, "s", "ns", pod, f"u-{pod}", result, 2, passed, 0.1, rules=rules, size=700 + len(reason)
    )


def names(kept: KeptDecisions) -> list[str]:
    return [one.name for one in kept.records]


def filled(*records: DecisionRecord) -> KeptDecisions:
    kept = KeptDecisions()
    for one in records:
        kept.add(one)
    return kept


def test_one_placement_a_second_is_kept_and_each_pod_that_waits() -> None:
    kept = filled(record("a", 1), record("b", 1.5), record("c", 1.9, 0), record("d", 2.1))
    assert names(kept) == ["d", "c", "a"]


def test_a_clock_that_went_back_samples_on() -> None:
    assert names(filled(record("a", 50), record("b", 10))) == ["a", "b"]


def test_the_last_attempt_of_a_pod_stays_with_their_number_and_its_placement_is_kept() -> None:
    kept = filled(record("other", 1), record("a", 1.1, 0), record("a", 1.2, 0), record("a", 1.3))
    kept.set_node("u-a", "n")
    [last, _] = kept.records
    assert (last.name, last.passed, last.attempts, last.node) == ("a", 1, 3, "n")


def test_a_pod_that_was_left_without_a_node_and_got_one_all_the_same_waits_no_more() -> None:
    kept = filled(record("a", 1, 0))
    kept.set_node("u-a", "n")
    kept.add(record("a", 9, 0))
    assert [(one.node, one.attempts) for one in kept.records] == [("", 1), ("n", 1)]


@pytest.mark.parametrize(("second", "passed", "rules"), [(0, 0, 2), (1, 1, 2)])
def test_what_the_other_entry_says_is_of_the_same_decision(second: int, passed: int, rules: int) -> None:
    kept = filled(record("a", 1))
    kept.add_second_entry(record("a", 1.1, second))
    [one] = kept.records
    assert (one.passed, len(one.rules), one.leaves_no_node) == (passed, rules, passed == 0)
    assert kept.records == [one]


def test_the_other_entry_alone() -> None:
    kept = KeptDecisions()
    kept.add_second_entry(record("a", 1, 0))
    assert names(kept) == ["a"]


def undecided(pod: str, at_s: float) -> DecisionRecord:
    """A call about which no policy of its entry decides."""
    return DecisionRecord(int(at_s * SECOND_NS), "s", "ns", pod, f"u-{pod}", "passed", 2, 2, 0.1, is_decided=False)


def test_each_attempt_whose_other_entry_rejects_is_a_record_of_its_own() -> None:
    kept = KeptDecisions()
    for at in range(3):
        kept.add(undecided("a", at))
        kept.add_second_entry(record("a", at, 0))
    [last] = kept.records
    assert (last.time_ns, last.attempts, last.passed, len(last.rules)) == (2 * SECOND_NS, 3, 0, 1)


def test_nodes_pass_where_the_other_entry_fails() -> None:
    kept = filled(record("a", 1))
    failed = DecisionRecord(SECOND_NS, "s", "ns", "a", "u-a", "error", 0, 0, 0.1, error="too slow")
    kept.add_second_entry(failed)
    [one] = kept.records
    assert (one.passed, one.result, one.error, one.leaves_no_node) == (1, "refused", "too slow", False)


def test_a_call_about_which_nothing_decides_is_kept_for_its_effect_or_its_points_only() -> None:
    kept = filled(undecided("a", 1), undecided("b", 2), undecided("c", 3))
    assert names(kept) == []
    kept.add_effect("u-b", Effect("p", ("unschedulable",)))
    kept.add_points(record("c", 3.1), (BestNode("n", 1),))
    assert [(one.name, one.candidates, len(one.effects), len(one.best)) for one in kept.records] == [
        ("c", 2, 0, 1),
        ("b", 2, 1, 0),
    ]


def test_each_attempt_that_is_only_scored_is_a_record_of_its_own() -> None:
    kept = KeptDecisions()
    for at in range(3):
        kept.add_points(record("a", at), (BestNode(f"n{at}", 1),))
    [last] = kept.records
    assert (last.time_ns, last.best) == (2 * SECOND_NS, (BestNode("n2", 1),))


def test_best_nodes_and_node_of_a_pod_that_is_not_kept_otherwise_go_with_it() -> None:
    kept = filled(record("a", 1), record("b", 1.1))
    kept.add_points(record("b", 1.2), (BestNode("n", 3),))
    kept.set_node("u-b", "n")
    assert names(kept) == ["a"]
    kept.add_effect("u-b", Effect("p", ("restricted",)))
    [effect] = [one for one in kept.records if one.effects]
    assert (effect.name, effect.best, effect.node) == ("b", (BestNode("n", 3),), "n")


def test_effects_of_each_policy_are_few_and_end_with_the_policy() -> None:
    kept = filled(record("first", 0))
    for at in range(EFFECTS + 3):
        kept.add(record(f"{at}", 0.1))
        for policy in ("p", "q"):
            kept.add_effect(f"u-{at}", Effect(policy, ("restricted",)))
    assert len(kept.records) == EFFECTS + 1
    kept.retain_policies(frozenset({"p"}))
    kept.retain_policies(frozenset())
    assert names(kept) == ["first"]


def test_an_effect_on_a_pod_that_is_forgotten_is_nothing() -> None:
    kept = KeptDecisions()
    kept.add_effect("u-a", Effect("p", ("restricted",)))
    assert kept.records == []


@pytest.mark.parametrize(
    ("made", "most"), [(lambda at: record(f"{at}", at), PLACED), (lambda at: record(f"{at}", at, 0), WAITING)]
)
def test_the_oldest_go_first(made: Callable[[int], DecisionRecord], most: int) -> None:
    kept = filled(*map(made, range(most + 5)))
    assert names(kept) == [f"{at}" for at in reversed(range(5, most + 5))]


_STEP = st.tuples(
    st.sampled_from(("add", "second", "node", "effect", "best", "retain")),
    st.integers(0, 20),
    st.integers(0, 1),
    st.integers(0, 2000),
)


@given(steps=st.lists(_STEP, max_size=60))
@example(steps=[("add", 0, 0, 0), ("effect", 0, 0, 0), ("second", 0, 0, 0)])
def test_they_are_within_their_limit_and_sizes_are_as_counted(steps: list[tuple[str, int, int, int]]) -> None:
    kept = KeptDecisions(limit=20_000)
    for at, (step, pod, passed, length) in enumerate(steps):
        match step:
            case "add":
                kept.add(record(f"{pod}", at, passed, reason="x" * length))
            case "second":
                kept.add_second_entry(record(f"{pod}", at, passed, reason="x" * length))
            case "node":
                kept.set_node(f"u-{pod}", "n")
            case "effect":
                kept.add_effect(f"u-{pod}", Effect(f"p{length % 3}", ("restricted",)))
            case "best":
                kept.add_points(record(f"{pod}", at, reason="x" * length), (BestNode("n", 1),))
            case _:
                kept.retain_policies(frozenset({f"p{length % 3}"}))
        assert kept.size <= kept.limit
        rings = list(kept._rings)
        assert kept.size == sum(ring.size for ring in rings)
        assert all(ring.size == sum(one.size for one in ring.records.values()) for ring in rings)
        assert all(one.leaves_no_node for one in kept._waiting.records.values())
    assert kept_decisions.BYTES == 8 << 20
