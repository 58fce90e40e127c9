"""Dispatch of calls: the verb of a path, its caller and deadline, and the metrics of its outcome."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter_ns
from typing import Final

import msgspec

from fairlead.logs import TRACE, RateLimiter
from fairlead.metrics import Metrics
from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.policy.compile.policy_conflicts import Conflict
from fairlead.policy.lint.codes import LintCode
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.data_sources.loop_turns import after_others, later
from fairlead.webhook.extender import preempt, verbs
from fairlead.webhook.extender.call import (
    DEADLINE_SHARE,
    CallClock,
    Caller,
    IncomingCall,
    Outcome,
    Reply,
    Verb,
    VerbReply,
)
from fairlead.webhook.extender.circuit_breaker import REASON, CircuitScope
from fairlead.webhook.extender.decisions import Listeners
from fairlead.webhook.extender.rehearsals import Rehearsals
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.holding import passed_calls
from fairlead.webhook.https.server import Handle
from fairlead.webhook.https.wall_clock import TimeOfDay

LOG: Final = logging.getLogger(__name__)
_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_UNAVAILABLE: Final = 503
_PODS: Final[Mapping[CircuitScope, str]] = {
    "class": "pods of its class in its namespace",
    "namespace": "pods of its namespace",
    "all": "all pods",
}
BEFORE_BIND_TIMEOUT_S: Final = 1.0
"""How long before the scheduler's timeout a bind is answered that is held for others of a group."""
_DECIDED: Final[Mapping[str, tuple[Verb, Callable[..., VerbReply]]]] = {
    "/filter": ("filter", partial(verbs.filter, entry="Fail")),
    "/ignore/filter": ("filter", partial(verbs.filter, entry="Ignore")),
    "/preempt": ("preempt", partial(preempt.preempt, entry="Fail")),
    "/ignore/preempt": ("preempt", partial(preempt.preempt, entry="Ignore")),
    "/prioritize": ("prioritize", verbs.prioritize),
}
"""Verbs that are answered from memory, without I/O."""
PASSED_ON: Final = passed_calls.PATH
"""Path of bind calls that other replicas pass on, for the operator's own certificate only."""
PATHS: Final[Mapping[str, Verb]] = {**{path: verb for path, (verb, _) in _DECIDED.items()}, "/bind": "bind"}
"""Verbs by the paths that schedulers call."""


