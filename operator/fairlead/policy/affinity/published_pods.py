"""Pods as they are created with published affinity.

This is what the MutatingAdmissionPolicy of the chart does, on the same data.
"""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from fairlead.policy.affinity.node_terms import (
    TERMS_MAX,
    FactReading,
    PublishedGuard,
    PublishedTerm,
)

if TYPE_CHECKING:  # commands read what is published without loading what computes it
    from fairlead.policy.affinity.published_policies import AffinityOfScheduler, PublishedPolicy

PUBLISHED_ANNOTATION: Final = "fairlead.dev/published-affinity"
"""Annotation of a pod with the hash of what it got; `None`, written before, leaves a pod alone."""
LEFT_ALONE: Final = "None"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
SEVERAL_MAX: Final = 3
"""Policies of which each has several alternatives, for one pod."""
TERMS_OF_POD_MAX: Final = 64
_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_SYSTEM: Final = "kube-system"
_NAME_OF_NAMESPACE: Final = "kubernetes.io/metadata.name"

Manifest = Mapping[str, Any]
MatchExpressions = list[dict[str, Any]]


def why_left_alone(pod: Manifest, affinity: "AffinityOfScheduler") -> str:
    """Return why a pod gets no published affinity, whatever is published; "" if it may get some."""
    spec, metadata = pod.get("spec") or {}, pod.get("metadata") or {}
    if (spec.get("schedulerName") or _DEFAULT_SCHEDULER) != affinity["schedulerName"]:
        return "it is of another scheduler"
    if metadata.get("namespace") == _SYSTEM:
        return f"it is in {_SYSTEM}"
    if spec.get("nodeName"):
        return "it has a node"
    if (metadata.get("annotations") or {}).get(PUBLISHED_ANNOTATION) == LEFT_ALONE:
        return f"its annotation {PUBLISHED_ANNOTATION} is {LEFT_ALONE}"
    has_controller = any(one.get("controller") for one in metadata.get("ownerReferences") or ())
    if not has_controller and required_terms(pod) is not None:
        return "it has no controller and required terms of its own, so its file could not be applied twice"
    return ""


