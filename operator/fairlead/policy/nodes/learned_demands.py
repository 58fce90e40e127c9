"""Requests of pods that rules have learned, as they were published last, with the moments that rules read of them."""

from collections.abc import Mapping

from fairlead.learned.demands import NO_DEMANDS, Demands, Moments, moments, newest
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.strategies.reads import DemandsRead


class LearnedRequests:
    """Moments of the requests that rules have learned: computed when they are published, not when they are read."""

    def __init__(self) -> None:
        self._reads: Mapping[TableOfRule, DemandsRead] = {}
        self._demands: dict[TableOfRule, Demands] = {}
        self._moments: dict[TableOfRule, Moments] = {}

    def keep(self, rules: Mapping[TableOfRule, DemandsRead]) -> None:
        """Have the requests of these rules, as they read them, and of no others."""
        self._reads = rules
        self._demands = {rule: demands for rule, demands in self._demands.items() if rule in rules}
        self._moments = {rule: self._of(rule) for rule in self._demands}

    @property
    def rules(self) -> Mapping[TableOfRule, DemandsRead]:
        """Return the rules that it has requests of."""
        return self._reads

    def pods(self, rule: TableOfRule) -> int:
        """Return the number of pods of which a rule knows the requests."""
        return len(self.demands(rule))

    def demands(self, rule: TableOfRule) -> Demands:
        """Return the requests that a rule knows, as they were published."""
        return self._demands.get(rule, NO_DEMANDS)

    def put(self, rule: TableOfRule, demands: Demands) -> None:
        """Store what a rule has learned; what cannot be read is nothing."""
        if rule in self._reads:
            self._demands[rule] = demands
            self._moments[rule] = self._of(rule)

    def __call__(self, policy: str, rule: str, read: DemandsRead) -> Moments:
        """Return the moments of what a rule has learned; `policy` is the UID of its policy, its name without one."""
        table = TableOfRule(policy, rule, read.meaning)
        if self._reads.get(table) == read and (known := self._moments.get(table)) is not None:
            return known
        return moments(newest(self._demands.get(table, NO_DEMANDS), read.samples), read.floors)

    def _of(self, rule: TableOfRule) -> Moments:
        read = self._reads[rule]
        return moments(newest(self._demands[rule], read.samples), read.floors)
