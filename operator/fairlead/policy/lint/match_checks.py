"""Warnings about which pods a policy applies to."""

from typing import Final

from fairlead.api.rules import MatchSpec
from fairlead.api.selectors import LabelSelector, compile_selector
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings
from fairlead.policy.lint.rule_checks import check_engine, check_identity
from fairlead.policy.symbolic.terms import can_be

_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def check_match(compiled: CompiledPolicy, match: MatchSpec) -> LintWarnings:
    """Yield the warnings about the selectors and conditions of a policy."""
    path = ("spec", "match")
    selectors = {"namespaceSelector": match.namespace_selector, "podSelector": match.pod_selector}
    for name, selector in selectors.items():
        if selector is not None and (key := _contradiction(selector)) is not None:
            message = f"no object can have these labels: the requirements for {key!r} contradict each other"
            hint = "the policy applies to no pod; remove one of them"
            yield LintWarning(LintCode.MATCHES_NOTHING, (*path, name), message, hint)
    if match.namespaces is not None and match.namespace_selector is not None:
        wanted = [values for key, values in match.namespace_selector.wanted_values() if key == _NAMESPACE_NAME]
        if any(values.isdisjoint(match.namespaces) for values in wanted):
            message = f"{_NAMESPACE_NAME} is the namespace's name, and match.namespaces lists none that it selects"
            hint = "the policy applies to no pod, because both must hold; keep one of them"
            yield LintWarning(LintCode.MATCHES_NOTHING, (*path, "namespaceSelector"), message, hint)
    for at, condition in enumerate(compiled.match.conditions):
        here = (*path, "conditions", at, "expression")
        yield None
        can_hold = can_be(condition.expression, want=True)
        yield None
        if not can_hold:
            hint = "the policy applies to no pod"
            yield LintWarning(LintCode.NEVER_PASSES, here, "this condition can never be true", hint)
        elif not can_be(condition.expression, want=False):
            message = "this condition can never be false"
            yield LintWarning(LintCode.ALWAYS_PASSES, here, message, "remove or fix it")
        yield None
        yield from check_identity(here, condition.expression)
        yield from check_engine(here, condition.expression)


def are_apart(first: MatchSpec, second: MatchSpec) -> bool:
    """Report whether namespaces and selectors rule out a pod that both match."""
    if (
        first.namespaces is not None
        and second.namespaces is not None
        and {*first.namespaces}.isdisjoint(second.namespaces)
    ):
        return True
    pairs = ((first.pod_selector, second.pod_selector), (first.namespace_selector, second.namespace_selector))
    return any(a is not None and b is not None and _contradiction(a, b) is not None for a, b in pairs)


def required_labels(selector: LabelSelector | None) -> set[str]:
    """Return the labels that every selected object has."""
    if selector is None:
        return set()
    exist = {each.key for each in selector.match_expressions if each.operator == "Exists"}
    return exist | {key for key, _ in selector.wanted_values()}


def _contradiction(*selectors: LabelSelector) -> str | None:
    """Return a label for which no value satisfies all selectors; None if there is no such label."""
    keys = {key for one in selectors for key in (*one.match_labels, *(each.key for each in one.match_expressions))}
    for key in sorted(keys):
        of_key = [
            LabelSelector(
                match_labels={name: value for name, value in one.match_labels.items() if name == key},
                match_expressions=tuple(each for each in one.match_expressions if each.key == key),
            )
            for one in selectors
        ]
        # A label is absent, has one of the values named here, or another one; all others are alike.
        named = {value for one in of_key for each in one.match_expressions for value in each.values}
        named |= {value for one in of_key for value in one.match_labels.values()}
        candidates: list[dict[str, str]] = [{}, *({key: value} for value in named), {key: "\0"}]
        compiled = [compile_selector(one) for one in of_key]
        if not any(all(matches(labels) for matches in compiled) for labels in candidates):
            return key
    return None
