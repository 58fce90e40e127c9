"""Observation of a scheduler: reads its objects and pods from the API server."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.control.decide.decide import ObservedScheduler
from fairlead.control.decide.persisted_state import STATE, PersistedState
from fairlead.control.decide.rollout_observation import observe_rollout
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.documents import Document
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.render.object_names import CONFIG_HASH, MANAGED_BY, MANAGER, SCHEDULER_LABEL, Object, ObjectNames
from fairlead.render.plan import is_published, is_whole

_WAITS: Final = "spec.nodeName=,status.phase=Pending,spec.schedulerName="


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedObjects:
    """Objects of one scheduler, and its state as observed from them."""

    scheduler: ObservedScheduler
    objects: list[Object]
    """All objects with the scheduler's label."""
    pods: list[Object]
    lease: Object | None
    state: Document[PersistedState] = field(default_factory=Document)
    """The persisted state; one that cannot be read counts as empty, and is not written over."""
    forged: Sequence[str] = ()
    """Names of ConfigMaps that pose as configurations, and do not match their names and hashes."""


async def observe(objects: ObjectClient, names: ObjectNames, *, counts: bool) -> ObservedObjects:
    """Return the observed scheduler; `counts`: pending pods that name it are counted, too."""
    namespace, selector = names.namespace, f"{SCHEDULER_LABEL}={names.scheduler}"
    found = await objects.list_labelled(namespace, selector)
    found = [
        one for one in found if one["kind"] != "Deployment" or one["metadata"]["labels"].get(MANAGED_BY) == MANAGER
    ]
    labels = ",".join(f"{key}={value}" for key, value in names.selector.items())
    pods = await objects.all(ObjectRef(PODS.resource, namespace), labelSelector=labels)
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in found}
    lease = by_name.get(("Lease", names.object_name))
    kept = [one for one in found if one["kind"] == "ConfigMap" and "pod.yaml" in (one.get("data") or ())]
    whole = [one for one in kept if is_whole(one, names)]
    published = by_name.get(("ConfigMap", names.object_name))
    state = STATE.read(by_name.get(("ConfigMap", names.state)))
    observed = ObservedScheduler(
        rollout=observe_rollout(by_name.get(("Deployment", names.object_name)), pods, lease),
        config_maps={one["metadata"]["annotations"][CONFIG_HASH]: one for one in whole},
        published=published if published is not None and is_published(published) else None,
        persisted=PersistedState() if state.value is None else state.value,
        pods=sum(CONFIG_HASH in one["metadata"].get("annotations", {}) for one in pods),
        pending_pods=len(await objects.all(PODS, fieldSelector=_WAITS + names.scheduler)) if counts else 0,
    )
    forged = [one["metadata"]["name"] for one in kept if one not in whole]
    return ObservedObjects(scheduler=observed, objects=found, pods=pods, lease=lease, state=state, forged=forged)
