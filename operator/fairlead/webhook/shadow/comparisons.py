"""Comparisons: when calls are compared with rules in shadow. No call waits for that.

A call is compared once its reply was sent and what waits is answered: at once if little has to be evaluated, else in
idle time. All of it takes no more than a part of the thread's time.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from fairlead.cooperative import Share
from fairlead.logs import FaultError, RateLimiter
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.mirror.pod_watcher import PodWatcher
from fairlead.policy.evaluate.deadline import Clock
from fairlead.policy.shadow.annotations_in_shadow import annotating, unbound_by
from fairlead.policy.shadow.call_comparison import CallComparison, PolicyResult, Stretch
from fairlead.policy.shadow.dropped_candidates import PreemptCall, dropping_rules
from fairlead.policy.shadow.slow_classes import SlowClasses
from fairlead.time_units import SECOND_NS
from fairlead.webhook.extender.decisions import Decision
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.shadow.awaited_pods import AwaitedPods
from fairlead.webhook.shadow.call_queue import CallQueue, Task
from fairlead.webhook.shadow.observed_calls import (
    ObservedCall,
    is_answered,
    named,
    observed_filter,
    observed_preempt,
    passed_names,
)
from fairlead.webhook.shadow.pod_counts import CallResult, PodCounts

LOG: Final = logging.getLogger(__name__)
PART: Final = 0.095
"""Part of the thread's time that comparisons may take: with what is planned beside them no more than a tenth..."""
BURST_S: Final = 0.02
"""...and what they may take at once before they have to wait."""
STRETCH_NS: Final = 1_000_000
"""Time of a stretch of work: calls wait for it."""
FEW: Final = 64
"""Results that may be out of date for a call to be compared at once."""
BETWEEN_ENTRIES: Final = 16
"""Calls that wait for the verdicts of the other entry, of which a scheduler calls both for one pod after another."""


