"""One expression: lowered to Python, and on the engine that the language comes from."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size, timed
from bench.report import main
from fairlead.cel.check import BOOL, Environment, check
from fairlead.cel.engine import evaluate
from fairlead.cel.engine.environment import RULE
from fairlead.policy.compile.expression import CompiledExpression


def simple_rule(size: Size) -> list[float]:
    """Microseconds a node."""
    one = _simple().for_pod(cluster.pod())
    return _a_node(lambda view: one(view, cluster.NOW), _views(size), size.rounds)


def times_prepared(size: Size) -> list[float]:
    """Ratio to the engine's time, if the engine's data were free."""
    expression = check(cluster.SIMPLE, Environment(RULE), BOOL).compiled
    prepared = [evaluate.engine_inputs({"node": view.node}) for view in _views(size)[:1000]]
    return _times(size, lambda data: evaluate.evaluate(expression, data).value(), prepared)


def times_converted(size: Size) -> list[float]:
    """Ratio to the time of the engine, which needs objects of its own."""
    expression = check(cluster.SIMPLE, Environment(RULE), BOOL).compiled

    def ask(view: Any) -> object:
        return evaluate.evaluate(expression, evaluate.engine_inputs({"node": view.node})).value()

    return _times(size, ask, _views(size)[:100])


def _simple() -> CompiledExpression:
    found = cluster.policy([cluster.SIMPLE]).filters[0].expression
    assert found is not None  # noqa: S101 - for mypy
    return found


def _views(size: Size) -> list[Any]:
    return [cluster.node(at) for at in range(size.nodes)]


def _a_node(call: Callable[[Any], object], each: Sequence[Any], rounds: int) -> list[float]:
    """Microseconds for each of these, the loop over them included."""

    def all_of_them(each: Sequence[Any]) -> None:
        for one in each:
            call(one)

    return [millis * 1000 / len(each) for millis in timed(all_of_them, rounds, lambda: each)]


def _times(size: Size, call: Callable[[Any], object], each: Sequence[Any]) -> list[float]:
    theirs = _a_node(call, each, size.rounds)
    return [slow / fast for slow, fast in zip(theirs, simple_rule(size), strict=True)]


BENCHMARKS: Final[Benchmarks] = {
    "simple-rule": Benchmark("us/node", simple_rule),
    "byte-code-against-engine": Benchmark("times", times_prepared),
    "byte-code-against-engine-converting": Benchmark("times", times_converted),
}

if __name__ == "__main__":
    main(BENCHMARKS)
