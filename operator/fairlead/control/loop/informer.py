"""Informer of the leader: keeps the index of policies, and enqueues the schedulers of those that changed.

It resyncs by listing, because a watch misses what happens while it is down.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.names import API_VERSION, KIND
from fairlead.control.decide.desired import Obj, PolicyIndex
from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.loop.replica_poller import ReplicaPoller
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.kube.errors import ForbiddenError
from fairlead.kube.resources import POLICIES, ObjectRef
from fairlead.render.object_names import SCHEDULER_LABEL
from fairlead.replica_state import ReplicaState, ReplicaStates

FIND_UNUSED: Final = "schedulers without policies cannot be found"


@dataclass(slots=True, eq=False, kw_only=True)
class PolicyInformer:
    """Informer of one leader."""

    policy_index: PolicyIndex
    objects: ObjectClient
    namespace: str
    queue: SchedulerQueue
    poller: ReplicaPoller
    missing_permissions: MissingPermissions
    unreviewed: UnreviewedGenerations

    def on_policy_event(self, kind: str | None, policy: Obj) -> None:
        """Handle an event of a policy."""
        before = self.policy_index.policies.get(policy["metadata"]["name"])
        scheduler = self.policy_index.apply_event(kind, policy)
        self._note_stored(kind, before, policy)
        if before is None or kind == "DELETED" or _edit(before) != _edit(policy):
            self.queue.enqueue(scheduler)
            self.poller.request()

    def _note_stored(self, kind: str | None, before: Obj | None, policy: Obj) -> None:
        """Note a generation that is new; without a kind of event it is from a list."""
        metadata, known = policy["metadata"], (before or {}).get("metadata", {})
        if kind == "DELETED":
            self.unreviewed.forget(metadata["name"])
        elif any(known.get(key) != metadata[key] for key in ("uid", "generation")):
            self.unreviewed.add_stored(policy) if kind else self.unreviewed.add_listed(policy)

    async def resync(self) -> None:
        """List all policies and schedulers, and handle what no event reported.

        The first one comes before anything else: a scheduler with only half of its policies known would be rolled.
        """
        before = dict(self.policy_index.policies)
        listed = await self.objects.all(POLICIES)
        found: dict[str, Obj] = {
            one["metadata"]["name"]: {**one, "apiVersion": API_VERSION, "kind": KIND} for one in listed
        }
        for name in before.keys() | found.keys():
            if self.policy_index.policies.get(name) is not before.get(name):
                continue  # an event that came meanwhile is newer
            self.on_policy_event(None, found[name]) if name in found else self.on_policy_event("DELETED", before[name])
        kept = ObjectRef(resource("ConfigMap"), self.namespace)
        try:
            for one in await self.objects.all(kept, labelSelector=SCHEDULER_LABEL):
                self.queue.enqueue(one["metadata"]["labels"][SCHEDULER_LABEL])
        except (
            ForbiddenError
        ) as error:  # schedulers with policies are reconciled, and their statuses report what is missing
            self.missing_permissions.record(FIND_UNUSED, error)
        else:
            self.missing_permissions.clear(FIND_UNUSED)

    def has_missed(self, states: ReplicaStates) -> bool:
        """Return whether a replica knows of a policy that no event reported: replicas have their own watch."""
        return any(
            (policy := self.policy_index.policies.get(name)) is None
            or seen.uid != policy["metadata"]["uid"]
            or seen.generation != str(policy["metadata"]["generation"])
            for one in states.values()
            if isinstance(one, ReplicaState)
            for name, seen in one.policies.items()
        )


def _edit(policy: Obj) -> Mapping[str, Any]:
    """Return what users write into a policy, and whether it is being deleted."""
    metadata = policy["metadata"]
    kept = {key: metadata.get(key) for key in ("uid", "generation", "annotations", "deletionTimestamp")}
    return {**kept, "spec": policy.get("spec")}
