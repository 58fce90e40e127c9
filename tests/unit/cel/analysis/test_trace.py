"""The trace of an expression: the same result, the value of every part, and leaves that can be forced."""

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from differential.cases import case
from differential.data import some_facts
from differential.outcomes import Outcome, describe, error_outcome, on_lowered
from differential.world import env, variable
from fairlead.cel.analysis.trace import Trace, leaves, loops_around
from fairlead.cel.lowering.program import Program
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.values.errors import Abort, CelError, Kind, NotLoweredError

if TYPE_CHECKING:
    from fairlead.cel.syntax.ast import Checked


def traced(
    program: Program, index: int, force: dict[int, bool] | None = None, at: dict[int, int] | None = None
) -> tuple[Outcome, Trace]:
    facts = some_facts()[index]
    value, trace = program.traced(facts.of_pod, force, at)(facts.of_node, facts.now)
    return error_outcome(value) if isinstance(value, CelError | Abort) else Outcome(describe(value)), trace


def program_of(text: str) -> Program:
    return Program(decode(env().compile(text).serialize()))


@settings(max_examples=150, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
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
        got, trace = traced(program, index)
        assert got == want, made
        if want.error == f"abort {Kind.LIMIT}":
            return  # the loops of a leaf that is forced take no steps
        known = {leaf.id for leaf in leaves(checked)}
        places = [place for place in trace.values if place[0] in known]
        for id_, *positions in random.sample(places, min(len(places), 5)):
            value = trace.values[id_, *positions]
            at = dict(zip(trace.around[id_], positions, strict=True))
            if isinstance(value, bool):
                assert traced(program, index, {id_: value}, at)[0] == want, made


def test_every_part_has_its_value() -> None:
    program = program_of("[1, 2, 3].exists(x, x == 2) && pod.metadata.name != 'nobody' && size('ab') == 2")
    outcome, trace = traced(program, 0)
    assert outcome == Outcome("True")
    in_loop, *others = leaves(program.checked)
    assert [trace.values[leaf.id,] for leaf in others] == [True, True]
    (loop,) = trace.around[in_loop.id]
    assert [trace.values[in_loop.id, position] for position in range(2)] == [False, True]
    assert trace.elements == {(loop,): [(1,), (2,)]}


def test_loops_in_loops_are_told_apart() -> None:
    program = program_of("[[1], [2, 3]].all(x, x.exists(y, y == 3))")
    _, trace = traced(program, 0)
    (leaf,) = leaves(program.checked)
    outer, inner = trace.around[leaf.id]
    assert trace.elements == {(outer,): [([1],)], (inner, 0): [(1,)]}
    outcome, trace = traced(program, 0, {leaf.id: True}, {outer: 0})
    assert outcome == Outcome("True")
    assert trace.elements == {(outer,): [([1],), ([2, 3],)], (inner, 0): [(1,)], (inner, 1): [(2,), (3,)]}
    assert [place for place in trace.values if place[0] == leaf.id] == [(leaf.id, 1, 0), (leaf.id, 1, 1)]


def test_a_leaf_is_forced_at_one_element_only() -> None:
    program = program_of("[1, 2, 3].exists_one(x, x == 4)")
    (leaf,) = leaves(program.checked)
    (loop,) = loops_around(program.checked.root)[leaf.id]
    assert traced(program, 0, {leaf.id: True})[0] == Outcome("False")
    assert traced(program, 0, {leaf.id: True}, {loop: 1})[0] == Outcome("True")


def test_what_variables_do_in_their_loops_is_not_told() -> None:
    checked = decode(env().compile("[1].exists(x, x == 1) && variables.truth").serialize())
    _, trace = traced(Program(checked, {"truth": variable("[1, 2].all(y, y > 0)")}), 0)
    assert list(trace.elements.values()) == [[(1,)]]


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
    value, trace = program_of("[1][1] == 1").traced(some_facts()[0].of_pod)(some_facts()[0].of_node, 0)
    assert isinstance(value, CelError)
    assert [1] in trace.values.values()
