"""What the engine says is sorted into the kinds that both evaluators count by."""

import pytest

from fairlead.cel.engine.evaluate import evaluate
from fairlead.cel.values.errors import Abort, CelError, Kind
from oracle import ask
from oracle.engine import environment

EXPRESSIONS = {
    '{"a": 1}["b"]': Kind.NO_SUCH_KEY,
    '{"a": 1}.b': Kind.NO_SUCH_KEY,
    "{1: 1}[dyn(1.5)]": Kind.NO_SUCH_KEY,
    "[1][5]": Kind.INDEX,
    "[1][dyn(0.5)]": Kind.NO_OVERLOAD,
    "9223372036854775807 + 1": Kind.OVERFLOW,
    "0u - 1u": Kind.OVERFLOW,
    "math.abs(-9223372036854775808)": Kind.OVERFLOW,
    'timestamp("9999-12-31T23:59:59Z") + duration("1s")': Kind.OVERFLOW,
    'duration("315576000001s")': Kind.OVERFLOW,
    'duration("-315576000001s")': Kind.OVERFLOW,
    "1 / 0": Kind.DIVIDE_BY_ZERO,
    "1u % 0u": Kind.DIVIDE_BY_ZERO,
    'int("x")': Kind.CONVERSION,
    'bool("x")': Kind.CONVERSION,
    'timestamp("x")': Kind.CONVERSION,
    "int(1e30)": Kind.CONVERSION,
    'string(b"\\xff")': Kind.CONVERSION,
    'base64.decode("x")': Kind.CONVERSION,
    "dyn(1) + dyn(1u)": Kind.NO_OVERLOAD,
    "dyn(1).a": Kind.NO_OVERLOAD,
    "{dyn(1.5): 1}": Kind.NO_OVERLOAD,
    "optional.none().value()": Kind.NO_VALUE,
    '"a".charAt(5)': Kind.ARGUMENT,
    '"a".indexOf("a", 5)': Kind.ARGUMENT,
    "[1].slice(0, 5)": Kind.ARGUMENT,
    '"a".matches("(")': Kind.PATTERN,
    'regex.replace("a", "a", "\\\\1")': Kind.PATTERN,
    "math.bitShiftLeft(1, -1)": Kind.ARGUMENT,
}
ABORTING = {
    "{1: 1, 1: 2}": Kind.DUPLICATE_KEY,
    "lists.range(20000).all(x, true) || true": Kind.LIMIT,
    "lists.range(-1) == [] || true": Kind.LIMIT,
}


SAID = {
    "dyn(1) < dyn('a')": "No matching overloads found : <(int, string)",
    "dyn(1) == 1 && dyn('a') in dyn(1)": "No matching overloads found : in",
    "math.greatest(dyn('a'), dyn(1)) == dyn(1)": "No matching overloads found : math.greatest(string, int)",
    "{'a': 1}['b'] == 1": 'Key not found in map : "b"',
    "lists.range(-1) == []": "a list cannot have so many items",
}


@pytest.mark.parametrize(("expression", "want"), SAID.items())
def test_what_the_engine_says_is_in_words_of_the_language(expression: str, want: str) -> None:
    with pytest.raises((CelError, Abort)) as raised:
        evaluate(environment().compile(expression), {})
    assert str(raised.value) == want


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_error_has_its_kind(expression: str) -> None:
    outcome = ask(expression)
    assert (outcome.error, outcome.aborted) == (EXPRESSIONS[expression], False)


@pytest.mark.parametrize("expression", ABORTING)
def test_what_ends_the_evaluation_has_its_kind(expression: str) -> None:
    outcome = ask(expression)
    assert (outcome.error, outcome.aborted) == (ABORTING[expression], True)
