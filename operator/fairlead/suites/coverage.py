"""Coverage of rules: the outcomes that the cases of suites cover."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.policy.compile.model import CompiledMatch, CompiledPolicy
from fairlead.suites.compare import CoveredOutcome

MATCHED: Final = "matched"
NOT_MATCHED: Final = "not matched"
PASSED: Final = "passed"
REJECTED: Final = "rejected"
SCORED: Final = "scored"
PROTECTED: Final = "protected"
EVICTABLE: Final = "evictable"
WRITTEN: Final = "written"


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """Number of times that each outcome of a rule was covered."""

    policy: str
    kind: str
    rule: str
    outcomes: dict[str, int]

    @property
    def missing(self) -> list[str]:
        """Outcomes that no case covers."""
        return [outcome for outcome, count in self.outcomes.items() if not count]


@dataclass(slots=True)
class Coverage:
    """Coverage of all suites, counted for each policy object, because two policies may have the same name."""

    _policies: dict[int, CompiledPolicy] = field(default_factory=dict)
    _seen: Counter[tuple[int, str, str, str]] = field(default_factory=Counter)

    def expect(self, policies: Iterable[CompiledPolicy]) -> None:
        """Add the policies of a suite. Disabled ones are not evaluated and not counted."""
        self._policies.update({id(policy): policy for policy in policies if policy.enforced})

    def see(self, policies: Iterable[CompiledPolicy], outcomes: Sequence[CoveredOutcome]) -> None:
        """Count the outcomes of a case."""
        of = {policy.name: id(policy) for policy in policies}
        self._seen.update((of[policy], kind, rule, outcome) for policy, kind, rule, outcome in outcomes)

    def rules(self) -> list[RuleCoverage]:
        """Return the coverage of all rules, policy by policy."""
        return [
            RuleCoverage(policy.name, kind, rule, {one: self._seen[key, kind, rule, one] for one in outcomes})
            for key, policy in sorted(self._policies.items(), key=lambda one: one[1].name)
            for kind, rule, outcomes in _rules(policy)
        ]


def _rules(policy: CompiledPolicy) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    if policy.match != CompiledMatch():
        yield "Match", "match", (MATCHED, NOT_MATCHED)
    for filter_ in policy.filters:
        yield "Filter", filter_.name, (PASSED, REJECTED)
    for gang in policy.gangs:
        yield "Filter", gang.rule, (PASSED, REJECTED)
    for score in policy.scores:
        yield "Score", score.name, (SCORED,)
    for protection in policy.protections:
        yield "Protection", protection.name, (PROTECTED, EVICTABLE)
    for annotation in policy.annotations:
        yield "Annotation", annotation.key, (WRITTEN,)
