"""filter, prioritize and preempt: from the bytes of a request to those of its reply.

Functions of the request and the serving state, without I/O. A call past its deadline is answered with an error that
names the policy. The reply of filter has a field for errors; the other verbs answer with a status other than 200.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from fairlead.groups.group import UndecidedGroup
from fairlead.pki.identities import NO_POD
from fairlead.policy.compile.model import FILTER_PREFIX
from fairlead.policy.evaluate.deadline import TooSlowError, too_slow
from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE, Evaluator
from fairlead.policy.evaluate.filter_result import Filtered, RuleRef
from fairlead.policy.evaluate.group_membership import UNDECIDED, membership_of
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.preemption import dropped
from fairlead.policy.evaluate.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.nodes.node_table import RequestNodes
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender import replies, requests
from fairlead.webhook.extender.call import (
    GUARD,
    CallClock,
    Caller,
    CallResult,
    Considered,
    FailurePolicy,
    Outcome,
    VerbReply,
    exclusion_reason,
)
from fairlead.webhook.extender.circuit_breaker import Part
from fairlead.webhook.extender.replies import NO_REASONS, Reasons
from fairlead.webhook.extender.requests import Bytes, FilterArgs, MalformedError, PreemptArgs, Victims
from fairlead.webhook.extender.state import ServingState

BAD_REQUEST: Final = 400
UNAVAILABLE: Final = 503
EVICTS_NOBODY: Final = "a group evicts no pods to start"
HELD: Final[RuleRef] = "", "held"
"""Pseudo-rule that spares members of groups which wait for the others: they are placed for the scheduler alone."""
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
    is_of_group: bool = False
    """Whether the pod is a member of a group, or it cannot be decided of which."""


def filter(body: bytes, state: ServingState, caller: Caller, entry: FailurePolicy, when: CallClock) -> VerbReply:  # noqa: A001 - its name
    """Answer filter: the nodes that the pod may use."""
    call = VerbCall(state, caller, state.entries[entry], when, Outcome(verb="filter", entry=entry))
    try:
        return answer(call, requests.decode_filter_args(body, state.full_nodes.split), _filter)
    except MalformedError as error:
        return _failed(call, str(error), BAD_REQUEST)


def prioritize(body: bytes, state: ServingState, caller: Caller, when: CallClock) -> VerbReply:
    """Answer prioritize: a score for each node."""
    call = VerbCall(state, caller, state.scores, when, Outcome(verb="prioritize"))
    try:
        return answer(call, requests.decode_filter_args(body, state.full_nodes.split), _prioritize)
    except MalformedError as error:
        return _failed(call, str(error), BAD_REQUEST)


def preempt(body: bytes, state: ServingState, caller: Caller, entry: FailurePolicy, when: CallClock) -> VerbReply:
    """Answer preempt: the nodes on which pods may be evicted for this one."""
    call = VerbCall(state, caller, state.entries[entry], when, Outcome(verb="preempt", entry=entry))
    try:
        return answer(call, requests.decode_preempt_args(body), _preempt)
    except MalformedError as error:
        return _failed(call, str(error), BAD_REQUEST)


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
        reply = _failed(replace(call, outcome=outcome), str(late), UNAVAILABLE)
        reply.considered = Considered(PodView(args.pod))
        return reply


def _failed(call: VerbCall, why: str, status: int) -> VerbReply:
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
    return _with_group(call, view, matched) if any(each.policy.gangs for each in matched) else MatchedPod(view, matched)


def _with_group(call: VerbCall, view: PodView, matched: Sequence[Matched]) -> MatchedPod:
    """Return the pod with its group, which rejects it on every node while it may not be placed. Raises TooSlowError."""
    when = call.when
    found = membership_of(
        view, matched, tally=call.evaluator.tally, clock=when.clock, deadline_ns=when.deadline_ns, spent=call.spent
    )
    if found is None:
        return MatchedPod(view, matched)
    rule = found.policy, f"{FILTER_PREFIX}{found.gang}"
    if isinstance(found, UndecidedGroup):
        return MatchedPod(view, matched, (rule, UNDECIDED), is_of_group=True)
    why = None if call.outcome.simulated else call.state.groups.rejection(view.uid, found, when.now)
    if call.outcome.verb == "preempt" and not call.state.groups.is_placed(found.group):
        why = EVICTS_NOBODY
    return MatchedPod(view, matched, None if why is None else (rule, why), is_of_group=True)


def _filter(call: VerbCall, args: FilterArgs) -> VerbReply:
    matched_pod = match(call, args.pod)
    outcome = replace(call.outcome, pod=matched_pod.pod.uid)
    if matched_pod.rejected_by is None and not any(each.policy.filters for each in matched_pod.matched):
        considered = Considered(matched_pod.pod)
        return VerbReply(replies.encode_filter_result(args.names, args.nodes), outcome=outcome, considered=considered)
    candidates = _candidates(call, args)
    outcome = replace(outcome, candidates=len(candidates.names))
    if matched_pod.rejected_by is not None and candidates.names:
        # No change of rules or nodes removes the guard, and members of groups are woken by what holds them.
        if matched_pod.rejected_by[0] != GUARD and not matched_pod.is_of_group:
            outcome = replace(outcome, waits=_waits(call, matched_pod.pod))
        return _refused(matched_pod.pod, candidates, *matched_pod.rejected_by, outcome)
    names, when = candidates.names, call.when
    found = call.evaluator.filter(
        matched_pod.pod, matched_pod.matched, names, now=when.now, clock=when.clock, deadline_ns=when.deadline_ns
    )
    considered = Considered(matched_pod.pod, names, found.passed, found)
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


def _refused(pod: PodView, candidates: "_Candidates", rule: RuleRef, why: str, outcome: Outcome) -> VerbReply:
    """Return the reply that rejects every candidate."""
    reasons = dict.fromkeys(candidates.names, why)
    outcome = replace(outcome, result="empty", refusals={rule: len(candidates.names)})
    return VerbReply(
        replies.encode_filter_result(*candidates.written(()), Reasons(unresolvable=reasons)),
        outcome=outcome,
        considered=Considered(pod, candidates.names, (), {rule: candidates.names}),
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
        considered=Considered(matched_pod.pod, names, names, points=points),
    )


def _preempt(call: VerbCall, args: PreemptArgs) -> VerbReply:
    matched_pod, proposed = match(call, args.pod), args.victims
    outcome = replace(call.outcome, pod=matched_pod.pod.uid, candidates=len(proposed))
    names = [*proposed]
    if matched_pod.rejected_by is not None and proposed:
        left, rejected, unknown = dict[str, Victims](), {matched_pod.rejected_by[0]: names}, list[str]()
    else:
        deciding = [each for each in matched_pod.matched if each.policy.filters or each.policy.protections]
        left, rejected, unknown = _surviving_candidates(call, matched_pod.pod, deciding, proposed)
    if len(left) < len(proposed):
        result: CallResult = "refused" if left else "empty"
        refusals = {rule: len(nodes) for rule, nodes in rejected.items()}
        outcome = replace(outcome, result=result, refusals=refusals, unknown=tuple(unknown))
    considered = Considered(matched_pod.pod, names, [*left], rejected)
    return VerbReply(replies.encode_preemption(left), outcome=outcome, considered=considered)


def _surviving_candidates(
    call: VerbCall, pod: PodView, deciding: Sequence[Matched], proposed: Mapping[str, Victims]
) -> tuple[dict[str, Victims], dict[RuleRef, list[str]], list[str]]:
    """Return the candidates that no rule rejects, the rejected ones by rule, and the unknown nodes."""
    when, evaluator, counted = call.when, call.evaluator, call.state.mirror.requests_of_placed
    left, rejected, unknown = dict[str, Victims](), dict[RuleRef, list[str]](), list[str]()
    spent, before, asking = Counter[str](), when.clock(), ""

    def took() -> None:
        """Charge the time to the current policy, after each rule and victim. Raises TooSlowError."""
        nonlocal before
        at = when.clock()
        spent[asking] += at - before
        before = at
        if at > when.deadline_ns:
            raise TooSlowError(spent)

    for name, victims in proposed.items():
        uids = {pod.UID for pod in victims.Pods}
        if any(map(call.state.groups.is_member, uids)):
            rejected.setdefault(HELD, []).append(name)
            continue
        for each in deciding:
            asking = each.policy.name
            why = dropped(
                pod,
                [each],
                evaluator.nodes,
                name,
                uids,
                requests=counted,
                now=when.now,
                tally=evaluator.tally,
                took=took,
            )
            if why is not None:
                if why.why == UNKNOWN_NODE:
                    unknown.append(name)
                else:
                    rejected.setdefault((why.policy, why.rule), []).append(name)
                break
        else:
            left[name] = victims
    return left, rejected, unknown


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