@dataclass(slots=True, eq=False)
class LiveComparisons(PodWatcher):
    """LiveComparisons of a replica."""

    state: Callable[[], ServingState | None]
    now: Callable[[], int]
    clock: Clock
    budget_ns: Callable[[Decision], int]
    """Returns how long a call could have taken."""
    counts: PodCounts
    soon: Callable[[Callable[[], None]], None]
    """Calls a function once the replies that are ready are sent, and the calls that wait are answered."""
    later: Callable[[float, Callable[[], None]], Any]
    """Calls a function in so many seconds."""
    is_listed: Callable[[frozenset[str]], bool] = lambda _: True
    """Returns whether the mirror has these annotations of pods on nodes."""
    has_values: Callable[[], bool] = lambda: True
    """Returns whether first values are there, or were waited for as long as enforced rules wait for theirs."""
    slow_classes: SlowClasses = field(default_factory=SlowClasses)
    seconds: float = 0.0
    """Time that all of this has taken."""
    share: Share = field(init=False)
    _now: int = 0
    """Time of day at which the current stretch began."""
    _pause_until: float = 0.0
    _new: deque[Task] = field(default_factory=deque)
    _queue: CallQueue = field(default_factory=CallQueue)
    _between: OrderedDict[str, ObservedCall] = field(default_factory=OrderedDict)
    """Calls of the entry Fail by the UID of their pod, until the entry Ignore is called, too."""
    _awaited: AwaitedPods = field(default_factory=AwaitedPods)
    _planned: bool = False
    _rate_limiter: RateLimiter = field(default_factory=RateLimiter)

    def __post_init__(self) -> None:
        self.share = Share(self._clock_s, PART, BURST_S)

    def hear(self, decision: Decision) -> None:
        """Hear of a decision; nothing is evaluated yet."""
        outcome = decision.outcome
        if outcome.verb not in ("filter", "preempt"):
            return
        state = self.state()
        if state is None or state.shadow is None:
            return
        if outcome.entry == "Ignore":
            if outcome.verb == "filter" and (call := self._between.pop(outcome.pod, None)) is not None:
                self._add_compared(_after_both(call, decision))
        elif outcome.verb == "preempt":
            if self.has_values() and (call := observed_preempt(decision, state, self.budget_ns(decision))) is not None:
                self._add(Task(call, self._evictions(call)))
        elif (call := observed_filter(decision, state, self.budget_ns(decision))) is not None:
            if not self.has_values():
                self._count_all(call, "unknown")
            elif decision.caller.ignore_entry and call.passed:
                self._wait_for_both(call)
            else:
                self._add_compared(call)

    def put_placed(self, key: Key, entry: PodEntry) -> None:  # noqa: ARG002 - the mirror calls it
        """Look at the annotations of a pod that was awaited and is placed now."""
        call = self._awaited.take(entry.pod.uid)
        state = self.state()
        if call is not None and state is not None and state.shadow is not None:
            call = replace(call, state=state, rules=state.shadow)
            self._add(Task(call, self._unbound(call, entry)))

    def _wait_for_both(self, call: ObservedCall) -> None:
        uid = call.pod.uid
        if (before := self._between.pop(uid, None)) is not None:
            self._count_all(before, "unknown")
        self._between[uid] = call
        if len(self._between) > BETWEEN_ENTRIES:
            self._count_all(self._between.popitem(last=False)[1], "unknown")

    def _add_compared(self, call: ObservedCall) -> None:
        self._add(Task(call, self._compared(call), is_comparison=True))

    def _add(self, task: Task) -> None:
        self._new.append(task)
        if len(self._new) == 1:
            self.soon(self._begin_new)

    def _begin_new(self) -> None:
        while self._new:
            task = self._new.popleft()
            if (self._is_pausing() or not self._ends_at_once(task)) and not self._queue.put(task):
                self._give_up(task, "skipped")
        self._plan()

    def _is_pausing(self) -> bool:
        return self._clock_s() < self._pause_until

    def _plan(self) -> None:
        """Plan the next stretch, if there is something to do."""
        if self._planned or not len(self._queue):
            return
        self._planned = True
        pause = self._pause_until - self._clock_s()
        if pause > 0:
            self.later(pause, self._work)
        else:
            self.soon(self._work)

    def _work(self) -> None:
        """Work for a stretch on the task that has waited longest."""
        self._planned = False
        if len(self._queue) and self._step(self._queue.first) is None:
            self._queue.drop_first()
        self._plan()

    def _ends_at_once(self, task: Task) -> bool:
        """Begin a task; return whether it is done, as little was left to evaluate."""
        while (left := self._step(task)) is not None:
            if left > FEW:
                return False
        return True

    def _step(self, task: Task) -> int | None:
        """Work until the next pause; return how many results are out of date, None at the end."""
        began = self._clock_s()
        try:
            self._now = self.now()  # first: if the clock went back, this builds another state
            if task.call.state is not self.state():
                self._give_up(task, "unknown")
                task.steps.close()
            return next(task.steps, None)
        except Exception as error:
            if (more := self._rate_limiter.allow("shadow")) is not None:
                LOG.exception("shadow.fault", exc_info=FaultError(error), extra=more)
            self._give_up(task, "unknown")
            return None
        finally:
            ended = self._clock_s()
            self.seconds += ended - began
            self._pause_until = ended + self.share.pause(began)

    def _give_up(self, task: Task, result: CallResult) -> None:
        if task.is_comparison:
            self._count_all(task.call, result)

    def _count_all(self, call: ObservedCall, result: CallResult) -> None:
        """Count a call for every policy of its scheduler with rules in shadow."""
        state = self.state()
        if state is not None and state.shadow is not None:
            for shadow in state.shadow.by_scheduler.get(call.scheduler, ()):
                self.counts.add_call(shadow, result)

    def _compared(self, call: ObservedCall) -> Generator[int, None, None]:
        rules, passed = call.rules, call.as_compared()
        scores_open = partial(call.state.circuit_breaker.open_for, "scores")
        steps = CallComparison(
            rules, passed, self.slow_classes, self._stretch, lambda: scores_open(self.clock()), self.is_listed
        ).steps()
        results: Collection[PolicyResult] = yield from steps
        for result in results:
            self.counts.add_result(rules.policies[result.policy.name], passed.pod.uid, result)
        if any(rules.policies[one.policy.name].policy.annotations for one in results):
            self._awaited.put(replace(call, pod=passed.pod, passed=()))

    def _evictions(self, call: ObservedCall) -> Generator[int, None, None]:
        rules, passed = call.rules, call.as_compared()
        requests = call.state.mirror.requests_of_placed
        asked = PreemptCall(passed.pod, call.scheduler, call.victims or {}, call.position, requests)
        yield FEW + 1
        found = yield from dropping_rules(rules, asked, self.slow_classes, lambda: self._now, self.clock)
        for name, dropping in found.items():
            self.counts.add_evictions(rules.policies[name], passed.pod.uid, dropping)

    def _unbound(self, call: ObservedCall, entry: PodEntry) -> Generator[int, None, None]:
        yield FEW + 1
        rules = call.rules
        if call.scheduler not in annotating(rules):
            return
        request = entry.request.amounts
        for policy, key in unbound_by(rules, call.pod, call.scheduler, entry.node, request, self._now):
            self.counts.add_unbound(rules.policies[policy], call.pod.uid, key)

    def _stretch(self) -> Stretch:
        return Stretch(self._now, self.clock, self.clock() + STRETCH_NS)

    def _clock_s(self) -> float:
        return self.clock() / SECOND_NS


def _after_both(call: ObservedCall, decision: Decision) -> ObservedCall:
    """Return a call with the verdicts of both entries. Where the entry Ignore fails, its nodes pass."""
    names = named(decision) if is_answered(decision.outcome) else None
    return call if names is None else call.among(passed_names(decision, names))
