"""Policies that are too slow: one that misses the deadline twice in a minute is switched to its failure policy.

On this replica only, until its next generation or for five minutes, and for nobody but the pods that made it miss:
those of one class in one namespace. For a namespace as a whole once several of its classes did, and for everybody once
classes of several namespaces did: whoever makes pods in one namespace switches nothing for others.

What a policy does before a pod has a node (filter and preempt), what it does after (scores) and what it writes then
(bind) are switched apart: a scheduler goes on without scores whatever is wrong with them, so that they have no failure
policy, and nobody refuses a pod because a score is slow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from fairlead.policy.compile.expression import as_reads
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import Switched, equivalence_key, reads_identity
from fairlead.policy.views.pod_and_node import PodView
from fairlead.strategies.reads import Reads, union

REASON: Final = "TooSlow"
_SECOND_NS: Final = 1_000_000_000
WINDOW_NS: Final = 60 * _SECOND_NS
PAUSE_NS: Final = 300 * _SECOND_NS
CLASSES: Final = 4
"""So many classes of one namespace stand for all of it: its pods could be made otherwise again and again."""
NAMESPACES: Final = 2
"""Classes of so many namespaces stand for everybody."""
MISSES: Final = 1024
"""So many classes that missed once are remembered."""

Part = Literal["gate", "scores", "binding"]
Scope = Literal["class", "namespace", "all"]
_WHOLE: Final = b""
"""In place of a class: all pods of the namespace."""
_Class = tuple[str, bytes]  # namespace, digest


class Version(NamedTuple):
    """A policy as it is written; another one of that name, or another generation, starts afresh."""

    name: str
    uid: str
    generation: str


class OpenCircuit(NamedTuple):
    """A policy that is switched, and for whom: no more is told than how many they are."""

    policy: Version
    part: Part
    scope: Scope
    classes: int = 0
    """Classes of pods, where it is for some only."""

    @property
    def pods(self) -> str:
        """For whom, in words."""
        if self.scope == "all":
            return "all pods"
        if self.scope == "namespace":
            return "the pods of one namespace"
        return f"{self.classes} {'class' if self.classes == 1 else 'classes'} of pods of one namespace"

    def __str__(self) -> str:
        return f"{_DONE[self.part]} for {self.pods}"


_DONE: Final[dict[Part, str]] = {
    "gate": "its filters are switched to its failurePolicy",
    "scores": "its scores are left out",
    "binding": "its annotations are switched to their onError",
}


def version(policy: CompiledPolicy) -> Version:
    """Which one it is."""
    return Version(policy.name, policy.uid, policy.generation)


@dataclass(slots=True, eq=False)
class _PolicyCircuits:
    """Of one part of a policy."""

    class_of: Callable[[PodView], bytes]
    everybody: int = 0
    """Until when it is switched for all pods."""
    until: dict[_Class, int] = field(default_factory=dict)

    def is_open(self, pod: PodView, at: int) -> bool:
        """Whether it is switched for a pod."""
        if self.everybody > at:
            return True
        namespace = pod.namespace
        if not any(one == namespace for one, _ in self.until):
            return False
        return self.until.get((namespace, _WHOLE), at) > at or self.until.get((namespace, self.class_of(pod)), at) > at

    def open(self, pod: PodView, at: int) -> Scope:
        """For the class of a pod; for whom that is."""
        namespace, until = pod.namespace, at + PAUSE_NS
        self.until = {one: end for one, end in self.until.items() if end > at}
        self.until[namespace, self.class_of(pod)] = until
        if len({one for one, _ in self.until}) >= NAMESPACES:
            self.everybody = until
            self.until.clear()
            return "all"
        if (namespace, _WHOLE) in self.until or len(self.until) >= CLASSES:
            self.until = {(namespace, _WHOLE): until}
            return "namespace"
        return "class"

    def summary(self, policy: Version, part: Part, at: int) -> OpenCircuit | None:
        """For whom it is switched; None: for nobody any more."""
        if self.everybody > at:
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
    """Who missed deadlines. Moments are nanoseconds of a clock that never goes back."""

    _missed: dict[tuple[Version, Part, _Class], int] = field(default_factory=dict)  # when last
    _held: dict[tuple[Version, Part], _PolicyCircuits] = field(default_factory=dict)

    def record_timeout(self, policy: CompiledPolicy, part: Part, pod: PodView, at: int) -> Scope | None:
        """A policy was too slow about a pod; for whom it is switched now, if it is."""
        self._missed = {key: when for key, when in self._missed.items() if at - when < WINDOW_NS}
        which = version(policy), part
        held = self._held.get(which) or _PolicyCircuits(_class_of(policy))
        key = (*which, (pod.namespace, held.class_of(pod)))
        if key in self._missed:
            self._held[which] = held
            return held.open(pod, at)
        if len(self._missed) >= MISSES:
            del self._missed[next(iter(self._missed))]
        self._missed[key] = at
        return None

    def is_open(self, policy: CompiledPolicy, part: Part, pod: PodView, at: int) -> bool:
        """Whether the policy is switched for a pod."""
        held = self._held.get((version(policy), part)) if self._held else None
        return held is not None and held.is_open(pod, at)

    def open_for(self, part: Part, at: int) -> Switched | None:
        """The same as a function; None while no policy is switched for anybody."""
        if not self._held:
            return None
        return lambda policy, pod: self.is_open(policy, part, pod, at)

    def open_circuits(self, at: int) -> Sequence[OpenCircuit]:
        """Which are, for the status; what has passed is forgotten."""
        found = {which: held.summary(*which, at) for which, held in self._held.items()}
        self._held = {which: held for which, held in self._held.items() if found[which] is not None}
        return [one for one in found.values() if one is not None]


def _class_of(policy: CompiledPolicy) -> Callable[[PodView], bytes]:
    """A digest of what a policy reads of a pod, and of its namespace's object; one class where pods are like no other.

    What a pod requests is left out: it is not reckoned yet when conditions are asked.
    """
    expressions = [rule.expression for rule in (*policy.match.conditions, *policy.protections)]
    expressions += [rule.expression for rule in policy.annotations]
    reads = union([policy.reads, *(as_reads(one.paths) for one in expressions)])
    if reads_identity(reads):
        return lambda _: _WHOLE
    key_of = equivalence_key(Reads(pod=reads.pod, namespace=reads.namespace))

    def digest(pod: PodView) -> bytes:
        try:
            key = key_of(pod)
        except Exception:  # noqa: BLE001  whatever it is that the pod has there
            return _WHOLE
        return blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    return digest
