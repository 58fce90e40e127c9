"""Sums of a pair: outcomes by the formula, each once and in any order, and the score until it changes."""

import math
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.learned.pair import (
    AHEAD_MAX_S,
    IDS_KEPT_S,
    IDS_MAX,
    NOTHING,
    Observation,
    OutcomeSums,
    count,
    key_of,
    score,
    time_of,
    value,
    written,
)
from fairlead.time_units import SECOND_NS

HOUR = 3600
BEGIN = 1_764_000_000


def outcome(reward: float, hours: float = 0, *, listed: bool = False, name: str = "") -> Observation:
    at = BEGIN + int(hours * HOUR)
    return Observation("ml/trainer", "ml", "node", at, key_of(name or (reward, hours)), reward, listed)


def counted(outcomes: Sequence[Observation], half_life_h: int, pair: OutcomeSums = NOTHING) -> OutcomeSums:
    return count(pair, outcomes, half_life_h * HOUR, BEGIN + 100 * HOUR if half_life_h > 24 else BEGIN).pair


def test_outcomes_of_one_time() -> None:
    pair, seen = NOTHING, []
    for number, reward in enumerate((0, 0, 0, 1, 1)):
        pair = counted([outcome(reward, name=str(number))], 24, pair)
        seen.append(value(pair, 1.0, 24 * HOUR, BEGIN))
    assert seen == pytest.approx([0.5, 1 / 3, 0.25, 0.4, 0.5])


THREE = [outcome(0, 0, name="x"), outcome(0.5, 6, name="y"), outcome(1, 12, name="z")]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0, 0), (1, 2, 0, 1), (2, 0, 1)])
def test_outcomes_in_any_order(order: Sequence[int]) -> None:
    pair = NOTHING
    for at in order:
        pair = count(pair, [THREE[at]], 12 * HOUR, BEGIN + 12 * HOUR).pair
    assert (pair.rewards, pair.weight) == pytest.approx((1.353553, 2.207107), abs=1e-6)
    assert value(pair, 0.8, 12 * HOUR, BEGIN + 12 * HOUR) == pytest.approx(0.671494, abs=1e-6)
    at_12 = score(pair, 80, 12 * HOUR, (BEGIN + 12 * HOUR) * SECOND_NS)
    at_30 = score(pair, 80, 12 * HOUR, (BEGIN + 30 * HOUR) * SECOND_NS)
    assert (at_12.points, at_30.points) == (67, 72)
    assert at_12.until is not None
    assert at_30.until is not None
    assert at_12.until / SECOND_NS - BEGIN == pytest.approx(48568, abs=1)
    assert at_30.until / SECOND_NS - BEGIN == pytest.approx(117383, abs=1)


def test_what_is_late_does_not_count() -> None:
    pair, late = NOTHING, 0
    for one in reversed(THREE):
        found = count(pair, [one], 12 * HOUR, BEGIN + 12 * HOUR)
        pair, late = written(found.pair), late + found.late
    assert late == 1
    found = count(written(counted_all(THREE[1:])), [THREE[0]], 12 * HOUR, BEGIN + 12 * HOUR)
    assert (found.counted, found.late, found.pair) == (0, 1, pair)
    assert (found.pair.rewards, found.pair.weight) == pytest.approx((1.353553, 1.707107), abs=1e-6)
    assert score(found.pair, 80, 12 * HOUR, (BEGIN + 12 * HOUR) * SECOND_NS).points == 80
    listed = outcome(0, 0, listed=True, name="x")
    assert count(found.pair, [listed], 12 * HOUR, BEGIN + 12 * HOUR).late == 0


def counted_all(outcomes: Sequence[Observation]) -> OutcomeSums:
    return count(NOTHING, outcomes, 12 * HOUR, BEGIN + 12 * HOUR).pair


@pytest.mark.parametrize(("hours", "points"), [(0, 25), (24, 40), (48, 57), (72, 73)])
def test_failures_are_forgotten(hours: int, points: int) -> None:
    pair = counted([outcome(0, name=str(number)) for number in range(3)], 24)
    assert score(pair, 100, 24 * HOUR, (BEGIN + hours * HOUR) * SECOND_NS).points == points


@pytest.mark.parametrize("prior", [0, 80, 100])
def test_no_outcome_is_worth_the_prior_for_ever(prior: int) -> None:
    assert score(NOTHING, prior, HOUR, BEGIN * SECOND_NS) == (prior, None)


