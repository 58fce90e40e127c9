"""Guard of custom strategies: one that does not return is interrupted, and then left out.

A strategy runs in the event loop, so while it runs no call is answered and no probe either: the replica would be
restarted, asked again, and hang again, with the policies of all others. The guard says which strategy runs; a watchdog
interrupts the one that runs for too long, and its rule is an error from then on, until its policy is compiled again.

In another thread, which lints on the leader, no signal can interrupt it: there a trace function does.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from msgspec import structs

from fairlead.strategies.contract import (
    CompiledFilter,
    CompiledScore,
    CompiledShares,
    Filter,
    Reads,
    Score,
    Strategy,
    Use,
    by_no_node,
)

LIMIT_S: Final = 2.0
"""Seconds that a strategy may take for one node, one pod or one policy; calls end earlier, between two nodes."""
_R = TypeVar("_R", bound=Filter | Score)


class EndlessStrategyError(Exception):
    """Strategy that did not return within the limit."""


class _Interrupt(BaseException):
    """Interruption of a strategy, which its own `except Exception` does not catch."""


@dataclass(slots=True, eq=False)
class StrategyGuard:
    """The custom strategy that runs at this moment in the serving event loop; a watchdog reads it."""

    running: str = ""
    """Name of the strategy; "" if none runs."""
    entered: int = 0
    """Number of times that a strategy was entered: the same number twice is the same run."""
    is_serving_thread: Callable[[], bool] = lambda: True
    """Returns whether the caller is in the thread that the watchdog interrupts."""
    clock: Callable[[], float] = lambda: 0.0
    """Returns seconds, for other threads."""

    def guard(self, strategies: Mapping[str, Strategy]) -> Mapping[str, Strategy]:
        """Return the strategies with a guard around each of their functions."""
        return {name: self._guarded(one) for name, one in strategies.items()}

    def interrupt(self) -> None:
        """End what a strategy does at this moment. Call it in the thread that runs the strategy: it raises there.

        Call it again while the strategy runs: it may catch every exception, and an interpreter may lose one.
        """
        if self.running:
            raise _Interrupt

    def _guarded(self, strategy: Strategy) -> Strategy:
        return Strategy(
            name=strategy.name,
            filter=None if strategy.filter is None else self._use(strategy.name, strategy.filter),
            score=None if strategy.score is None else self._use(strategy.name, strategy.score),
        )

    def _use(self, name: str, use: Use[_R]) -> Use[_R]:
        def compiled(raw: Any, shares: CompiledShares) -> Any:
            run = _Runs(self, name)
            made = run.call(use.compile, raw, shares)
            if not isinstance(made, CompiledFilter | CompiledScore):
                return made  # the compiler says what is wrong with it
            reads: object = made.reads
            if isinstance(reads, Reads) and reads.learned:
                learned = frozenset(replace(one, type_of=run.around(one.type_of)) for one in reads.learned)
                made = replace(made, reads=structs.replace(reads, learned=learned))
            if isinstance(made, CompiledScore) and made.over is not None:
                return replace(made, over=run.around(made.over))
            for_pod: Any = made.for_pod
            if for_pod is by_no_node:
                return made  # the compiler says what is wrong with it, too
            guarded: Any = lambda pod: run.around(run.call(for_pod, pod))  # noqa: E731 - of any type, as what it calls
            return replace(made, for_pod=guarded)

        return Use.of_shares(use.params, compiled)


@dataclass(slots=True, eq=False)
class _Runs:
    """Runs of one rule's strategy."""

    guard: StrategyGuard
    name: str
    ended: str = ""
    """Why the strategy is left out; "" if it is not."""

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function of the strategy. Raises EndlessStrategyError if this or an earlier run was interrupted."""
        guard = self.guard
        if self.ended:
            raise EndlessStrategyError(self.ended)
        is_serving = guard.is_serving_thread()
        try:
            if not is_serving:
                return _traced(function, given, guard.clock)
            guard.entered += 1
            guard.running = self.name
            return function(*given)
        except _Interrupt as interrupt:
            guard.running = ""  # first: nothing after it is the strategy's
            self.ended = (
                f"the strategy {self.name} did not return within {LIMIT_S:g} s,"
                " and is left out until its policy is edited or this replica restarts"
            )
            raise EndlessStrategyError(self.ended) from interrupt
        finally:
            if is_serving:
                guard.running = ""

    def around(self, value: Any) -> Any:
        """Return the function for one node with the guard around it."""
        return (lambda *given: self.call(value, *given)) if callable(value) else value


def _traced(function: Callable[..., Any], arguments: tuple[Any, ...], clock: Callable[[], float]) -> Any:
    """Call a function, and interrupt it at the first of its lines after the limit."""
    ends = clock() + LIMIT_S

    def trace(_frame: object, _event: str, _argument: object) -> Any:
        if clock() >= ends:
            raise _Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function(*arguments)
    finally:
        sys.settrace(before)
