"""filter and prioritize: from the bytes of a request to those of its reply; and how each verb begins.

Functions of the request and the serving state, without I/O. A call past its deadline is answered with an error that
names the policy. The reply of filter has a field for errors; the other verbs answer with a status other than 200.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from fairlead.groups.group import Membership, UndecidedGroup
from fairlead.pki.identities import NO_POD
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import FILTER_PREFIX
from fairlead.policy.evaluate.deadline import TooSlowError, too_slow
from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE, Evaluator
from fairlead.policy.evaluate.filter_result import Filtered, RuleRef
from fairlead.policy.evaluate.group_membership import UNDECIDED, membership_of
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.nodes.node_table import RequestNodes
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender import replies, requests
from fairlead.webhook.extender.call import (
    GUARD,
    CallClock,
    Caller,
    Considered,
    FailurePolicy,
    Outcome,
    VerbReply,
    exclusion_reason,
)
from fairlead.webhook.extender.circuit_breaker import Part
from fairlead.webhook.extender.group_view import left_by_domains
from fairlead.webhook.extender.replies import NO_REASONS, Reasons
from fairlead.webhook.extender.requests import Bytes, FilterArgs, MalformedError, PreemptArgs
from fairlead.webhook.extender.state import ServingState

BAD_REQUEST: Final = 400
UNAVAILABLE: Final = 503
EVICTS_NOBODY: Final = "a group evicts no pods to start"
SAMPLE: Final = 100
"""The scheduler never samples fewer nodes than this."""
A = TypeVar("A", FilterArgs, PreemptArgs)


@dataclass(frozen=True, slots=True)
class VerbCall:
    """One call: its caller, evaluator and clock."""

    state: ServingState
    caller: Caller
    evaluator: Evaluator
    when: CallClock
    outcome: Outcome
    spent: dict[str, int] = field(default_factory=dict)
    """Nanoseconds that the conditions of each policy took."""

    @property
    def part(self) -> Part:
        """Part of a policy that the call needs."""
        return "scores" if self.outcome.verb == "prioritize" else "filters"

    def without_side_effects(self) -> "VerbCall":
        """Return the call with counters off, evaluated on the nodes of the request; preempt requests bring none."""
        known = self.evaluator.nodes
        nodes = known if self.outcome.verb == "preempt" else RequestNodes(known)
        evaluator = Evaluator(self.evaluator.policies, nodes, tally=RuleErrorTally())
        return replace(self, evaluator=evaluator, outcome=replace(self.outcome, simulated=True))


@dataclass(frozen=True, slots=True)
class MatchedPod:
    """A pod and the policies that apply to it."""

    pod: PodView
    matched: Sequence[Matched]
    rejected_by: tuple[RuleRef, str] | None = None
    """The rule that rejects the pod on every node, and its reason; None if none does."""
    membership: Membership | None = None
    """The pod's membership in a group, if it is in one."""


def filter(body: bytes, state: ServingState, caller: Caller, entry: FailurePolicy, when: CallClock) -> VerbReply:  # noqa: A001 - its name
    """Answer filter: the nodes that the pod may use."""
    call = VerbCall(state, caller, state.entries[entry], when, Outcome(verb="filter", entry=entry))
    try:
        return answer(call, requests.decode_filter_args(body, state.full_nodes.split), _filter)
    except MalformedError as error:
        return failed(call, str(error), BAD_REQUEST)


def prioritize(body: bytes, state: ServingState, caller: Caller, when: CallClock) -> VerbReply:
    """Answer prioritize: a score for each node."""
    call = VerbCall(state, caller, state.scores, when, Outcome(verb="prioritize"))
    try:
        return answer(call, requests.decode_filter_args(body, state.full_nodes.split), _prioritize)
    except MalformedError as error:
        return failed(call, str(error), BAD_REQUEST)


def answer(call: VerbCall, args: A, work: Callable[[VerbCall, A], VerbReply]) -> VerbReply:
    """Answer a decoded call, or say which policy was too slow. Raises MalformedError for its pod or nodes."""
    try:
        if args.has_full_nodes or args.pod.metadata.name == NO_POD:
            call = call.without_side_effects()
        return work(call, args)
    except TooSlowError as error:
        late = error.beside(call.spent) if call.spent else error
        outcome = replace(call.outcome, pod=str(args.pod.metadata.uid), too_slow=late.policy)
        if call.when.had_enough_time and not outcome.simulated and not late.after_publication:
            switched = call.state.record_timeout(late.policy, call.part, args.pod, call.when.clock())
            outcome = replace(outcome, switched=switched)
        reply = failed(replace(call, outcome=outcome), str(late), UNAVAILABLE)
        reply.considered = Considered(PodView(args.pod))
        return reply


