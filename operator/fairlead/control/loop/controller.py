"""Controller of the leader, and its composition, with its own clients, in the loop that it runs in."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NoReturn

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, deciding_fields
from fairlead.control.certificates.ca_bundle import WebhookCABundle
from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.control.decide.desired import Obj, PolicyIndex
from fairlead.control.decide.drift import DriftLog
from fairlead.control.loop.binding_watch import BindingWatch
from fairlead.control.loop.crd_check import CrdCheck
from fairlead.control.loop.housekeeper import Housekeeper
from fairlead.control.loop.informer import PolicyInformer
from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.loop.replica_poller import ReplicaPoller
from fairlead.control.loop.uninstall_hook import UninstallHook
from fairlead.control.loop.waker import Waker
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
from fairlead.control.status.lint_cache import Warnings
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.control.status.writer import StatusWriter
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki import authority as authorities
from fairlead.pki.authority import Authority, AuthorityError
from fairlead.render.object_names import ObjectNames
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine

AUTHORITY: Final = authorities.SECRET
LEASE: Final = "fairlead"
"""Name of the Lease: its holder leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderContext:
    """Context that a replica hands to its controller when it leads."""

    client: Callable[[], Client]
    """Makes a new client for each time that the replica leads."""
    model: type[SchedulerExtenderPolicy]
    settings: Callable[[], OperatorSettings]
    namespace: str
    service: str
    port: int
    """Port of the webhook, in the Service and in the pods."""
    admission_port: int
    """Port of the admission check."""
    url: str
    """URL at which schedulers call the operator."""
    selector: str
    """Label selector of the operator's pods."""
    instance: str
    context: Callable[[], ssl.SSLContext]
    """Returns the TLS context with the operator's own client certificate."""
    authority: Callable[[], Authority | None]
    """Our authority as this replica has it cached, because its Secret may be deleted."""
    requested: Callable[[], bool]
    """True if a rotation of the authority is requested."""
    nodes: Callable[[], int | None]
    """Number of nodes; None while they are being listed."""
    is_leader: Callable[[], bool]
    warnings: Callable[[Obj, Callable[[], None]], Warnings | None]
    metrics: LeaderMetrics

    @property
    def host(self) -> str:
        """Host name of the replicas' certificates."""
        return f"{self.service}.{self.namespace}.svc"


@dataclass(slots=True, eq=False, kw_only=True)
class LeaderController:
    """Controller of one leader. All of it runs in one loop, which is not the one that serves."""

    informer: PolicyInformer
    queue: SchedulerQueue
    poller: ReplicaPoller
    housekeeper: Housekeeper
    background: Sequence[Callable[[], Awaitable[None]]] = ()
    """Other tasks that run while it leads."""

    def on_policy_event(self, kind: str | None, policy: Obj) -> None:
        """Handle an event of a policy."""
        self.informer.on_policy_event(kind, policy)

    def enqueue(self, scheduler: str) -> None:
        """Handle an event of an object of a scheduler."""
        self.queue.enqueue(scheduler)

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
            await self.housekeeper.tend(self.poller.replicas.states)
            await self.poller.wait()


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


@asynccontextmanager
async def leader_controller(operator: LeaderContext) -> AsyncIterator[LeaderController]:
    """Provide a controller that runs in this loop, after a first resync."""
    async with operator.client() as client:
        uninstall_hook = UninstallHook(client, operator.namespace, MissingPermissions())
        await uninstall_hook.arm()  # before there is anything to uninstall
        objects, secrets = ObjectClient(client), Secrets(client, operator.namespace)
        certificates, ca_bundle = _certificates(operator, secrets), _ca_bundle(operator, client)
        with suppress(ClusterError, AuthorityError):  # each reconcile repeats it; this is early for the first policy
            if ca_bundle.is_self_managed():
                kept = await certificates.ensure(operator.authority())
                await ca_bundle.set(authorities.read(kept.data))
        controller = _controller(operator, client, objects, secrets, certificates, ca_bundle, uninstall_hook)
        crd_fields = controller.queue.statuses.crd_fields
        unreviewed = controller.informer.unreviewed
        with operator.metrics.export_gauges(controller.queue.registry, controller.queue.depth, crd_fields, unreviewed):
            await controller.housekeeper.begin()
            yield controller


