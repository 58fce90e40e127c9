"""Pods that were left without a node, and whether a node would pass them now: then wake the scheduler (decision 13).

kube-scheduler retries a pod only after the events that it knows. A changed rule, changed data and the passage of time
are none of them. `recheck` runs in idle time and continues where it stopped.
"""

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.groups.group import Group, Membership, UndecidedGroup
from fairlead.logs import FaultError, RateLimiter
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.filter_result import Filtered
from fairlead.policy.evaluate.group_membership import membership_of
from fairlead.policy.evaluate.matching import Matched, Switched
from fairlead.policy.evaluate.rule_columns import filter_columns
from fairlead.policy.evaluate.verdict_cache import UncachedPass
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS
from fairlead.webhook.extender.call import CallClock, FailurePolicy
from fairlead.webhook.extender.decisions import Decision
from fairlead.webhook.extender.group_view import left_by_domains
from fairlead.webhook.extender.requests import MalformedError
from fairlead.webhook.extender.state import ServingState

LOG: Final = logging.getLogger(__name__)
PODS: Final = 512
AGAIN_NS: Final = 3 * SECOND_NS
"""Interval of a recheck without any known change: conditions may read the time."""
UNSEEN_NS: Final = 30 * SECOND_NS
"""How long a pod may stay unknown to the mirror."""
PAUSE_NS: Final = 10 * SECOND_NS
CONDITIONS: Final = 20_000_000
"""Nanoseconds that the conditions of all policies may take for one pod; they start over each time."""
PAUSE_MAX_NS: Final = 320 * SECOND_NS
"""Longest pause between two reports: a pod that could pass and is not placed waits for something else."""
GROUP_NS: Final = 2 * SECOND_NS
"""How long a group must not reject its pods before that is reported: what holds them wakes them sooner by itself."""
_EVERY: Final = -1


