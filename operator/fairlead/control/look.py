"""What there is of a scheduler, read from the API server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.cluster.resources import PODS, Where
from fairlead.control.memory import remembered
from fairlead.control.objects import KINDS, Objects, resource
from fairlead.control.reconcile import There
from fairlead.control.seen import seen
from fairlead.render.engine import Object
from fairlead.render.names import CONFIG_HASH, MANAGED_BY, MANAGER, SCHEDULER_LABEL, Names
from fairlead.render.plan import is_whole

_ELSEWHERE: Final = "kube-system"
_ALSO_ELSEWHERE: Final = ("ClusterRoleBinding", "RoleBinding")
_HERE: Final = [kind for kind in KINDS if kind != "ClusterRoleBinding"]
_WAITS: Final = "spec.nodeName=,status.phase=Pending,spec.schedulerName="
_PLACED: Final = "spec.nodeName!=,spec.schedulerName="


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found."""

    there: There
    objects: list[Object]
    """All with the scheduler's label."""
    pods: list[Object]
    lease: Object | None
    forged: Sequence[str] = ()
    """ConfigMaps that pass for configurations, and hold something else than their names and hashes say."""


async def look(objects: Objects, names: Names, *, empty: bool) -> Looked:
    """One look; whether the scheduler has no policies says whether anybody's pods are counted."""
    namespace, selector = names.namespace, f"{SCHEDULER_LABEL}={names.scheduler}"
    found = await objects.labelled(_HERE, (namespace,), selector)
    # elsewhere there may be those of another operator, in another namespace
    others = await objects.labelled(_ALSO_ELSEWHERE, (_ELSEWHERE,), selector)
    found += [one for one in others if one["metadata"]["name"].startswith(names.elsewhere(""))]
    found = [
        one for one in found if one["kind"] != "Deployment" or one["metadata"]["labels"].get(MANAGED_BY) == MANAGER
    ]
    labels = ",".join(f"{key}={value}" for key, value in names.selector.items())
    pods = await objects.all(Where(PODS.resource, namespace), labelSelector=labels)
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in found}
    lease = by_name.get(("Lease", names.child))
    kept = [one for one in found if one["kind"] == "ConfigMap" and "pod.yaml" in (one.get("data") or ())]
    whole = [one for one in kept if is_whole(one, names)]
    there = There(
        seen=seen(by_name.get(("Deployment", names.child)), pods, lease),
        config_maps={one["metadata"]["annotations"][CONFIG_HASH]: one for one in whole},
        remembered=remembered(by_name.get(("ConfigMap", names.memory))),
        pods=sum(CONFIG_HASH in one["metadata"].get("annotations", {}) for one in pods),
        unbound=len(await objects.all(PODS, fieldSelector=_WAITS + names.scheduler)) if empty else 0,
    )
    forged = [one["metadata"]["name"] for one in kept if one not in whole]
    return Looked(there=there, objects=found, pods=pods, lease=lease, forged=forged)


async def foreign(objects: Objects, names: Names, *, known: bool) -> str:
    """Why a scheduler of this name is somebody else's, with the cure; empty if it is nobody's, or ours.

    `known`: it is listed in the settings, or was managed before. Then only what stands in the way counts.
    """
    # A Lease that somebody deleted is made anew by its scheduler, without our label.
    for kind in ("Deployment",) if known else ("Deployment", "Lease"):
        at = Where(resource(kind), names.namespace, names.child)
        one = await objects.get(at)
        if one is not None and one["metadata"].get("labels", {}).get(MANAGED_BY) != MANAGER:
            return f"{at} is there and not ours: remove it, or give the policy another schedulerName"
    if known:
        return ""
    if await objects.any(PODS, fieldSelector=_PLACED + names.scheduler):
        return (
            f"another scheduler named {names.scheduler} has placed pods: give the policy another schedulerName, or, if "
            "nobody else runs it any more, list it in the operator's setting schedulers"
        )
    return ""