@given(
    outcomes=st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 20 * HOUR)), max_size=12),
    prior=st.integers(0, 100),
    half_life=st.sampled_from([600, 6 * HOUR, 720 * HOUR]),
    after=st.integers(-HOUR, 40 * HOUR),
    at=st.floats(0, 1),
)
def test_a_score_holds_until_it_says(
    outcomes: list[tuple[float, int]], prior: int, half_life: int, after: int, at: float
) -> None:
    given = [outcome(reward, at / HOUR, name=str(number)) for number, (reward, at) in enumerate(outcomes)]
    pair = count(NOTHING, given, half_life, BEGIN).pair
    now = (BEGIN + after) * SECOND_NS
    found = score(pair, prior, half_life, now)
    if found.until is None:
        assert score(pair, prior, half_life, now + 10_000 * HOUR * SECOND_NS).points == found.points
        return
    assert found.until > now
    assert score(pair, prior, half_life, now + math.floor(at * (found.until - 1 - now))).points == found.points
    assert score(pair, prior, half_life, found.until - 1).points == found.points
    assert abs(score(pair, prior, half_life, found.until + SECOND_NS).points - prior) <= abs(found.points - prior)


@given(st.lists(st.integers(0, 40 * 60), min_size=1, max_size=40), st.randoms())
def test_order_and_repeats_change_nothing(minutes: list[int], random: Random) -> None:
    given = [outcome(at % 2, at / 60, name=str(number)) for number, at in enumerate(minutes)]
    shuffled = [*given, *given]
    random.shuffle(shuffled)
    expected, pair = count(NOTHING, given, 6 * HOUR, BEGIN).pair, NOTHING
    for one in shuffled:
        pair = count(pair, [one], 6 * HOUR, BEGIN).pair
    assert (pair.rewards, pair.weight) == pytest.approx((expected.rewards, expected.weight), abs=1e-12)
    assert (pair.at, pair.marks) == (expected.at, expected.marks)


def test_ids_are_kept_for_a_quarter_of_an_hour() -> None:
    given = [outcome(1, minute / 60, name=str(minute)) for minute in range(40)]
    pair = written(counted(given, 24))
    assert pair.left_out == given[24].mark
    assert [mark[0] for mark in pair.marks] == [one.at for one in given[25:]]
    assert pair.marks[0][0] > pair.at - IDS_KEPT_S
    assert written(pair) is pair


def test_ids_are_at_most_256() -> None:
    given = [outcome(1, name=str(number)) for number in range(IDS_MAX + 3)]
    pair = written(counted(given, 24))
    assert len(pair.marks) == IDS_MAX
    assert pair.left_out == sorted(one.mark for one in given)[2]


def test_what_weighs_nothing_does_not_count() -> None:
    old, recent = outcome(0, -8 * 6, name="old"), outcome(0, -7 * 6, name="recent")
    found = count(NOTHING, [old, recent], 6 * HOUR, BEGIN)
    assert (found.counted, found.late, found.pair.marks) == (1, 0, (recent.mark,))


@pytest.mark.parametrize(
    ("ahead", "listed", "expected"),
    [(-5, False, -5), (AHEAD_MAX_S, True, AHEAD_MAX_S), (AHEAD_MAX_S + 1, False, 0), (AHEAD_MAX_S + 1, True, None)],
)
def test_times_ahead_of_the_clock(*, ahead: int, listed: bool, expected: int | None) -> None:
    found = time_of(BEGIN + ahead, BEGIN, listed=listed)
    assert found == (None if expected is None else BEGIN + expected)


def test_the_namespace_is_that_of_the_newest_outcome() -> None:
    ours, theirs = outcome(1, 1, name="a"), Observation("ml/trainer", "other", "node", BEGIN, "b", 1.0)
    for order in ([ours, theirs], [theirs, ours]):
        assert counted(order, 24).namespace == "ml"
        assert counted([order[1]], 24, counted([order[0]], 24)).namespace == "ml"


def test_a_score_above_the_prior_holds_until_it_is_nearer_by_a_point() -> None:
    found = score(OutcomeSums(1.0, 1.0, 1000), 0, 21_600, 1000 * SECOND_NS)
    assert found.points == 50
    assert found.until is not None
    assert abs(found.until / SECOND_NS - 1623.27) < 1
