"""Controller of the leader, and its composition, with its own clients, in the loop that it runs in."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from fairlead.api.v1alpha1 import deciding_fields
from fairlead.control.certificates.leader_certificates import LeaderCertificates
from fairlead.control.decide.desired import Obj, PolicyIndex
from fairlead.control.decide.drift import DriftLog
from fairlead.control.loop.binding_watch import BindingWatch
from fairlead.control.loop.crd_check import CrdCheck
from fairlead.control.loop.housekeeper import Housekeeper
from fairlead.control.loop.informer import PolicyInformer
from fairlead.control.loop.leader_context import LeaderContext
from fairlead.control.loop.pod_groups_discovery import PodGroupsDiscovery
from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.loop.replica_poller import ReplicaPoller
from fairlead.control.loop.uninstall_hook import UninstallHook
from fairlead.control.loop.waker import Waker
from fairlead.control.publication.affinity_publisher import AffinityPublisher
from fairlead.control.reconcile.apply import Applier
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.facts_gatherer import FactsGatherer
from fairlead.control.reconcile.foreign_owner import ForeignSchedulers
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulers
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.control.reconcile.reconciler import Reconciler
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.reconcile.scheduler_registry import SchedulerRegistry
from fairlead.control.status.crd_fields import CrdFields
from fairlead.control.status.events import EventRecorder
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.control.status.writer import StatusWriter
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine


@dataclass(slots=True, eq=False, kw_only=True)
class LeaderController:
    """Controller of one leader. All of it runs in one loop, which is not the one that serves."""

    informer: PolicyInformer
    queue: SchedulerQueue
    poller: ReplicaPoller
    housekeeper: Housekeeper
    publisher: AffinityPublisher
    background: Sequence[Callable[[], Awaitable[None]]] = ()
    """Other tasks that run while it leads."""

    def on_policy_event(self, kind: str | None, policy: Obj) -> None:
        """Handle an event of a policy."""
        self.informer.on_policy_event(kind, policy)
        self.publisher.request()

    def enqueue(self, scheduler: str) -> None:
        """Handle an event of an object of a scheduler."""
        self.queue.enqueue(scheduler)

    def wake_pods(self) -> None:
        """Wake rejected pods soon."""
        self.poller.wake_pods()

    async def run(self) -> None:
        """Run until cancelled."""
        tasks = [asyncio.ensure_future(work()) for work in (self._poll_and_tend, *self.background)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.queue.stop()

    async def _poll_and_tend(self) -> NoReturn:
        """Poll the replicas, and do what is due then, again and again."""
        while True:
            await self.poller.poll()
            self.publisher.request()
            await self.housekeeper.tend(self.poller.replicas.states)
            await self.poller.wait()


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


@asynccontextmanager
async def leader_controller(operator: LeaderContext) -> AsyncIterator[LeaderController]:
    """Provide a controller that runs in this loop, after a first resync."""
    async with operator.client() as client:
        parts = _LeaderParts(operator, client)
        await parts.uninstall_hook.arm()  # before there is anything to uninstall
        await parts.certificates.begin()
        await parts.pod_groups.begin()
        controller = parts.controller()
        with operator.metrics.export_gauges(parts.registry, controller.queue.depth, parts.crd_fields, parts.unreviewed):
            await controller.housekeeper.begin()
            yield controller


class _LeaderParts:
    """Parts of one leader, which several of its components share, and their composition."""

    def __init__(self, operator: LeaderContext, client: Client) -> None:
        service = operator.service
        self.operator, self.client, self.namespace = operator, client, service.namespace
        self.objects, self.secrets = ObjectClient(client), Secrets(client, service.namespace)
        self.policy_index, self.drifts = PolicyIndex(operator.model), DriftLog()
        self.missing_permissions = MissingPermissions()
        self.crd_fields = CrdFields(deciding_fields(operator.model))
        self.time = asyncio.get_running_loop().time
        self.unreviewed = UnreviewedGenerations(self.time)
        self.uninstall_hook = UninstallHook(client, service.namespace, self.missing_permissions)
        self.events = EventRecorder(client, operator.instance, self.missing_permissions)
        self.owner = NamespaceOwner(self.objects, service.namespace, lambda: operator.settings().claim_namespace)
        self.bindings = SchedulerBindings(self.objects, self.owner, self.drifts)
        self.certificates = LeaderCertificates(
            client,
            self.secrets,
            service.host,
            operator.authority,
            operator.settings,
            self.drifts,
            now,
            publishes_authority=service.publishes_authority,
        )
        self.replicas = ReplicaClient(
            objects=self.objects,
            namespace=service.namespace,
            selector=service.selector,
            host=service.host,
            port=service.port,
            context=self.certificates.context,
        )
        self.registry = SchedulerRegistry(
            policy_index=self.policy_index,
            managed=ManagedSchedulers(self.objects, service.namespace),
            settings=operator.settings,
            now=now,
        )
        self.affinity = AffinityPublisher(
            objects=self.objects,
            policy_index=self.policy_index,
            states=lambda: self.replicas.states,
            settings=operator.settings,
            namespace=service.namespace,
            missing_permissions=self.missing_permissions,
            is_leader=operator.is_leader,
        )
        self.pod_groups = PodGroupsDiscovery(client=client, now=now)
        self.foreign = ForeignSchedulers(
            objects=self.objects,
            namespace=service.namespace,
            missing_permissions=self.missing_permissions,
            now=now,
        )

    def controller(self) -> LeaderController:
        """Return the controller, with all that starts a reconcile."""
        operator, queue = self.operator, self._queue()
        wakeups = operator.metrics.wakeups
        poller = ReplicaPoller(
            policy_index=self.policy_index,
            queue=queue,
            replicas=self.replicas,
            waker=Waker(self.client, self.namespace, now, self.time, self.missing_permissions, wakeups),
            unreviewed=self.unreviewed,
            missing_permissions=self.missing_permissions,
        )
        informer = PolicyInformer(
            policy_index=self.policy_index,
            objects=self.objects,
            namespace=self.namespace,
            queue=queue,
            poller=poller,
            missing_permissions=self.missing_permissions,
            unreviewed=self.unreviewed,
        )
        binding_watch = BindingWatch(self.bindings, queue, self.missing_permissions)
        housekeeper = Housekeeper(
            informer=informer,
            queue=queue,
            owner=self.owner,
            binding_watch=binding_watch,
            certificates=self.certificates,
            events=self.events,
            missing_permissions=self.missing_permissions,
            settings=operator.settings,
            is_leader=operator.is_leader,
        )

        async def show_crd_fields() -> None:
            await informer.resync()  # removed fields are no event
            queue.enqueue_statuses()

        self.pod_groups.on_change = queue.enqueue_all
        self.affinity.on_change = queue.enqueue_statuses
        crd_check = CrdCheck(client=self.client, fields=self.crd_fields, on_change=show_crd_fields)
        return LeaderController(
            informer=informer,
            queue=queue,
            poller=poller,
            housekeeper=housekeeper,
            publisher=self.affinity,
            background=(
                binding_watch.run,
                self.foreign.run,
                crd_check.run,
                self.uninstall_hook.run,
                self.pod_groups.run,
                self.affinity.run,
            ),
        )

    def _queue(self) -> SchedulerQueue:
        return SchedulerQueue(
            registry=self.registry,
            reconciler=self._reconciler(),
            statuses=StatusWriter(
                policy_index=self.policy_index,
                replicas=self.replicas,
                events=self.events,
                missing_permissions=self.missing_permissions,
                is_leader=self.operator.is_leader,
                warnings=self.operator.warnings,
                crd_fields=self.crd_fields,
                unreviewed=self.unreviewed,
                admission_port=self.operator.service.admission_port,
                not_installed=lambda: self.affinity.not_installed,
                now=now,
                time=self.time,
                later=asyncio.get_running_loop().call_later,
            ),
            events=self.events,
            drifts=self.drifts,
            is_leader=self.operator.is_leader,
            metrics=self.operator.metrics,
            now=now,
        )

    def _reconciler(self) -> Reconciler:
        facts = FactsGatherer(
            client=self.client,
            namespace=self.namespace,
            url=self.operator.service.url,
            certificates=self.certificates,
            replicas=self.replicas,
            nodes=self.operator.nodes,
            pod_groups=lambda: self.pod_groups.are_served,
            now=now,
        )
        return Reconciler(
            registry=self.registry,
            objects=self.objects,
            secrets=self.secrets,
            replicas=self.replicas,
            foreign=self.foreign,
            facts=facts,
            applier=Applier(self.objects, self.bindings, self.drifts),
            drifts=self.drifts,
            namespace=self.namespace,
            engine=TemplateEngine(templates()),
            now=now,
        )
