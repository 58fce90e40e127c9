"""Comparison of a case's expectations with the actual results: the differences and the rules that caused them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.policy.affinity.published_pods import CreatedTerms
from fairlead.policy.explain.explanation import NodeExplained, RuleExplained, Step
from fairlead.policy.explain.group_explained import GroupExplained
from fairlead.policy.explain.mismatch import Unmatched
from fairlead.suites.created_affinity import affinity_difference
from fairlead.suites.group_states import group_difference
from fairlead.suites.suite import Expect, ExpectedRejection


@dataclass(frozen=True, slots=True)
class OnNode:
    """Result of a pod on one node."""

    explained: NodeExplained
    unfit: Sequence[str] = ()
    """Why the scheduler itself rejects the node."""
    score: float | None = None
    """Points of all policies, if the node fits and passes."""

    @property
    def rejection(self) -> RuleExplained | None:
        """The rule whose reason is reported, if a rule rejects the node."""
        return next((rule for rule in self.explained.filters if rule.outcome == "Rejected"), None)


@dataclass(frozen=True, slots=True)
class ProtectionResult:
    """Result of a protection for a placed pod."""

    policy: str
    rule: str
    protects: bool
    steps: Sequence[Step] = ()


@dataclass(frozen=True, slots=True)
class EvictionVerdict:
    """Reason for which a pod is not evicted; without a rule it may be evicted."""

    policy: str = ""
    rule: str = ""
    why: str = ""
    protected: bool = False
    """True if the pod itself is protected; False if its node would be rejected without it."""
    protections: Sequence[ProtectionResult] = ()
    """Results of all protections."""
    of_group: bool = False
    """True if the pod evicts no pods, as its group has not started."""


@dataclass(frozen=True, slots=True)
class WrittenAnnotations:
    """Annotations that the pod gets when it is bound to a node, or why it is not bound."""

    values: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""


CoveredOutcome = tuple[str, str, str, str]
"""Policy, kind of rule, rule, and its outcome."""


@dataclass(frozen=True, slots=True)
class Actual:
    """Actual results of a case."""

    policies: Sequence[str]
    nodes: Mapping[str, OnNode]
    preferred: Sequence[str]
    eviction_verdicts: Mapping[str, EvictionVerdict]
    """By placed pod, for those that the case names."""
    annotations: Mapping[str, WrittenAnnotations]
    """By node, for those that the case names."""
    group: GroupExplained | None = None
    """Group of the pod."""
    affinity: CreatedTerms | None = None
    """Terms that the pod is created with, if the case expects some."""
    others: Sequence[Unmatched] = ()
    """Policies that do not match the pod, and why."""
    outcomes: Sequence[CoveredOutcome] = ()
    """Outcomes of rules, for the coverage."""


NO_MATCH: Final = "No policy matches this pod."
_HUNDREDTH = 0.005 + 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between expected and actual results."""

    path: FieldPath
    """Path of the field in `expect`."""
    subject: str
    """Name of the node or the pod, if any."""
    expected: str
    got: str
    rules: Sequence[RuleExplained] = ()
    """The rules that decided, with what they compared."""
    protections: Sequence[ProtectionResult] = ()
    others: Sequence[Unmatched] = ()
    """Policies that do not match the pod."""
    notes: Sequence[str] = ()
    """Further lines of text."""


def differences(expect: Expect, answer: Actual) -> list[Difference]:
    """Return all differences; the first says so if no policy matches the pod, which is then behind all of them."""
    found = _differences(expect, answer)
    if found and not answer.policies:
        found[0] = replace(found[0], notes=(*found[0].notes, NO_MATCH), others=found[0].others or answer.others)
    return found


def _differences(expect: Expect, answer: Actual) -> list[Difference]:
    return [
        *_policies(expect, answer),
        *_passed(expect, answer),
        *_rejected(expect, answer),
        *_scores(expect, answer),
        *_order(expect, answer),
        *_preferred(expect, answer),
        *_spared(expect, answer),
        *_annotations(expect, answer),
        *_of_pod(expect, answer),
    ]


def _policies(expect: Expect, answer: Actual) -> Iterator[Difference]:
    if expect.policies is not None and {*expect.policies} != {*answer.policies}:
        wanted, got = _listed(expect.policies), _listed(answer.policies)
        others = [one for one in answer.others if one.policy in expect.policies]
        yield Difference(("policies",), "", wanted, got, others=others, notes=_doubts(answer))


def _doubts(answer: Actual) -> tuple[str, ...]:
    match_errors = {doubt.policy: doubt for node in answer.nodes.values() for doubt in node.explained.match_errors}
    return tuple(f"{one.policy}: cannot tell whether it matches the pod: {one.why}" for one in match_errors.values())


def _passed(expect: Expect, answer: Actual) -> Iterator[Difference]:
    if expect.passed is None:
        return
    for name, node in answer.nodes.items():
        rejection = node.rejection
        if name in expect.passed and rejection is not None:
            yield Difference(("passed",), name, "passed", _said(rejection), [rejection])
        elif name not in expect.passed and rejection is None and name not in expect.rejected:
            wanted = "rejected, because it is not in the list"
            yield Difference(("passed",), name, wanted, _fate(node), node.explained.filters)


def _rejected(expect: Expect, answer: Actual) -> Iterator[Difference]:
    for name, wanted in expect.rejected.items():
        node = answer.nodes[name]
        rejection = node.rejection
        if rejection is None or not _is_as(wanted, rejection):
            rules = [rejection] if rejection else node.explained.filters
            yield Difference(("rejected", name), name, _wanted(wanted), _fate(node), rules)


