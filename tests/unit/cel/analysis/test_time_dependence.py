"""Rules that read `now` say until when they hold: never too late, and where it can be told, exactly."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from differential.cases import case
from differential.data import some_facts
from differential.outcomes import Outcome, describe, error_outcome, on_lowered
from differential.world import env, variable
from fairlead.cel.analysis.expiry import ExpiryTracker
from fairlead.cel.analysis.time_dependence import unit_of_fields
from fairlead.cel.lowering.program import Program, translate_error
from fairlead.cel.lowering.pyast import CAUGHT
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.values.errors import Abort
from support.examples import MANY

SECOND: Final = 1_000_000_000
NOW: Final = 1_800_000_000 * SECOND  # 2027-01-15T08:00:00Z
DAYS: Final = 86_400 * SECOND
FOR_EVER: Final = None


def program_of(text: str, variables: Mapping[str, str] | None = None) -> Program:
    trees = {name: variable(held) for name, held in (variables or {}).items()}
    return Program(decode(env().compile(text).serialize()), trees)


def asked(program: Program, now: int, index: int = 0) -> tuple[Outcome, int | None]:
    facts, ends = some_facts()[index], ExpiryTracker()
    try:
        outcome = Outcome(describe(program.noting(facts.of_pod, ends.note)(facts.of_node, now)))
    except (*CAUGHT, Abort) as error:
        outcome = error_outcome(error if isinstance(error, Abort) else translate_error(error))
    return outcome, ends.until(now)


HOLDS: Final = {
    "now < timestamp('2027-01-15T08:00:30Z')": 30 * SECOND,
    "now <= timestamp('2027-01-15T08:00:30Z')": 30 * SECOND + 1,
    "timestamp('2027-01-15T08:00:30Z') > now": 30 * SECOND,
    "timestamp('2027-01-15T08:00:30Z') >= now": 30 * SECOND + 1,
    "now > timestamp('2027-01-15T08:00:30Z')": 30 * SECOND + 1,
    "now >= timestamp('2027-01-15T08:00:30Z')": 30 * SECOND,
    "now == timestamp('2027-01-15T08:00:30Z')": 30 * SECOND,
    "now != timestamp('2027-01-15T08:00:00Z')": 1,
    "now >= timestamp('2027-01-15T08:00:00Z')": FOR_EVER,
    "now > timestamp('2027-01-15T08:00:00Z')": 1,
    "now < timestamp('2020-01-15T08:00:00Z')": FOR_EVER,
    "now - timestamp('2027-01-15T07:59:00Z') > duration('90s')": 30 * SECOND + 1,
    "timestamp('2027-01-15T09:00:00Z') - now < duration('50m')": 600 * SECOND + 1,
    "now + duration('1h') < timestamp('2027-01-15T10:00:00Z')": 3_600 * SECOND,
    "now - now == duration('0s')": None,
    "now - timestamp('2027-01-15T07:59:58Z') > timestamp('2027-01-15T08:00:10Z') - now": 4 * SECOND + 1,
    "now.getHours() >= 22": 3_600 * SECOND,
    "(now + duration('1800s')).getHours() >= 22": 1_800 * SECOND,
    "now.getDayOfWeek() == 5": 16 * 3_600 * SECOND,
    "now.getFullYear() == 2027": 16 * 3_600 * SECOND,
    "now.getSeconds() < 7": SECOND,
    "now.getMilliseconds() < 7": SECOND // 1000,
    "int(now) % 7 == 0": SECOND,
    "(timestamp('2027-01-15T08:59:59Z') - now).getMinutes() == 59": 59 * SECOND,
    "(now - timestamp('2027-01-15T08:59:59Z')).getMinutes() == -59": 59 * SECOND,
    "(timestamp('2027-01-15T08:00:01.000000001Z') - now).getSeconds() == 1": 1,
    "(now - timestamp('2027-01-15T08:59:00Z')).getMinutes() == -59": 1,
    "now - timestamp('2320-01-01T00:00:00Z') < duration('0s')": 1,  # too far away for a duration, until it is not
    "[1, 2, 3].exists(x, now < timestamp('2027-01-15T08:00:00Z') + duration(string(x) + 's'))": SECOND,
    "cel.bind(age, now - timestamp('2027-01-15T07:59:00Z'), age > duration('90s') || age > duration('70s'))": (
        10 * SECOND + 1
    ),
    "true ? now < timestamp('2027-01-15T08:00:30Z') : now < timestamp('2027-01-15T08:00:20Z')": 30 * SECOND,
    "(now.getHours() > 1 ? now : now + duration('1s')) < timestamp('2027-01-15T08:00:30Z')": 30 * SECOND,
    "pod.metadata.name == 'nobody' && now < timestamp('2027-01-15T08:00:30Z')": FOR_EVER,
    "pod.metadata.labels['nobody'] == 'a' && now < timestamp('2027-01-15T08:00:30Z')": 30 * SECOND,
}


@pytest.mark.parametrize(("text", "after"), HOLDS.items())
def test_until_when_it_holds(text: str, after: int | None) -> None:
    program = program_of(text)
    assert program.watched is not None
    _, until = asked(program, NOW)
    if after is FOR_EVER:
        assert until is None or until > NOW + 50 * 365 * DAYS  # when 64 bits have no room for it
    else:
        assert until is not None
        assert until - NOW == after


def test_a_variable_of_the_policy_says_it_too() -> None:
    held = {"truth": "now < timestamp('2027-01-15T08:00:30Z')"}
    program = program_of("variables.truth || pod.metadata.name == 'nobody'", held)
    assert asked(program, NOW) == (Outcome("True"), NOW + 30 * SECOND)


@pytest.mark.parametrize(
    "text",
    [
        "string(now) == 'x'",
        "[now] == [timestamp(0)]",
        "[now].exists(t, t < timestamp(0))",
        "optional.of(now).value() < timestamp(0)",
        "now in [timestamp(0)]",
        "dyn(now) < timestamp(0)",
        "now == dyn(timestamp(0))",
        "(pod.metadata.name == '' ? now : timestamp(0)) < timestamp(0)",
        "(timestamp(0) - (now - timestamp(0))).getHours() == 1",
        "(now + (now - timestamp(0))).getHours() == 1",
        "now",
    ],
)
def test_what_does_something_else_with_the_time_says_nothing(text: str) -> None:
    assert program_of(text).watched is None


@pytest.mark.parametrize(
    ("text", "unit"),
    {
        "now.getHours('Europe/Berlin') >= 22": 60 * SECOND,
        "now.getHours() >= 22": 3_600 * SECOND,
        "now.getSeconds('UTC') == 1 && now.getDayOfWeek() == 1": SECOND,
        "now.getHours() >= 22 || now > timestamp(0)": None,
        "1 == 1": None,
    }.items(),
)
def test_what_asks_for_fields_only_holds_for_their_unit(text: str, unit: int | None) -> None:
    assert unit_of_fields(decode(env().compile(text).serialize()), {}) == unit


_MOMENTS = ("now", "now", "timestamp('2027-01-15T08:00:01Z')", "timestamp('2027-01-15T07:58:59.999999999Z')")
_SPANS = ("duration('1s')", "duration('-90s')", "duration('3ns')", "duration('0s')", "duration('9000000000s')")
_EDGES = (
    "timestamp('9999-12-31T23:59:59Z')",
    "timestamp(-7423372036)",
    "timestamp(11023372036)",
    "timestamp(11023372037)",
)
_FIELDS = ("getHours()", "getMinutes()", "getSeconds()", "getMilliseconds()")


def _moment(pick: Random, depth: int) -> str:
    if depth == 0 or pick.random() < 0.4:
        return pick.choice(_MOMENTS if pick.random() < 0.8 else _EDGES)
    return f"({_moment(pick, depth - 1)} {pick.choice('+-')} {_span(pick, depth - 1)})"


def _span(pick: Random, depth: int) -> str:
    if depth == 0 or pick.random() < 0.3:
        return pick.choice(_SPANS)
    if pick.random() < 0.6:
        return f"({_moment(pick, depth - 1)} - {_moment(pick, depth - 1)})"
    return f"({_span(pick, depth - 1)} {pick.choice('+-')} {_span(pick, depth - 1)})"


def _truth(pick: Random, depth: int) -> str:
    sign = pick.choice(("<", "<=", ">", ">=", "==", "!="))
    kinds: list[Callable[[], str]] = [
        lambda: f"{_moment(pick, 2)} {sign} {_moment(pick, 2)}",
        lambda: f"{_span(pick, 2)} {sign} {_span(pick, 2)}",
        lambda: f"{_moment(pick, 1)}.{pick.choice(_FIELDS)} {sign} {pick.randint(-2, 60)}",
        lambda: f"{_span(pick, 2)}.{pick.choice(_FIELDS)} {sign} {pick.randint(-2, 60)}",
    ]
    if depth:
        kinds += [
            lambda: f"({_truth(pick, depth - 1)} {pick.choice(('&&', '||'))} {_truth(pick, depth - 1)})",
            lambda: f"!({_truth(pick, depth - 1)})",
            lambda: f"({_truth(pick, depth - 1)} ? {_truth(pick, depth - 1)} : {_truth(pick, depth - 1)})",
            lambda: f"[1, 2].exists(x, x == 2 && {_truth(pick, depth - 1)})",
            lambda: f"cel.bind(t, {_moment(pick, 1)}, t {sign} {_moment(pick, 1)} || {_truth(pick, depth - 1)})",
        ]
    return pick.choice(kinds)()


@settings(max_examples=MANY, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_nothing_changes_before_it_is_said_to(pick: Random) -> None:
    program = program_of(_truth(pick, 2))
    if program.watched is None:
        return
    now = NOW + pick.choice((0, 1, -1, pick.randint(-100, 100), pick.randint(-100 * SECOND, 100 * SECOND)))
    outcome, until = asked(program, now)
    assert until is None or until > now
    end = 400 * 365 * DAYS + now if until is None else until
    for moment in {now + 1, end - 1, (now + end) // 2, pick.randint(now, end - 1)}:
        if now < moment < end:
            assert asked(program, moment)[0] == outcome, (moment - now, end - now)


@settings(max_examples=150, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_noting_changes_no_result(random: Random) -> None:
    made = case(random)
    try:
        program = program_of(made.text, dict(made.variables))
        program.check()
    except Exception:  # noqa: BLE001 - refused by the checker, or left to the engine
        return
    if program.watched is None:
        return
    for index in made.facts[:1]:
        facts: Any = some_facts()[index]
        assert asked(program, facts.now, index)[0] == on_lowered(program, index, plain=True), made
