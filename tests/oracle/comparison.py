"""Compare an overload here with the engine's, on generated operands."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.cel.functions.overloads import FUNCTIONS
from fairlead.cel.functions.time_text import duration_to_string, timestamp_to_string
from fairlead.cel.values.value_types import Some
from oracle.engine import ask, outcome_of, overloads_of
from oracle.literals import literal

Case = tuple[str, *tuple[st.SearchStrategy[object], ...]]
"""An expression with a place for each operand, and the operands to try."""

EXAMPLES = int(os.environ.get("FAIRLEAD_EXAMPLES", "60"))

thorough = settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))

# The engine's Python types cut moments to microseconds.
_EXACT: dict[str, Callable[[int], str]] = {"Timestamp": timestamp_to_string, "Duration": duration_to_string}


def compare_overload(
    overload: str, template: str, *operands: st.SearchStrategy[object], dyn: bool = False, unwrap: bool = False
) -> None:
    """Fail with the expression on which the two differ; the checker has to choose this overload for it.

    With `dyn` the operands have no types for the checker, and with `unwrap` the result is an optional.
    """
    function = FUNCTIONS[overload]
    seen = False

    @thorough
    @given(st.tuples(*operands))
    def compare(arguments: tuple[object, ...]) -> None:
        nonlocal seen
        expression = template.format(*(literal(argument, dyn=dyn) for argument in arguments))
        if not seen:
            assert overload in overloads_of(expression)
            seen = True
        compare_call(function, arguments, expression, unwrap=unwrap)

    compare()


def compare_call(
    function: Callable[..., Any], arguments: Sequence[object], expression: str, *, unwrap: bool = False
) -> None:
    """Fail if a call here and the expression on the engine differ."""
    if unwrap:
        ours = outcome_of(lambda: _content(function(*arguments)))
        expression = f"cel.bind(o, {expression}, o.hasValue() ? [dyn(o.value())] : [])"
    else:
        ours = outcome_of(function, *arguments)
    if write := _EXACT.get(ours.value.partition(" ")[0]):
        ours = outcome_of(lambda: write(function(*arguments)))
        expression = f"string({expression})"
    assert ours == ask(expression), expression


def _content(optional: object) -> list[object]:
    return [optional.value] if isinstance(optional, Some) else []
