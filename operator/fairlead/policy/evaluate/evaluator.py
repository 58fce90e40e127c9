"""Evaluation of a policy set for pods and nodes: what the extender answers, and what is cached for the next call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from fairlead.policy.columns.column import NAN
from fairlead.policy.columns.data_column import DataColumn
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.class_cache import Classes, PodClass
from fairlead.policy.evaluate.compared_score import compare, compared_scores, follow_all, kept_for
from fairlead.policy.evaluate.deadline import Clock, TooSlowError
from fairlead.policy.evaluate.filter_result import Filtered
from fairlead.policy.evaluate.matching import Key, Matched, PolicySet, Switched, equivalence_key
from fairlead.policy.evaluate.rule_columns import filter_columns, score_columns
from fairlead.policy.evaluate.scoring import totals
from fairlead.policy.evaluate.verdict_cache import RuleCache, VerdictCache
from fairlead.policy.nodes.annotated_values import reads_of
from fairlead.policy.nodes.compared_views import KeptOfNodes
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import union

if TYPE_CHECKING:
    from fairlead.strategies.contract import Normalize

KEYS: Final = 256
UNKNOWN_NODE: Final = "node is not known yet"


@dataclass(slots=True, eq=False)
class Evaluator:
    """One policy set and the nodes. Owned by one thread; a new set gets a new evaluator.

    In every call `now` is the time of day in nanoseconds and not before that of the last call; `clock` and `deadline`
    are as in `RuleCache`.
    """

    policies: PolicySet
    nodes: Nodes
    tally: RuleErrorTally = field(default_factory=RuleErrorTally)
    classes: Classes = field(default_factory=Classes)
    """Cached results; several evaluators may share them."""
    _data: RuleCache[DataColumn] = field(init=False)
    _systems: Sequence[KeptOfNodes] = field(init=False)  # they are kept for as long as this is
    _keys: dict[tuple[str, ...], Callable[[PodView], Key | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with_data = [policy for policy in self.policies.policies if reads_of(policy.data).node and policy.enforced]
        for policy in self.policies.policies:
            self.nodes.measure(policy.data)
        self._data = RuleCache([DataColumn(policy, self.nodes, self.tally) for policy in with_data], self.nodes)
        self._systems = kept_for(self.policies.policies, self.nodes)

    def matching(
        self,
        pod: PodView,
        scheduler: str,
        now: int,
        *,
        clock: Clock | None = None,
        deadline_ns: int = 0,
        spent: dict[str, int] | None = None,
        switched: Switched | None = None,
    ) -> list[Matched]:
        """Do what `PolicySet.matching` does, and count the conditions that raised."""
        matched = self.policies.matching(
            pod, scheduler, now, clock=clock, deadline_ns=deadline_ns, spent=spent, switched=switched
        )
        for each in matched:
            if each.undecided is not None:
                self.tally.count_error(each.policy.name, each.condition, each.undecided)
        return matched

    def filter(
        self,
        pod: PodView,
        matched: Sequence[Matched],
        names: Sequence[str],
        *,
        now: int,
        clock: Clock,
        deadline_ns: int,
    ) -> Filtered:
        """Return which of these nodes the pod may use by the policies that apply to it. Raises TooSlowError."""
        found = self._class_of(pod, matched, now)
        cache = found.verdicts
        if not cache.rules:
            return Filtered(names)
        self._refresh_data(now, clock, deadline_ns)
        try:
            cache.refresh(now, clock, deadline_ns, self._wanted(names))
            passing = self.classes.names_of(found)
        finally:
            if cache.has_grown:
                self.classes.count(found)
        if _are_all_in(passing, names):
            return Filtered(names, _cache=cache)
        return Filtered([*filter(passing.__contains__, names)], names, cache)

    def score(
        self,
        pod: PodView,
        matched: Sequence[Matched],
        names: Sequence[str],
        *,
        now: int,
        clock: Clock,
        deadline_ns: int,
    ) -> list[float]:
        """Return the exact total of the policies for each node; an unknown one has no value. Raises TooSlowError."""
        found = self._class_of(pod, matched, now)
        cache = found.scores
        if not cache.rules and not found.compared:
            return [0.0] * len(names)
        self._refresh_data(now, clock, deadline_ns)
        try:
            spent = cache.refresh(now, clock, deadline_ns, self._wanted(names))
        finally:
            if cache.has_grown:
                self.classes.count(found)
        slots, places = self.nodes.slots, self._places(names)
        rules: list[tuple[Sequence[float], Normalize, int]] = []
        for each in cache.rules:
            if places is not None:
                values = itemgetter(*places)(each.values)
            else:
                values = [each.values[slots[name]] if name in slots else NAN for name in names]
            rules.append((values, each.rule.normalize, each.rule.weight))
        if found.compared:
            rules += compare(found.compared, pod, names, places, now, clock, deadline_ns, spent)
        return totals(rules, len(names))

    def scores_hold_until(self, pod: PodView, matched: Sequence[Matched]) -> int | None:
        """Return when the first of the scores that `score` has just computed expires, if no node changes.

        None if they hold for that moment only, or are not kept.
        """
        key = self.class_of(pod, matched)
        found = None if key is None else self.classes.get((id(self), key))
        if found is None or found.compared or any(rule.is_volatile for rule in found.scores.rules):
            return None
        columns = (*found.scores.rules, *self._data.rules)
        return min([self.nodes.measurements.expires, *(column.next_end for column in columns)])

    def class_of(self, pod: PodView, matched: Sequence[Matched]) -> Key | None:
        """Return the equivalence key of a pod: pods with equal keys get equal verdicts at one time.

        None if no other pod gets its verdicts.
        """
        names = _names(matched)
        key_of = self._keys.get(names) or self._key_of(names, matched)
        key = key_of(pod)
        return None if key is None else (names, *key)

    def cached_for(self, pod: PodView, matched: Sequence[Matched]) -> PodClass | None:
        """Return what is cached for the pod's class; None if nothing is, or its verdicts hold for one moment only."""
        key = self.class_of(pod, matched)
        found = None if key is None else self.classes.get((id(self), key))
        if found is None or any(rule.is_volatile for rule in found.verdicts.rules):
            return None
        return found

    def refresh(self, cached: PodClass | None, *, now: int, clock: Clock, deadline_ns: int) -> None:
        """Bring data and cached verdicts up to date. Raises TooSlowError; the next call continues where this ended."""
        self._refresh_data(now, clock, deadline_ns)
        if cached is not None:
            try:
                cached.verdicts.refresh(now, clock, deadline_ns)
            finally:
                if cached.has_grown:
                    self.classes.count(cached)

    def precompute(self, *, now: int, clock: Clock, deadline_ns: int) -> bool:
        """Compute in idle time what is out of date, recently used classes first; report whether all of it was done."""
        try:
            self._refresh_data(now, clock, deadline_ns)
            if not follow_all(self.nodes, self._systems, clock, deadline_ns):
                return False
            for cached in self.classes:
                if cached.key[0] != id(self) or cached not in self.classes:
                    continue
                if clock() > deadline_ns:
                    return False
                self.refresh(cached, now=now, clock=clock, deadline_ns=deadline_ns)
                try:
                    cached.scores.refresh(now, clock, deadline_ns)
                finally:
                    if cached.has_grown:
                        self.classes.count(cached)
        except TooSlowError:
            return False
        return True

    def _refresh_data(self, now: int, clock: Clock, deadline_ns: int) -> None:
        self.nodes.expire(now)
        self._data.refresh(now, clock, deadline_ns)

    def _wanted(self, names: Sequence[str]) -> Callable[[], Sequence[int]] | None:
        """Return a function that returns the slots of these nodes; None if they are all nodes."""
        return (lambda: self._known(names)) if len(names) < len(self.nodes.slots) else None

    def _known(self, names: Sequence[str]) -> Sequence[int]:
        """Return the slots of the nodes that are known."""
        places = self._places(names)
        slots = self.nodes.slots
        return [slots[name] for name in names if name in slots] if places is None else places

    def _places(self, names: Sequence[str]) -> Sequence[int] | None:
        """Return the slots of several nodes, twice as fast as one by one; None if there is one, or one is unknown."""
        try:
            return itemgetter(*names)(self.nodes.slots) if len(names) > 1 else None
        except KeyError:
            return None

    def _class_of(self, pod: PodView, matched: Sequence[Matched], now: int) -> PodClass:
        key = self.class_of(pod, matched)
        if key is None:
            return self._bind(pod, matched)
        in_cache = (id(self), key)
        return self.classes.use(in_cache) or self.classes.put(self._new_class(pod, matched, in_cache, now))

    def _new_class(self, pod: PodView, matched: Sequence[Matched], key: tuple[int, Key], now: int) -> PodClass:
        """Return a class that begins with the results of rules to which pods of other classes are the same."""
        made, alike = self._bind(pod, matched, key), [*self.classes.alike(key)]
        columns = *made.verdicts.rules, *made.scores.rules
        for column in columns:
            column.key = equivalence_key(column.reads)(pod)
        made.uncounted = *made.uncounted, *(column.key for column in columns)
        made.verdicts.copy_from((each.verdicts for each in alike), now)
        made.scores.copy_from((each.scores for each in alike), now)
        return made

    def _key_of(self, names: tuple[str, ...], matched: Sequence[Matched]) -> Callable[[PodView], Key | None]:
        if len(self._keys) >= KEYS:
            self._keys.clear()
        reads = union(each.policy.reads for each in matched if not each.undecided)
        key_of = self._keys[names] = equivalence_key(reads)
        return key_of

    def _bind(self, pod: PodView, matched: Sequence[Matched], key: tuple[int, Key] = (0, ())) -> PodClass:
        filters = [rule for each in matched for rule in filter_columns(each, pod, self.nodes, self.tally)]
        decided = [each.policy for each in matched if not each.undecided]
        scores = [rule for policy in decided for rule in score_columns(policy, pod, self.nodes, self.tally)]
        compared = [score for policy in decided for score in compared_scores(policy, pod, self.nodes, self.tally)]
        held = key[1], pod, *(rule.decide for rule in filters), *(rule.rate for rule in scores)
        return PodClass(
            key, VerdictCache(filters, self.nodes), RuleCache(scores, self.nodes), compared=compared, uncounted=held
        )


def _names(matched: Sequence[Matched]) -> tuple[str, ...]:
    return tuple([f"{each.policy.name}!" if each.undecided else each.policy.name for each in matched])


def _are_all_in(known: Mapping[str, None], names: Sequence[str]) -> bool:
    """Report whether all names are known; one call for all is twice as fast as one for each."""
    try:
        if names:
            itemgetter(*names)(known)
    except KeyError:
        return False
    return True
