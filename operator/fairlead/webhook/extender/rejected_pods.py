"""Pods for which we left no node, and whether one would pass by now: then somebody has to wake them (decision 13).

The scheduler looks at them again at events that it knows; what changed in a rule, in data or in time is none of them.
Whoever has idle time calls `look`, which goes on where it stopped.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.logs import FaultError, RateLimiter
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator, filter_columns
from fairlead.policy.evaluate.matching import Matched, Switched
from fairlead.policy.evaluate.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.verdict_cache import UncachedPass
from fairlead.policy.views.pod_and_node import PodView
from fairlead.webhook.extender.call import CallClock, FailurePolicy, Outcome
from fairlead.webhook.extender.requests import MalformedError
from fairlead.webhook.extender.state import ServingState

LOG: Final = logging.getLogger(__name__)
PODS: Final = 512
_SECOND_NS: Final = 1_000_000_000
AGAIN_NS: Final = 3 * _SECOND_NS
"""So often everybody is looked at though nothing is known to have changed: conditions read what time it is."""
UNSEEN_NS: Final = 30 * _SECOND_NS
"""So long a pod may stay unknown to the mirror."""
PAUSE_NS: Final = 10 * _SECOND_NS
CONDITIONS: Final = 20_000_000
"""So many nanoseconds the conditions of all policies may take for a pod; they begin anew each time."""
PAUSE_MAX_NS: Final = 320 * _SECOND_NS
"""A pod that could pass and is not placed has other troubles: it is told of less and less often."""
_EVERY: Final = -1


@dataclass(slots=True, eq=False)
class _Pod:
    key: tuple[str, str]
    gate: FailurePolicy | None
    policy: str
    """The one that refused it alone; empty if several did."""
    since: int
    known: bool = False
    told: int = 0
    """The slots that would pass and were told of, as a number with a byte for each."""
    again: int = 0
    pause: int = PAUSE_NS
    left_alone: int = 0
    """Until then it is not looked at: it took too long, or a fault was met."""
    sweeps: dict[FailurePolicy, UncachedPass] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class RejectedPods:
    """Owned by the loop that serves."""

    limit: int = PODS
    schedulable_again: bool = False
    """Whether one could be placed now; whoever is told sets it back."""
    missed: Counter[str] = field(default_factory=Counter)
    """Calls in which a policy refused all nodes although another one would have passed."""
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    _pods: dict[str, _Pod] = field(default_factory=dict)  # by UID
    _left: list[str] = field(default_factory=list)
    _world: ServingState | None = None
    _head: int = -1  # of the journal, when the last round began
    _next: int = 0

    def record_filtered(self, outcome: Outcome, at: int) -> None:
        """A call of filter was answered."""
        if outcome.waits is None:
            held = self._pods.get(outcome.pod) if self._pods else None
            if held is not None and held.gate == outcome.gate and outcome.result in ("passed", "refused"):
                del self._pods[outcome.pod]
            return
        policies = {policy for policy, _ in outcome.refusals}
        if outcome.missed_sample:
            self.missed.update(policies)
        policy = policies.pop() if len(policies) == 1 else ""
        held = self._pods.get(outcome.pod)
        if held is not None:
            held.gate, held.policy = outcome.gate, policy
            return
        if len(self._pods) >= self.limit:
            del self._pods[next(iter(self._pods))]
        self._pods[outcome.pod] = _Pod(outcome.waits, outcome.gate, policy, at)
        self._left.append(outcome.pod)

    def record_rejected(self) -> Mapping[str, int]:
        """How many pods each policy alone leaves without a node."""
        return Counter(one.policy for one in self._pods.values() if one.policy)

    def recheck(self, world: ServingState, when: CallClock) -> bool:
        """Go on until the deadline; whether everybody was looked at since something became different."""
        at, head = when.clock(), world.gates["Fail"].nodes.head
        if self._world is not world:
            for pod in self._pods.values():
                pod.sweeps.clear()
                pod.left_alone = 0
        if self._world is not world or (not self._left and (head != self._head or at >= self._next)):
            self._world, self._head, self._next, self._left = world, head, at + AGAIN_NS, [*self._pods]
        while self._left:
            held = self._pods.get(self._left[-1])
            if held is not None and not self._look_at(held, self._left[-1], world, when):
                return False
            self._left.pop()
            if self._left and when.clock() > when.deadline:
                return False
        return True

    def _look_at(self, held: _Pod, uid: str, world: ServingState, when: CallClock) -> bool:
        """Whether it is known how it is with it."""
        pod = world.mirror.unplaced(*held.key)
        at = when.clock()
        if pod is None or pod.metadata.uid != uid:
            if held.known or at - held.since > UNSEEN_NS:
                del self._pods[uid]
            return True
        held.known = True
        if at < held.left_alone:
            return True
        try:
            passing = _passing(world, pod, held, when)
        except TooSlowError:
            return False
        except Exception as error:  # one pod must not keep the others from being woken
            held.left_alone = at + PAUSE_MAX_NS
            if not isinstance(error, _ConditionsError) and (more := self.rate_limiter.about("waiting")) is not None:
                LOG.exception("rejected_pod.fault", exc_info=FaultError(error), extra={"pod": uid, **more})
            return True
        held.sweeps.clear()
        held.told &= passing
        if not passing:
            held.again, held.pause = 0, PAUSE_NS
        elif passing & ~held.told or at >= held.again:
            self.schedulable_again = True
            if at >= held.again:
                held.pause = min(2 * held.pause, PAUSE_MAX_NS) if held.told else PAUSE_NS
                held.again = at + held.pause
            held.told = passing
        return True


def _passing(world: ServingState, pod: object, held: _Pod, when: CallClock) -> int:
    """The nodes that both gates would leave, a byte for each slot. Raises TooSlowError where the time does not do."""
    view, passing = world.pod_view(pod), _EVERY
    scheduler = str(view.pod.spec.schedulerName)
    switched = world.circuit_breaker.open_for("gate", when.clock())
    for gate, evaluator in world.gates.items():
        matched = _matching(evaluator, view, scheduler, when, switched)
        if gate == "Fail" and any(one.switched for one in matched):
            return 0
        asked = [one for one in matched if not one.switched]
        if any(one.policy.filters for one in asked):
            try:
                whole = world.with_requests(view)
            except MalformedError:
                return 0
            passing &= int.from_bytes(_of_gate(evaluator, whole, asked, held, gate, when), "little")
    return passing


class _ConditionsError(Exception):
    """The conditions of policies take too long for a pod to be asked in idle time."""


def _matching(
    evaluator: Evaluator, view: PodView, scheduler: str, when: CallClock, switched: Switched | None
) -> list[Matched]:
    deadline = when.clock() + CONDITIONS
    try:
        return evaluator.policies.matching(
            view, scheduler, when.now, clock=when.clock, deadline=deadline, switched=switched
        )
    except TooSlowError as error:
        raise _ConditionsError from error


def _of_gate(
    evaluator: Evaluator, pod: PodView, matched: list[Matched], held: _Pod, gate: FailurePolicy, when: CallClock
) -> bytearray:
    now, clock, deadline, _ = when
    kept = evaluator.cached_for(pod, matched)
    evaluator.refresh(kept, now=now, clock=clock, deadline=deadline)
    if kept is not None:
        return kept.verdicts.passing
    sweep = held.sweeps.get(gate)
    if sweep is None:
        nodes, tally = evaluator.nodes, RuleErrorTally()
        filters = [rule for each in matched for rule in filter_columns(each, pod, nodes, tally)]
        sweep = held.sweeps[gate] = UncachedPass(filters, nodes)
    if not sweep.go_on(now, clock, deadline):
        raise TooSlowError({matched[0].policy.name: 0})
    return sweep.passing
