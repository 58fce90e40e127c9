"""A compiled policy: immutable, with names, selectors and expressions resolved."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from fairlead.api.data import DataEntry
from fairlead.api.mode import Mode
from fairlead.api.rules import MatchSpec
from fairlead.api.status import Evaluation
from fairlead.api.v1alpha1 import Spec
from fairlead.cel.analysis.expression_reads import OF_PODS
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.strategies.contract import CompiledShare, Filter, Normalize, Reject, Score, Verdict
from fairlead.strategies.devices.record import recorded_in
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import ANNOTATIONS, DemandsRead, OutcomesRead, Path, Reads, union

RuleKind = Literal["Condition", "Filter", "Score", "Protection", "Annotation"]
FILTER_PREFIX: Final = "binding/"
"""Beginning of the names of filters that entries of `binding` bring; the name of a filter in a policy has no slash."""


@dataclass(frozen=True, slots=True)
class FilterRule:
    """A filter of a policy."""

    name: str
    filter: Filter
    rejects_on_error: bool
    resolvable: bool
    expression: CompiledExpression | None = None
    reason: str | None = None
    """Reason that replaces the filter's own."""
    resolvable_per_verdict: bool = False
    """Whether each rejection says if it is resolvable, because the policy does not."""
    in_shadow: bool = False
    """True if the rule itself says that it is in shadow."""

    def rejection(self, verdict: Verdict) -> tuple[str, bool] | None:
        """Return why a node is rejected, and whether that is resolvable; None if it is not rejected."""
        if isinstance(verdict, Reject):
            resolvable = verdict.resolvable if self.resolvable_per_verdict else self.resolvable
            return self.reason or verdict.reason, resolvable
        if isinstance(verdict, Unknown) and self.rejects_on_error and not verdict.passes:
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
    texts: tuple[CompiledExpression, ...] = ()
    """Expressions among the parameters of a strategy."""
    in_shadow: bool = False
    """True if the rule itself says that it is in shadow."""

    @property
    def compares(self) -> bool:
        """Report whether it compares the nodes of a call, so that nothing of it is kept."""
        return self.score.over is not None


@dataclass(frozen=True, slots=True)
class ExpressionRule:
    """A condition or a protection."""

    name: str
    expression: CompiledExpression
    in_shadow: bool = False
    """True if the rule itself says that it is in shadow."""


@dataclass(frozen=True, slots=True)
class AnnotationRule:
    """An annotation that is written when a pod is bound."""

    key: str
    expression: CompiledExpression
    rejects_on_error: bool
    in_shadow: bool = False
    """True if the rule itself says that it is in shadow."""


@dataclass(frozen=True, slots=True)
class DeviceShareRule:
    """An entry of `binding.deviceShare`."""

    share: CompiledShare
    expression: CompiledExpression | None = None
    """The number of devices, if the policy gives one."""

    @property
    def name(self) -> str:
        """Name of the entry."""
        return str(self.share.entry.name)


@dataclass(frozen=True, slots=True)
class GangRule:
    """An entry of `binding.gang`."""

    name: str
    group: CompiledExpression
    """Value of the group; it reads only what the mirror keeps of placed pods."""
    size: CompiledExpression
    hold_s: int

    @property
    def rule(self) -> str:
        """Name of the filter under which its refusals and errors are counted."""
        return f"{FILTER_PREFIX}{self.name}"

    @property
    def expression(self) -> CompiledExpression:
        """Return the expression that is slower to evaluate, which says where the rule runs."""
        return self.size if self.group.evaluation == "ByteCode" else self.group

    @property
    def knows_size_of_placed(self) -> bool:
        """Report whether the size can be told of placed pods, too."""
        return all(map(is_kept_of_placed, self.size.paths))

    @property
    def paths_of_placed(self) -> frozenset[Path]:
        """Return what it reads of placed pods."""
        return self.group.paths | (self.size.paths if self.knows_size_of_placed else frozenset())


@dataclass(frozen=True, slots=True)
class DomainRule:
    """A filter `topology`: the members of a group share a domain."""

    name: str
    labels: tuple[str, ...]
    """Labels that tell the domain, the widest level first."""
    rejects_on_error: bool
    group: CompiledExpression | None
    """Value of the group; None: the UID of the pod's controller."""
    size: CompiledExpression | None
    """None: 1."""


_KEPT: Final = frozenset({("metadata", name) for name in ("name", "namespace", "uid", "labels", "ownerReferences")})


def is_kept_of_placed(path: Path) -> bool:
    """Report whether the mirror keeps of placed pods what an expression reads of the pod at this path."""
    return path[0] == "pod" and (path[1:3] in _KEPT or (path[1:3] == ANNOTATIONS and len(path) > len(ANNOTATIONS) + 1))


Selector = Callable[[Mapping[str, str]], bool]
"""Reports whether an object with these labels is selected."""

_EVERYTHING: Final = MatchSpec()


@dataclass(frozen=True, slots=True)
class CompiledMatch:
    """Pods that a policy applies to."""

    namespaces: frozenset[str] | None = None
    namespace_selector: Selector | None = None
    pod_selector: Selector | None = None
    conditions: tuple[ExpressionRule, ...] = ()
    written: MatchSpec = _EVERYTHING
    """The same as it is written, for checks of which pods two policies can match."""


