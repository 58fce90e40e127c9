"""Counts of evaluations and of rule errors, which the status of policies takes from time to time."""

from dataclasses import dataclass, field
from typing import Final

from fairlead.cel.engine.evaluate import clean_message
from fairlead.policy.views.faults import InternalRuleError, RuleError
from fairlead.strategies.facts import Unknown

MESSAGE_MAX: Final = 256
_Rule = tuple[str, str]  # policy, rule


@dataclass(frozen=True, slots=True, order=True)
class RuleFailures:
    """Errors of one rule since the last `drain`."""

    policy: str
    rule: str
    count: int
    last_message: str
    faults: int = 0
    """Errors that are faults of Fairlead, not of the rule."""
    fault: Exception | None = field(default=None, compare=False)
    """The first of these."""


@dataclass(slots=True)
class RuleErrorTally:
    """Counters of each rule, without times: the caller of `drain` has a clock."""

    evaluations: dict[_Rule, int] = field(default_factory=dict)
    _failures: dict[_Rule, tuple[int, str]] = field(default_factory=dict)
    _faults: dict[_Rule, tuple[int, Exception | None]] = field(default_factory=dict)

    def count_evaluations(self, policy: str, rule: str, times: int) -> None:
        """Add evaluations of a rule."""
        self.evaluations[policy, rule] = self.evaluations.get((policy, rule), 0) + times

    def count_error(self, policy: str, rule: str, why: Unknown) -> None:
        """Add an error of a rule, unless what it could not decide is no error."""
        if why.expected:
            return
        count = self._failures.get((policy, rule), (0, ""))[0]
        last = why.detail if isinstance(why, RuleError) and why.detail else str(why)
        self._failures[policy, rule] = (count + 1, last[:MESSAGE_MAX])
        if isinstance(why, InternalRuleError):
            faults, first = self._faults.get((policy, rule), (0, why.error))
            self._faults[policy, rule] = (faults + 1, first)

    def drain(self) -> list[RuleFailures]:
        """Return the errors since the last call, sorted, and reset the counters."""
        faults = self._faults
        found = [
            RuleFailures(*rule, count, clean_message(last), *faults.get(rule, ()))
            for rule, (count, last) in sorted(self._failures.items())
        ]
        self._failures.clear()
        faults.clear()
        return found