@dataclass(eq=False)
class Dispatcher:
    """Handler of all calls of schedulers."""

    binder: Binder
    caller: Callable[[str, Verb], Caller | None]
    """Returns the caller of a common name; None if it may not call that verb."""
    state: Callable[[], ServingState | None]
    """Returns the serving state; None before there is one."""
    timeout_s: float
    metrics: Metrics
    now: TimeOfDay = field(default_factory=TimeOfDay)
    listeners: Listeners = field(default_factory=Listeners)
    """Listeners to each decision."""
    clock: Callable[[], int] = perf_counter_ns
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    prioritize_ahead: bool = True
    """True: the reply of prioritize is computed before the call comes."""

    def __post_init__(self) -> None:
        metrics = self.metrics
        self._duration = metrics.histogram(
            "fairlead_webhook_request_duration_seconds",
            "Time from receiving the head of a scheduler's call to its reply, by scheduler, verb and outcome.",
            "scheduler",
            "verb",
            "outcome",
        )
        self._candidates = metrics.counter(
            "fairlead_webhook_candidates", "Nodes that policies were asked to decide about.", "scheduler", "verb"
        )
        self._rejected = metrics.counter(
            "fairlead_filter_rejected_nodes",
            "Nodes that were rejected, by the first rule that rejected them.",
            "policy",
            "rule",
        )
        self._unknown = metrics.counter(
            "fairlead_webhook_unknown_nodes",
            "Nodes that were rejected because they were not yet in the mirror, the operator's copy of the cluster.",
            "scheduler",
        )
        self._missed = metrics.counter(
            "fairlead_webhook_missed_samples",
            "Filter calls that rejected every node of the scheduler's sample, while a node outside of it passes.",
            "scheduler",
        )
        self._slow = metrics.counter(
            "fairlead_policy_too_slow", "Calls that a policy could not answer before the deadline.", "policy"
        )
        self._warnings = metrics.counter(
            "fairlead_policy_warnings",
            "Pods affected by the policy warning that the reason names.",
            "policy",
            "reason",
        )
        counted = metrics.counter(
            "fairlead_webhook_rehearsals",
            "Calls of prioritize by whether their reply was computed before they came (hit), only had to be summed up "
            "again (refreshed) or had to be computed (miss), and replies computed in vain (late, unused).",
            "result",
        )
        self._labels: dict[frozenset[str], str] = {}
        self._rehearsals = (
            Rehearsals(self.state, self.now, self.clock, counted.add, after_others, later)
            if self.prioritize_ahead
            else None
        )

    def routes(self) -> Mapping[str, Handle]:
        """Return the handlers by path."""
        decided = {path: partial(self._decide, verb, answer) for path, (verb, answer) in _DECIDED.items()}
        return {**decided, "/bind": self._bind, PASSED_ON: self._bind_passed_on}

    def authorize(self, name: str, path: str) -> Caller | None:
        """Return the caller of a common name; None if it may not call that path."""
        if path == PASSED_ON:
            return self.caller(name, "bind") if name == OPERATOR else None
        return self.caller(name, PATHS[path])

    def _decide(self, verb: Verb, answer: Callable[..., VerbReply], call: IncomingCall) -> Reply:
        found = self._context_or_reply(call, verb)
        if isinstance(found, VerbReply):
            return self._record(call, found)
        state, when = found
        rehearsals = self._rehearsals
        if rehearsals is None:
            return self._record(call, answer(call.body, state, call.caller, when=when), state)
        rehearsal = rehearsals.take(call.name)
        if verb == "prioritize" and rehearsal is not None:
            made, result = rehearsal.answer(call.body, state, call.caller, when)
            rehearsals.count(result)
        else:
            made = answer(call.body, state, call.caller, when=when)
            if verb == "prioritize" or rehearsal is not None:
                rehearsals.count("miss" if verb == "prioritize" else "unused")
        reply = self._record(call, made, state)
        if verb == "filter":
            rehearsals.plan(call, reply, state)
        return reply

    async def _bind(self, call: IncomingCall) -> Reply:
        found = self._context_or_reply(call, "bind")
        if isinstance(found, VerbReply):
            return self._record(call, found)
        state, when = found
        if (timeout_s := call.caller.bind_timeout_s) is not None:
            hold_ns = int((timeout_s - BEFORE_BIND_TIMEOUT_S) * SECOND_NS)
            when = when._replace(hold_deadline_ns=max(when.deadline_ns, call.received_ns + hold_ns))
        reply = await self.binder.bind(call, state, when)
        for conflict in reply.outcome.conflicts:
            self._conflicting(conflict, state)
        return self._record(call, reply, state)

    async def _bind_passed_on(self, call: IncomingCall) -> Reply:
        """Answer a call that another replica has passed on, as if its scheduler had sent it here."""
        try:
            passed = passed_calls.decode(call.body)
        except msgspec.DecodeError as error:
            return Reply(f"the call cannot be read: {error}".encode(), _BAD_REQUEST)
        name = scheduler_identity(passed.scheduler)
        caller = self.caller(name, "bind")
        if caller is None:
            return Reply(f"the scheduler {passed.scheduler!r} may not call".encode(), _FORBIDDEN)
        body = bytes(passed.arguments)
        return await self._bind(
            replace(call, name=name, caller=caller, body=body, address=passed.address, is_passed_on=True)
        )

    def _conflicting(self, conflict: Conflict, state: ServingState) -> None:
        reason = LintCode.CONFLICT.value
        for policy in (conflict.winner, conflict.loser):
            self._warnings.add(policy, reason)
        if conflict not in state.conflicts:
            extra = {"reason": reason, "annotation": conflict.key, "winner": conflict.winner, "loser": conflict.loser}
            LOG.warning("annotation.conflict", extra=extra)
        state.conflicts[conflict] += 1

    def _context_or_reply(self, call: IncomingCall, verb: Verb) -> tuple[ServingState, CallClock] | VerbReply:
        """Return the serving state and the deadline, or a 503 reply, on which the scheduler tries again."""
        now = self.now()  # first: if the clock went back, this builds another state
        state, clock = self.state(), self.clock
        if state is None:
            return _unavailable(b"not ready yet, see /readyz", Outcome(verb=verb, result="unready"))
        found = int(DEADLINE_SHARE * (call.caller.timeout_s or self.timeout_s) * SECOND_NS)
        deadline_ns, at = call.received_ns + found, clock()
        if at >= deadline_ns:  # no policy is to blame for a slow body
            late = Outcome(verb=verb, result="late")
            return _unavailable(b"the request arrived too slowly to be answered in time", late)
        return state, CallClock(now, clock, deadline_ns, had_enough_time=deadline_ns - at > found // 2)

    def _label_of(self, caller: Caller) -> str:
        """Return the name of the scheduler that calls; of several that share a certificate, all of them."""
        label = self._labels.get(caller.schedulers)
        if label is None:
            label = self._labels[caller.schedulers] = ",".join(sorted(caller.schedulers))
        return label

    def _record(self, call: IncomingCall, reply: VerbReply, state: ServingState | None = None) -> VerbReply:
        outcome, scheduler = reply.outcome, self._label_of(call.caller)
        ended = self.clock()
        seconds = (ended - call.received_ns) / SECOND_NS
        # To wait for others is not slow, and to be refused for want of them is no error.
        self._duration.observe(seconds, scheduler, outcome.verb, "held" if outcome.is_held else outcome.result)
        if self.listeners.each:
            policies, position = (None, 0) if state is None else (state.policies, state.scores.nodes.head)
            told = outcome, call.caller, policies, ended, reply.considered, call.received_ns, position, len(call.body)
            reply.sent = partial(self.listeners.tell, *told)
        if outcome.candidates:
            self._candidates.add(scheduler, outcome.verb, amount=outcome.candidates)
        for (policy, rule), count in outcome.refusals.items():
            self._rejected.add(policy, rule, amount=count)
        if outcome.unknown:
            self._unknown.add(scheduler, amount=len(outcome.unknown))
            LOG.debug("nodes.unknown", extra={"nodes": outcome.unknown[:10], "pod": outcome.pod})
        if outcome.missed_sample:
            self._missed.add(scheduler)
        if outcome.too_slow:
            self._slow.add(outcome.too_slow)
        if outcome.switched:
            scope = {"pods": _PODS[outcome.switched], **({"pod": outcome.pod} if outcome.switched != "all" else {})}
            LOG.warning(
                "circuit.opened",
                extra={"policy": outcome.too_slow, "reason": REASON, **scope},
            )
        elif outcome.error and (more := self.rate_limiter.allow(outcome.verb)) is not None:
            extra = {"verb": outcome.verb, "caller": call.name, "pod": outcome.pod, "error": outcome.error, **more}
            LOG.info("call.failed", extra=extra)
        if LOG.isEnabledFor(TRACE):
            extra = {
                "verb": outcome.verb,
                "result": outcome.result,
                "pod": outcome.pod,
                "duration_s": round(seconds, 6),
            }
            LOG.log(TRACE, "call.answered", extra=extra)
        return reply


def _unavailable(text: bytes, outcome: Outcome) -> VerbReply:
    return VerbReply(text, _UNAVAILABLE, outcome=outcome)