@dataclass(slots=True, eq=False)
class _Pod:
    key: tuple[str, str]
    entry: FailurePolicy | None
    policy: str
    """The policy that alone rejected it; "" if several did, or its group."""
    since: int
    group: Group | None = None
    waits_for_group: bool = False
    """Whether it was rejected because of its group."""
    passes_since: int | None = None
    """Since when its group does not reject it, if it did before."""
    known: bool = False
    reported: int = 0
    """Reported slots that would pass, as a number with one byte per slot."""
    report_again_at: int = 0
    pause_ns: int = PAUSE_NS
    skipped_until: int = 0
    """Until when it is skipped, because it took too long or an internal error occurred."""
    sweeps: dict[FailurePolicy, UncachedPass] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class RejectedPods:
    """Rejected pods without a node, of each group only one. Used by the serving event loop only."""

    limit: int = PODS
    schedulable_again: bool = False
    """Whether a pod may be placed now; reset by the code that reports it."""
    missed: Counter[str] = field(default_factory=Counter)
    """Calls in which a policy rejected all nodes of the sample although another node would have passed."""
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    _pods: dict[str, _Pod] = field(default_factory=dict)  # by UID
    _groups: dict[Group, str] = field(default_factory=dict)
    """UID of the pod that is there for all of its group."""
    _left: list[str] = field(default_factory=list)
    _state: ServingState | None = None
    _head: int = -1  # of the journal, when the last round began
    _next: int = 0

    def record(self, decision: Decision) -> None:
        """Record the decision of a filter call; the other verbs leave no pod without a node."""
        outcome = decision.outcome
        if outcome.verb != "filter":
            return
        if outcome.waits is None:
            rejected = self._pods.get(outcome.pod) if self._pods else None
            if rejected is not None and rejected.entry == outcome.entry and outcome.result in ("passed", "refused"):
                self._forget(outcome.pod)
            return
        policies = {policy for policy, _ in outcome.refusals}
        if outcome.missed_sample:
            self.missed.update(policies)
        policy = policies.pop() if len(policies) == 1 and not outcome.waits_for_group else ""
        rejected = self._pods.get(outcome.pod)
        if rejected is not None and rejected.group == outcome.group:
            rejected.entry, rejected.policy = outcome.entry, policy
            rejected.waits_for_group, rejected.passes_since = outcome.waits_for_group, None
            return
        if rejected is not None:
            self._forget(outcome.pod)
        if outcome.group is not None and self._groups.setdefault(outcome.group, outcome.pod) != outcome.pod:
            return
        if len(self._pods) >= self.limit:
            self._forget(next(iter(self._pods)))
        made = _Pod(outcome.waits, outcome.entry, policy, decision.answered_ns, outcome.group, outcome.waits_for_group)
        self._pods[outcome.pod] = made
        self._left.append(outcome.pod)

    @property
    def has_pods(self) -> bool:
        """Return whether there is a pod that may be placed later."""
        return bool(self._pods)

    @property
    def uids(self) -> Collection[str]:
        """Return the UIDs of the pods."""
        return self._pods.keys()

    def rejected_alone(self) -> Mapping[str, int]:
        """Return how many pods each policy alone leaves without a node."""
        return Counter(one.policy for one in self._pods.values() if one.policy)

    def recheck(self, state: ServingState, when: CallClock) -> bool:
        """Continue the round until the deadline; return whether every pod was checked since the last change."""
        at, head = when.clock(), state.entries["Fail"].nodes.head
        if self._state is not state:
            for pod in self._pods.values():
                pod.sweeps.clear()
                pod.skipped_until = 0
        if self._state is not state or (not self._left and (head != self._head or at >= self._next)):
            self._state, self._head, self._next, self._left = state, head, at + AGAIN_NS, [*self._pods]
        while self._left:
            rejected = self._pods.get(self._left[-1])
            if rejected is not None and not self._look_at(rejected, self._left[-1], state, when):
                return False
            self._left.pop()
            if self._left and when.clock() > when.deadline_ns:
                return False
        return True

    def _look_at(self, rejected: _Pod, uid: str, state: ServingState, when: CallClock) -> bool:
        """Check one pod; return False if time ran out before its result was known."""
        pod = state.mirror.unplaced(*rejected.key)
        at = when.clock()
        if pod is None or pod.metadata.uid != uid:
            if rejected.known or at - rejected.since > UNSEEN_NS:
                self._forget(uid)
            return True
        rejected.known = True
        if at < rejected.skipped_until:
            return True
        try:
            passing = _passing(state, pod, rejected, when)
        except TooSlowError:
            return False
        except Exception as error:  # one pod must not keep the others from being woken
            rejected.skipped_until = at + PAUSE_MAX_NS
            if not isinstance(error, _ConditionsError) and (more := self.rate_limiter.allow("waiting")) is not None:
                LOG.exception("rejected_pod.fault", exc_info=FaultError(error), extra={"pod": uid, **more})
            return True
        rejected.sweeps.clear()
        rejected.reported &= passing
        if not passing:
            rejected.report_again_at, rejected.pause_ns, rejected.passes_since = 0, PAUSE_NS, None
        elif rejected.waits_for_group and _is_lately(rejected, at):
            pass
        elif passing & ~rejected.reported or at >= rejected.report_again_at:
            self.schedulable_again = True
            if at >= rejected.report_again_at:
                rejected.pause_ns = min(2 * rejected.pause_ns, PAUSE_MAX_NS) if rejected.reported else PAUSE_NS
                rejected.report_again_at = at + rejected.pause_ns
            rejected.reported = passing
        return True

    def _forget(self, uid: str) -> None:
        group = self._pods.pop(uid).group
        if group is not None and self._groups.get(group) == uid:
            del self._groups[group]


def _is_lately(rejected: _Pod, at: int) -> bool:
    """Return whether its group does not reject a pod only since a moment ago."""
    if rejected.passes_since is None:
        rejected.passes_since = at
    return at - rejected.passes_since < GROUP_NS


