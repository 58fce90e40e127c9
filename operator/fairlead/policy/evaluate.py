"""A policy set asked about pods and nodes: what the extender answers, and what is kept for the next call."""

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from fairlead.policy.bound import NAN, BoundData, BoundFilter, BoundScore
from fairlead.policy.compiled import CompiledPolicy, FilterRule
from fairlead.policy.facts import PodView
from fairlead.policy.filtered import Filtered
from fairlead.policy.kept import Clock, Kept, KeptVerdicts, TooSlowError
from fairlead.policy.nodes import Nodes
from fairlead.policy.pod_class import Key, class_key, reads_identity
from fairlead.policy.scores import totals
from fairlead.policy.select import Matched, PolicySet
from fairlead.policy.tally import Tally
from fairlead.strategies.reads import Reads, union
from fairlead.strategies.seam import Filter, FilterOf, Normalize, Reject

CLASSES: Final = 256
NAMED: Final = 16
UNDECIDED: Final = "cannot tell whether the policy is for this pod"
UNKNOWN_NODE: Final = "node is not known yet"


@dataclass(slots=True, eq=False)
class _Class:
    """What is kept for one class of pods."""

    verdicts: KeptVerdicts
    scores: Kept[BoundScore]


@dataclass(slots=True, eq=False)
class Evaluator:
    """One policy set and the nodes. Owned by one thread; a new set gets a new evaluator.

    In every call `now` is the time of day in nanoseconds and not before that of the last call; `clock` and `deadline`
    are those of `Kept`.
    """

    policies: PolicySet
    nodes: Nodes
    classes: int = CLASSES
    tally: Tally = field(default_factory=Tally)
    _data: Kept[BoundData] = field(init=False)
    _kept: OrderedDict[Key, _Class] = field(default_factory=OrderedDict)
    _named: deque[KeptVerdicts] = field(default_factory=deque)
    _keys: dict[tuple[str, ...], tuple[Callable[[PodView], Key], bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with_data = [policy for policy in self.policies.policies if policy.data and policy.enforced]
        self._data = Kept([BoundData(policy, self.nodes, self.tally) for policy in with_data], self.nodes)

    def matching(self, pod: PodView, scheduler: str, now: int) -> list[Matched]:
        """The policies that the pod is subject to."""
        matched = self.policies.matching(pod, scheduler, now)
        for each in matched:
            if each.undecided is not None:
                self.tally.undecided(each.policy.name, each.condition, each.undecided)
        return matched

    def filter(
        self, pod: PodView, scheduler: str, names: Sequence[str], *, now: int, clock: Clock, deadline: int
    ) -> Filtered:
        """Which of these nodes the pod may use. Raises TooSlowError."""
        return self.judge(pod, self.matching(pod, scheduler, now), names, now=now, clock=clock, deadline=deadline)

    def scores(
        self, pod: PodView, scheduler: str, names: Sequence[str], *, now: int, clock: Clock, deadline: int
    ) -> list[float]:
        """The exact total of all policies for each node; one that is not known has no value. Raises TooSlowError."""
        return self.rate(pod, self.matching(pod, scheduler, now), names, now=now, clock=clock, deadline=deadline)

    def judge(
        self, pod: PodView, matched: Sequence[Matched], names: Sequence[str], *, now: int, clock: Clock, deadline: int
    ) -> Filtered:
        """What `filter` does, for a pod that these policies are for."""
        kept = self._class_of(pod, matched).verdicts
        if not kept.rules:
            return Filtered(names)
        self._data.refresh(now, clock, deadline)
        kept.refresh(now, clock, deadline)
        passing = self._names_of(kept)
        if _are_all_in(passing, names):
            return Filtered(names, _kept=kept)
        return Filtered([*filter(passing.__contains__, names)], names, kept)

    def rate(
        self, pod: PodView, matched: Sequence[Matched], names: Sequence[str], *, now: int, clock: Clock, deadline: int
    ) -> list[float]:
        """What `scores` does, for a pod that these policies are for."""
        kept = self._class_of(pod, matched).scores
        if not kept.rules:
            return [0.0] * len(names)
        self._data.refresh(now, clock, deadline)
        kept.refresh(now, clock, deadline)
        slots, places = self.nodes.slots, self._places(names)
        rules: list[tuple[Sequence[float], Normalize, int]] = []
        for each in kept.rules:
            if places is not None:
                values = itemgetter(*places)(each.values)
            else:
                values = [each.values[slots[name]] if name in slots else NAN for name in names]
            rules.append((values, each.rule.normalize, each.rule.weight))
        return totals(rules, len(names))

    def class_of(self, pod: PodView, matched: Sequence[Matched]) -> Key | None:
        """What pods have in common of whom the same is said at one moment; None for one that is like no other."""
        names = _names(matched)
        key_of, is_alone = self._keys.get(names) or self._key(names, matched)
        return None if is_alone else (names, *key_of(pod))

    def kept_for(self, pod: PodView, matched: Sequence[Matched]) -> KeptVerdicts | None:
        """What is kept of the verdicts for the pod's class; None: nothing that would hold for longer than a moment."""
        key = self.class_of(pod, matched)
        found = None if key is None else self._kept.get(key)
        if found is None or any(rule.is_volatile for rule in found.verdicts.rules):
            return None
        return found.verdicts

    def refresh(self, kept: KeptVerdicts | None, *, now: int, clock: Clock, deadline: int) -> None:
        """Bring data up to date, and what is kept. Raises TooSlowError: it goes on there the next time."""
        self._data.refresh(now, clock, deadline)
        if kept is not None:
            kept.refresh(now, clock, deadline)

    def catch_up(self, *, now: int, clock: Clock, deadline: int) -> bool:
        """Compute what waits in idle time, for the classes that were asked last first; whether all of it was done."""
        try:
            self._data.refresh(now, clock, deadline)
            for kept in reversed(self._kept.values()):
                if clock() > deadline:
                    return False
                kept.verdicts.refresh(now, clock, deadline)
                kept.scores.refresh(now, clock, deadline)
        except TooSlowError:
            return False
        return True

    def _names_of(self, kept: KeptVerdicts) -> dict[str, None]:
        """The names of the nodes that pass; they take memory, and only the classes that were asked last have them."""
        if self._named and self._named[-1] is kept:
            return kept.names()
        if kept in self._named:
            self._named.remove(kept)
        elif len(self._named) == NAMED:
            self._named.popleft().forget_names()
        self._named.append(kept)
        return kept.names()

    def _places(self, names: Sequence[str]) -> Sequence[int] | None:
        """The slots of nodes, if there are several and all are known: one call for all of them is twice as fast."""
        try:
            return itemgetter(*names)(self.nodes.slots) if len(names) > 1 else None
        except KeyError:
            return None

    def _class_of(self, pod: PodView, matched: Sequence[Matched]) -> _Class:
        key = self.class_of(pod, matched)
        if key is None:
            return self._bind(pod, matched)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._bind(pod, matched)
            if len(self._kept) > self.classes:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found

    def _key(self, names: tuple[str, ...], matched: Sequence[Matched]) -> tuple[Callable[[PodView], Key], bool]:
        if len(self._keys) >= self.classes:
            self._keys.clear()
        reads = union(each.policy.reads for each in matched if not each.undecided)
        known = self._keys[names] = (class_key(reads), reads_identity(reads))
        return known

    def _bind(self, pod: PodView, matched: Sequence[Matched]) -> _Class:
        filters = [rule for each in matched for rule in bound_filters(each, pod, self.nodes, self.tally)]
        scores = [
            rule for each in matched if not each.undecided for rule in _scores(each.policy, pod, self.nodes, self.tally)
        ]
        return _Class(KeptVerdicts(filters, self.nodes), Kept(scores, self.nodes))


def _names(matched: Sequence[Matched]) -> tuple[str, ...]:
    return tuple([f"{each.policy.name}!" if each.undecided else each.policy.name for each in matched])


def bound_filters(matched: Matched, pod: PodView, nodes: Nodes, tally: Tally) -> list[BoundFilter]:
    """The filters of a policy for a pod, in the order in which reasons are given."""
    policy = matched.policy
    rules = sorted(policy.filters, key=lambda rule: rule.name)
    if matched.undecided:
        rules = [_undecided(rule) for rule in rules[:1]]
    return [
        BoundFilter(
            policy=policy,
            name=rule.name,
            reads=rule.filter.reads,
            tally=tally,
            is_volatile=rule.expression is not None and not rule.expression.says_until,
            rule=rule,
            decide=rule.filter.for_pod(pod),
            view=nodes.seen_by(policy.name, bool(rule.filter.reads.data)),
        )
        for rule in rules
    ]


def _undecided(rule: FilterRule) -> FilterRule:
    """What stands in place of all filters of a policy, whatever they would say."""
    reject = Reject(UNDECIDED)
    refuse: Filter = FilterOf(reads=Reads(), for_pod=lambda _: lambda *_: reject, reasons=(UNDECIDED,))
    return FilterRule(rule.name, refuse, rejects_on_error=True, resolvable=False)


def _scores(policy: CompiledPolicy, pod: PodView, nodes: Nodes, tally: Tally) -> list[BoundScore]:
    return [
        BoundScore(
            policy=policy,
            name=rule.name,
            reads=rule.score.reads,
            tally=tally,
            is_volatile=rule.expression is not None and not rule.expression.says_until,
            rule=rule,
            rate=rule.score.for_pod(pod),
            view=nodes.seen_by(policy.name, bool(rule.score.reads.data)),
        )
        for rule in sorted(policy.scores, key=lambda rule: rule.name)
    ]


def _are_all_in(known: Mapping[str, None], names: Sequence[str]) -> bool:
    """One call for all of them is twice as fast as one for each."""
    if not names:
        return True
    try:
        itemgetter(*names)(known)
    except KeyError:
        return False
    return True