@dataclass(frozen=True, slots=True)
class RuleReport:
    """Facts about a rule for lint and status."""

    name: str
    kind: RuleKind
    evaluation: Evaluation
    uses: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPolicy:
    """A policy that compiles. Its rules are those that decide while it is enforced; the others are in `shadow`."""

    name: str
    uid: str = ""
    generation: str = ""
    placeholder: Literal["", "NotCompiled", "NotCompiledYet"] = ""
    """Why no compiled generation serves; "" for a policy that was compiled."""
    scheduler_name: str
    mode: Mode = "Enforce"
    priority: int = 0
    match: CompiledMatch = CompiledMatch()
    data: tuple[DataEntry, ...] = ()
    filters: tuple[FilterRule, ...] = ()
    scores: tuple[ScoreRule, ...] = ()
    protections: tuple[ExpressionRule, ...] = ()
    annotations: tuple[AnnotationRule, ...] = ()
    device_shares: tuple[DeviceShareRule, ...] = ()
    gangs: tuple[GangRule, ...] = ()
    domain_rules: tuple[DomainRule, ...] = ()
    publishes: bool = False
    """True if pods get the node affinity that its filters imply."""
    rejects_on_failure: bool = True
    reports: tuple[RuleReport, ...] = ()
    """Facts about every rule, in shadow or not, in the order in which they are written."""
    shadow: "CompiledPolicy | None" = None
    """Its rules in shadow, as a policy that is enforced; None if there are none."""
    written: Spec | None = field(default=None, compare=False, repr=False)
    """The same as it is written, to compare versions of it; None unless that is asked for."""
    reads: Reads = field(init=False)

    def __post_init__(self) -> None:
        rules = [rule.filter.reads for rule in self.filters] + [rule.score.reads for rule in self.scores]
        object.__setattr__(self, "reads", union(rules))

    @property
    def learning(self) -> list[tuple[str, OutcomesRead]]:
        """Return what its rules learn, in shadow or not, each with the name of the rule."""
        reads = [(rule.name, rule.filter.reads) for rule in self.filters]
        reads += [(rule.name, rule.score.reads) for rule in self.scores]
        found = [(name, outcomes) for name, one in reads for outcomes in one.learned]
        return found if self.shadow is None else [*found, *self.shadow.learning]

    @property
    def demanding(self) -> list[tuple[str, DemandsRead]]:
        """Return the requests of pods that its rules learn, in shadow or not, each with the name of the rule."""
        found = [(rule.name, demands) for rule in self.scores for demands in rule.score.reads.demands]
        return found if self.shadow is None else [*found, *self.shadow.demanding]

    @property
    def hold_s(self) -> int:
        """Return the longest time for which its gangs hold members; 0 if it has none."""
        return max((one.hold_s for one in self.gangs), default=0)

    @property
    def binds(self) -> bool:
        """Return whether it has a say when pods are bound."""
        return bool(self.annotations or self.device_shares or self.gangs or self.domain_rules)

    @property
    def enforced(self) -> bool:
        """Return whether its rules decide."""
        return self.mode == "Enforce"

    @property
    def evaluated(self) -> bool:
        """Return whether its rules are evaluated, to decide or in shadow."""
        return self.mode != "Disabled"

    @property
    def order(self) -> tuple[int, str]:
        """Return the sort key among policies: highest priority first, then by name."""
        return -self.priority, self.name

    @property
    def expressions(self) -> list[CompiledExpression]:
        """Return the expressions of all rules, in shadow or not, and of the variables that they use."""
        of_rules: list[CompiledExpression | None] = [
            rule.expression for rule in (*self.match.conditions, *self.protections)
        ]
        of_rules += [rule.expression for rule in self.filters]
        of_rules += [one for rule in self.scores for one in (rule.expression, *rule.texts)]
        of_rules += [rule.expression for rule in self.annotations]
        of_rules += [rule.expression for rule in self.device_shares]
        of_rules += [one for rule in self.gangs for one in (rule.group, rule.size)]
        of_rules += [one for rule in self.domain_rules for one in (rule.group, rule.size)]
        found = [one for one in of_rules if one is not None]
        found += [] if self.shadow is None else self.shadow.expressions
        return [*{name: one for rule in found for name, one in rule.variables.items()}.values(), *found]

    @property
    def pod_annotations(self) -> frozenset[str]:
        """Return the annotations that are read of pods on a node; the mirror stores no others."""
        expressions: list[CompiledExpression | None] = [rule.expression for rule in self.filters]
        expressions += [rule.expression for rule in self.scores]
        expressions += [rule.expression for rule in self.protections]
        expressions += [rule.expression for rule in self.annotations]
        paths = (path for expression in expressions if expression is not None for path in expression.paths)
        found = frozenset(path[3] for path in paths if path[0] in OF_PODS and path[1:3] == ANNOTATIONS)
        of_groups = (path for rule in self.gangs for path in rule.paths_of_placed)
        found |= frozenset(path[3] for path in of_groups if path[1:3] == ANNOTATIONS)
        near = (rule for rule in self.scores if rule.score.reads.topology)  # of placed pods it asks the group only
        of_texts = (path for rule in near for text in rule.texts for path in text.paths if is_kept_of_placed(path))
        found |= frozenset(path[3] for path in of_texts if path[1:3] == ANNOTATIONS)
        return found.union(*(recorded_in(one.share.entry) for one in self.device_shares))


def longest_holds(policies: Iterable[CompiledPolicy]) -> Mapping[str, int]:
    """Return the longest time for which members of groups are held, by scheduler; without those that hold none."""
    found = dict[str, int]()
    for one in policies:
        if one.enforced and one.gangs:
            found[one.scheduler_name] = max(one.hold_s, found.get(one.scheduler_name, 0))
    return found
