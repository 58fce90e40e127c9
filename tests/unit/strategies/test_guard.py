"""Custom strategies that do not return: interrupted once, and left out from then on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression_rules import verdict_of
from fairlead.process.tasks import endless_strategies_interrupted
from fairlead.strategies.contract import PASS, CompiledFilter, Filter, Strategy, Use
from fairlead.strategies.guard import EndlessStrategyError, StrategyGuard
from fairlead.strategies.template import STRATEGY
from support.policy import NOW, node, pod

assert STRATEGY.filter is not None
PARAMS = STRATEGY.filter.params
MADE = STRATEGY.filter.compile(PARAMS())
Run = Callable[[], object]


def guarded(guard: StrategyGuard, compile: Callable[[Any], Any]) -> Callable[[], Filter]:  # noqa: A002 - as of Use
    """Return the compilation of a guarded filter."""
    use = guard.guard({"x": Strategy(name="x", filter=Use(PARAMS, compile))})["x"].filter
    assert use is not None
    return lambda: use.compile(PARAMS())


def with_node_function(one: Callable[..., Any]) -> CompiledFilter[Any, Any]:
    """Return a filter of which this is the part that judges a node."""
    return replace(MADE, for_pod=lambda _: one)


def raised(run: Run) -> str:
    with pytest.raises(EndlessStrategyError) as error:
        run()
    return str(error.value)


def test_strategies_that_return_are_as_they_were() -> None:
    guard = StrategyGuard()
    made = guarded(guard, lambda _: with_node_function(lambda node, now, trace=None: (node, now, trace)))()
    assert made.reads == MADE.reads
    assert made.for_pod("pod")("node", 5) == ("node", 5, None)  # type: ignore[arg-type, comparison-overlap]
    assert made.for_pod("pod")("node", 5, "t") == ("node", 5, "t")  # type: ignore[arg-type, comparison-overlap]
    assert guard.running == ""
    assert guarded(guard, lambda _: "no filter")() == "no filter"  # type: ignore[comparison-overlap]


def test_what_a_strategy_raises_passes_through() -> None:
    guard = StrategyGuard()
    made = guarded(guard, lambda _: with_node_function(lambda *_: 1 / 0))()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            made.for_pod("pod")("node", 5)  # type: ignore[arg-type]
    assert guard.running == ""


def test_one_that_was_interrupted_is_not_run_again_until_it_is_compiled_anew() -> None:
    guard, runs = StrategyGuard(), list[str]()

    def endless(*_: object) -> object:
        runs.append(guard.running)
        with suppress(Exception):  # as a strategy might that retries whatever it does
            guard.interrupt()
        return PASS

    compiled = guarded(guard, lambda _: with_node_function(endless))
    made = compiled()
    one = made.for_pod("pod")  # type: ignore[arg-type]
    said = raised(lambda: one("node", 5))  # type: ignore[arg-type]
    assert said == (
        "the strategy x did not return within 2 s, and is left out until its policy is edited or this replica restarts"
    )
    assert raised(lambda: one("another", 6)) == said  # type: ignore[arg-type]
    assert raised(lambda: made.for_pod("another pod")) == said  # type: ignore[arg-type]
    assert (runs, guard.running) == (["x"], "")
    raised(lambda: compiled().for_pod("pod")("node", 5))  # type: ignore[arg-type]
    assert runs == ["x", "x"]


def test_nothing_else_is_interrupted() -> None:
    guard = StrategyGuard()
    guard.interrupt()
    made = guarded(guard, lambda _: with_node_function(lambda *_: PASS))()
    assert made.for_pod("pod")("node", 5) is PASS  # type: ignore[arg-type]
    guard.interrupt()


def forever(*_: object) -> Any:
    while True:
        with suppress(Exception):
            int("no number")


def stubborn(*_: object) -> Any:
    """Catch all that interrupts it, several times."""
    for _again in range(3):
        with suppress(BaseException):
            forever()
    forever()


@pytest.mark.parametrize(
    "compile",
    [stubborn, forever, lambda _: replace(MADE, for_pod=forever), lambda _: with_node_function(forever)],
    ids=["although it catches that", "while it is compiled", "for a pod", "for a node"],
)
def test_an_endless_loop_is_interrupted(compile: Callable[[Any], Any]) -> None:  # noqa: A002 - as of Use
    guard = StrategyGuard()
    with endless_strategies_interrupted(guard, limit_s=0.05):
        raised(lambda: guarded(guard, compile)().for_pod("pod")("node", 5))  # type: ignore[arg-type]
    assert guard.running == ""


def test_the_status_says_that_a_strategy_is_left_out_and_until_when() -> None:
    guard, tally = StrategyGuard(), RuleErrorTally()
    made = guarded(guard, lambda _: with_node_function(lambda *_: guard.interrupt()))()
    verdict = verdict_of(made, pod(), "slow", node(), NOW)
    tally.count_error("p", "slow", verdict)
    (counted,) = tally.drain()
    assert counted.last_message == (
        "the strategy x did not return within 2 s, and is left out until its policy is edited or this replica restarts"
    )


def test_in_another_thread_it_is_interrupted_there_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.strategies.guard.LIMIT_S", 0.05)
    guard = StrategyGuard()
    with endless_strategies_interrupted(guard, limit_s=0.05), ThreadPoolExecutor() as pool:
        running = pool.submit(lambda: raised(guarded(guard, forever)))
        while not running.done():  # interrupted here, it would raise
            assert guard.running == ""
        assert "did not return within" in running.result()
        one = guarded(guard, lambda _: with_node_function(lambda *_: PASS))
        assert pool.submit(lambda: one().for_pod("pod")("node", 5)).result() is PASS  # type: ignore[arg-type]
