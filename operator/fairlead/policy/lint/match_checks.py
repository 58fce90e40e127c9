"""What is said of the pods that a policy is for."""

from collections.abc import Iterator
from typing import Final

from fairlead.api.rules import Match
from fairlead.api.selectors import LabelSelector
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.policy.lint.rule_checks import Said, check_identity, on_engine
from fairlead.policy.lint.symbolic import can_be
from fairlead.strategies.label_selector import compile_selector

_NAME_OF_NAMESPACE: Final = "kubernetes.io/metadata.name"


def check_match(compiled: CompiledPolicy, written: Match) -> Said:
    """What is said of its selectors and conditions."""
    path = ("spec", "match")
    selectors = {"namespaceSelector": written.namespace_selector, "podSelector": written.pod_selector}
    for name, selector in selectors.items():
        if selector is not None and (key := _contradiction(selector)) is not None:
            said = f"no object has these labels: what is wanted of {key!r} cannot hold together"
            hint = "the policy is for no pod at all; remove a part"
            yield LintWarning(LintCode.MATCHES_NOTHING, (*path, name), said, hint)
    if written.namespaces is not None and written.namespace_selector is not None:
        wanted = [values for key, values in _positive(written.namespace_selector) if key == _NAME_OF_NAMESPACE]
        if any(values.isdisjoint(written.namespaces) for values in wanted):
            said = f"{_NAME_OF_NAMESPACE} is the namespace's name, and none of match.namespaces is meant by it"
            hint = "the policy is for no pod at all: both parts must hold; keep one of them"
            yield LintWarning(LintCode.MATCHES_NOTHING, (*path, "namespaceSelector"), said, hint)
    for at, condition in enumerate(compiled.match.conditions):
        here = (*path, "conditions", at, "expression")
        yield None
        can_hold = can_be(condition.expression, want=True)
        yield None
        if not can_hold:
            hint = "the policy is for no pod at all"
            yield LintWarning(LintCode.NEVER_PASSES, here, "this condition can never be true", hint)
        elif not can_be(condition.expression, want=False):
            yield LintWarning(
                LintCode.ALWAYS_PASSES, here, "this condition can never be false", "remove it, or mend it"
            )
        yield None
        yield from check_identity(here, condition.expression)
        yield from on_engine(here, condition.expression)


def are_apart(one: Match, other: Match) -> bool:
    """Whether their names of namespaces and their selectors rule out that a pod is meant by both."""
    if one.namespaces is not None and other.namespaces is not None and {*one.namespaces}.isdisjoint(other.namespaces):
        return True
    pairs = ((one.pod_selector, other.pod_selector), (one.namespace_selector, other.namespace_selector))
    return any(a is not None and b is not None and _contradiction(a, b) is not None for a, b in pairs)


def always_there(selector: LabelSelector | None) -> set[str]:
    """The labels that an object surely has that is selected."""
    if selector is None:
        return set()
    exist = {each.key for each in selector.match_expressions if each.operator == "Exists"}
    return exist | {key for key, _ in _positive(selector)}


def _positive(selector: LabelSelector) -> Iterator[tuple[str, frozenset[str]]]:
    """The labels of which one of some values is wanted."""
    for key, value in selector.match_labels.items():
        yield key, frozenset({value})
    for each in selector.match_expressions:
        if each.operator == "In":
            yield each.key, frozenset(each.values)


def _contradiction(*selectors: LabelSelector) -> str | None:
    """A label of which selectors want what no label can be."""
    keys = {key for one in selectors for key in (*one.match_labels, *(each.key for each in one.match_expressions))}
    for key in sorted(keys):
        of_key = [
            LabelSelector(
                match_labels={name: value for name, value in one.match_labels.items() if name == key},
                match_expressions=tuple(each for each in one.match_expressions if each.key == key),
            )
            for one in selectors
        ]
        # A label is absent, one of the values that are named, or another one, of which all are alike.
        named = {value for one in of_key for each in one.match_expressions for value in each.values}
        named |= {value for one in of_key for value in one.match_labels.values()}
        candidates: list[dict[str, str]] = [{}, *({key: value} for value in named), {key: "\0"}]
        wanted = [compile_selector(one) for one in of_key]
        if not any(all(matches(labels) for matches in wanted) for labels in candidates):
            return key
    return None