def _passing(state: ServingState, pod: object, rejected: _Pod, when: CallClock) -> int:
    """Return the nodes that pass both failure policies, one byte per slot. Raises TooSlowError if time runs out."""
    view, passing = state.pod_view(pod), _EVERY
    scheduler = str(view.pod.spec.schedulerName)
    switched = state.circuit_breaker.open_for("filters", when.clock())
    for entry, evaluator in state.entries.items():
        matched = _matching(evaluator, view, scheduler, when, switched)
        if entry == "Fail" and any(one.switched for one in matched):
            return 0
        active = [one for one in matched if not one.switched]
        if any(one.policy.gangs for one in active) and _is_rejected_by_group(state, view, active, when):
            return 0
        if any(one.policy.filters for one in active):
            try:
                state.read_requests(view)
            except MalformedError:
                return 0
            passing &= int.from_bytes(_of_entry(evaluator, view, active, rejected, entry, when), "little")
            if any(one.policy.domain_rules for one in active):
                passing &= _in_domains(state, evaluator, view, active, passing, when)
    return passing


def _in_domains(
    state: ServingState, evaluator: Evaluator, view: PodView, active: list[Matched], passing: int, when: CallClock
) -> int:
    """Return which of the nodes that pass are in the domains that the pod's groups share, or may."""
    slots, size = evaluator.nodes.slots, max(len(evaluator.nodes.views), (passing.bit_length() + 7) // 8)
    mask = passing.to_bytes(size, "little")
    found = Filtered([name for name, slot in slots.items() if mask[slot]])
    left, kept = left_by_domains(found, view, active, evaluator, state.groups, when, sees_all=True), bytearray(size)
    for name in left.passed:
        kept[slots[name]] = 1
    return int.from_bytes(kept, "little")


def _is_rejected_by_group(state: ServingState, view: PodView, active: list[Matched], when: CallClock) -> bool:
    """Return whether filter would reject a pod on every node because of its group."""
    try:
        state.read_requests(view)
        membership: Membership | UndecidedGroup | None = membership_of(
            view, active, clock=when.clock, deadline_ns=when.clock() + CONDITIONS
        )
    except MalformedError:
        return True
    except TooSlowError as error:
        raise _ConditionsError from error
    if isinstance(membership, UndecidedGroup):
        return True
    return membership is not None and state.groups.rejection(view.uid, membership, when.now) is not None


class _ConditionsError(Exception):
    """The conditions of the policies took too long for this pod."""


def _matching(
    evaluator: Evaluator, view: PodView, scheduler: str, when: CallClock, switched: Switched | None
) -> list[Matched]:
    deadline_ns = when.clock() + CONDITIONS
    try:
        return evaluator.policies.matching(
            view, scheduler, when.now, clock=when.clock, deadline_ns=deadline_ns, switched=switched
        )
    except TooSlowError as error:
        raise _ConditionsError from error


def _of_entry(
    evaluator: Evaluator, pod: PodView, matched: list[Matched], rejected: _Pod, entry: FailurePolicy, when: CallClock
) -> bytearray:
    now, clock, deadline_ns = when[:3]
    kept = evaluator.cached_for(pod, matched)
    evaluator.refresh(kept, now=now, clock=clock, deadline_ns=deadline_ns)
    if kept is not None:
        return kept.verdicts.passing
    sweep = rejected.sweeps.get(entry)
    if sweep is None:
        nodes, tally = evaluator.nodes, RuleErrorTally()
        filters = [rule for each in matched for rule in filter_columns(each, pod, nodes, tally)]
        sweep = rejected.sweeps[entry] = UncachedPass(filters, nodes)
    if not sweep.go_on(now, clock, deadline_ns):
        raise TooSlowError({matched[0].policy.name: 0})
    return sweep.passing
