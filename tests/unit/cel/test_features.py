"""The tables in the reference are those of today, and what they say is so."""

import re
from typing import Final

import pytest
from generate import features
from generate.language_functions import FUNCTIONS, MACROS, Entry
from generate.signatures import signatures

from fairlead.cel.check import BOOL, Environment, ExpressionError, check
from fairlead.cel.engine import evaluate
from fairlead.cel.engine.environment import RULE
from fairlead.cel.functions.overloads import FUNCTIONS as OVERLOADS
from fairlead.cel.functions.overloads import LEFT_TO_THE_ENGINE, PATTERN_METHODS
from fairlead.policy.compile.expression import CompiledExpression

ENTRIES: Final = {name: entry for group in (*FUNCTIONS.values(), MACROS) for name, entry in group.items()}
WRITTEN_OTHERWISE: Final = ("add_", "subtract_", "@mapInsert", "select_optional_field")
"""Operators, and what macros are made of."""


def test_the_reference_tells_of_functions_and_of_what_is_lowered() -> None:
    assert features.page() == features.PAGE.read_text(), "run make crds"


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_the_example_gives_what_is_stated(entry: Entry) -> None:
    expression = check(f"({entry.example}) == ({entry.gives})", Environment(RULE), BOOL)
    assert evaluate.evaluate(expression.compiled, {}).value() is True
    assert CompiledExpression(expression).for_pod(None)(None, 0) is True


SAID: Final = {
    "pod.spec.prority > 0": "PodSpec has no field `prority`; did you mean `priority`?",
    "free['cpu'] >= 2": "write `2.0`",
    "pod.metadata.managedFields.size() > 0": "no field `managedFields`",
    "kubernetes.Pod{} == pod": "objects cannot be constructed",
    "pods.exists(p, p.metadata.annotations.size() > 0)": "only with a literal key",
    "pods.exists(p, p.metadata.annotations[pod.metadata.name] == '')": "only with a literal key",
}


@pytest.mark.parametrize(("text", "want"), SAID.items())
def test_what_the_reference_says_is_refused_is(text: str, want: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(want)):
        check(text, Environment(RULE), BOOL)


def test_no_function_is_left_out() -> None:
    known = {
        one for group in FUNCTIONS.values() for name in group for each in signatures(name) for one in each.overloads
    }
    left = {*OVERLOADS, *PATTERN_METHODS, *LEFT_TO_THE_ENGINE} - known
    assert {
        name
        for name in left
        if not name.startswith(WRITTEN_OTHERWISE) and "opt" not in name and "AssociatedKeys" not in name
    } == {"duration_to_int64", "int64_to_duration"}


def test_every_function_can_be_called() -> None:
    assert [name for group in FUNCTIONS.values() for name in group if not list(signatures(name))] == []
