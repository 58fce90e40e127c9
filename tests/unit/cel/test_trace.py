"""The trace of an expression: the same result, the value of every part, and leaves that can be forced."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from differential.cases import case
from differential.data import some_facts
from differential.outcomes import Outcome, describe, error_outcome, on_lowered
from differential.world import env, variable
from fairlead.cel.checked import Checked, Comprehension, decode, walk
from fairlead.cel.errors import Abort, CelError, Kind
from fairlead.cel.lowering.builder import NotLoweredError
from fairlead.cel.lowering.leaves import leaves
from fairlead.cel.lowering.program import Program


def traced(program: Program, index: int, force: dict[int, bool] | None = None) -> tuple[Outcome, dict[int, object]]:
    facts = some_facts()[index]
    value, values = program.traced(facts.of_pod, force)(facts.of_node, facts.now)
    return error_outcome(value) if isinstance(value, CelError | Abort) else Outcome(describe(value)), values


def program_of(text: str) -> Program:
    return Program(decode(env().compile(text).serialize()))


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_a_trace_changes_nothing_and_neither_does_forcing_a_leaf_to_its_own_value(random: Random) -> None:
    made = case(random)
    try:
        checked: Checked = decode(env().compile(made.text).serialize())
    except Exception:  # noqa: BLE001 - refused by the checker
        return
    program = Program(checked, {name: variable(text) for name, text in made.variables})
    try:
        program.check()
    except NotLoweredError:
        return
    for index in made.facts[:1]:
        want = on_lowered(program, index, plain=True)
        got, values = traced(program, index)
        assert got == want, made
        if want.error == f"abort {Kind.LIMIT}":
            return  # the loops of a leaf that is forced take no steps
        for leaf in leaves(checked):
            value = values.get(leaf.id)
            if isinstance(value, bool) and leaf.id not in in_loops(checked):
                assert traced(program, index, {leaf.id: value})[0] == want, made


def in_loops(checked: Checked) -> set[int]:
    """What is evaluated more than once has no value of its own."""
    return {part.id for node in walk(checked.root) if isinstance(node, Comprehension) for part in walk(node)}


def test_every_part_has_its_value() -> None:
    program = program_of("[1, 2, 3].exists(x, x == 2) && pod.metadata.name != 'nobody' && size('ab') == 2")
    outcome, values = traced(program, 0)
    assert outcome == Outcome("True")
    shown = {leaf.id: values[leaf.id] for leaf in leaves(program.checked)}
    assert list(shown.values()) == [True, True, True]
    assert 2 in values.values()


@pytest.mark.parametrize(
    ("text", "want"),
    {
        "1 == 1 && 2 == 3": "True",
        "1 / 0 == 1 || 2 == 3": "True",
        "[1, 2].all(x, x == 3)": "True",
    }.items(),
)
def test_a_leaf_can_be_forced_even_where_it_raises(text: str, want: str) -> None:
    program = program_of(text)
    forced = {leaf.id: True for leaf in leaves(program.checked)}
    assert traced(program, 0, forced)[0] == Outcome(want)


def test_an_error_of_the_whole_is_the_result() -> None:
    value, values = program_of("[1][1] == 1").traced(some_facts()[0].of_pod)(some_facts()[0].of_node, 0)
    assert isinstance(value, CelError)
    assert [1] in values.values()
