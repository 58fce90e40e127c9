"""preempt: the candidates of the scheduler on which pods may be evicted for another one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE
from fairlead.policy.evaluate.filter_result import Filtered, RuleRef
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.preemption import dropped
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender import replies, requests
from fairlead.webhook.extender.call import CallClock, Caller, CallResult, Considered, FailurePolicy, Outcome, VerbReply
from fairlead.webhook.extender.group_view import left_by_domains
from fairlead.webhook.extender.requests import MalformedError, PreemptArgs, Victims
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.extender.verbs import BAD_REQUEST, VerbCall, answer, failed, match

HELD: Final[RuleRef] = "", "held"
"""Pseudo-rule that spares members of groups which wait for the others: only their scheduler has placed them yet."""


def preempt(body: bytes, state: ServingState, caller: Caller, entry: FailurePolicy, when: CallClock) -> VerbReply:
    """Answer preempt: the nodes on which pods may be evicted for this one."""
    call = VerbCall(state, caller, state.entries[entry], when, Outcome(verb="preempt", entry=entry))
    try:
        return answer(call, requests.decode_preempt_args(body), _preempt)
    except MalformedError as error:
        return failed(call, str(error), BAD_REQUEST)


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
    considered = Considered(matched_pod.pod, names, [*left], rejected, victims=proposed)
    return VerbReply(replies.encode_preemption(left), outcome=outcome, considered=considered)


def _outside(call: VerbCall, pod: PodView, deciding: Sequence[Matched], names: Iterable[str]) -> Mapping[str, RuleRef]:
    """Return the candidates outside the domain of the pod's group, by the rule that requires it. Raises TooSlowError.

    What room evictions would make in a domain that the group has not got yet is not known.
    """
    left = left_by_domains(
        Filtered([*names]), pod, deciding, call.evaluator, call.state.groups, call.when, sees_all=False
    )
    return {name: (one.policy, one.rule) for name, one in left.by_domain.items()}


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

    outside = _outside(call, pod, deciding, proposed)
    for name, victims in proposed.items():
        if (rule := outside.get(name)) is not None:
            rejected.setdefault(rule, []).append(name)
            continue
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
