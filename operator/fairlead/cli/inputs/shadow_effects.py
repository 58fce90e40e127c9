"""Effects that rules in shadow would have if they were enforced: one pod judged as it is and as it would be then."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from fairlead.policy.compile.model import CompiledPolicy, RuleKind
from fairlead.policy.compile.modes import rules_in_shadow
from fairlead.policy.explain.explanation import RuleExplained
from fairlead.policy.explain.group_explained import GroupExplained
from fairlead.simulation.evictions import Eviction
from fairlead.simulation.results import NodeResult, PodResult

ShadowEffect = Literal["restricted", "unschedulable", "reordered"]
"""Of the possible nodes the pod would lose some, or all; none of the best ones would be among the best."""
RulesInShadow: TypeAlias = Mapping[str, frozenset[tuple[RuleKind, str]]]
"""Rules in shadow, by kind and name, of each policy that has some."""
_ORDER: Final[Sequence[RuleKind]] = ("Condition", "Filter", "Score", "Protection", "Annotation")


class RuleInShadow(NamedTuple):
    """A rule that decides nothing."""

    policy: str
    rule: str
    kind: RuleKind

    def __str__(self) -> str:
        return f"{self.policy}/{self.rule}" if self.rule else self.policy


class ShadowRejection(NamedTuple):
    """A rule in shadow that would reject a node, with its reason."""

    policy: str
    rule: str
    kind: RuleKind
    reason: str

    def __str__(self) -> str:
        by = f"{self.policy}/{self.rule}" if self.rule else self.policy
        return f"{by} would reject it: {self.reason}"


def shadow_rules(policies: Iterable[CompiledPolicy]) -> RulesInShadow:
    """Return the rules in shadow of policies that are not disabled."""
    found = {one.name: rules_in_shadow(one) for one in policies if one.evaluated}
    return {name: rules for name, rules in found.items() if rules}


@dataclass(frozen=True, slots=True)
class PodShadow:
    """Change of a pod's result if the rules in shadow were enforced."""

    rules: Sequence[RuleInShadow]
    """Those of policies that match the pod, or may match it."""
    decided: PodResult
    enforced: PodResult
    """The result if all of them were enforced."""

    @property
    def effects(self) -> list[ShadowEffect]:
        """Return the effects on where the pod can go, as the operator counts them."""
        best, then = self.decided.preferred, self.preferred
        found: dict[ShadowEffect, bool] = {
            "restricted": bool(self.lost),
            "unschedulable": bool(self.decided.left) and not self.left,
            "reordered": bool(best and then) and {*best}.isdisjoint(then),
        }
        return [effect for effect, is_there in found.items() if is_there]

    @property
    def unknown(self) -> list[ShadowEffect]:
        """Return the effects that it may have, too, by rules that are not evaluated or a group that is not known."""
        then, known = self.enforced, self.effects
        of_shadow = [one for one in then.unevaluated if one.name in self._unevaluated]
        has_new = any(one.filters for one in of_shadow) or self.unknown_group is not None
        if not self.decided.left or not self.left:
            return []
        orders = any(one.policy.scores for one in then.matched) or any(
            one.why or one.policy.scores for one in then.unevaluated
        )
        may_order = bool(of_shadow or self.lost) or any(one.kind == "Score" for one in self.rules)
        found: dict[ShadowEffect, bool] = {
            "restricted": has_new,
            "unschedulable": has_new or (then.is_open and bool(self.lost)),
            "reordered": bool(then.unevaluated) and orders and may_order,
        }
        return [effect for effect, may_be in found.items() if may_be and effect not in known]

    @property
    def lost(self) -> list[str]:
        """Return the possible nodes that the pod would lose."""
        left = {one.name for one in self.left}
        return [one.name for one in self.decided.left if one.name not in left]

    @property
    def refused_group(self) -> GroupExplained | None:
        """The pod's group, if the pod would be rejected as its member on every node, and is not now."""
        before, then = self.decided.group, self.enforced.group
        return then if then is not None and then.reason and (before is None or not before.reason) else None

    @property
    def unknown_group(self) -> GroupExplained | None:
        """The pod's group, if it would not be known what filter says to the pod as its member, and is now."""
        before, then = self.decided.group, self.enforced.group
        is_new = before is None or before.verdict != "NotKnown"
        return then if then is not None and then.verdict == "NotKnown" and is_new else None

    @property
    def left(self) -> Sequence[NodeResult]:
        """The possible nodes that would be left."""
        return self.enforced.left if self.refused_group is None else ()

    @property
    def preferred(self) -> Sequence[str]:
        """The nodes that would be preferred."""
        return self.enforced.preferred if self.refused_group is None else ()

    def rejections(self) -> dict[str, list[ShadowRejection]]:
        """Return the rejections of each node that rules in shadow would reject."""
        found = {node.name: [*self._rejections(node)] for node in self.enforced.nodes}
        return {name: some for name, some in found.items() if some}

    def explained(self, rules: Iterable[RuleExplained], kind: RuleKind) -> list[RuleExplained]:
        """Return those of the explained rules that are in shadow."""
        known = {*self.rules}
        return [one for one in rules if RuleInShadow(one.policy, one.rule, kind) in known]

    @property
    def _unevaluated(self) -> frozenset[str]:
        """Names of the rules that are not evaluated, and are in shadow."""
        names = {one.name for one in self.enforced.unevaluated}
        return frozenset(names - {one.name for one in self.decided.unevaluated})

    def _rejections(self, node: NodeResult) -> Iterator[ShadowRejection]:
        if (group := self.refused_group) is not None:
            yield ShadowRejection(group.policy, group.rule, "Filter", group.reason)
        known = {*self.rules}
        doubtful = {one.policy.name for one in self.decided.matched if one.undecided and one.policy.filters}
        for one in node.rejections:
            # while a match cannot be decided, one filter stands for all of the policy, and others of it reject already
            if RuleInShadow(one.policy, one.rule, "Filter") in known and one.policy not in doubtful:
                yield ShadowRejection(one.policy, one.rule, "Filter", one.reason)