def failed(call: VerbCall, why: str, status: int) -> VerbReply:
    """Return the reply of a call that could not be answered."""
    outcome = replace(call.outcome, result="error", error=why)
    if outcome.verb == "filter":
        return VerbReply(replies.encode_filter_result(error=why), outcome=outcome)
    return VerbReply(replies.encode_error(why), status, outcome=outcome)


def match(call: VerbCall, pod: Any) -> MatchedPod:
    """Return which policies apply to a pod. Raises TooSlowError, and MalformedError for the pod."""
    scheduler = str(pod.spec.schedulerName)
    if scheduler not in call.caller.schedulers:
        return MatchedPod(PodView(pod), ())
    view = call.state.pod_view(pod)
    if (why := exclusion_reason(call.caller, view.namespace)) is not None:
        return MatchedPod(view, (), (GUARD, why) if call.outcome.entry == "Fail" else None)
    when = call.when
    switched = call.state.circuit_breaker.open_for(call.part, when.clock())
    matched = call.evaluator.matching(
        view, scheduler, when.now, clock=when.clock, deadline_ns=when.deadline_ns, spent=call.spent, switched=switched
    )
    if not matched:
        return MatchedPod(view, ())
    call.state.read_requests(view)
    if switched is not None:
        slow = [each.policy.name for each in matched if each.switched]
        matched = [each for each in matched if not each.switched]
        if slow and call.outcome.entry == "Fail":
            return MatchedPod(view, matched, ((slow[0], ""), too_slow(slow[0])))
    # A pod that is tried out on nodes of the request waits for no group.
    is_tried_out = call.outcome.simulated and call.outcome.verb != "preempt"
    if is_tried_out or not any(each.policy.gangs for each in matched):
        return MatchedPod(view, matched)
    return _with_group(call, view, matched)


def _with_group(call: VerbCall, view: PodView, matched: Sequence[Matched]) -> MatchedPod:
    """Return the pod with its group, which rejects it on every node while it may not be placed. Raises TooSlowError."""
    when, groups = call.when, call.state.groups
    found = membership_of(
        view, matched, tally=call.evaluator.tally, clock=when.clock, deadline_ns=when.deadline_ns, spent=call.spent
    )
    if found is None:
        return MatchedPod(view, matched)
    rule = found.policy, f"{FILTER_PREFIX}{found.gang}"
    if isinstance(found, UndecidedGroup):
        return MatchedPod(view, matched, (rule, UNDECIDED))
    if call.outcome.verb == "preempt":
        why = None if groups.is_placed(found.group) else EVICTS_NOBODY
    else:
        why = groups.rejection(view.uid, found, when.now)
    return MatchedPod(view, matched, None if why is None else (rule, why), found)


def _filter(call: VerbCall, args: FilterArgs) -> VerbReply:
    matched_pod = match(call, args.pod)
    membership = matched_pod.membership
    outcome = replace(call.outcome, pod=matched_pod.pod.uid, group=None if membership is None else membership.group)
    if matched_pod.rejected_by is None and not any(each.policy.filters for each in matched_pod.matched):
        considered = Considered(matched_pod.pod, written=args.names, matched=matched_pod.matched)
        return VerbReply(replies.encode_filter_result(args.names, args.nodes), outcome=outcome, considered=considered)
    candidates = _candidates(call, args)
    outcome = replace(outcome, candidates=len(candidates.names))
    if matched_pod.rejected_by is not None and candidates.names:
        if matched_pod.rejected_by[0] != GUARD:  # which no change of rules or nodes removes
            outcome = replace(outcome, waits=_waits(call, matched_pod.pod), waits_for_group=membership is not None)
        return _refused(matched_pod, candidates, *matched_pod.rejected_by, outcome)
    names, when = candidates.names, call.when
    found = call.evaluator.filter(
        matched_pod.pod, matched_pod.matched, names, now=when.now, clock=when.clock, deadline_ns=when.deadline_ns
    )
    is_part = outcome.simulated or len(names) == 1 or (call.caller.asks_a_sample and _is_sample(call, candidates))
    pod, matched, groups = matched_pod.pod, matched_pod.matched, call.state.groups
    found = left_by_domains(found, pod, matched, call.evaluator, groups, when, sees_all=not is_part, is_call=True)
    considered = Considered(pod, names, found.passed, found, matched=matched)
    if len(found.passed) == len(names):
        return VerbReply(replies.encode_filter_result(args.names, args.nodes), outcome=outcome, considered=considered)
    outcome = replace(
        outcome,
        result="refused" if found.passed else "empty",
        refusals=found.by_rule,
        unknown=tuple(found.unknown),
        waits=_waits(call, matched_pod.pod) if not found.passed else None,
        missed_sample=not found.passed and _is_sample(call, candidates) and found.any_node_passes,
    )
    caller = call.caller
    is_read = not found.passed or caller.wants_all_reasons or (outcome.entry == "Fail" and caller.ignore_entry)
    reasons = _reasons(found, resolvable=caller.resolvable) if is_read else NO_REASONS
    return VerbReply(
        replies.encode_filter_result(*candidates.written(found.passed), reasons), outcome=outcome, considered=considered
    )


