"""The work on a policy between two pauses is little, whatever the policy is.

Calls are counted, not time: of Python's functions and of those that it calls. A machine that serves does ten of them in
a microsecond or two. What a single call of C may take is held by sizes.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from fairlead.api.field_docs import read_field_docs
from fairlead.api.params import Params
from fairlead.api.parse import parse_policy
from fairlead.cel.analysis import estimate
from fairlead.cel.check import COPIES_MAX, PARTS_MAX
from fairlead.cel.functions.regex import PATTERNS_MAX, compile_pattern
from fairlead.cel.lowering import program
from fairlead.cel.values.meter import Meter
from fairlead.cooperative import Share, Steps, TooLongError, at_path, within
from fairlead.policy.compile import expression_compiler
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.policy.lint.inspection import Inspected, inspect, inspect_steps
from fairlead.policy.lint.policy_checks import warnings_steps
from support.policy import MODEL, hostile
from support.policy.building import INSTALLED, obj

CALLS: Final = 90_000
"""Calls in a stretch: about eight milliseconds."""
CODE: Final = 12_000
"""Nodes of the code that Python compiles at once."""
ERRORS: Final = 200
OBJECTS: Final = dict(hostile.objects())
RULES: Final = CompileOptions(INSTALLED)


def stretches(obj: Any) -> tuple[Inspected, int]:
    """Return the result, and the calls of the longest stretch."""
    calls = longest = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    steps = inspect_steps(obj, MODEL, RULES, warnings_steps)
    while True:
        calls = 0
        sys.setprofile(count)
        try:
            next(steps)
        except StopIteration as done:
            return done.value, max(longest, calls)
        finally:
            sys.setprofile(None)
        longest = max(longest, calls)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Do what a replica does before it serves."""
    read_field_docs(Params)
    inspect(hostile.of("true"), MODEL, RULES, warnings_steps)


