"""What is legal in a policy and hardly meant, and what will surprise its owner.

The severity follows from the reason: `warning` for what is surely or very likely a mistake, `note` for what is meant
and behaves in a way that somebody should know of. Nothing is said that is only perhaps so.
"""

from collections.abc import Iterator
from typing import Final

from fairlead.api.rules import Match
from fairlead.api.selectors import LabelSelector
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.policy.compiled import AnnotationRule, CompiledPolicy, ExpressionRule, FilterRule, ScoreRule
from fairlead.policy.expressions import Compiled
from fairlead.policy.reasons import PolicyWarning, Reason, Severity
from fairlead.policy.rule_warnings import of_filter, of_pod, of_protection, of_score, on_engine, why_on_engine
from fairlead.policy.terms import possible
from fairlead.strategies.labels import matcher
from fairlead.strategies.reads import EVERY

__all__ = ["PolicyWarning", "Reason", "Severity", "warnings", "why_on_engine"]

_NAME_OF_NAMESPACE: Final = "kubernetes.io/metadata.name"


def warnings(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> list[PolicyWarning]:
    """Everything to be said of a policy that compiles, in the order of its fields."""
    return [
        *_switched_off(compiled),
        *_match(compiled, policy.spec.match),
        *_unused(compiled, policy),
        *(
            warning
            for at, rule in enumerate(compiled.filters)
            for warning in of_filter(("spec", "filters", at), rule, policy.spec.filters[at].resolvable)
        ),
        *(warning for at, rule in enumerate(compiled.scores) for warning in of_score(("spec", "scores", at), rule)),
        *(
            warning
            for at, rule in enumerate(compiled.protections)
            for warning in of_protection(("spec", "preemption", "protect", at, "expression"), rule.expression)
        ),
        *(
            warning
            for at, rule in enumerate(compiled.annotations)
            for warning in on_engine(("spec", "binding", "annotations", at, "expression"), rule.expression)
        ),
    ]


def _switched_off(compiled: CompiledPolicy) -> Iterator[PolicyWarning]:
    if not compiled.enforced:
        said = "the policy is compiled and reported on, and not applied to any pod"
        yield PolicyWarning(Reason.SWITCHED_OFF, ("spec", "mode"), said, "write Enforce to apply it")
    if not (compiled.filters or compiled.scores or compiled.protections or compiled.annotations):
        hint = "give it filters, scores, preemption.protect or binding.annotations"
        yield PolicyWarning(Reason.DOES_NOTHING, ("spec",), "the policy has no rules and changes nothing", hint)


def _match(compiled: CompiledPolicy, written: Match) -> Iterator[PolicyWarning]:
    path = ("spec", "match")
    selectors = {"namespaceSelector": written.namespace_selector, "podSelector": written.pod_selector}
    for name, selector in selectors.items():
        if selector is not None and (key := _contradiction(selector)) is not None:
            said = f"no object has these labels: what is wanted of {key!r} cannot hold together"
            hint = "the policy is for no pod at all; remove a part"
            yield PolicyWarning(Reason.MATCHES_NOTHING, (*path, name), said, hint)
    if written.namespaces is not None and written.namespace_selector is not None:
        wanted = [values for key, values in _positive(written.namespace_selector) if key == _NAME_OF_NAMESPACE]
        if any(values.isdisjoint(written.namespaces) for values in wanted):
            said = f"{_NAME_OF_NAMESPACE} is the namespace's name, and none of match.namespaces is meant by it"
            hint = "the policy is for no pod at all: both parts must hold; keep one of them"
            yield PolicyWarning(Reason.MATCHES_NOTHING, (*path, "namespaceSelector"), said, hint)
    for at, condition in enumerate(compiled.match.conditions):
        here = (*path, "conditions", at, "expression")
        if not possible(condition.expression, want=True):
            hint = "the policy is for no pod at all"
            yield PolicyWarning(Reason.NEVER_PASSES, here, "this condition can never be true", hint)
        elif not possible(condition.expression, want=False):
            yield PolicyWarning(
                Reason.ALWAYS_PASSES, here, "this condition can never be false", "remove it, or mend it"
            )
        yield from of_pod(here, condition.expression)
        yield from on_engine(here, condition.expression)


def _positive(selector: LabelSelector) -> Iterator[tuple[str, frozenset[str]]]:
    """The labels of which one of some values is wanted."""
    for key, value in selector.match_labels.items():
        yield key, frozenset({value})
    for each in selector.match_expressions:
        if each.operator == "In":
            yield each.key, frozenset(each.values)


def _contradiction(selector: LabelSelector) -> str | None:
    """A label of which a selector wants what no label can be."""
    keys = {*selector.match_labels, *(each.key for each in selector.match_expressions)}
    for key in sorted(keys):
        of_key = LabelSelector(
            match_labels={name: value for name, value in selector.match_labels.items() if name == key},
            match_expressions=tuple(each for each in selector.match_expressions if each.key == key),
        )
        # A label is absent, one of the values that are named, or another one, of which all are alike.
        named = {value for each in of_key.match_expressions for value in each.values} | {*of_key.match_labels.values()}
        candidates: list[dict[str, str]] = [{}, *({key: value} for value in named), {key: "\0"}]
        matches = matcher(of_key)
        if not any(matches(labels) for labels in candidates):
            return key
    return None


def _unused(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> Iterator[PolicyWarning]:
    expressions = list(_expressions(compiled))
    used = {name for expression in expressions for name in expression.variables}
    for at, variable in enumerate(policy.spec.variables):
        if variable.name not in used:
            path = ("spec", "variables", at, "name")
            yield PolicyWarning(Reason.UNUSED_VARIABLE, path, f"no rule uses variables.{variable.name}", "remove it")
    read = set(compiled.reads.data)
    for expression in expressions:
        read |= {path[1] if len(path) > 1 else EVERY for path in expression.paths if path[0] == "data"}
    for at, entry in enumerate(policy.spec.data):
        if entry.name not in read and EVERY not in read:
            path = ("spec", "data", at, "name")
            yield PolicyWarning(Reason.UNUSED_DATA, path, f"no rule reads data.{entry.name}", "remove it")


def _expressions(compiled: CompiledPolicy) -> Iterator[Compiled]:
    rules: tuple[ExpressionRule | FilterRule | ScoreRule | AnnotationRule, ...] = (
        *compiled.match.conditions,
        *compiled.filters,
        *compiled.scores,
        *compiled.protections,
        *compiled.annotations,
    )
    for rule in rules:
        if rule.expression is not None:
            yield rule.expression
