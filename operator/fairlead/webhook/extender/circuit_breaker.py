"""Circuit breaker: a policy that misses the deadline twice in a minute gets its failure policy instead.

On this replica only, for five minutes or until its next generation, and only for the pods that made it miss: one
equivalence class in one namespace. Several classes of a namespace open the circuit for the whole namespace, and classes
of several namespaces open it for all pods. So a user who creates pods in one namespace opens no circuit for other
namespaces.

Three parts of a policy have circuits of their own: what it does before a pod has a node (filter and preempt), scores,
and annotations (bind). A scheduler continues without scores if they fail, so scores have no failure policy, and a slow
score never rejects a pod.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from fairlead.policy.compile.expression import as_reads
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import Switched, equivalence_key
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import Reads, union
from fairlead.time_units import SECOND_NS

REASON: Final = "TooSlow"
WINDOW_NS: Final = 60 * SECOND_NS
PAUSE_NS: Final = 300 * SECOND_NS
CLASSES: Final = 4
"""Open classes of one namespace that open the circuit for all of it: its pods can be varied without end."""
NAMESPACES: Final = 2
"""Namespaces with open classes that open the circuit for all pods."""
MISSES: Final = 1024
"""Classes with one recent miss that are remembered."""

Part = Literal["filters", "scores", "annotations"]
CircuitScope = Literal["class", "namespace", "all"]
_WHOLE: Final = b""
"""Stands for all classes of a namespace."""
_Class = tuple[str, bytes]  # namespace, digest


class PolicyGeneration(NamedTuple):
    """One generation of one policy; another UID or generation starts with closed circuits."""

    name: str
    uid: str
    generation: str


class OpenCircuit(NamedTuple):
    """An open circuit of a policy, and for how many pods."""

    policy: PolicyGeneration
    part: Part
    scope: CircuitScope
    classes: int = 0
    """Equivalence classes of pods; 0 if it is open for all pods."""

    @property
    def pods(self) -> str:
        """Return for which pods it is open, as text."""
        if self.scope == "all":
            return "all pods"
        if self.scope == "namespace":
            return "the pods of one namespace"
        return f"{self.classes} {'class' if self.classes == 1 else 'classes'} of pods of one namespace"

    def __str__(self) -> str:
        return f"{_DONE[self.part]} for {self.pods}"


_DONE: Final[dict[Part, str]] = {
    "filters": "its failurePolicy replaces its filters",
    "scores": "its scores are left out",
    "annotations": "the onError of its annotations applies",
}


def generation_of(policy: CompiledPolicy) -> PolicyGeneration:
    """Return the generation of a compiled policy."""
    return PolicyGeneration(policy.name, policy.uid, policy.generation)


@dataclass(slots=True, eq=False)
class _PolicyCircuits:
    """Circuits of one part of a policy."""

    class_of: Callable[[PodView], bytes]
    all_until: int = 0
    """Until when the circuit is open for all pods."""
    until: dict[_Class, int] = field(default_factory=dict)

    def is_open(self, pod: PodView, at: int) -> bool:
        """Return whether the circuit is open for a pod."""
        if self.all_until > at:
            return True
        namespace = pod.namespace
        if not any(one == namespace for one, _ in self.until):
            return False
        return self.until.get((namespace, _WHOLE), at) > at or self.until.get((namespace, self.class_of(pod)), at) > at

    def open(self, pod: PodView, at: int) -> CircuitScope:
        """Open the circuit for the class of a pod, and return for which pods it is open now."""
        namespace, until = pod.namespace, at + PAUSE_NS
        self.until = {one: end for one, end in self.until.items() if end > at}
        self.until[namespace, self.class_of(pod)] = until
        if len({one for one, _ in self.until}) >= NAMESPACES:
            self.all_until = until
            self.until.clear()
            return "all"
        if (namespace, _WHOLE) in self.until or len(self.until) >= CLASSES:
            self.until = {(namespace, _WHOLE): until}
            return "namespace"
        return "class"

    def summary(self, policy: PolicyGeneration, part: Part, at: int) -> OpenCircuit | None:
        """Return for which pods it is open; None if it is closed."""
        if self.all_until > at:
            return OpenCircuit(policy, part, "all")
        classes = [one for (_, one), end in self.until.items() if end > at]
        if not classes:
            return None
        return (
            OpenCircuit(policy, part, "namespace", CLASSES)
            if _WHOLE in classes
            else OpenCircuit(policy, part, "class", len(classes))
        )


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """Open circuits and recent misses of all policies. Times are nanoseconds of a monotonic clock."""

    _missed: dict[tuple[PolicyGeneration, Part, _Class], int] = field(default_factory=dict)  # when last
    _circuits: dict[tuple[PolicyGeneration, Part], _PolicyCircuits] = field(default_factory=dict)

    def record_timeout(self, policy: CompiledPolicy, part: Part, pod: PodView, at: int) -> CircuitScope | None:
        """Record that a policy missed the deadline for a pod; return for which pods its circuit opened, if it did."""
        self._missed = {key: when for key, when in self._missed.items() if at - when < WINDOW_NS}
        which = generation_of(policy), part
        circuits = self._circuits.get(which) or _PolicyCircuits(_class_of(policy))
        key = (*which, (pod.namespace, circuits.class_of(pod)))
        if key in self._missed:
            self._circuits[which] = circuits
            return circuits.open(pod, at)
        if len(self._missed) >= MISSES:
            del self._missed[next(iter(self._missed))]
        self._missed[key] = at
        return None

    def is_open(self, policy: CompiledPolicy, part: Part, pod: PodView, at: int) -> bool:
        """Return whether the circuit of this part of a policy is open for a pod."""
        circuits = self._circuits.get((generation_of(policy), part)) if self._circuits else None
        return circuits is not None and circuits.is_open(pod, at)

    def open_for(self, part: Part, at: int) -> Switched | None:
        """Return `is_open` for a part and a time, as a function; None while no circuit is open."""
        if not self._circuits:
            return None
        return lambda policy, pod: self.is_open(policy, part, pod, at)

    def open_circuits(self, at: int) -> Sequence[OpenCircuit]:
        """Return the open circuits for the status, and forget those that have closed."""
        found = {which: circuits.summary(*which, at) for which, circuits in self._circuits.items()}
        self._circuits = {which: circuits for which, circuits in self._circuits.items() if found[which] is not None}
        return [one for one in found.values() if one is not None]


def _class_of(policy: CompiledPolicy) -> Callable[[PodView], bytes]:
    """Return a function that gives the equivalence class of a pod: a digest of what the policy reads of it.

    Pods that are each a class of their own, as the policy reads their identity, are one class here. Requests are left
    out: they are not computed yet when conditions are evaluated.
    """
    expressions = [rule.expression for rule in (*policy.match.conditions, *policy.protections)]
    expressions += [rule.expression for rule in policy.annotations]
    expressions += [one for rule in policy.gangs for one in (rule.group, rule.size)]
    of_domains = [one for rule in policy.domain_rules for one in (rule.group, rule.size)]
    expressions += [one for one in of_domains if one is not None]
    reads = union([policy.reads, *(as_reads(one.paths) for one in expressions)])
    key_of = equivalence_key(Reads(pod=reads.pod, namespace=reads.namespace))

    def digest(pod: PodView) -> bytes:
        if (key := key_of(pod)) is None:
            return _WHOLE
        return blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    return digest
