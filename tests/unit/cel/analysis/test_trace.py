"""The trace of an expression: the same result, and the value of every part."""

from random import Random
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from differential.cases import case
from differential.data import some_facts
from differential.outcomes import Outcome, describe, error_outcome, on_lowered
from differential.world import env, variable
from fairlead.cel.analysis.trace import ValueTrace
from fairlead.cel.lowering.program import Program
from fairlead.cel.syntax.ast import Call, Node, walk
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.values.errors import Abort, CelError, NotLoweredError

if TYPE_CHECKING:
    from fairlead.cel.syntax.ast import Checked


def traced(program: Program, index: int) -> tuple[Outcome, ValueTrace]:
    facts = some_facts()[index]
    value, trace = program.traced(facts.of_pod)(facts.of_node, facts.now)
    return error_outcome(value) if isinstance(value, CelError | Abort) else Outcome(describe(value)), trace


def program_of(text: str) -> Program:
    return Program(decode(env().compile(text).serialize()))


@settings(max_examples=150, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_a_trace_changes_nothing(random: Random) -> None:
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
        assert traced(program, index)[0] == want, made


def comparisons(checked: "Checked") -> list[Node]:
    """All calls of `==` and `!=`, in the order of the text."""
    return [node for node in walk(checked.root) if isinstance(node, Call) and node.function in ("_==_", "_!=_")]


def test_every_part_has_its_value() -> None:
    program = program_of("[1, 2, 3].exists(x, x == 2) && pod.metadata.name != 'nobody' && size('ab') == 2")
    outcome, trace = traced(program, 0)
    assert outcome == Outcome("True")
    in_loop, *others = comparisons(program.checked)
    assert [trace.values[leaf.id,] for leaf in others] == [True, True]
    (loop,) = trace.around[in_loop.id]
    assert [trace.values[in_loop.id, position] for position in range(2)] == [False, True]
    assert trace.elements == {(loop,): [(1,), (2,)]}


def test_loops_in_loops_are_told_apart() -> None:
    program = program_of("[[1], [2, 3]].all(x, x.exists(y, y == 3))")
    _, trace = traced(program, 0)
    (leaf,) = comparisons(program.checked)
    outer, inner = trace.around[leaf.id]
    assert trace.elements == {(outer,): [([1],)], (inner, 0): [(1,)]}
    outcome, trace = traced(program_of("[[1], [2, 3]].all(x, x.exists(y, y != 3))"), 0)
    assert outcome == Outcome("True")
    assert trace.elements == {(outer,): [([1],), ([2, 3],)], (inner, 0): [(1,)], (inner, 1): [(2,)]}
    assert [place for place in trace.values if place[0] == leaf.id] == [(leaf.id, 0, 0), (leaf.id, 1, 0)]


def test_what_variables_do_in_their_loops_is_not_told() -> None:
    checked = decode(env().compile("[1].exists(x, x == 1) && variables.truth").serialize())
    _, trace = traced(Program(checked, {"truth": variable("[1, 2].all(y, y > 0)")}), 0)
    assert list(trace.elements.values()) == [[(1,)]]


def test_an_error_of_the_whole_is_the_result() -> None:
    value, trace = program_of("[1][1] == 1").traced(some_facts()[0].of_pod)(some_facts()[0].of_node, 0)
    assert isinstance(value, CelError)
    assert [1] in trace.values.values()