def _controller(
    operator: LeaderContext,
    client: Client,
    objects: ObjectClient,
    secrets: Secrets,
    certificates: SchedulerCertificates,
    ca_bundle: WebhookCABundle,
    uninstall_hook: UninstallHook,
) -> LeaderController:
    namespace, is_leader = operator.namespace, operator.is_leader
    missing = uninstall_hook.missing_permissions
    policy_index, owner = (
        PolicyIndex(operator.model),
        NamespaceOwner(objects, namespace, lambda: operator.settings().claim_namespace),
    )
    drifts = DriftLog()
    bindings = SchedulerBindings(objects, owner, drifts)
    events = EventRecorder(client, operator.instance, missing)
    provided = ProvidedCertificates(secrets, operator.host, now)
    replicas = _replicas(operator, objects, provided, ca_bundle)
    facts = FactsGatherer(
        client=client,
        namespace=namespace,
        url=operator.url,
        certificates=certificates,
        provided=provided,
        ca_bundle=ca_bundle,
        replicas=replicas,
        authority=operator.authority,
        requested=operator.requested,
        nodes=operator.nodes,
        now=now,
        drifts=drifts,
    )
    time = asyncio.get_running_loop().time
    unreviewed = UnreviewedGenerations(time)
    statuses = StatusWriter(
        policy_index=policy_index,
        replicas=replicas,
        events=events,
        missing_permissions=missing,
        is_leader=is_leader,
        warnings=operator.warnings,
        crd_fields=CrdFields(deciding_fields(operator.model)),
        unreviewed=unreviewed,
        admission_port=operator.admission_port,
        now=now,
    )
    foreign = ForeignSchedulers(objects=objects, namespace=namespace, missing_permissions=missing, now=now)
    managed = ManagedSchedulers(objects, namespace)
    registry = SchedulerRegistry(policy_index=policy_index, managed=managed, settings=operator.settings, now=now)
    reconciler = Reconciler(
        registry=registry,
        objects=objects,
        secrets=secrets,
        replicas=replicas,
        foreign=foreign,
        facts=facts,
        applier=Applier(objects, bindings, drifts),
        drifts=drifts,
        namespace=namespace,
        engine=TemplateEngine(templates()),
        now=now,
    )
    queue = SchedulerQueue(
        registry=registry,
        reconciler=reconciler,
        statuses=statuses,
        events=events,
        drifts=drifts,
        is_leader=is_leader,
        metrics=operator.metrics,
        now=now,
    )
    poller = ReplicaPoller(
        policy_index=policy_index,
        queue=queue,
        replicas=replicas,
        waker=Waker(client, namespace, now, time, missing, operator.metrics.wakeups),
        unreviewed=unreviewed,
        missing_permissions=missing,
    )
    informer = PolicyInformer(
        policy_index=policy_index,
        objects=objects,
        namespace=namespace,
        queue=queue,
        poller=poller,
        missing_permissions=missing,
        unreviewed=unreviewed,
    )
    binding_watch = BindingWatch(bindings, queue, missing)
    housekeeper = Housekeeper(
        informer=informer,
        queue=queue,
        owner=owner,
        binding_watch=binding_watch,
        facts=facts,
        ca_bundle=ca_bundle,
        events=events,
        missing_permissions=missing,
        settings=operator.settings,
        is_leader=is_leader,
    )

    async def show_crd_fields() -> None:
        await informer.resync()  # removed fields are no event
        queue.enqueue_statuses()

    crd_check = CrdCheck(client=client, fields=statuses.crd_fields, on_change=show_crd_fields)
    return LeaderController(
        informer=informer,
        queue=queue,
        poller=poller,
        housekeeper=housekeeper,
        background=(binding_watch.run, foreign.run, crd_check.run, uninstall_hook.run),
    )


def _replicas(
    operator: LeaderContext, objects: ObjectClient, provided: ProvidedCertificates, ca_bundle: WebhookCABundle
) -> ReplicaClient:
    async def context() -> ssl.SSLContext:
        return operator.context() if ca_bundle.is_self_managed() else await provided.context()

    return ReplicaClient(
        objects=objects,
        namespace=operator.namespace,
        selector=operator.selector,
        host=operator.host,
        port=operator.port,
        context=context,
    )


def _ca_bundle(operator: LeaderContext, client: Client) -> WebhookCABundle:
    return WebhookCABundle(client, operator.namespace, lambda: operator.settings().tls.mode == "SelfManaged")


def _certificates(operator: LeaderContext, secrets: Secrets) -> SchedulerCertificates:
    return SchedulerCertificates(
        secrets=secrets,
        name=AUTHORITY,
        secret_of=lambda name: ObjectNames(name, operator.namespace).certificate,
        labels_of=lambda name: ObjectNames(name, operator.namespace).labels,
        now=now,
    )
