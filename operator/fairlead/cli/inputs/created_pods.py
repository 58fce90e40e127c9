"""Pods as they would be created now: with the node affinity that policies publish. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from fairlead.cli.inputs.live_policies import LivePolicy
from fairlead.cli.inputs.simulation_inputs import Pod
from fairlead.mirror import decode
from fairlead.policy.affinity.published_parts import NOTHING_PUBLISHED, AffinityByScheduler, without_namespace_labels
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, as_created, labels_of_namespace
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.simulation.results import PodResult
from fairlead.simulation.scheduler_filters import was_bound
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import UNREADABLE, Snapshot

Manifest = dict[str, Any]


def published_by(
    policies: Iterable[CompiledPolicy], live: Sequence[LivePolicy], *, knows_namespaces: bool
) -> AffinityByScheduler:
    """Return what policies publish, by scheduler.

    Nothing is, if a policy of the cluster says in its status that nothing adds it to pods there.
    """
    publishing = [one for one in policies if one.publishes]
    if not publishing or any(one.is_not_installed for one in live):
        return NOTHING_PUBLISHED
    # Imported here: most policies do not publish.
    from fairlead.policy.affinity.label_atoms import Vocabulary
    from fairlead.policy.affinity.published_policies import affinities

    return as_far_as_known(affinities(publishing, Vocabulary()), knows_namespaces=knows_namespaces)


def as_far_as_known(published: AffinityByScheduler, *, knows_namespaces: bool) -> AffinityByScheduler:
    """Return what is published without what depends on labels of namespaces, if these are not known."""
    if knows_namespaces:
        return published
    return {name: without_namespace_labels(affinity) for name, affinity in published.items()}


@dataclass(slots=True)
class CreatedPods:
    """Pods of a cluster that has the admission policy of published affinity."""

    snapshot: Snapshot
    published: AffinityByScheduler
    """By scheduler."""
    _labels: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def as_created(self, pod: Pod) -> Pod:
        """Return a pod as it would be created now; one that has been given published affinity keeps what it has.

        A pod that a scheduler has placed is taken as if it had no node.
        """
        affinity = self.published.get(pod.scheduler)
        if affinity is None:
            return pod
        try:
            decoded = decode.pod(pod.raw)
        except UNREADABLE:  # who judges it says so
            return pod
        manifest: Manifest = msgspec.json.decode(pod.raw)
        if PUBLISHED_ANNOTATION in ((manifest.get("metadata") or {}).get("annotations") or {}):
            return pod
        spec = manifest.get("spec") or {}
        node = spec.get("nodeName")
        if node and (pod.key in self.snapshot.pods or was_bound(decoded)):
            manifest = {**manifest, "spec": {name: value for name, value in spec.items() if name != "nodeName"}}
        created = as_created(manifest, self._labels_of(pod.key[0]), affinity)
        if created == manifest:
            return pod
        if node:
            created["spec"]["nodeName"] = node
        return replace(pod, raw=msgspec.json.encode(created), affinity_added=True)

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        if namespace not in self._labels:
            held = self.snapshot.namespaces.get(("", namespace))
            metadata = {} if held is None else msgspec.json.decode(held.raw).get("metadata") or {}
            self._labels[namespace] = labels_of_namespace(namespace, metadata.get("labels") or {})
        return self._labels[namespace]


def judge_pod(simulation: Simulation, pod: Pod) -> PodResult:
    """Return the result of a pod, which tells whether it was given published affinity."""
    found = simulation.judge(pod.raw, pod.file)
    if not pod.affinity_added or found.published is None:
        return found
    return replace(found, published=found.published._replace(added=True))
