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
    condition: str = ""
    """The condition that could not be told."""


Doubt = tuple[str, Raised]
"""What could not be told, and why."""


def matches(match: Match, pod: PodView, now: int) -> Doubt | bool:
    """Whether a policy is for a pod; what could not be told, if nothing else says that it is not."""
    doubt: Doubt | None = None
    if match.namespaces is not None and pod.namespace not in match.namespaces:
        return False
    if match.namespace_selector is not None:
        if not pod.knows_namespace:
            doubt = "namespaceSelector", Raised("the namespace", "is not known yet")
        elif not match.namespace_selector(pod.namespaceObject.metadata.labels):
            return False
    if match.pod_selector is not None and not match.pod_selector(pod.labels):
        return False
    for condition in match.conditions:
        try:
            if not condition.expression.for_pod(pod)(None, now):
                return False
        except RAISED as error:
            doubt = doubt or (condition.name, raised(error))
    return doubt or True


@dataclass(frozen=True)
class PolicySet:
    """The policies that serve, in their order; immutable, known by its generation."""

    policies: tuple[CompiledPolicy, ...] = ()
    generation: str = ""
    _by_scheduler: Mapping[str, Sequence[CompiledPolicy]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_scheduler: dict[str, list[CompiledPolicy]] = {}
        for policy in self.policies:
            if policy.enforced:
                by_scheduler.setdefault(policy.scheduler_name, []).append(policy)
        object.__setattr__(self, "_by_scheduler", by_scheduler)

    def matching(self, pod: PodView, scheduler_name: str, now: int) -> list[Matched]:
        """The enforced policies that a pod is subject to, in order."""
        found = []
        for policy in self._by_scheduler.get(scheduler_name, ()):
            verdict = matches(policy.match, pod, now)
            if verdict is True:
                found.append(Matched(policy))
            elif verdict is not False:
                condition, why = verdict
                found.append(Matched(policy, why, condition))
        return found


def policy_set(policies: Iterable[CompiledPolicy]) -> PolicySet:
    """The same set, whatever order they come in."""
    ordered = tuple(sorted(policies, key=lambda policy: policy.order))
    names = sorted((policy.name, policy.uid, policy.generation) for policy in ordered)
    return PolicySet(ordered, hashlib.sha256(repr(names).encode()).hexdigest()[:12])
