"""Uninstaller: deletes everything that the operator created, before the chart is uninstalled; CRD and policies stay.

It can be run again, and does not need a running operator. Schedulers are deleted first, while the operator still
answers them, and the operator before the objects that it would create again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.api.names import DEFAULT_SCHEDULER_NAME, GROUP
from fairlead.control.decide.decide import deletion_order
from fairlead.control.loop.controller import AUTHORITY, LEASE
from fairlead.control.loop.waker import CAPACITIES
from fairlead.control.reconcile.managed_schedulers import NAME as MANAGED_SCHEDULERS
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import ConflictError, NotFoundError
from fairlead.kube.http.client import Clock
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.resources import NOT_ENDED, PODS, POLICIES, ObjectRef, decode_object
from fairlead.process.cluster_claim import CLAIM
from fairlead.process.peer_certificates import PREVIOUS_SECRET
from fairlead.render.object_names import MANAGED_BY, MANAGER, SCHEDULER_LABEL
from fairlead.render.templates import Object
from fairlead.webhook.serving.last_good import LABEL as LAST_GOOD
from fairlead.webhook.serving.last_good import REVISIONS

FINALIZER: Final = f"{GROUP}/finalizer"
"""Finalizer that earlier versions put on policies. Nothing needs it, and the operator may not write policies."""
_OURS: Final = f"{MANAGED_BY}={MANAGER}"
_UNLABELLED: Final = (
    ("Lease", LEASE),
    ("Secret", AUTHORITY),
    ("Secret", PREVIOUS_SECRET),
    ("ConfigMap", MANAGED_SCHEDULERS),
)
_NAME: Final = "fairlead-uninstall"

_POLL_S: Final = 1.0
_LEADER_ACTS_S: Final = LeaseTimings().act_s
"""How long a leader may still act after its last confirmed renewal."""
_SHOWN: Final = 20


@dataclass(slots=True, eq=False, kw_only=True)
class Uninstaller:
    """Uninstaller of one operator."""

    objects: ObjectClient
    namespace: str
    operator: str
    """Label selector of the operator's Deployment and pods."""
    lasts_s: float
    """How long the operator writes nothing if this is interrupted."""
    clock: Clock = field(default_factory=Clock)
    report: Callable[[str], None] = print
    doing: str = ""
    """What it waits for."""

    async def run(self) -> None:
        """Uninstall. Raises ClusterError, and can be cancelled at any point."""
        policies = await self._policies()
        labelled = await self.objects.list_labelled(self.namespace, f"{SCHEDULER_LABEL},{_OURS}")
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
        """Take the operator's Lease: it keeps answering calls, and writes nothing any more.

        If the uninstall fails half-way, the operator leads again when the Lease expires, and restores everything.
        """
        at = ObjectRef(resource("Lease"), self.namespace, LEASE)
        while (lease := await self.objects.get(at)) is not None:
            before = lease.get("spec") or {}
            holder = before.get("holderIdentity") not in (None, "", _NAME)
            spec = {**before, "holderIdentity": _NAME, "leaseDurationSeconds": int(self.lasts_s)}
            try:
                await self.objects.client.replace(at, {**lease, "spec": spec}, decode_object)
            except NotFoundError:
                return
            except ConflictError:
                continue  # it was renewed meanwhile
            self.report("the operator does not write any more")
            if holder:
                await self.clock.sleep(_LEADER_ACTS_S)
            return

    async def _delete_deployments(self, what: str, selector: str) -> None:
        """Delete Deployments, and wait until they and their pods are gone."""
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
            await self.clock.sleep(_POLL_S)

    async def _delete_objects(self) -> None:
        """Delete the remaining objects of schedulers, and the operator's own."""
        found = await self.objects.list_labelled(self.namespace, _OURS)
        found += await self.objects.list_external(_OURS, f"{MANAGER}.{self.namespace}.")
        for one in deletion_order(found):
            await self.objects.remove(one)
        for kind, name in _UNLABELLED:
            await self._delete(ObjectRef(resource(kind), self.namespace, name))
        kept = ObjectRef(REVISIONS, self.namespace)
        others = ObjectRef(CAPACITIES, self.namespace)
        # those of `fairlead serve` do not belong to the operator
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
        except NotFoundError:  # the CustomResourceDefinition is deleted already
            return ()

    async def _remove_finalizers(self) -> None:
        """Remove the finalizer of earlier versions from policies, so that they can be deleted."""
        while held := [one for one in await self._policies() if FINALIZER in _finalizers(one)]:
            for one in held:
                metadata = one["metadata"]
                rest = [name for name in _finalizers(one) if name != FINALIZER]
                body = {"metadata": {"finalizers": rest, "resourceVersion": metadata["resourceVersion"]}}
                try:
                    await self.objects.client.merge(replace(POLICIES, name=metadata["name"]), body, decode_object)
                except (ConflictError, NotFoundError):
                    continue  # it changed meanwhile, and is checked once more
        self.report("policies: finalizers removed")

    async def _report_pods(self, scheduler: str) -> None:
        """Report the pods that name a deleted scheduler."""
        selector = f"spec.schedulerName={scheduler},{NOT_ENDED}"
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
    """Return the selector of a Deployment's pods, which lack the label of the manager."""
    return selector.replace(f",{_OURS}", "")