def labels_of_namespace(name: str, labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the labels of a namespace with that of its name, which the API server sets."""
    return {_NAME_OF_NAMESPACE: name, **labels}


def alternatives_by_policy(
    pod: Manifest, namespace_labels: Mapping[str, str], affinity: "AffinityOfScheduler"
) -> list[tuple[str, list[MatchExpressions]]]:
    """Return each policy that publishes something for a pod, with its alternatives."""
    facts = _Facts(pod, namespace_labels)
    return [(one["name"], found) for one in affinity["policies"] if (found := _alternatives(one, facts))]


def published_for(
    pod: Manifest, namespace_labels: Mapping[str, str], affinity: "AffinityOfScheduler"
) -> list[MatchExpressions]:
    """Return the requirements that are published for a pod, as alternatives; none if nothing is."""
    lists = [found for _, found in alternatives_in_force(pod, namespace_labels, affinity)]
    common = [requirement for one in lists if len(one) == 1 for requirement in one[0]]
    several = [one for one in lists if len(one) > 1]
    if not lists:
        return []
    return [common + [each for part in parts for each in part] for parts in product(*several)]


def alternatives_in_force(
    pod: Manifest, namespace_labels: Mapping[str, str], affinity: "AffinityOfScheduler"
) -> list[tuple[str, list[MatchExpressions]]]:
    """Return what `alternatives_by_policy` does, without those that are left out because they are too many."""
    every = alternatives_by_policy(pod, namespace_labels, affinity)
    several = [found for _, found in every if len(found) > 1][:SEVERAL_MAX]
    if prod(map(len, several)) > TERMS_MAX:
        several = []
    return [(name, found) for name, found in every if len(found) == 1 or any(found is one for one in several)]


def as_created(pod: Manifest, namespace_labels: Mapping[str, str], affinity: "AffinityOfScheduler") -> dict[str, Any]:
    """Return a pod as it is created: with what is published for it, and an annotation that says so."""
    created = deepcopy(dict(pod))
    if why_left_alone(pod, affinity):
        return created
    added = published_for(pod, namespace_labels, affinity)
    terms = required_terms(created)
    places = [at for at, term in enumerate(terms or ()) if _is_open(term, added)]
    if not added or len(places) * len(added) > TERMS_OF_POD_MAX:
        return created
    annotations = _below(_below(created, "metadata"), "annotations")
    annotations[PUBLISHED_ANNOTATION] = affinity["hash"]
    if terms is None:
        node_affinity = _below(_below(_below(created, "spec"), "affinity"), "nodeAffinity")
        node_affinity[REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": one} for one in deepcopy(added)]}
        return created
    own = [deepcopy(terms[at]) for at in places]
    for at, term in zip(places, own, strict=True):
        terms[at] = _with(term, added[0])
    terms += [_with(term, further) for further in added[1:] for term in own]
    return created


class CreatedTerms(NamedTuple):
    """Terms of the required node affinity that a pod is created with, if something is published for it."""

    terms: Sequence[Manifest]
    why_none: str = ""
    """Reason that nothing is added to it."""


def created_terms(pod: Manifest, namespace_labels: Mapping[str, str], affinity: "AffinityOfScheduler") -> CreatedTerms:
    """Return the terms that a pod is created with."""
    created = as_created(pod, namespace_labels, affinity)
    if created == pod:
        return CreatedTerms((), why_left_alone(pod, affinity) or "nothing is implied for it")
    return CreatedTerms(required_terms(created) or ())


class _Facts:
    """Facts about a pod that is created."""

    def __init__(self, pod: Manifest, namespace_labels: Mapping[str, str]) -> None:
        metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        limits = [(one.get("resources") or {}).get("limits") or {} for one in spec.get("containers") or ()]
        self.namespace: str = metadata.get("namespace") or "default"
        self._entries: dict[str, Mapping[str, str]] = {
            "label": metadata.get("labels") or {},
            "annotation": metadata.get("annotations") or {},
            "namespaceLabel": namespace_labels,
            "resource": {name: "" for one in limits for name in one},
        }

    def value(self, reading: FactReading) -> str | None:
        """Return the value of a fact, or its default; None if it is absent and has none."""
        entry = self._entry(reading)
        return reading.get("default") if entry is None else entry

    def holds(self, guard: PublishedGuard) -> bool:
        """Report whether a guard holds."""
        match guard["operator"]:
            case "In":
                return self.value(guard) in guard["values"]
            case "NotIn":
                return self.value(guard) not in guard["values"]
            case "Exists":
                return self._entry(guard) is not None
            case "DoesNotExist":
                return self._entry(guard) is None

    def _entry(self, reading: FactReading) -> str | None:
        fields = cast("Mapping[str, str]", reading)
        for source, entries in self._entries.items():
            if source in fields:
                return entries.get(fields[source])
        return self.namespace


def _alternatives(policy: "PublishedPolicy", facts: _Facts) -> list[MatchExpressions]:
    """Return what a policy requires for a pod; nothing if one alternative asks for nothing, or for what no label is."""
    if not all(map(facts.holds, policy["when"])):
        return []
    terms = [one for one in policy["terms"] if all(map(facts.holds, one.get("when", ())))]
    found = [_requirements(one, facts) for one in terms]
    return [one for one in found if one] if all(found) else []


def _requirements(term: PublishedTerm, facts: _Facts) -> MatchExpressions:
    result: MatchExpressions = []
    for one in term.get("matchExpressions", ()):
        requirement: dict[str, Any] = {"key": one["key"], "operator": one["operator"]}
        if "values" in one:
            requirement["values"] = one["values"]
        elif one["operator"] in ("In", "NotIn"):
            value = facts.value(one)
            if value is None or not _VALUE.fullmatch(value):
                return []
            requirement["values"] = [value]
        result.append(requirement)
    return result


def required_terms(pod: Manifest) -> list[Any] | None:
    """Return the terms of a pod's required node affinity; None if it requires none."""
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get(REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms") or []


def _is_open(term: Manifest, added: Sequence[MatchExpressions]) -> bool:
    """Report whether something is added to a term: not to one that selects nothing, nor where it is there already."""
    own = term.get("matchExpressions") or []
    if not own and not term.get("matchFields"):
        return False
    return not any(all(_is_among(one, own) for one in requirements) for requirements in added)


def _is_among(requirement: Manifest, own: Sequence[Manifest]) -> bool:
    return any(
        one.get("key") == requirement["key"]
        and one.get("operator") == requirement["operator"]
        and (one.get("values") or []) == requirement.get("values", [])
        for one in own
    )


def _with(term: Manifest, requirements: MatchExpressions) -> dict[str, Any]:
    return {
        **deepcopy(dict(term)),
        "matchExpressions": [*(term.get("matchExpressions") or ()), *deepcopy(requirements)],
    }


def _below(holder: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a part of an object, which is made if it is not there."""
    found = holder.get(key)
    if not isinstance(found, dict):
        found = holder[key] = {}
    return found
