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


ON_THE_ENGINE = {
    "dyn(pod.spec.priority) == 1": "type is known only at run time",
    "[1, 'a'].size() == 2": "type is known only at run time",
    "([1] + dyn(['a']))[0] == 1": "type is known only at run time",
    "{'a': 1, 'b': 'c'}.size() == 2": "type is known only at run time",
    "pod.spec.containers[0].livenessProbe.httpGet.port + 1 == 81": "type is known only at run time",
    "string(pod.spec.containers[0].livenessProbe.httpGet.port) == ''": "type is known only at run time",
    "[[1], [2]].flatten(1).size() == 2": "type is known only at run time",
    "[1, 2].flatten().size() == 2": "type is known only at run time",
    "(true ? null : pod.spec) == pod.spec": "null",
    "[pod.spec, null].size() == 2": "null",
    "{true: 1}.size() == 1": "keys of type bool",
    "optional.of(optional.of(1)).hasValue()": "an optional in an optional",
    "optional.of([1])[0].hasValue()": "bad index into an optional",
    "math.bitAnd(6, 3) == 2": "a rare function",
}


@pytest.mark.parametrize(("text", "why"), ON_THE_ENGINE.items(), ids=ON_THE_ENGINE)
def test_what_lowered_code_cannot_be_sure_of_runs_on_the_engine(text: str, why: str) -> None:
    assert why in run(Case(text, (), (0,))).why_not


@pytest.mark.parametrize(
    "text",
    [
        "{}[0].livenessProbe.httpGet.port == 80",
        "{}.exists(c, c.livenessProbe.httpGet.port == 'http' || c.ports == [])",
        "{0}[0].livenessProbe.httpGet.port != {0}[0].readinessProbe.httpGet.port",
        "has({}[0].livenessProbe.httpGet.port)",
        "[].size() + {{}}.size() == 0 && !optional.none().hasValue()",
    ],
)
def test_a_field_that_is_a_number_or_a_text_is_compared_and_what_is_empty_has_a_type(text: str) -> None:
    assert outcomes(text.format("pod.spec.containers"))


def test_the_type_of_data_is_that_of_a_map() -> None:
    assert outcomes("type(data) == type({'a': 1.0}) && type(data) == map") == {"True"}


@pytest.mark.parametrize("text", ["data.{}", "data['{}']", "[data][0].{}", "data['' + '{}']"])
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


def test_another_difference_is_not_blamed_on_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Outcome("7")
    monkeypatch.setattr("differential.compare.on_lowered", lambda *_args, **_options: wrong)
    result = run(Case("[5, 6].exists(y, true) ? cel.bind(z, 1, z) : 0", (), (0,)))
    assert not result.known
    assert len(result.differences) == 2
