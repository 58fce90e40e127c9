"""Applies what was decided about one scheduler: writes what differs, prunes what is not wanted, deletes what goes."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.control.decide.decide import Decision, deletion_order, objects_to_prune
from fairlead.control.decide.persisted_state import to_config_map
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.control.reconcile.observe import ObservedObjects
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.control.reconcile.result import Drift
from fairlead.render.object_names import Names

LOG: Final = logging.getLogger(__name__)
_SHOWN: Final = 3
_OF_PODS: Final = frozenset({"ConfigMap", "Deployment"})
"""What is another when a scheduler's pods are to be others."""


@dataclass(frozen=True, slots=True)
class Applier:
    """Writes the objects of schedulers."""

    objects: ObjectClient
    owner: NamespaceOwner

    async def apply(
        self,
        names: Names,
        observed: ObservedObjects,
        decision: Decision,
        before: Decision | None,
        drifts: list[Drift],
        *,
        paused: bool = False,
    ) -> bool:
        """Make the scheduler what was decided; return whether nothing is left of it.

        The persisted state comes first: whatever happens next, the reconcile after that knows what was begun. While
        the scheduler is paused only its pods are others, so that they know the authorities of now. Whatever others had
        edited or deleted is added to `drifts` once it is as it was; `before` is the decision before this one.
        """
        there = observed.scheduler
        if decision.lifecycle == "Goes":
            return await self._delete_all(names, observed)
        if decision.persisted != there.persisted:
            await self.persist(names, decision)
        if (plan := decision.plan) is None:
            return False
        settled = decision.persisted.rollout.good == plan.config_hash
        settled |= decision.phase == "Steady" and before is not None and decision.persisted == before.persisted
        for obj in plan.objects:
            if paused and (obj["kind"] not in _OF_PODS or plan.config_hash == there.rollout.config):
                continue
            state = await self.objects.apply_if_changed(obj)
            if state == "edited" or (state == "missing" and settled):
                drifts.append(_drift(names, obj["kind"], f"{obj['kind']} {obj['metadata']['name']} was {state}"))
        extra = () if paused else objects_to_prune(names, decision, there, observed.objects)
        for obj in extra:
            await self.objects.remove(obj)
        if not paused:  # what is made here is owned after the next reconcile
            await self.owner.have(one for one in observed.objects if one not in extra)
        return False

    async def persist(self, names: Names, decision: Decision) -> None:
        """Write the state that a restart of the operator must not lose."""
        await self.objects.apply_if_changed(to_config_map(names, decision.persisted))

    async def _delete_all(self, names: Names, observed: ObservedObjects) -> bool:
        """Return whether it is gone. While one of its pods is there, it keeps what it calls with and may do."""
        deployments = [one for one in observed.objects if one["kind"] == "Deployment"]
        for one in deployments:
            await self.objects.remove(one)
        if deployments or observed.pods:
            return False
        rest = deletion_order(observed.objects)
        for one in sorted(rest, key=lambda one: one["metadata"]["name"] == names.state):  # the state goes last
            await self.objects.remove(one)
        return True


def forged(names: Names, observed: ObservedObjects) -> Sequence[Drift]:
    """Return the drift of ConfigMaps that pass for configurations."""
    if not observed.forged:
        return ()
    shown = ", ".join(sorted(observed.forged)[:_SHOWN])
    text = f"ConfigMap {shown} does not match its name and hash: it is not used"
    return [_drift(names, "ConfigMap", text)]


def _drift(names: Names, kind: str, message: str) -> Drift:
    LOG.warning("drift.corrected", extra={"scheduler": names.scheduler, "drift": message})
    return Drift(kind, message)