def _is_as(wanted: ExpectedRejection, rejection: RuleExplained) -> bool:
    return (
        (wanted.reason is None or wanted.reason == rejection.reason)
        and (wanted.rule is None or is_called(rejection.policy, rejection.rule, wanted.rule))
        and (wanted.resolvable is None or wanted.resolvable == rejection.resolvable)
    )


def is_called(policy: str, rule: str, name: str) -> bool:
    """Return whether a name, with or without its policy, is that of a rule."""
    return name in (rule, f"{policy}/{rule}")


def _wanted(wanted: ExpectedRejection) -> str:
    parts = [f"rejected: {wanted.reason}" if wanted.reason is not None else "rejected"]
    parts += [f"by {wanted.rule}"] if wanted.rule is not None else []
    parts += [_resolvable(wanted.resolvable)] if wanted.resolvable is not None else []
    return ", ".join(parts)


def _fate(node: OnNode) -> str:
    rejection = node.rejection
    if rejection is not None:
        return f"{_said(rejection)}, {_resolvable(rejection.resolvable)}"
    return "passed"


def _resolvable(is_resolvable: bool) -> str:  # noqa: FBT001 - it is about the value
    return "resolvable" if is_resolvable else "not resolvable"


def _said(rule: RuleExplained) -> str:
    return f"rejected: {rule.reason}, by {rule.policy}/{rule.rule}"


def _scores(expect: Expect, answer: Actual) -> Iterator[Difference]:
    for name, wanted in expect.scores.items():
        node = answer.nodes[name]
        if node.score is None or abs(node.score - wanted) > _HUNDREDTH:
            yield Difference(("scores", name), name, f"score {number(wanted)}", _score(node), node.explained.scores)


def _score(node: OnNode) -> str:
    if node.rejection is not None:
        return f"no score: {_said(node.rejection)}"
    if node.score is None:
        return f"no score: the node does not fit: {', '.join(node.unfit) or 'the scheduler rejects it'}"
    return f"score {number(node.score)}"


def _order(expect: Expect, answer: Actual) -> Iterator[Difference]:
    if expect.order is None:
        return
    names = [name for group in expect.order for name in group]
    missing = [name for name in names if answer.nodes[name].score is None]
    got = " > ".join(" = ".join(group) for group in _groups(names, answer))
    wanted = " > ".join(" = ".join(sorted(group)) for group in expect.order)
    if missing or got != wanted:
        said = tuple(f"{name}: {_score(answer.nodes[name])}" for name in names)
        yield Difference(("order",), "", wanted, got or "no scores", notes=said)


def _groups(names: Iterable[str], answer: Actual) -> list[list[str]]:
    """Return nodes grouped by score, the highest first."""
    found: list[tuple[float, list[str]]] = []
    scored = [(node.score, name) for name in names if (node := answer.nodes[name]).score is not None]
    for score, name in sorted(((score or 0.0, name) for score, name in scored), key=lambda one: (-one[0], one[1])):
        if found and abs(found[-1][0] - score) <= _HUNDREDTH:
            found[-1][1].append(name)
        else:
            found.append((score, [name]))
    return [sorted(group) for _, group in found]


def _preferred(expect: Expect, answer: Actual) -> Iterator[Difference]:
    if expect.preferred is not None and {*expect.preferred} != {*answer.preferred}:
        said = tuple(f"{name}: {_score(node)}" for name, node in answer.nodes.items())
        yield Difference(("preferred",), "", _listed(expect.preferred), _listed(answer.preferred), notes=said)


def _spared(expect: Expect, answer: Actual) -> Iterator[Difference]:
    for pod, rule in expect.protected.items():
        found = answer.eviction_verdicts[pod]
        if not found.protected or not is_called(found.policy, found.rule, rule):
            yield Difference(
                ("protected", pod), pod, f"protected by {rule}", _spared_by(answer, pod), protections=found.protections
            )
    for pod in expect.evictable:
        found = answer.eviction_verdicts[pod]
        if found.rule:
            protections = [one for one in found.protections if one.protects]
            yield Difference(("evictable",), pod, "may be evicted", _spared_by(answer, pod), protections=protections)


def _spared_by(answer: Actual, pod: str) -> str:
    found = answer.eviction_verdicts[pod]
    if not found.rule:
        return "may be evicted"
    if found.of_group:
        return f"not evicted: {found.why}, by {found.policy}/{found.rule}"
    if found.protected:
        return f"protected by {found.policy}/{found.rule}"
    return f"not evicted, because its node would be rejected without it: {found.why}, by {found.policy}/{found.rule}"


def _annotations(expect: Expect, answer: Actual) -> Iterator[Difference]:
    for node, wanted in expect.annotations.items():
        found = answer.annotations[node]
        if found.failure or dict(found.values) != wanted:
            got = f"not bound: {found.failure}" if found.failure else _map(found.values)
            yield Difference(("annotations", node), node, _map(wanted), got)


def _of_pod(expect: Expect, answer: Actual) -> Iterator[Difference]:
    if expect.group is not None and (group := group_difference(expect.group, answer.group)) is not None:
        yield Difference(("group",), "", *group)
    if expect.affinity is not None and (terms := affinity_difference(expect.affinity, answer.affinity)) is not None:
        yield Difference(("affinity",), "", terms.expected, terms.got, notes=terms.notes)


def _map(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in sorted(values.items())) or "none"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def number(value: float) -> str:
    """Return a number as text, to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
