"""What rules could not decide: how often since their policy serves, and what was wrong last. For people who ask why."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.logs import FaultError
from fairlead.policy.evaluate.rule_errors import RuleFailures

LOG: Final = logging.getLogger(__name__)
Rule = tuple[str, str]  # policy, rule


@dataclass(slots=True, eq=False)
class RuleErrorTotals:
    """Totals of what is drained now and then."""

    counted: Callable[[str, str, int], None]
    """Told how often a rule of a policy could not decide."""
    faulted: Callable[[str, str, int], None] = lambda *_: None
    """Told how often that was a fault of the program."""
    _rules: dict[Rule, RuleFailures] = field(default_factory=dict)
    _serving: Mapping[str, str | None] = field(default_factory=dict)
    _when: dict[Rule, str] = field(default_factory=dict)
    _logged: set[Rule] = field(default_factory=set)

    def add(self, failures: Iterable[RuleFailures], serving: Mapping[str, str | None], at: str = "") -> None:
        """More of them, seen at that time, and which generation of each policy serves: another one starts afresh."""
        same = {name for name, generation in serving.items() if self._serving.get(name, generation) == generation}
        self._rules = {rule: one for rule, one in self._rules.items() if rule[0] in same}
        self._when = {rule: at for rule, at in self._when.items() if rule in self._rules}
        self._logged &= self._rules.keys()
        self._serving = dict(serving)
        for one in failures:
            self.counted(one.policy, one.rule, one.count)
            if one.faults:
                self.faulted(one.policy, one.rule, one.faults)
            if one.policy not in serving:
                continue
            before = self._rules.get((one.policy, one.rule))
            if before is None:
                more = {"policy": one.policy, "rule": one.rule, "error": one.last_message}
                LOG.warning("rule.error", extra=more)
            if one.fault is not None and (one.policy, one.rule) not in self._logged:
                self._logged.add((one.policy, one.rule))
                _log(one, one.fault)
            count = one.count + (before.count if before else 0)
            self._rules[one.policy, one.rule] = RuleFailures(one.policy, one.rule, count, one.last_message)
            self._when[one.policy, one.rule] = at

    def last_error(self, policy: str, rule: str) -> tuple[RuleFailures, str] | None:
        """What is known of a rule, and when the last was seen."""
        found = self._rules.get((policy, rule))
        return None if found is None else (found, self._when[policy, rule])

    def __iter__(self) -> Iterator[RuleFailures]:
        return iter(sorted(self._rules.values()))


def _log(one: RuleFailures, fault: Exception) -> None:
    extra = {"policy": one.policy, "rule": one.rule, "error": type(fault).__name__}
    LOG.error("rule.fault", exc_info=FaultError(fault), extra=extra)
