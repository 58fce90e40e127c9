"""Which policies a pod is subject to."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.policy.compiled import CompiledPolicy, Match
from fairlead.policy.facts import PodView
from fairlead.policy.rules import RAISED, Raised, raised


@dataclass(frozen=True, slots=True)
class Matched:
    """A policy that a pod is subject to; `undecided` where one of its conditions could not be told."""

    policy: CompiledPolicy
    undecided: Raised | None = None


def matches(match: Match, pod: PodView, now: int) -> Raised | bool:
    """Whether a policy is for a pod; what a condition raised, if no other says that it is not."""
    if match.namespaces is not None and pod.namespace not in match.namespaces:
        return False
    if match.namespace_selector and not match.namespace_selector(pod.namespaceObject.metadata.labels):
        return False
    if match.pod_selector and not match.pod_selector(pod.labels):
        return False
    undecided: Raised | None = None
    for condition in match.conditions:
        try:
            if not condition.expression.for_pod(pod)(None, now):
                return False
        except RAISED as error:
            undecided = undecided or raised(error)
    return undecided or True


@dataclass(frozen=True)
class PolicySet:
    """The policies that serve, in their order; immutable, known by its generation."""

    policies: tuple[CompiledPolicy, ...] = ()
    generation: str = ""
    _by_scheduler: Mapping[str, Sequence[CompiledPolicy]] = field(default_factory=dict, repr=False, compare=False)

    def matching(self, pod: PodView, scheduler_name: str, now: int) -> list[Matched]:
        """The enforced policies that a pod is subject to, in order."""
        found = []
        for policy in self._by_scheduler.get(scheduler_name, ()):
            verdict = matches(policy.match, pod, now)
            if verdict is True:
                found.append(Matched(policy))
            elif verdict is not False:
                found.append(Matched(policy, verdict))
        return found


def policy_set(policies: Iterable[CompiledPolicy]) -> PolicySet:
    """The same set, whatever order they come in."""
    ordered = tuple(sorted(policies, key=lambda policy: policy.order))
    names = sorted((policy.name, policy.uid, policy.generation) for policy in ordered)
    by_scheduler: dict[str, list[CompiledPolicy]] = {}
    for policy in ordered:
        if policy.enforced:
            by_scheduler.setdefault(policy.scheduler_name, []).append(policy)
    return PolicySet(ordered, hashlib.sha256(repr(names).encode()).hexdigest()[:12], by_scheduler)
