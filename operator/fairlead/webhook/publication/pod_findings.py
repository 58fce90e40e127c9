"""Findings about a pod: whether it has the node affinity that is published for it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairlead.policy.affinity.published_pods import (
    LEFT_ALONE,
    PUBLISHED_ANNOTATION,
    REQUIRED,
    Manifest,
    MatchExpressions,
    alternatives_in_force,
    as_created,
    required_terms,
)
from fairlead.time_units import SECOND_NS
from fairlead.webhook.publication.affinity_feed import CurrentAffinity

OUTDATED_S: Final = 60.0
"""Time for which a pod that waits may have an older affinity."""
MISSED_S: Final = 5.0
"""Time that every API server has to see what is published."""

PoliciesOfPod = tuple[str, ...]
"""Names of policies."""


class PodFinding(NamedTuple):
    """Finding about a pod: the policies of which it has the node affinity, or has an older one, or none."""

    current: PoliciesOfPod = ()
    outdated: PoliciesOfPod = ()
    missed: PoliciesOfPod = ()


_NOTHING: Final = PodFinding()


def find_about(pod: Any, namespace_labels: Mapping[str, str], current: CurrentAffinity, now_s: float) -> PodFinding:
    """Return what is found about an unplaced pod of the mirror, in a namespace from which pods are not left out."""
    annotation, affinity = str(pod.metadata.annotations.get(PUBLISHED_ANNOTATION, "")), current.affinity
    created_s = int(pod.metadata.creationTimestamp or 0) / SECOND_NS
    if annotation == LEFT_ALONE:
        return _NOTHING
    if annotation and annotation == affinity["hash"]:
        return PodFinding(current=_names(alternatives_in_force(manifest_of(pod), namespace_labels, affinity)))
    if annotation:
        is_old = now_s - max(current.since_s, created_s) >= OUTDATED_S
        return PodFinding(outdated=_outdated(manifest_of(pod), namespace_labels, current)) if is_old else _NOTHING
    if created_s - current.since_s <= MISSED_S or not affinity["policies"]:
        return _NOTHING
    plain = manifest_of(pod)
    if PUBLISHED_ANNOTATION not in as_created(plain, namespace_labels, affinity)["metadata"]["annotations"]:
        return _NOTHING
    return PodFinding(missed=_lacking(plain, alternatives_in_force(plain, namespace_labels, affinity)))


def manifest_of(pod: Any) -> Manifest:
    """Return what the publication reads of a pod of the mirror, as the API has it."""
    metadata, spec = pod.metadata, pod.spec
    required = spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
    terms = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*map(_term, required.nodeSelectorTerms)]}}}
    return {
        "metadata": {
            "name": str(metadata.name),
            "namespace": str(metadata.namespace),
            "labels": dict(metadata.labels),
            "annotations": dict(metadata.annotations),
            "ownerReferences": [{"controller": bool(one.controller)} for one in metadata.ownerReferences],
        },
        "spec": {
            "schedulerName": str(spec.schedulerName),
            "containers": [{"resources": {"limits": dict(one.resources.limits)}} for one in spec.containers],
            **({"affinity": terms} if required else {}),
        },
    }


def _term(term: Any) -> dict[str, Any]:
    found = {"matchExpressions": term.matchExpressions, "matchFields": term.matchFields}
    return {name: [*map(_requirement, each)] for name, each in found.items() if each}


def _requirement(requirement: Any) -> dict[str, Any]:
    values = {"values": [*map(str, requirement.values)]} if requirement.values else {}
    return {"key": str(requirement.key), "operator": str(requirement.operator), **values}


def _names(published: Sequence[tuple[str, object]]) -> PoliciesOfPod:
    return tuple(name for name, _ in published)


def _outdated(pod: Manifest, namespace_labels: Mapping[str, str], current: CurrentAffinity) -> PoliciesOfPod:
    """Return the policies that publish something else for a pod now than what it has."""
    now = dict(alternatives_in_force(pod, namespace_labels, current.affinity))
    before = current.affinity.copy()
    before["policies"] = [one for name, one in current.before.items() if name not in now]
    narrower = _names(alternatives_in_force(pod, namespace_labels, before))
    return *_lacking(pod, [*now.items()]), *narrower


def _lacking(pod: Manifest, published: Sequence[tuple[str, Sequence[MatchExpressions]]]) -> PoliciesOfPod:
    """Return the policies of which a pod has no alternative."""
    terms = required_terms(pod) or ()
    return tuple(name for name, alternatives in published if not _has(terms, alternatives))


def _has(terms: Sequence[Mapping[str, Any]], alternatives: Sequence[MatchExpressions]) -> bool:
    """Report whether each term asks for one of the alternatives."""
    return bool(terms) and all(
        any(all(one in term.get("matchExpressions", ()) for one in requirements) for requirements in alternatives)
        for term in terms
    )
