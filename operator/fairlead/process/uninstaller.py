"""Takes away all that the operator has made, before the chart goes; the resource and the policies stay.

It can be run again, and needs no operator that lives. Schedulers go first, while there is still somebody to answer
them, and the operator before what it would make anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from fairlead.api.names import DEFAULT_SCHEDULER_NAME, GROUP
from fairlead.control.decide.decide import deletion_order
from fairlead.control.loop.assemble import AUTHORITY, LEASE
from fairlead.control.reconcile.managed_schedulers import NAME as EVER
from fairlead.control.reconcile.object_client import KINDS, ObjectClient, resource
from fairlead.kube.errors import ConflictError, NotFoundError
from fairlead.kube.http.client import Clock
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.resources import PODS, POLICIES, ObjectRef, Resource
from fairlead.process.cluster_claim import CLAIM
from fairlead.process.peer_certificates import REMEMBERED
from fairlead.render.object_names import MANAGED_BY, MANAGER, SCHEDULER_LABEL
from fairlead.render.templates import Object
from fairlead.webhook.serving.last_good import LABEL as LAST_GOOD
from fairlead.webhook.serving.last_good import REVISIONS

FINALIZER: Final = f"{GROUP}/finalizer"
"""Versions before put it on policies. Nothing hangs on it, and the operator may not write policies."""
_OURS: Final = f"{MANAGED_BY}={MANAGER}"
_UNLABELLED: Final = (("Lease", LEASE), ("Secret", AUTHORITY), ("Secret", REMEMBERED), ("ConfigMap", EVER))
_NAME: Final = "fairlead-uninstall"
_CAPACITIES: Final = Resource("storage.k8s.io", "v1", "csistoragecapacities")
_EXTERNAL: Final = {"ClusterRoleBinding": "", "RoleBinding": "kube-system"}
_HERE: Final = [kind for kind in KINDS if kind != "ClusterRoleBinding"]
_AGAIN_S: Final = 1.0
_HEARD_S: Final = LeaseTimings().act_s
"""So long a leader acts at most after the last renewal that was confirmed."""
_SHOWN: Final = 20
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True, eq=False, kw_only=True)
class Uninstaller:
    """Of one operator."""

    objects: ObjectClient
    namespace: str
    operator: str
    """A selector that finds the operator's Deployment, and its pods."""
    lasts_s: float
    """For so long the operator writes nothing, should this come to no end."""
    clock: Clock = field(default_factory=Clock)
    report: Callable[[str], None] = print
    doing: str = ""
    """What is waited for."""

    async def run(self) -> None:
        """All of it. Raises ClusterError, and can be cancelled anywhere."""
        policies = await self._policies()
        labelled = await self.objects.list_labelled(_HERE, (self.namespace,), f"{SCHEDULER_LABEL},{_OURS}")
        schedulers = {str(one["metadata"]["labels"][SCHEDULER_LABEL]) for one in labelled}
        schedulers |= {str(one["spec"].get("schedulerName") or DEFAULT_SCHEDULER_NAME) for one in policies}
        await self._take_lease()
        await self._delete_deployments("the schedulers", f"{SCHEDULER_LABEL},{_OURS}")
        await self._delete_deployments("the operator", self.operator)
        await self._delete_objects()
        await self._remove_finalizers()
        for name in sorted(schedulers):
            await self._report_pods(name)
        self.report(f"done; {len(policies)} policies and their CustomResourceDefinition remain")

    async def _take_lease(self) -> None:
        """Another has its Lease: the operator goes on answering, and writes nothing any more.

        If this fails half-way, the operator leads again when that time is over, and puts everything back.
        """
        at = ObjectRef(resource("Lease"), self.namespace, LEASE)
        while (lease := await self.objects.get(at)) is not None:
            before = lease.get("spec") or {}
            holder = before.get("holderIdentity") not in (None, "", _NAME)
            spec = {**before, "holderIdentity": _NAME, "leaseDurationSeconds": int(self.lasts_s)}
            try:
                await self.objects.client.replace(at, {**lease, "spec": spec}, _decode)
            except NotFoundError:
                return
            except ConflictError:
                continue  # it was renewed just now
            self.report("the operator does not write any more")
            if holder:
                await self.clock.sleep(_HEARD_S)
            return

    async def _delete_deployments(self, what: str, selector: str) -> None:
        """Delete Deployments until neither they nor their pods are there."""
        deployments = ObjectRef(resource("Deployment"), self.namespace)
        pods = ObjectRef(PODS.resource, self.namespace)
        while True:
            found = await self.objects.all(deployments, labelSelector=selector)
            for one in found:
                if "deletionTimestamp" not in one["metadata"]:
                    await self.objects.remove({**one, "kind": "Deployment"})
            left = await self.objects.all(pods, labelSelector=_of_pods(selector))
            if not found and not left:
                self.report(f"{what}: deleted")
                return
            names = ", ".join(sorted(one["metadata"]["name"] for one in (*found, *left)))
            if self.doing != (doing := f"{what}: {names}"):
                self.report(f"waiting for {doing}")
            self.doing = doing
            await self.clock.sleep(_AGAIN_S)

    async def _delete_objects(self) -> None:
        """What is left of schedulers, and what the operator has kept for itself."""
        found = await self.objects.list_labelled(_HERE, (self.namespace,), _OURS)
        for kind, namespace in _EXTERNAL.items():
            items = await self.objects.all(ObjectRef(resource(kind), namespace), labelSelector=_OURS)
            # there may be another operator in another namespace
            ours = [one for one in items if one["metadata"]["name"].startswith(f"{MANAGER}.{self.namespace}.")]
            found += [{**one, "kind": kind} for one in ours]
        for one in deletion_order(found):
            await self.objects.remove(one)
        for kind, name in _UNLABELLED:
            await self._delete(ObjectRef(resource(kind), self.namespace, name))
        kept = ObjectRef(REVISIONS, self.namespace)
        others = ObjectRef(_CAPACITIES, self.namespace)
        # those of `fairlead serve` are not the operator's
        for at, selector in ((kept, f"{LAST_GOOD},{LAST_GOOD}!=files"), (others, _OURS)):
            for one in await self.objects.all(at, labelSelector=selector):
                await self._delete(replace(at, name=one["metadata"]["name"]))
        claim = await self.objects.get(CLAIM)
        if claim is not None and (claim.get("spec") or {}).get("holderIdentity") == self.namespace:
            await self.objects.remove({**claim, "kind": "Lease"})
        self.report("their objects: deleted")

    async def _delete(self, at: ObjectRef) -> None:
        try:
            await self.objects.client.delete(at)
        except NotFoundError:
            return

    async def _policies(self) -> Sequence[Object]:
        try:
            return await self.objects.all(POLICIES)
        except NotFoundError:  # nobody serves them any more
            return ()

    async def _remove_finalizers(self) -> None:
        """Policies on which a version before has left its finalizer can be deleted."""
        while held := [one for one in await self._policies() if FINALIZER in _finalizers(one)]:
            for one in held:
                metadata = one["metadata"]
                rest = [name for name in _finalizers(one) if name != FINALIZER]
                body = {"metadata": {"finalizers": rest, "resourceVersion": metadata["resourceVersion"]}}
                try:
                    await self.objects.client.merge(replace(POLICIES, name=metadata["name"]), body, _decode)
                except (ConflictError, NotFoundError):
                    continue  # it is another by now: it is looked at once more
        self.report("policies: finalizers removed")

    async def _report_pods(self, scheduler: str) -> None:
        """Who waits for a scheduler that does not come any more."""
        selector = f"spec.schedulerName={scheduler},status.phase!=Succeeded,status.phase!=Failed"
        pods = await self.objects.all(PODS, fieldSelector=selector)
        if not pods:
            return
        waiting = sum(not one["spec"].get("nodeName") for one in pods)
        self.report(f"{len(pods)} pods name the scheduler {scheduler}, {waiting} of them are pending:")
        for one in sorted(pods, key=lambda one: bool(one["spec"].get("nodeName")))[:_SHOWN]:
            metadata = one["metadata"]
            where = one["spec"].get("nodeName")
            self.report(f"  {metadata['namespace']}/{metadata['name']}{f' (on {where})' if where else ''}")
        if len(pods) > _SHOWN:
            self.report(f"  ...and {len(pods) - _SHOWN} more")


def _finalizers(policy: Object) -> Sequence[str]:
    found: Sequence[str] = policy["metadata"].get("finalizers") or ()
    return found


def _of_pods(selector: str) -> str:
    """Pods of schedulers have but the labels by which their Deployment finds them."""
    return selector.replace(f",{_OURS}", "")
