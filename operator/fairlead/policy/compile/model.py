"""A policy as the engine holds it: immutable, everything that can be resolved is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairlead.api.data import DataEntry
from fairlead.cel.analysis.expression_reads import OF_PODS
from fairlead.policy.compile.expression import CompiledExpression, Evaluation
from fairlead.strategies.contract import Filter, Normalize, Reject, Score, Verdict
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import ANNOTATIONS, Reads, union

RuleKind = Literal["Condition", "Filter", "Score", "Protection", "Annotation"]


@dataclass(frozen=True, slots=True)
class FilterRule:
    """A filter of a policy."""

    name: str
    filter: Filter
    rejects_on_error: bool
    resolvable: bool
    expression: CompiledExpression | None = None
    reason: str | None = None
    """What the policy wants to be said in place of what the filter says."""
    resolvable_per_verdict: bool = False
    """Whether it depends on the single rejection if it is resolvable: the policy does not say."""

    def rejection(self, verdict: Verdict) -> tuple[str, bool] | None:
        """The reason why a node is refused, and whether that is resolvable; None if it is not refused."""
        if isinstance(verdict, Reject):
            resolvable = verdict.resolvable if self.resolvable_per_verdict else self.resolvable
            return self.reason or verdict.reason, resolvable
        if isinstance(verdict, Unknown) and self.rejects_on_error:
            return str(verdict), False
        return None


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """A score of a policy."""

    name: str
    score: Score
    weight: int
    normalize: Normalize
    expression: CompiledExpression | None = None


@dataclass(frozen=True, slots=True)
class ExpressionRule:
    """A condition or a protection."""

    name: str
    expression: CompiledExpression


@dataclass(frozen=True, slots=True)
class AnnotationRule:
    """What is written when a pod is bound."""

    key: str
    expression: CompiledExpression
    rejects_on_error: bool


Selector = Callable[[Mapping[str, str]], bool]
"""Whether an object with these labels is meant."""


@dataclass(frozen=True, slots=True)
class Match:
    """Which pods a policy is for."""

    namespaces: frozenset[str] | None = None
    namespace_selector: Selector | None = None
    pod_selector: Selector | None = None
    conditions: tuple[ExpressionRule, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What is said of a rule in lint and status."""

    name: str
    kind: RuleKind
    evaluation: Evaluation
    uses: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicy:
    """A policy that compiles."""

    name: str
    uid: str = ""
    generation: str = ""
    placeholder: Literal["", "NotCompiled", "NotCompiledYet"] = ""
    """Why it stands in place of a generation that serves nothing; empty for one that was compiled."""
    scheduler_name: str
    enforced: bool = True
    priority: int = 0
    match: Match = Match()
    data: tuple[DataEntry, ...] = ()
    filters: tuple[FilterRule, ...] = ()
    scores: tuple[ScoreRule, ...] = ()
    protections: tuple[ExpressionRule, ...] = ()
    annotations: tuple[AnnotationRule, ...] = ()
    rejects_on_failure: bool = True
    reports: tuple[RuleReport, ...] = ()
    reads: Reads = field(init=False)

    def __post_init__(self) -> None:
        rules = [rule.filter.reads for rule in self.filters] + [rule.score.reads for rule in self.scores]
        object.__setattr__(self, "reads", union(rules))

    @property
    def order(self) -> tuple[int, str]:
        """Where it stands among others."""
        return -self.priority, self.name

    @property
    def expressions(self) -> list[CompiledExpression]:
        """Those of its variables that are used, and those of its rules: nearly all that a policy consists of."""
        of_rules: list[CompiledExpression | None] = [
            rule.expression for rule in (*self.match.conditions, *self.protections)
        ]
        of_rules += [rule.expression for rule in self.filters]
        of_rules += [rule.expression for rule in self.scores]
        of_rules += [rule.expression for rule in self.annotations]
        found = [one for one in of_rules if one is not None]
        return [*{name: one for rule in found for name, one in rule.variables.items()}.values(), *found]

    @property
    def pod_annotations(self) -> frozenset[str]:
        """The annotations that some expression reads of pods on a node: a mirror keeps no others."""
        expressions: list[CompiledExpression | None] = [rule.expression for rule in self.filters]
        expressions += [rule.expression for rule in self.scores]
        expressions += [rule.expression for rule in self.protections]
        expressions += [rule.expression for rule in self.annotations]
        paths = (path for expression in expressions if expression is not None for path in expression.paths)
        return frozenset(path[3] for path in paths if path[0] in OF_PODS and path[1:3] == ANNOTATIONS)
