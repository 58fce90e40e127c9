"""Observed calls: what is kept of a call of filter or preempt that was answered, to compare it with rules in shadow."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.shadow.call_comparison import CallToCompare
from fairlead.policy.shadow.dropped_candidates import victims_of
from fairlead.policy.shadow.shadow_rules import ShadowRules
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender.call import Outcome, exclusion_reason
from fairlead.webhook.extender.decisions import Decision
from fairlead.webhook.extender.requests import MalformedError, decode_names
from fairlead.webhook.extender.state import ServingState

_DECODED: Final = 4
"""Memory of a decoded pod, as a multiple of its JSON; approximate."""
_AROUND_NAME: Final = 3
_NAME_BYTES: Final = 100
"""Memory of a name of a node; approximate."""


@dataclass(frozen=True, slots=True, eq=False)
class ObservedCall:
    """Call that was answered."""

    state: ServingState
    rules: ShadowRules
    """Rules in shadow of the state."""
    scheduler: str
    pod: PodView
    position: int
    """Position in the journal of the nodes at the call."""
    budget_ns: int
    """Time that the call could have taken."""
    pod_bytes: int
    """About how long the pod was in the request."""
    passed: Sequence[str] = ()
    victims: Mapping[str, Collection[str]] | None = None
    """UIDs of the pods that would be evicted, by candidate; None for a call of filter."""

    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""
        return _DECODED * self.pod_bytes + _NAME_BYTES * len(self.passed)

    def among(self, passed: Collection[str]) -> "ObservedCall":
        """Return the call with those of its nodes that have passed another entry, too."""
        chosen = {*passed}
        return replace(self, passed=[name for name in self.passed if name in chosen])

    def as_compared(self) -> CallToCompare:
        """Return the call as rules in shadow need it. Raises MalformedError for requests that cannot be read."""
        pod = PodView(self.pod.pod, self.pod.namespaceObject if self.pod.knows_namespace else None)
        self.state.read_requests(pod)
        nodes = self.rules.nodes
        slots, unknown = _slots(nodes, self.passed)
        return CallToCompare(pod, self.scheduler, slots, unknown, self.position, self.budget_ns, len(nodes.views))


def observed_filter(decision: Decision, state: ServingState, budget_ns: int) -> ObservedCall | None:
    """Return a call of filter; None for one that is not compared, such as one about the nominated node alone."""
    pod, rules = _compared_pod(decision, state), state.shadow
    names = None if pod is None else named(decision)
    if pod is None or rules is None or names is None or (len(names) == 1 and names[0] == pod.nominated):
        return None
    of_pod = decision.size - ((len(names[0]) + _AROUND_NAME) * len(names) if names else 0)
    passed = passed_names(decision, names)
    return ObservedCall(state, rules, _scheduler(pod), pod, decision.position, budget_ns, max(0, of_pod), passed)


def observed_preempt(decision: Decision, state: ServingState, budget_ns: int) -> ObservedCall | None:
    """Return a call of preempt; None for one that is not compared."""
    pod, rules, considered = _compared_pod(decision, state), state.shadow, decision.considered
    if pod is None or rules is None or considered is None or not considered.passed or considered.victims is None:
        return None
    victims, position = victims_of(considered.passed, considered.victims), decision.position
    return ObservedCall(state, rules, _scheduler(pod), pod, position, budget_ns, decision.size, victims=victims)


def named(decision: Decision) -> Sequence[str] | None:
    """Return the nodes that a call of filter names; None if it names none."""
    considered = decision.considered
    if considered is None:
        return None
    if considered.nodes is not None or considered.written is None:
        return considered.nodes
    try:
        return decode_names(considered.written)
    except MalformedError:
        return None


def passed_names(decision: Decision, names: Sequence[str]) -> Sequence[str]:
    """Return those of the nodes of a call that have passed it: all, if no rule was asked."""
    considered = decision.considered
    if considered is None or considered.nodes is None:
        return names
    return () if considered.passed is None else considered.passed


def is_answered(outcome: Outcome) -> bool:
    """Report whether a call was real, and was answered in time."""
    return not outcome.simulated and outcome.result in ("passed", "refused", "empty")


def _compared_pod(decision: Decision, state: ServingState) -> PodView | None:
    """Return the pod of a call; None if rules in shadow are not compared for it."""
    considered, rules = decision.considered, state.shadow
    pod = None if considered is None else considered.pod
    if not isinstance(pod, PodView) or not is_answered(decision.outcome) or decision.policies is not state.policies:
        return None
    scheduler, caller = _scheduler(pod), decision.caller
    if rules is None or scheduler not in rules.by_scheduler or scheduler not in caller.schedulers:
        return None
    return None if exclusion_reason(caller, pod.namespace) is not None else pod


def _scheduler(pod: PodView) -> str:
    return str(pod.pod.spec.schedulerName)


def _slots(nodes: Nodes, names: Sequence[str]) -> tuple[Sequence[int], int]:
    """Return the slots of the nodes that are known, and how many are not."""
    slots = nodes.slots
    try:
        found: Sequence[int] = itemgetter(*names)(slots) if len(names) > 1 else [slots[name] for name in names]
    except KeyError:
        known = {name: slot for name in names if (slot := slots.get(name)) is not None}
        return [*known.values()], len({*names} - known.keys())
    return found, 0
