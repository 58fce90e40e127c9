"""Rule errors per rule since its policy serves: how many, and the last one; for the status and the log."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.logs import FaultError
from fairlead.policy.columns.rule_errors import RuleFailures

LOG: Final = logging.getLogger(__name__)
RuleKey = tuple[str, str]  # policy, rule


@dataclass(slots=True, eq=False)
class RuleErrorTotals:
    """Totals of the rule errors that evaluators have counted."""

    counted: Callable[[str, str, int], None]
    """Called with a policy, a rule and its new errors."""
    faulted: Callable[[str, str, int], None] = lambda *_: None
    """Called with a policy, a rule and its new internal errors."""
    _rules: dict[RuleKey, RuleFailures] = field(default_factory=dict)
    _serving: Mapping[str, str | None] = field(default_factory=dict)
    _when: dict[RuleKey, str] = field(default_factory=dict)
    _logged: set[RuleKey] = field(default_factory=set)

    def add(self, failures: Iterable[RuleFailures], serving: Mapping[str, str | None], at: str = "") -> None:
        """Add rule errors seen at a time; a policy whose serving generation changed starts from zero."""
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
                extra = {"policy": one.policy, "rule": one.rule, "error": type(one.fault).__name__}
                LOG.error("rule.fault", exc_info=FaultError(one.fault), extra=extra)
            count = one.count + (before.count if before else 0)
            self._rules[one.policy, one.rule] = RuleFailures(one.policy, one.rule, count, one.last_message)
            self._when[one.policy, one.rule] = at

    def last_error(self, policy: str, rule: str) -> tuple[RuleFailures, str] | None:
        """Return the errors of a rule and the time of the last one; None if there are none."""
        found = self._rules.get((policy, rule))
        return None if found is None else (found, self._when[policy, rule])

    def __iter__(self) -> Iterator[RuleFailures]:
        return iter(sorted(self._rules.values()))
