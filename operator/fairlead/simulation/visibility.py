"""Policies for a cluster that may be read only in part: rules whose inputs are missing are left out and named."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.api.data import DataEntry
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.annotated_values import read_entries
from fairlead.policy.nodes.polls import Poll, poll_of
from fairlead.strategies.reads import Reads

ObjectKind = Literal["pods", "namespace", "data", "learned", "generation"]
_WHAT: Final[dict[ObjectKind, str]] = {
    "pods": "the pods on nodes",
    "namespace": "the pod's namespace",
    "data": "values that are not given",
    "learned": "what it has learned, which is in ConfigMaps of the operator's namespace: give it with --learned FILE",
    "generation": "a generation that is not known",
}
_OF_SCORES: Final = {"mode": None}
_OF_FILTERS: Final = {"mode": None, "reason": None, "resolvable": None}
"""What does not decide where a pod can go. A rule is in shadow or not by the version that it is part of."""


@dataclass(frozen=True, slots=True)
class SkippedRule:
    """A rule, or a whole policy, that is not evaluated."""

    policy: CompiledPolicy
    rule: str
    """"" for the whole policy."""
    kind: ObjectKind
    entries: tuple[DataEntry, ...] = ()
    """Entries of data whose values are not given."""
    why: str = ""
    """Why the whole policy is not known, if it is not for what it reads."""

    @property
    def name(self) -> str:
        """Name of the rule with its policy, or of the policy."""
        return f"{self.policy.name}/{self.rule}" if self.rule else self.policy.name

    @property
    def filters(self) -> bool:
        """Return whether it may reject nodes."""
        if self.why or (not self.rule and self.policy.gangs):
            return True
        return any(not self.rule or one.name == self.rule for one in self.policy.filters)

    def says_as(self, other: "SkippedRule") -> bool:
        """Return whether a rule of another version would say the same of every node, whatever it reads."""
        return _deciding(self) == _deciding(other)

    def describe(self) -> str:
        """Return what is not evaluated and why, with the options that give the values of entries."""
        if self.why:
            return f"{self.policy.name} as a whole: {self.why}"
        where = self.name if self.rule else f"{self.name} as a whole"
        if not self.entries:
            return f"{where}: it reads {_WHAT[self.kind]}"
        what = ", ".join(f"data.{one.name}" for one in self.entries)
        servers = dict.fromkeys(one.prometheus.server for one in self.entries if one.prometheus is not None)
        options = [*(f"--prometheus {name}=URL" for name in servers), "--data FILE"]
        verb = "is" if len(self.entries) == 1 else "are"
        return (
            f"{where}: it reads {what}, which {verb} not known: give {_them(self.entries)} with {' or '.join(options)}"
        )


def _deciding(skipped: SkippedRule) -> object:
    """Return what decides what a rule, or a whole policy, says of nodes, as it is written."""
    policy, spec = skipped.policy, skipped.policy.written
    if spec is None:
        return policy.mode, skipped.why
    if not skipped.rule:
        return spec.model_copy(update={"mode": policy.mode})
    own: list[object] = [
        *(one.model_copy(update=_OF_FILTERS) for one in spec.filters if one.name == skipped.rule),
        *(one.model_copy(update=_OF_SCORES) for one in spec.scores if one.name == skipped.rule),
    ]
    for rule in policy.filters:
        if rule.name == skipped.rule:
            own += _read(policy, rule.filter.reads, [rule.expression])
    for score in policy.scores:
        if score.name == skipped.rule:
            own += _read(policy, score.score.reads, [score.expression, *score.texts])
    of_binding = any(one.name == skipped.rule for one in policy.domain_rules)
    return own, (spec.binding, spec.variables) if of_binding else None


def _read(policy: CompiledPolicy, reads: Reads, expressions: Iterable[CompiledExpression | None]) -> Iterator[object]:
    """Yield what a rule reads of the rest of its policy."""
    yield read_entries(policy.data, reads)
    yield {name: one.expression.text for rule in expressions if rule for name, one in rule.variables.items()}
    if reads.devices or reads.topology:
        yield None if policy.written is None else policy.written.binding


def judgeable(
    policies: Iterable[CompiledPolicy],
    unread: Collection[ObjectKind],
    given_polls: Collection[Poll] = (),
    given_rules: Collection[tuple[str, str]] = (),
) -> tuple[list[CompiledPolicy], list[SkippedRule]]:
    """Return the policies without rules that cannot be evaluated, and those rules.

    `given_polls` have values. Of `given_rules`, by policy and rule, it is known what they have learned.
    """
    found: list[CompiledPolicy] = []
    left_out: list[SkippedRule] = []
    for policy in policies:
        if "namespace" in unread and selects_by_namespace(policy):
            left_out.append(SkippedRule(policy, "", "namespace"))
            continue
        reads = {rule.name: rule.filter.reads for rule in policy.filters}
        reads |= {rule.name: rule.score.reads for rule in policy.scores}
        blind = {
            name: kind
            for name, read in reads.items()
            if (kind := _blind(read, unread, is_given=(policy.name, name) in given_rules))
        }
        left_out += [SkippedRule(policy, name, kind) for name, kind in blind.items()]
        for name, read in reads.items():
            if name not in blind and (entries := _not_given(policy, read, given_polls)):
                blind[name] = "data"
                left_out.append(SkippedRule(policy, name, "data", entries))
        filters = tuple(rule for rule in policy.filters if rule.name not in blind)
        scores = tuple(rule for rule in policy.scores if rule.name not in blind)
        found.append(replace(policy, filters=filters, scores=scores) if blind else policy)
    return found, left_out


def _not_given(policy: CompiledPolicy, reads: Reads, given_polls: Collection[Poll]) -> tuple[DataEntry, ...]:
    entries = read_entries(policy.data, reads)
    return tuple(one for one in entries if (poll := poll_of(one)) is not None and poll not in given_polls)


def _them(entries: Collection[DataEntry]) -> str:
    return "it" if len(entries) == 1 else "them"


def _blind(reads: Reads, unread: Collection[ObjectKind], *, is_given: bool) -> ObjectKind | None:
    if "pods" in unread and reads.of_pods:
        return "pods"
    if "learned" in unread and not is_given and (reads.learned or reads.demands):
        return "learned"
    return "namespace" if "namespace" in unread and reads.namespace else None


def selects_by_namespace(policy: CompiledPolicy) -> bool:
    """Return whether matching a policy reads the pod's namespace."""
    match = policy.match
    return match.namespace_selector is not None or any(
        "namespaceObject" in condition.expression.roots for condition in match.conditions
    )