def _refused(pod: MatchedPod, candidates: "_Candidates", rule: RuleRef, why: str, outcome: Outcome) -> VerbReply:
    """Return the reply that rejects every candidate."""
    reasons = dict.fromkeys(candidates.names, why)
    outcome = replace(outcome, result="empty", refusals={rule: len(candidates.names)})
    return VerbReply(
        replies.encode_filter_result(*candidates.written(()), Reasons(unresolvable=reasons)),
        outcome=outcome,
        considered=Considered(pod.pod, candidates.names, (), {rule: candidates.names}, matched=pod.matched, reason=why),
    )


def _reasons(filtered: Filtered, *, resolvable: bool) -> Reasons:
    failed, unresolvable = dict[str, str](), dict.fromkeys(filtered.unknown, UNKNOWN_NODE)
    for name, refusal in filtered.rejected.items():
        (failed if resolvable and refusal.resolvable else unresolvable)[name] = refusal.reason
    return Reasons(failed or None, unresolvable or None)


def _waits(call: VerbCall, pod: PodView) -> tuple[str, str] | None:
    return None if call.outcome.simulated else (pod.namespace, pod.name)


def _is_sample(call: VerbCall, candidates: "_Candidates") -> bool:
    """Return whether the scheduler may have sent only a sample of the feasible nodes."""
    return not call.outcome.simulated and SAMPLE <= len(candidates.names) < len(call.evaluator.nodes.slots)


def _prioritize(call: VerbCall, args: FilterArgs) -> VerbReply:
    matched_pod = match(call, args.pod)
    return scored(call, matched_pod, _candidates(call, args).names if matched_pod.matched else ())


def scored(call: VerbCall, matched_pod: MatchedPod, names: Sequence[str]) -> VerbReply:
    """Return the scores of nodes for a pod whose policies are known. Raises TooSlowError."""
    outcome, when = replace(call.outcome, pod=matched_pod.pod.uid), call.when
    if not matched_pod.matched:
        return VerbReply(b"[]", outcome=outcome, considered=Considered(matched_pod.pod))
    totals = call.evaluator.score(
        matched_pod.pod, matched_pod.matched, names, now=when.now, clock=when.clock, deadline_ns=when.deadline_ns
    )
    points = on_the_wire(totals)
    return VerbReply(
        replies.encode_priorities(names, points),
        outcome=replace(outcome, candidates=len(names)),
        considered=Considered(matched_pod.pod, names, names, points=points, matched=matched_pod.matched),
    )


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Nodes of a request: names, or also the bytes of each node."""

    names: Sequence[str]
    items: Sequence[Bytes] | None = None

    def written(self, passed: Sequence[str]) -> tuple[bytes | None, bytes | None]:
        """Return the nodes that passed, in the form of the request."""
        if self.items is None:
            return replies.encode(passed), None
        chosen = {*passed}
        return None, replies.node_list(
            [item for item, name in zip(self.items, self.names, strict=True) if name in chosen]
        )


def _candidates(call: VerbCall, args: FilterArgs) -> _Candidates:
    """Return the nodes of a request, and put full nodes into the evaluator. Raises MalformedError."""
    if args.names is not None:
        return _Candidates(call.state.node_names.names(args.names))
    items = args.items or []
    views = [call.state.full_node_view(item) for item in items]
    for view in views:
        call.evaluator.nodes.put(view)
    return _Candidates([view.name for view in views], items if args.has_full_nodes else None)
