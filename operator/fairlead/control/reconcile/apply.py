"""Applier of decisions: writes the objects that differ, prunes those that are not desired, deletes schedulers."""

from dataclasses import dataclass
from typing import Final

from fairlead.control.decide.decide import ReconcileDecision, objects_to_prune
from fairlead.control.decide.deletion import deletion_order
from fairlead.control.decide.drift import Drift, DriftLog
from fairlead.control.decide.persisted_state import STATE, to_config_map
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.object_client import ObjectClient, ref_of
from fairlead.control.reconcile.observe import ObservedObjects
from fairlead.kube.http.document_writer import write_document
from fairlead.render.object_names import ObjectNames

_OF_PODS: Final = frozenset({"ConfigMap", "Deployment"})
"""Kinds that are written for a paused scheduler, so that its pods get new certificate authorities."""


@dataclass(frozen=True, slots=True)
class Applier:
    """Applier of the objects of schedulers."""

    objects: ObjectClient
    bindings: SchedulerBindings
    drifts: DriftLog

    async def apply(
        self,
        names: ObjectNames,
        observed: ObservedObjects,
        decision: ReconcileDecision,
        before: ReconcileDecision | None,
        *,
        paused: bool = False,
    ) -> bool:
        """Apply a decision; return whether nothing is left of the scheduler.

        The persisted state is written first, so that the next reconcile knows what was started, whatever happens in
        between. While the scheduler is paused, only its pods are updated, so that they get the current authorities.
        `before` is the previous decision.
        """
        live = observed.scheduler
        if decision.lifecycle == "Delete":
            return await self._delete_all(names, observed)
        if decision.persisted != live.persisted:
            await self.persist(names, decision, observed)
        if (plan := decision.plan) is None:
            return False
        settled = decision.persisted.rollout.last_good == plan.config_hash
        settled |= decision.phase == "Steady" and before is not None and decision.persisted == before.persisted
        for obj in plan.objects:
            if paused and (obj["kind"] not in _OF_PODS or plan.config_hash == live.rollout.config):
                continue
            state = await self.objects.apply_if_changed(obj)
            if state == "edited" or (state == "missing" and settled):
                text = f"{obj['kind']} {obj['metadata']['name']} was {state}"
                self.drifts.record(Drift(names.scheduler, obj["kind"], text))
            if obj["kind"] == "ServiceAccount":  # before the pods that use it
                await self.bindings.ensure(obj["metadata"]["name"])
        extra = () if paused else objects_to_prune(names, decision, live, observed.objects)
        for obj in extra:
            await self.objects.remove(obj)
        if any(one["kind"] == "ServiceAccount" for one in extra):
            await self.bindings.sync()
        return False

    async def persist(self, names: ObjectNames, decision: ReconcileDecision, observed: ObservedObjects) -> None:
        """Write the persisted state, if it is still the one that was observed."""
        obj = to_config_map(names, decision.persisted)
        await write_document(self.objects.client, STATE, observed.state, obj, ref_of(obj), changes=obj["data"])

    async def _delete_all(self, names: ObjectNames, observed: ObservedObjects) -> bool:
        """Delete the scheduler; return whether it is gone. Its certificate and permissions stay while a pod exists."""
        deployments = [one for one in observed.objects if one["kind"] == "Deployment"]
        for one in deployments:
            await self.objects.remove(one)
        if deployments or observed.pods:
            return False
        state = None
        for one in deletion_order(observed.objects):
            if one["metadata"]["name"] == names.state:
                state = one
            else:
                await self.objects.remove(one)
        await self.bindings.sync()
        if state is not None:  # last: while it exists, this is repeated
            await self.objects.remove(state)
        return True
