"""Expressions on which lowered code and the engine once differed, found by their comparison."""

import pytest

from differential.cases import Case
from differential.compare import run
from differential.data import DECLARED, some_facts
from differential.outcomes import Outcome

ALL = range(len(some_facts()))
TWICE = "{'a': 1, 'a': 2}.size()"
TOO_LONG = "lists.range(10000).all(i, i >= 0)"


def outcomes(text: str) -> set[str]:
    """What comes of it on all facts; on both sides the same."""
    result = run(Case(text, (), tuple(ALL)))
    assert result.checked is not None, result.why_not
    assert not result.why_not
    assert not result.differences
    assert not result.known
    return {outcome.error or outcome.value for outcome in result.outcomes}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"cel.bind(z, {TWICE}, true ? 1 : z)", "1"),
        (f"cel.bind(z, {TWICE}, 1 / 0 == 1 ? z : z)", "DivideByZero"),
        (f"cel.bind(z, cel.bind(t, {TWICE}, t), 1 / 0 == 1 ? z : z)", "DivideByZero"),
        (f"cel.bind(z, {TWICE}, z)", "abort DuplicateKey"),
        (f"{{'a': 1}}[?'a'].orValue({TWICE})", "1"),
        (f"[1][?0].orValue({TWICE})", "1"),
        (f"optional.of(1).or(optional.of({TWICE})).value()", "1"),
        ("cel.bind(z, lists.range(-1), true ? 1 : z.size())", "1"),
    ],
)
def test_what_nobody_uses_does_not_end_the_evaluation(text: str, outcome: str) -> None:
    assert outcomes(text) == {outcome}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (f"cel.bind(z, {TWICE}, [1 / 0, z])", "abort DuplicateKey"),
        (f"cel.bind(z, {TWICE}, cel.bind(y, z, [1 / 0, y]))", "abort DuplicateKey"),
        (f"cel.bind(z, {TWICE}, [2].map(z, [1 / 0, z]))", "DivideByZero"),
        (f"cel.bind(z, {TOO_LONG}, [1 / 0 > 0, z])", "abort LimitExceeded"),
        ("cel.bind(z, lists.range(9999).all(i, i >= 0), [1 / 0 > 0, z, z])", "DivideByZero"),
    ],
)
def test_what_is_bound_is_computed_where_it_stands_after_an_error_too(text: str, outcome: str) -> None:
    assert outcomes(text) == {outcome}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("string(dyn(optional.of([b'ab'])).value()[0])", "'ab'"),
        ("dyn(optional.of([5u])).value()[0] - 1", "NoSuchOverload"),
        ("math.bitNot(dyn(optional.of([5u])).value()[0])", "18446744073709551610u"),
        ("math.bitNot(dyn(optional.of([5u])).value()[0]) + dyn(1u)", "18446744073709551611u"),
        ("dyn(optional.of({1: ['a']})).value()[1].reverse()", "['a']"),
        ("(dyn(optional.of([{0: 'a'}])).value()[0])[-5]", "NoSuchKey"),
    ],
)
def test_a_type_that_the_checker_made_up_for_what_an_optional_holds_is_not_believed(text: str, outcome: str) -> None:
    assert outcomes(text) == {outcome}


@pytest.mark.parametrize("text", ["size(dyn(data))", "dyn(data).size() + 1", "[dyn(data)].distinct().size()"])
def test_data_is_a_map_where_its_type_is_not_known(text: str) -> None:
    assert outcomes(text).isdisjoint({"NoSuchOverload"})


def test_the_type_of_data_is_that_of_a_map() -> None:
    assert outcomes("type(data) == type({}) && type(dyn(data)) == map") == {"True"}


@pytest.mark.parametrize("text", ["data.{}", "data['{}']", "dyn(data).{}", "dyn(data)['{}']", "data[dyn('{}')]"])
def test_what_is_not_there_is_missing_data(text: str) -> None:
    *_, never = DECLARED
    assert outcomes(text.format(never)) == {"MissingData"}


def test_what_is_the_fault_of_the_engine_is_told_apart() -> None:
    result = run(Case("[5, 6].exists(y, true) ? cel.bind(z, 1, z) : 0", (), (0,)))
    assert not result.differences
    assert len(result.known) == 2


def test_which_nan_is_left_where_two_meet_is_told_apart() -> None:
    result = run(Case("[string(double('NaN') * (0.0 / 0.0))]", (), (0,)))
    assert not result.differences


def test_an_error_in_an_optional_is_told_apart_after_another_error_too() -> None:
    result = run(Case("[1 / 0, dyn(optional.of(1))[4].a]", (), (0,)))
    assert not result.differences
    assert len(result.known) == 2


def test_another_difference_is_not_blamed_on_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Outcome("7")
    monkeypatch.setattr("differential.compare.on_lowered", lambda *_args, **_options: wrong)
    result = run(Case("[5, 6].exists(y, true) ? cel.bind(z, 1, z) : 0", (), (0,)))
    assert not result.known
    assert len(result.differences) == 2