@pytest.mark.parametrize("text", hostile.EXPRESSIONS.values(), ids=hostile.EXPRESSIONS)
def test_an_expression_is_looked_at_in_short_stretches(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, execute = [0], program._executed

    def executed(make: ast.FunctionDef, scope: dict[str, object]) -> Callable[..., program.One]:
        counting = sys.getprofile()
        sys.setprofile(None)  # what is counted here is no part of the stretch
        sizes.append(sum(1 for _ in ast.walk(make)))
        sys.setprofile(counting)
        return execute(make, scope)

    monkeypatch.setattr(program, "_executed", executed)
    found, longest = stretches(hostile.of(text))
    assert longest <= CALLS
    assert max(sizes) <= CODE
    assert found.compiled is not None or found.faults


@pytest.mark.parametrize("text", hostile.EXPRESSIONS.values(), ids=hostile.EXPRESSIONS)
def test_a_stretch_evaluates_one_constant_that_costs_and_no_more(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, begin = [0], Meter.begin

    def counted(meter: Meter) -> None:
        begun[-1] += 1
        begin(meter)

    monkeypatch.setattr(Meter, "begin", counted)
    begun.extend(0 for _ in inspect_steps(hostile.of(text), MODEL, RULES, warnings_steps))
    assert max(begun) <= 1
    assert sum(begun) <= 200


@pytest.mark.parametrize("name", ["constants that cost", "lists that double"])
def test_a_gang_is_looked_at_in_short_stretches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is the same for all pods is evaluated as it is compiled."""
    begun, begin = [0], Meter.begin

    def counted(meter: Meter) -> None:
        begun[-1] += 1
        begin(meter)

    text = hostile.EXPRESSIONS[name]
    gang = {"name": "g", "group": f"({text}) ? 'a' : 'b'", "size": f"({text}) ? 4 : 5"}
    whole = hostile.policy({"binding": {"gang": [gang]}})
    _, longest = stretches(whole)
    assert longest <= CALLS
    monkeypatch.setattr(Meter, "begin", counted)
    begun.extend(0 for _ in inspect_steps(whole, MODEL, RULES, warnings_steps))
    assert max(begun) <= 1


def test_what_is_known_of_sizes_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However deep and wide, and whatever uses what: a variable is looked at once, and each part of it."""
    visits, visit = [0], estimate._Tree.visit

    def counted(tree: Any, node: Any, bound: Any) -> Any:
        visits[-1] += 1
        return visit(tree, node, bound)

    monkeypatch.setattr(estimate._Tree, "visit", counted)
    for text in hostile.EXPRESSIONS.values():
        visits.extend(0 for _ in inspect_steps(hostile.of(text), MODEL, RULES, warnings_steps))
    assert max(visits) <= 2 * PARTS_MAX


@pytest.mark.parametrize(("name", "step_s"), [("blanks", 0), ("maps in each other", 0.003), ("not", 0.003)])
def test_a_whole_policy_goes_as_it_came_in_short_stretches(
    name: str, step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To free all of it at once takes as long as dozens of calls."""
    freed = [0]

    class Counted(CompiledExpression):
        def __del__(self) -> None:
            freed[-1] += 1

    monkeypatch.setattr(expression_compiler, "CompiledExpression", Counted)
    rules = CompileOptions(INSTALLED, clock=Clock(step_s))
    steps = inspect_steps(hostile.everywhere(hostile.EXPRESSIONS[name]), MODEL, rules, warnings_steps)
    calls = longest = 0
    found: Inspected | None = None

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    while True:
        calls = 0
        freed.append(0)
        sys.setprofile(count)
        try:
            next(steps)
        except StopIteration as done:
            found = done.value
            break
        finally:
            sys.setprofile(None)
        longest = max(longest, calls)
    assert longest <= CALLS
    assert found is not None
    assert found.compiled is None
    assert sum(freed) >= 10
    assert max(freed) <= 2


@pytest.mark.parametrize("whole", OBJECTS.values(), ids=OBJECTS)
def test_so_are_objects_of_whatever_shape(whole: Any) -> None:
    found, longest = stretches(whole)
    assert longest <= CALLS
    assert len(found.faults) <= ERRORS


def test_unknown_fields_are_counted_and_not_told_one_by_one() -> None:
    [fault] = inspect(hostile.policy({f"x{at}": 1 for at in range(60_000)}), MODEL, RULES, warnings_steps).faults
    assert str(fault).startswith("spec: has 60,000 fields, no part of a policy has 100")


def test_what_the_engine_would_write_out_without_end_is_not_given_to_it() -> None:
    found = inspect(hostile.of(hostile.EXPRESSIONS["200 optMap"]), MODEL, RULES, warnings_steps)
    assert f"optMap and optFlatMap more than {COPIES_MAX} times" in str(found.faults[0])


def test_an_expression_has_so_many_parts_with_its_variables_and_no_more() -> None:
    found = inspect(hostile.of(hostile.EXPRESSIONS["numbers in a list"]), MODEL, RULES, warnings_steps)
    assert f"has 2,047 parts, {PARTS_MAX:,} are allowed" in str(found.faults[0])
    found = inspect(hostile.of(hostile.EXPRESSIONS["a variable, often"]), MODEL, RULES, warnings_steps)
    assert f"with its variables written out, {PARTS_MAX:,} are allowed" in str(found.faults[0])


@pytest.mark.parametrize("pattern", [r"(a{1,100}){1,10}" * 20, r"\pL{1,99}" * 300, r"[\pL\pN]{1000}"])
def test_a_pattern_that_is_long_to_compile_is_none(pattern: str) -> None:
    found = inspect(hostile.of(f"node.metadata.name.matches(r'{pattern}')"), MODEL, RULES, warnings_steps)
    assert "this always raises an error: regular expression too large" in str(found.faults[0])


def test_patterns_are_few_and_not_compiled_again() -> None:
    patterns = " || ".join(f"''.matches('a{at}b')" for at in range(PATTERNS_MAX + 1))
    found = inspect(hostile.of(patterns), MODEL, RULES, warnings_steps)
    assert f"has {PATTERNS_MAX + 1} regular expressions with those of its variables" in str(found.faults[0])
    assert compile_pattern("a1b") is compile_pattern("a1b")


def test_a_policy_has_so_many_patterns_and_no_more() -> None:
    of_each = [" || ".join(f"''.matches('a{rule}-{at}b')" for at in range(PATTERNS_MAX)) for rule in range(5)]
    found = inspect(
        hostile.policy({"filters": [{"name": f"f{at}", "expression": text} for at, text in enumerate(of_each)]}),
        MODEL,
        RULES,
        warnings_steps,
    )
    [said] = map(str, found.faults)
    assert said.startswith(
        "spec.filters[4].expression: has the policy's regular expression number 160, 128 are allowed"
    )


class Clock:
    """A clock that advances by a step with each call."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_policy_that_takes_too_long_is_given_up_with_the_field_that_took_most() -> None:
    slow = hostile.policy({"filters": [{"name": "f", "expression": "true"}, {"name": "g", "expression": "false"}]})
    found = inspect(slow, MODEL, CompileOptions(INSTALLED, clock=Clock(0.15)), warnings_steps)
    [said] = map(str, found.faults)
    assert said.startswith(
        "spec.filters[0].expression: takes too long to compile: a policy may take 2 s of a processor"
    )
    assert said.endswith("; most of it was spent here; split it into several policies")
    assert found.faults[0].is_too_long
    with pytest.raises(PolicyError) as refused:
        compile_policy(parse_policy(slow, MODEL), CompileOptions(INSTALLED, clock=Clock(0.5)))
    assert refused.value.is_too_long
    assert inspect(slow, MODEL, CompileOptions(INSTALLED, clock=Clock(0.0001)), warnings_steps).faults == ()


def test_time_is_counted_for_the_field_that_a_pause_tells() -> None:
    def work(pauses: int) -> Steps[int]:
        for _ in range(pauses):
            yield
        return pauses

    def both() -> Steps[int]:
        one = yield from at_path(("a",), work(3))
        return one + (yield from at_path(("b",), work(30)))

    with pytest.raises(TooLongError) as found:
        list(within(both(), Clock(1), limit_s=20))
    assert found.value.path == ("b",)
    steps = within(both(), Clock(1), limit_s=100)
    assert sum(1 for _ in steps) == 33


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), ValueError("odd")])
def test_whatever_goes_wrong_is_a_fault_of_the_policy(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> Iterator[None]:
        raise error
        yield

    monkeypatch.setattr("fairlead.cel.check.decode_steps", fails)
    found = inspect(obj("p", filters={"f": "true"}), MODEL, RULES, warnings_steps)
    assert f"internal error: {type(error).__name__}" in str(found.faults[0])
    monkeypatch.undo()
    monkeypatch.setattr("fairlead.policy.lint.policy_checks.gather_items", fails)
    found = inspect(obj("p", filters={"f": "true"}), MODEL, RULES, warnings_steps)
    assert (found.faults, found.warnings) == ((), ())
    assert len(caplog.records) == 2


def test_a_share_lets_a_little_pass_and_then_no_more_than_its_part() -> None:
    now = [0.0]
    share, paused = Share(lambda: now[0], part=0.25, burst_s=0.1), 0.0

    def stretch(seconds: float) -> float:
        began = now[0]
        now[0] += seconds
        pause = share.pause(began)
        now[0] += pause
        return pause

    assert [stretch(0.01) for _ in range(9)] == [0] * 9, "a small policy is not held up"
    for _ in range(1000):
        paused += stretch(0.01)
    assert paused == pytest.approx(30, rel=0.02), "three times as long as the work"
    now[0] += 100
    assert stretch(0.09) == 0
