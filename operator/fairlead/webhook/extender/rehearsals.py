"""Rehearsals: the reply of prioritize, computed after filter was answered and before prioritize is called.

The scheduler asks for the scores of the nodes that filter has left, with the same pod, so the body of that call is
known before it comes. Its reply is computed in the next turn of the event loop, while the scheduler works. It is sent
if the call comes as expected and would be answered in the same way by then. If only nodes have changed, their scores
are summed up again, for the policies and names that are known already. Any other call is answered as if there had been
no rehearsal.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, Protocol

from fairlead.policy.evaluate.deadline import Clock, TooSlowError
from fairlead.policy.nodes.measured_table import NEVER
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender import verbs
from fairlead.webhook.extender.call import CallClock, Caller, IncomingCall, Outcome, VerbReply
from fairlead.webhook.extender.requests import BEFORE_NAMES, FilterArgs, decode_names
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.extender.verbs import MatchedPod, VerbCall

LOG: Final = logging.getLogger(__name__)
KEPT_S: Final = 1.0
"""Time for which a rehearsal is kept: a scheduler that asks at all asks within milliseconds."""
WORK_NS: Final = 2_000_000
"""Time that a rehearsal may take: calls wait for it."""
_BEFORE_PASSED: Final = b'{"Nodes":null,"NodeNames":['
RehearsalResult = Literal["hit", "refreshed", "miss", "late", "unused"]
"""Outcome of a rehearsal: its reply was sent, or its scores were summed up again because nodes had changed, or
another call came than the expected one; it took too long, or no call came.
"""


class Timer(Protocol):
    """A call of a function at a later time."""

    def cancel(self) -> None:
        """Call it no more."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call of prioritize that is expected, with what filter has read already."""

    body: bytes
    names: bytes
    caller: Caller
    pod: Any


