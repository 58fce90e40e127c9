"""Uninstaller: deletes everything that the operator created, before the chart is uninstalled; CRD and policies stay.

It can be run again, and does not need a running operator. Schedulers are deleted first, while the operator still
answers them, and the operator before the objects that it would create again.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from fairlead.api.names import API_VERSION, GROUP, KIND, PUBLISHED_KIND, scheduler_of
from fairlead.control.decide.deletion import deletion_order
from fairlead.control.decide.rollout_observation import is_condition_true
from fairlead.control.loop.waker import CAPACITIES
from fairlead.control.publication.published_objects import published_objects
from fairlead.control.reconcile.binding_subjects import bindings_of_earlier_versions
from fairlead.control.reconcile.managed_schedulers import NAME as MANAGED_SCHEDULERS
from fairlead.control.reconcile.missing_permissions import UnloggedPermissions
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.control.status.events import EventRecorder, ready_event
from fairlead.control.status.uninstalled import pods_left, uninstalled_status
from fairlead.grants.ledger import OF_GROUPS, OF_NODES
from fairlead.groups.turns import LABEL as TURNS
from fairlead.kube.errors import ConflictError, ForbiddenError, NotFoundError
from fairlead.kube.http.client import Clock
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.leader_election.elector import LEASES
from fairlead.kube.resources import NOT_ENDED, PODS, POLICIES, PUBLISHED_AFFINITIES, ObjectRef, Resource, decode_object
from fairlead.learned.published import LABEL as LEARNED
from fairlead.pki.identities import AUTHORITY_SECRET, REPLICAS
from fairlead.process.cluster_claim import CLAIMS
from fairlead.render.object_names import (
    LEASE,
    MANAGED_BY,
    MANAGER,
    PREVIOUS_SECRET,
    SCHEDULER_LABEL,
    STATUS_MANAGER,
    Object,
)
from fairlead.webhook.serving.last_good import LABEL as LAST_GOOD
from fairlead.webhook.serving.last_good import REVISIONS

FINALIZER: Final = f"{GROUP}/finalizer"
"""Finalizer that earlier versions put on policies. Nothing needs it, and the operator may not write policies."""
_OURS: Final = f"{MANAGED_BY}={MANAGER}"
_UNLABELLED: Final = (
    ("Lease", LEASE),
    ("Secret", AUTHORITY_SECRET),
    ("Secret", PREVIOUS_SECRET),
    ("ConfigMap", MANAGED_SCHEDULERS),
)
_KINDS: Final[Mapping[Resource, str]] = {
    REVISIONS: "ControllerRevision",
    CAPACITIES: "CSIStorageCapacity",
    PUBLISHED_AFFINITIES.resource: PUBLISHED_KIND,
}
_NAME: Final = "fairlead-uninstall"
_POLL_S: Final = 1.0
_LEADER_ACTS_S: Final = LeaseTimings().act_s
"""How long a leader may still act after its last confirmed renewal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Installation of one namespace, as found before anything is deleted."""

    policies: Sequence[Object]
    schedulers: Sequence[Object]
    """Deployments of schedulers."""
    operator: Sequence[Object]
    """Deployment of the operator, and its pods."""
    objects: Sequence[Object]
    """All else that the operator created, in the order in which it is deleted."""
    others: Sequence[str]
    """Other namespaces that have an operator."""

    @property
    def is_there(self) -> bool:
        """True if anything is to be done. Policies that an operator left behind need work even without it."""
        left = not self.others and any(_is_left_behind(one) for one in self.policies)
        return bool(self.schedulers or self.operator or self.objects or left)

    @property
    def scheduler_names(self) -> Sequence[str]:
        """Names of the schedulers that exist or that policies name."""
        labels = [one["metadata"].get("labels", {}) for one in (*self.schedulers, *self.objects)]
        labelled = {one[SCHEDULER_LABEL] for one in labels if SCHEDULER_LABEL in one}
        return sorted(labelled | {scheduler_of(one) for one in self.policies})


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

    async def find(self) -> Installation:
        """Return what there is to uninstall. Raises ClusterError."""
        namespace, objects = self.namespace, self.objects
        deployments, pods = ObjectRef(resource("Deployment"), namespace), ObjectRef(PODS.resource, namespace)
        operator: list[Object] = []
        for kind, at in (("Deployment", deployments), ("Pod", pods)):
            operator += [{**one, "kind": kind} for one in await objects.all(at, labelSelector=self.operator)]
        created = [one async for one in self._created()]
        others = {*await self._namespaces_with(PODS), *await self._claimed_by()}
        if not (created or operator):  # one without replicas is found by its Deployment, which the hook may not list
            others |= {*await self._namespaces_with(ObjectRef(resource("Deployment")))}
        return Installation(
            policies=await self._policies(),
            schedulers=[one for one in created if _is_scheduler(one)],
            operator=operator,
            objects=[one for one in created if not _is_scheduler(one)],
            others=sorted(others - {namespace}),
        )

    async def run(self) -> None:
        """Uninstall. Raises ClusterError, and can be cancelled at any point."""
        found = await self.find()
        await self._take_lease()
        await self._delete_deployments("the schedulers", f"{SCHEDULER_LABEL},{_OURS}")
        await self._delete_deployments("the operator", self.operator)
        await self._delete_objects()
        await self._remove_finalizers()
        if not found.others:
            await self._write_statuses()
        await self.report_pods(found)
        policies = f"{len(found.policies)} {'policy' if len(found.policies) == 1 else 'policies'}"
        self.report(f"done; {policies} and the CustomResourceDefinition remain")

    async def _namespaces_with(self, at: ObjectRef) -> Sequence[str]:
        """Return the namespaces that have such objects of an operator, as far as they may be listed."""
        try:
            return [one["metadata"]["namespace"] for one in await self.objects.all(at, labelSelector=REPLICAS)]
        except ForbiddenError:
            return []

    async def _claimed_by(self) -> Sequence[str]:
        """Return the namespace whose operator manages the policies."""
        try:
            claims = await self.objects.all(LEASES, **CLAIMS)
        except ForbiddenError:
            return []
        return [holder for one in claims if (holder := (one.get("spec") or {}).get("holderIdentity"))]

    async def _created(self) -> AsyncIterator[Object]:
        """Yield everything that the operator created, in the order in which it is deleted."""
        labelled = await self.objects.list_labelled(self.namespace, _OURS)
        labelled += await bindings_of_earlier_versions(self.objects, self.namespace)
        for one in deletion_order(labelled):
            yield one
        for kind, name in _UNLABELLED:
            at = ObjectRef(resource(kind), self.namespace)
            for one in await self.objects.all(at, fieldSelector=f"metadata.name={name}"):
                yield {**one, "kind": kind}
        # those of `fairlead serve` do not belong to the operator
        kept = [(resource("ConfigMap"), label) for label in (LEARNED, OF_NODES.label, OF_GROUPS.label, TURNS)]
        for kind_of, selector in ((REVISIONS, f"{LAST_GOOD},{LAST_GOOD}!=files"), *kept, (CAPACITIES, _OURS)):
            for one in await self.objects.all(ObjectRef(kind_of, self.namespace), labelSelector=selector):
                yield {**one, "kind": _KINDS.get(kind_of, "ConfigMap")}
        for one in await published_objects(self.objects, self.namespace):
            yield one
        for claim in await self.objects.all(LEASES, **CLAIMS):
            if (claim.get("spec") or {}).get("holderIdentity") == self.namespace:
                yield {**claim, "kind": "Lease"}

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
        async for one in self._created():
            await self._delete(one)
        self.report("their objects: deleted")

    async def _delete(self, obj: Object) -> None:
        metadata = obj["metadata"]
        of = next((one for one, kind in _KINDS.items() if kind == obj["kind"]), None)
        at = ObjectRef(of or resource(obj["kind"]), metadata.get("namespace", ""), metadata["name"])
        with suppress(NotFoundError, ConflictError):  # it is gone, or a new one of that name
            await self.objects.client.delete(at, uid=metadata.get("uid", ""))

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

    async def _write_statuses(self) -> None:
        """Take back what statuses say, now that nothing else writes them."""
        now, missing = datetime.now(UTC), UnloggedPermissions()
        events = EventRecorder(self.objects.client, _NAME, missing)
        for one in await self._policies():
            if (status := uninstalled_status(one, now)) is None:
                continue
            name = one["metadata"]["name"]
            body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "status": status}
            at = POLICIES.named("", name, "status")
            try:
                after = await self.objects.client.apply(at, body, decode_object, manager=STATUS_MANAGER, force=True)
            except NotFoundError:
                continue
            except ForbiddenError as error:
                self.report(f"policies: their statuses still say what the operator wrote last: {error}")
                return
            if (event := ready_event(one.get("status", {}), after.get("status", {}))) is not None:
                await events.record(after, *event, "Uninstall", now)
        for message in missing.messages:
            self.report(message)
        self.report("policies: their statuses say that nothing enforces them")

    async def report_pods(self, installation: Installation) -> None:
        """Report the pods that name its schedulers."""
        for scheduler in installation.scheduler_names:
            selector = f"spec.schedulerName={scheduler},{NOT_ENDED}"
            for line in pods_left(scheduler, await self.objects.all(PODS, fieldSelector=selector)):
                self.report(line)


def _finalizers(policy: Object) -> Sequence[str]:
    return tuple(policy["metadata"].get("finalizers") or ())


def _is_scheduler(obj: Object) -> bool:
    return obj["kind"] == "Deployment" and SCHEDULER_LABEL in obj["metadata"].get("labels", {})


def _is_left_behind(policy: Object) -> bool:
    return FINALIZER in _finalizers(policy) or is_condition_true(policy.get("status", {}), "Ready")


def _of_pods(selector: str) -> str:
    """Return the selector of a Deployment's pods, which lack the label of the manager."""
    return selector.replace(f",{_OURS}", "")
