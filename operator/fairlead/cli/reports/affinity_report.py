"""Report of `fairlead affinity`: what policies imply, what is left out, and what pods would be created with. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.cli.inputs.simulation_inputs import Pod
from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.published_pods import created_terms, labels_of_namespace
from fairlead.policy.affinity.published_policies import (
    AffinityOfScheduler,
    PolicyPublication,
    affinity_of_scheduler,
    publication_of,
)
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.simulation.snapshot import Snapshot, spelt


class NamedPublication(NamedTuple):
    """Policy with what it implies."""

    policy: str
    scheduler: str
    publication: PolicyPublication
    in_shadow: Sequence[str] = ()
    """Filters in shadow, of which nothing is published."""


class PodAffinity(NamedTuple):
    """Terms that a pod would be created with."""

    name: str
    scheduler: str
    terms: Sequence[Mapping[str, Any]] = ()
    why_none: str = ""
    """Why nothing would be added to it."""


class AffinityReport(NamedTuple):
    """Affinity that policies imply, and that pods would be created with."""

    publications: Sequence[NamedPublication]
    schedulers: Sequence[AffinityOfScheduler]
    pods: Sequence[PodAffinity]
    notes: Sequence[str]


def affinity_report(policies: PolicySet, snapshot: Snapshot | None, pods: Sequence[Pod]) -> AffinityReport:
    """Return what the rules in force of policies imply, and what pods would be created with."""
    vocabulary = Vocabulary()
    publications = [
        NamedPublication(one.name, one.scheduler_name, publication_of(one, vocabulary), _in_shadow(one))
        for one in policies.policies
    ]
    of_schedulers = {
        name: affinity_of_scheduler(name, [one.publication.policy for one in publications if one.scheduler == name])
        for name in sorted({one.scheduler for one in publications})
    }
    labels = {} if snapshot is None else {key[1]: _labels(held.raw) for key, held in snapshot.namespaces.items()}
    found = [_pod(one, of_schedulers, labels) for one in pods]
    return AffinityReport(publications, [*of_schedulers.values()], found, [*_notes(pods, of_schedulers, labels)])


def affinity_data(report: AffinityReport) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "published": report.schedulers,
        "leftOut": [
            {"policy": one.policy, "rule": part.rule, "reason": part.reason}
            for one in report.publications
            for part in one.publication.left_out
        ],
        "inShadow": [{"policy": one.policy, "rule": rule} for one in report.publications for rule in one.in_shadow],
        "unknownMatches": [
            {"policy": one.policy, "condition": part.rule, "reason": part.reason}
            for one in report.publications
            if (part := one.publication.unknown_match) is not None
        ],
        "pods": [
            {"pod": one.name, "scheduler": one.scheduler, "nodeSelectorTerms": [*one.terms], "whyNone": one.why_none}
            for one in report.pods
        ],
    }


def _in_shadow(policy: CompiledPolicy) -> Sequence[str]:
    return [rule.name for rule in policy.shadow.filters] if policy.shadow is not None and policy.evaluated else ()


def _pod(
    pod: Pod, affinities: Mapping[str, AffinityOfScheduler], labels: Mapping[str, Mapping[str, str]]
) -> PodAffinity:
    manifest = msgspec.json.decode(pod.raw)
    name, scheduler = pod.template_of or f"pod {spelt(pod.key)}", pod.scheduler or CLUSTERS_OWN_SCHEDULER
    affinity = affinities.get(scheduler)
    if affinity is None:
        return PodAffinity(name, scheduler, why_none=f"no policy is of its scheduler {scheduler}")
    if pod.template_of:  # its controller makes the pod
        owner = {"kind": "Workload", "controller": True}
        manifest = {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}
    namespace = pod.key[0]
    created = created_terms(manifest, labels_of_namespace(namespace, labels.get(namespace, {})), affinity)
    return PodAffinity(name, scheduler, *created)


def _labels(raw: bytes) -> Mapping[str, str]:
    labels: Mapping[str, str] = (msgspec.json.decode(raw).get("metadata") or {}).get("labels") or {}
    return labels


def _notes(
    pods: Sequence[Pod], affinities: Mapping[str, AffinityOfScheduler], labels: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    unknown = {
        pod.key[0] for pod in pods if pod.key[0] not in labels and _reads_namespaces(affinities.get(pod.scheduler))
    }
    for namespace in sorted(unknown):
        yield f"labels of the namespace {namespace} are taken as absent: no file has it"


def _reads_namespaces(affinity: AffinityOfScheduler | None) -> bool:
    return affinity is not None and any("namespaceLabel" in one for one in _readings(affinity["policies"]))


def _readings(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects in plain data."""
    if isinstance(value, Mapping):
        yield value
    for one in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _readings(one)
