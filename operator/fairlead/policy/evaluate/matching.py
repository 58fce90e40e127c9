"""Policies that apply to a pod, and the equivalence keys of pods.

Pods with equal keys cannot be told apart by the rules that apply to them, and share cached verdicts.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

import msgspec

from fairlead.cel.values.structs import NO_INT, NO_TEXT, empty
from fairlead.policy.compile.expression_rules import error_verdict
from fairlead.policy.compile.model import CompiledMatch, CompiledPolicy, ExpressionRule, longest_holds
from fairlead.policy.compile.policy_conflicts import GangConflict, gang_conflicts
from fairlead.policy.evaluate.deadline import Clock, TooSlowError
from fairlead.policy.views.faults import RAISED, RuleError, internal_error
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import EVERY, Path, Reads


@dataclass(frozen=True, slots=True)
class Matched:
    """A policy that applies to a pod, or that may apply: `undecided` is the error of a condition."""

    policy: CompiledPolicy
    undecided: RuleError | None = None
    condition: str = ""
    """The condition that raised `undecided`."""
    switched: bool = False
    """Whether the failure policy decides in its place; its conditions are then not evaluated and taken as true."""


MatchError = tuple[str, RuleError]
"""The name of the condition or selector that raised, and its error."""
Switched = Callable[[CompiledPolicy, PodView], bool]
"""Reports whether the failure policy decides for a pod in place of a policy."""


def selects(match: CompiledMatch, pod: PodView) -> MatchError | bool:
    """Report whether namespaces and selectors match a pod, or return what keeps this from being known."""
    if match.namespaces is not None and pod.namespace not in match.namespaces:
        return False
    doubt: MatchError | None = None
    if match.namespace_selector is not None:
        if not pod.knows_namespace:
            doubt = "namespaceSelector", RuleError("the namespace", "is not known yet")
        elif not match.namespace_selector(pod.namespaceObject.metadata.labels):
            return False
    if match.pod_selector is not None and not match.pod_selector(pod.labels):
        return False
    return doubt or True


def _holds(
    conditions: Sequence[ExpressionRule], pod: PodView, now: int, late: Callable[[], None] | None = None
) -> MatchError | bool:
    """Report whether all conditions hold, or return the first error; `late` is called after each and may raise."""
    doubt: MatchError | None = None
    for condition in conditions:
        try:
            holds = condition.expression.for_pod(pod)(None, now)
        except RAISED as error:
            doubt = doubt or (condition.name, error_verdict(error, written=condition.expression.written))
            holds = True
        if late is not None:
            late()
        if not holds:
            return False
    return doubt or True


@dataclass(frozen=True)
class PolicySet:
    """The policies that serve, in their order; immutable and identified by `generation`."""

    policies: tuple[CompiledPolicy, ...] = ()
    generation: str = ""
    _by_scheduler: Mapping[str, Sequence[CompiledPolicy]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_scheduler: dict[str, list[CompiledPolicy]] = {}
        for policy in self.policies:
            if policy.enforced:
                by_scheduler.setdefault(policy.scheduler_name, []).append(policy)
        object.__setattr__(self, "_by_scheduler", by_scheduler)

    @cached_property
    def hold_s(self) -> Mapping[str, int]:
        """Return the longest time for which members of groups are held, by scheduler; without those that hold none."""
        return longest_holds(self.policies)

    @cached_property
    def with_ignore_entry(self) -> frozenset[str]:
        """Return the schedulers whose entry Ignore has something to decide."""
        return with_ignore_entry(self.policies)

    @cached_property
    def gang_conflicts(self) -> Sequence[GangConflict]:
        """Return which policies may give one pod a group."""
        return gang_conflicts(self.policies)

    def matching(
        self,
        pod: PodView,
        scheduler_name: str,
        now: int,
        *,
        clock: Clock | None = None,
        deadline_ns: int = 0,
        spent: dict[str, int] | None = None,
        switched: Switched | None = None,
    ) -> list[Matched]:
        """Return the enforced policies that apply to a pod, in order. With a clock, raises TooSlowError.

        The time that the conditions of each policy took is added to `spent`, also for policies that do not apply.
        Conditions of a switched policy are not evaluated: it applies to all pods that its namespaces and selectors
        match.
        """
        found = []
        for policy in self._by_scheduler.get(scheduler_name, ()):
            match = policy.match
            try:
                verdict = selects(match, pod)
            except RAISED as error:
                verdict = "match", internal_error(error, "the match")
            if verdict is False:
                continue
            if switched is not None and verdict is True and switched(policy, pod):
                found.append(Matched(policy, switched=True))
                continue
            if match.conditions:
                late = None if clock is None else watch(policy.name, clock, deadline_ns, {} if spent is None else spent)
                holds = _holds(match.conditions, pod, now, late)
                if holds is False:
                    continue
                verdict = holds if verdict is True else verdict
            if verdict is True:
                found.append(Matched(policy))
            else:
                condition, why = verdict
                found.append(Matched(policy, why, condition))
        return found


def watch(policy: str, clock: Clock, deadline_ns: int, spent: dict[str, int]) -> Callable[[], None]:
    """Return a function to call after each evaluation of a policy; it raises TooSlowError past the deadline."""
    before = clock()

    def late() -> None:
        nonlocal before
        at = clock()
        spent[policy] = spent.get(policy, 0) + at - before
        before = at
        if at > deadline_ns:
            raise TooSlowError(spent)

    return late


def with_ignore_entry(policies: Iterable[CompiledPolicy]) -> frozenset[str]:
    """Return the schedulers of enforced policies about which the entry Ignore is called."""
    ignored = (one for one in policies if one.enforced and not one.rejects_on_failure)
    return frozenset(one.scheduler_name for one in ignored if one.filters or one.protections)


def policy_set(policies: Iterable[CompiledPolicy]) -> PolicySet:
    """Return a policy set, independent of the order of the policies."""
    ordered = tuple(sorted(policies, key=lambda policy: policy.order))
    names = sorted((policy.name, policy.uid, policy.generation, policy.placeholder, policy.mode) for policy in ordered)
    return PolicySet(ordered, hashlib.sha256(repr(names).encode()).hexdigest()[:12])


IDENTITY: Final[frozenset[Path]] = frozenset(
    {("metadata", name) for name in ("name", "uid", "creationTimestamp", "generateName", "resourceVersion")}
)

LONG: Final = 256
"""Longer strings are replaced by a digest, because keys live as long as their cache entries."""

Key = tuple[object, ...]


def equivalence_key(reads: Reads) -> Callable[[PodView], Key | None]:
    """Return a function that computes the equivalence key of a pod, or None for one that is a class of its own.

    That is each pod if the rules read what only one pod has, and a pod whose values are of unknown kinds.
    """
    if any(path in IDENTITY or path in ((), ("metadata",)) for path in reads.pod):
        return lambda _: None
    pod = tuple(sorted(reads.pod))
    namespace = tuple(sorted(reads.namespace))
    request = tuple(sorted(reads.request))
    limit = tuple(sorted(reads.limit))
    devices = tuple(sorted(reads.devices))
    learned = tuple(sorted(reads.learned, key=lambda one: (one.meaning, one.type_text)))

    def parts_of(view: PodView) -> Key:
        parts = [_at(view.pod, path) for path in pod]
        parts += [_at(view.namespaceObject, path) for path in namespace]
        parts += _amounts(view.request, request)
        parts += [(view.limit.get(name), view.predicted(name)) for name in limit]
        parts += [one.pod_type(view) for one in learned]
        if devices:  # who has an entry in a ledger is a class of its own, as its entry is not charged to itself
            parts += [view.granted_uid, *(view.requesting_containers(name) for name in devices)]
        return tuple(parts)

    def key(view: PodView) -> Key | None:
        try:
            return parts_of(view)
        except RAISED:
            return None

    return key


def _at(obj: Any, path: Path) -> object:
    for step in path:
        if isinstance(obj, Mapping):
            obj = obj.get(step)
        elif isinstance(obj, msgspec.Struct):
            obj = getattr(obj, step)
        else:
            break  # of a list all is read
        if obj is None:
            return None
    return _key(obj)


def _key(value: object) -> object:
    """Return a hashable value that equals another's only if no expression can tell the two apart."""
    if value is NO_TEXT or value is NO_INT or value is None:
        return None  # expressions tell absent from zero
    if isinstance(value, str):
        return value if len(value) <= LONG else _digest(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return tuple(sorted((key, _key(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple([_key(item) for item in value])
    if isinstance(value, msgspec.Struct):
        if value is empty(type(value).__name__):
            return None
        return tuple([_key(getattr(value, name)) for name in value.__struct_fields__])
    raise TypeError(f"{type(value).__name__} is not a value of an API object")


def _digest(text: str) -> bytes:
    """Return a digest as bytes, which equal no string."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()


def _amounts(request: Mapping[str, float], names: Iterable[str]) -> list[object]:
    return [tuple(sorted(request.items())) if name == EVERY else request.get(name) for name in names]