def pod_shadow(rules: RulesInShadow, decided: PodResult, enforced: PodResult) -> PodShadow | None:
    """Return what rules in shadow would change for a pod; None if no policy with such rules matches it."""
    may_match = (one.policy.name for one in enforced.unevaluated)
    matched = [name for name in dict.fromkeys([*enforced.policies, *may_match]) if name in rules]
    if not matched or decided.unanswered:
        return None
    found = [RuleInShadow(name, rule, kind) for name in matched for kind, rule in sorted(rules[name], key=_position)]
    return PodShadow(found, decided, enforced)


def shadow_evictions(
    rules: Sequence[RuleInShadow], decided: Sequence[Eviction], enforced: Sequence[Eviction]
) -> dict[str, ShadowRejection]:
    """Return the nodes on which pods may be evicted, and a rule in shadow would forbid it."""
    protections = {one for one in rules if one.kind == "Protection"}
    possible = {one.node for one in decided if one.is_possible}
    found = {}
    for one in enforced:
        by = one.given_up
        if one.node in possible and by is not None and RuleInShadow(by.policy, by.rule, "Protection") in protections:
            found[one.node] = ShadowRejection(by.policy, by.rule, "Protection", by.why)
    return found


@dataclass(slots=True)
class ShadowSummary:
    """Number of pods for which rules in shadow would change something."""

    rules: dict[RuleInShadow, None] = field(default_factory=dict)
    """Those of policies that match one of the pods."""
    pods: int = 0
    """Pods that such a policy matches."""
    unschedulable: int = 0
    restricted: int = 0
    """Those that would lose nodes, some or all."""
    reordered: int = 0
    unknown: int = 0
    """Those for which not all is known, as a rule was not evaluated."""

    def add(self, shadow: PodShadow | None) -> None:
        """Count a pod."""
        if shadow is None:
            return
        self.rules |= dict.fromkeys(shadow.rules)
        self.pods += 1
        effects = shadow.effects
        self.unschedulable += "unschedulable" in effects
        self.restricted += "restricted" in effects
        self.reordered += "reordered" in effects
        self.unknown += bool(shadow.unknown)


def _position(rule: tuple[RuleKind, str]) -> tuple[int, str]:
    kind, name = rule
    return _ORDER.index(kind), name