def expected_after(call: IncomingCall, reply: VerbReply) -> ExpectedCall | None:
    """Return the call of prioritize that follows a filter; None if there will be none, or its body is not known.

    There is none for less than two nodes, and another filter comes first if the scheduler has two entries.
    """
    outcome, considered = reply.outcome, reply.considered
    pod = None if considered is None else considered.pod
    if outcome.result not in ("passed", "refused") or outcome.simulated or not isinstance(pod, PodView):
        return None
    if call.caller.ignore_entry and outcome.entry == "Fail":
        return None
    cut = call.body.find(BEFORE_NAMES)
    if cut < 0 or not reply.body.startswith(_BEFORE_PASSED):
        return None
    begin = len(_BEFORE_PASSED)
    end = reply.body.find(b"]", begin) + 1
    if reply.body.find(b",", begin, end) < 0:
        return None
    names = reply.body[begin - 1 : end]
    body = b"".join((call.body[: cut + len(BEFORE_NAMES) - 1], names, b"}"))
    return ExpectedCall(body, names, call.caller, pod.pod)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A reply of prioritize, and what it depends on."""

    call: VerbCall
    body: bytes
    matched_pod: MatchedPod
    names: list[str]
    reply: VerbReply
    position: int
    """Position in the journal of the nodes."""
    until: int
    """Time of day at which the first of its scores expires."""

    def answer(
        self, body: bytes, state: ServingState, caller: Caller, when: CallClock
    ) -> tuple[VerbReply, RehearsalResult]:
        """Answer prioritize; a reply that holds no longer is computed again, from what still holds."""
        if not self._is_expected(body, state, caller, when):
            return verbs.prioritize(body, state, caller, when), "miss"
        if self.position == state.scores.nodes.head and when.now < self.until:
            return self.reply, "hit"
        call = VerbCall(state, caller, state.scores, when, self.call.outcome)
        args = FilterArgs(self.matched_pod.pod.pod)
        return verbs.answer(call, args, lambda call, _: verbs.scored(call, self.matched_pod, self.names)), "refreshed"

    def _is_expected(self, body: bytes, state: ServingState, caller: Caller, when: CallClock) -> bool:
        """Report whether a call is the expected one, and the same policies apply to its pod in the same way."""
        if state is not self.call.state or caller != self.call.caller or body != self.body:
            return False
        if state.circuit_breaker.open_for("scores", when.clock()) is not None:
            return False
        pod, mirror = self.matched_pod.pod, state.mirror
        if mirror.namespace(pod.namespace) is not (pod.namespaceObject if pod.knows_namespace else None):
            return False
        return not self.matched_pod.matched or mirror.granted_uid(pod.pod) == pod.granted_uid


def rehearse(expected: ExpectedCall, state: ServingState, when: CallClock) -> Rehearsal | None:
    """Answer a call that is expected; None if the reply would hold for a moment only. Raises as `prioritize` does."""
    call = VerbCall(state, expected.caller, state.scores, when, Outcome(verb="prioritize"))
    if state.circuit_breaker.open_for("scores", when.clock()) is not None or _depends_on_time(state):
        return None
    matched_pod = verbs.match(call, expected.pod)
    matched, until = matched_pod.matched, NEVER
    if any(each.undecided is not None for each in matched):
        return None  # that it is undecided is counted for each call
    names = decode_names(expected.names)
    reply = verbs.scored(call, matched_pod, names)
    if matched:
        held = state.scores.scores_hold_until(matched_pod.pod, matched)
        if held is None:
            return None
        until = held
    return Rehearsal(call, expected.body, matched_pod, names, reply, state.scores.nodes.head, until)


def _depends_on_time(state: ServingState) -> bool:
    """Report whether time decides which policies apply to a pod."""
    policies = state.scores.policies.policies
    return any("now" in condition.expression.roots for policy in policies for condition in policy.match.conditions)


@dataclass(slots=True, eq=False)
class _Planned:
    """A rehearsal that will be, or has been."""

    timer: Timer | None = None
    rehearsal: Rehearsal | None = None


@dataclass(slots=True, eq=False)
class Rehearsals:
    """One rehearsal for each scheduler, by the common name of its certificate, until its next call or for a second."""

    state: Callable[[], ServingState | None]
    now: Callable[[], int]
    clock: Clock
    count: Callable[[RehearsalResult], None]
    """Counts the outcome of a rehearsal, or of a call without one."""
    soon: Callable[[Callable[[], None]], None]
    """Calls a function once the replies that are ready are sent, and the calls that wait are answered."""
    later: Callable[[float, Callable[[], None]], Timer]
    """Calls a function in so many seconds."""
    _planned: dict[str, _Planned] = field(default_factory=dict)

    def take(self, name: str) -> Rehearsal | None:
        """Return the rehearsal for a scheduler, and keep it no longer; its next call has come."""
        planned = self._planned.pop(name, None)
        if planned is None:
            return None
        if planned.timer is not None:
            planned.timer.cancel()
        return planned.rehearsal

    def plan(self, call: IncomingCall, reply: VerbReply, state: ServingState) -> None:
        """Rehearse the call that follows this filter once its reply is sent, and other calls that wait are answered."""
        if not state.scores.policies.policies:
            return
        planned = self._planned[call.name] = _Planned()
        self.soon(partial(self._rehearse, planned, call, reply, state))

    def _rehearse(self, planned: _Planned, call: IncomingCall, reply: VerbReply, state: ServingState) -> None:
        if self._planned.get(call.name) is not planned:
            return
        now = self.now()  # first: if the clock went back, this builds another state
        expected = expected_after(call, reply) if self.state() is state else None
        if expected is not None:
            when = CallClock(now, self.clock, self.clock() + WORK_NS, had_enough_time=False)
            try:
                planned.rehearsal = rehearse(expected, state, when)
            except TooSlowError:
                self.count("late")
            except Exception:  # noqa: BLE001 - the call itself will tell
                LOG.debug("rehearsal.fault", extra={"caller": call.name})
        if planned.rehearsal is None:
            del self._planned[call.name]
        else:
            planned.timer = self.later(KEPT_S, partial(self._drop, call.name, planned))

    def _drop(self, name: str, planned: _Planned) -> None:
        planned.timer = planned.rehearsal = None  # the timer that called this holds on to it, in a cycle
        if self._planned.get(name) is planned:
            del self._planned[name]
            self.count("unused")
