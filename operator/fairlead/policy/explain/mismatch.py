"""Reasons why a policy does not apply to a pod: what `evaluate.matching` decides, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlead.policy.compile.model import CompiledPolicy, ExpressionRule
from fairlead.policy.explain.explainer import changes_of
from fairlead.policy.explain.explanation import Counterfactual
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.pod_view import PodView


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A policy that does not apply to a pod."""

    policy: str
    why: str
    ways: Sequence[Sequence[Counterfactual]] = ()
    """Each way in which comparisons would have to come out otherwise for the condition to be true."""


def explain_mismatch(policy: CompiledPolicy, pod: PodView, scheduler: str, now: int) -> Unmatched | None:
    """Return why a policy does not apply to a pod, in shadow or not, the simplest reason first; None if it may."""
    if not policy.evaluated:
        return Unmatched(policy.name, f"its mode is {policy.mode}")
    if policy.scheduler_name != scheduler:
        which = f"it applies to pods of the scheduler {policy.scheduler_name}, and this pod names {scheduler}"
        return Unmatched(policy.name, which)
    match = policy.match
    if match.namespaces is not None and pod.namespace not in match.namespaces:
        return Unmatched(policy.name, f"it applies to pods in {_listed(sorted(match.namespaces))}")
    selects = match.namespace_selector
    if selects is not None and pod.knows_namespace and not selects(pod.namespaceObject.metadata.labels):
        labels = _labels(pod.namespaceObject.metadata.labels)
        return Unmatched(policy.name, f"its namespaceSelector does not match the labels of {pod.namespace}: {labels}")
    if match.pod_selector is not None and not match.pod_selector(pod.labels):
        return Unmatched(policy.name, f"its podSelector does not match the pod's labels: {_labels(pod.labels)}")
    for condition in match.conditions:
        if _is_false(condition, pod, now):
            ways = changes_of(condition.expression, pod, None, now)
            return Unmatched(policy.name, f"its condition {condition.name} is false", ways)
    return None


def _is_false(condition: ExpressionRule, pod: PodView, now: int) -> bool:
    try:
        return not condition.expression.for_pod(pod)(None, now)
    except RAISED:
        return False


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "it has none"


def _listed(names: Sequence[str]) -> str:
    return f"the namespace{'s' if len(names) > 1 else ''} {', '.join(names)}"
