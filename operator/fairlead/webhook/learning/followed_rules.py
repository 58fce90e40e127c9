"""Rules that learn, of the policies that are enforced or in shadow."""

from collections.abc import Iterable
from dataclasses import dataclass

from fairlead.learned.pairs import Meaning
from fairlead.learned.published import LearningRule
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import in_mode
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.nodes.learned_facts import table_of
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.strategies.reads import DemandsRead, OutcomesRead


@dataclass(frozen=True, slots=True)
class AnyRule:
    """Rule of a compiled policy that learns, whatever it learns."""

    policy: CompiledPolicy
    table: TableOfRule

    @property
    def rule(self) -> LearningRule:
        """Return what its published state belongs to."""
        policy, table = self.policy, self.table
        number = int(policy.generation) if policy.generation.isdecimal() else 0
        return LearningRule(policy.name, policy.uid, table.rule, table.meaning, number)

    @property
    def labels(self) -> tuple[str, str]:
        """Return the labels of its metrics: policy and rule."""
        return self.policy.name, self.table.rule


@dataclass(frozen=True, slots=True)
class FollowedRule(AnyRule):
    """Rule of a compiled policy that learns outcomes of pods."""

    outcomes: OutcomesRead

    @property
    def counting(self) -> Meaning:
        """Return how its outcomes are counted and bounded."""
        outcomes = self.outcomes
        return Meaning(outcomes.half_life_s, outcomes.prior, outcomes.types)

    @property
    def watched(self) -> tuple[object, ...]:
        """Return what decides which pods it learns from, and as what: another value needs a new list."""
        return self.table, self.policy.name, self.policy.match.written


@dataclass(frozen=True, slots=True)
class FollowedRequests(AnyRule):
    """Rule of a compiled policy that learns the requests of pods."""

    demands: DemandsRead


def followed_requests(policies: Iterable[CompiledPolicy]) -> list[FollowedRequests]:
    """Return the rules of these policies that learn the requests of pods."""
    return [
        FollowedRequests(policy, table_of(policy, name, demands), demands)
        for policy in policies
        for name, demands in policy.demanding
    ]


def followed_rules(policies: Iterable[CompiledPolicy]) -> list[FollowedRule]:
    """Return the rules of these policies that learn."""
    return [
        FollowedRule(policy, table_of(policy, name, outcomes), outcomes)
        for policy in policies
        for name, outcomes in policy.learning
    ]


def matching_policies(rules: Iterable[AnyRule]) -> PolicySet:
    """Return the policies of these rules, to match pods: those in shadow match as if enforced, since they learn too."""
    policies = {one.policy.name: one.policy for one in rules}
    return policy_set(in_mode(one, "Enforce") for one in policies.values())
