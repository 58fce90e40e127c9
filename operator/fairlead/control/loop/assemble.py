"""Puts together what the leader does, with clients of its own, in the loop that it runs in."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.certificates.ca_bundle import WebhookCABundle
from fairlead.control.certificates.issuer import SchedulerCertificates
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.control.decide.desired import Obj, PolicyIndex
from fairlead.control.loop.controller import Controller
from fairlead.control.loop.poller import ReplicaPoller
from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.loop.waker import Waker
from fairlead.control.reconcile.external_watch import watch_external_objects
from fairlead.control.reconcile.facts_gatherer import FactsGatherer
from fairlead.control.reconcile.foreign_owner import ForeignSchedulers
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulers
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.control.reconcile.reconciler import Reconciler
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.status.events import EventRecorder
from fairlead.control.status.lint_cache import Warnings
from fairlead.control.status.writer import StatusWriter
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki import authority as authorities
from fairlead.pki.authority import Authority, AuthorityError
from fairlead.pki.tls_context import client_context
from fairlead.render.object_names import Names
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine

AUTHORITY: Final = authorities.SECRET
LEASE: Final = "fairlead"
"""Whoever holds it leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderContext:
    """What a replica knows of itself, and hands to what it does when it leads."""

    client: Callable[[], Client]
    """Another one for each time that it leads."""
    model: type[SchedulerExtenderPolicy]
    settings: Callable[[], OperatorSettings]
    namespace: str
    service: str
    port: int
    """Of the webhook, in the service and in the pods."""
    url: str
    """Where schedulers call it."""
    selector: str
    """The labels of the operator's pods."""
    instance: str
    context: Callable[[], ssl.SSLContext]
    """With the operator's own client certificate."""
    held: Callable[[], Authority | None]
    """Our authority, as this replica knows it: its Secret may be deleted."""
    requested: Callable[[], bool]
    """Whether somebody asks for another one."""
    nodes: Callable[[], int | None]
    """None while they are being listed."""
    is_leader: Callable[[], bool]
    warnings: Callable[[Obj, Callable[[], None]], Warnings | None]
    drift: Callable[[str], None]

    @property
    def host(self) -> str:
        """What replicas' certificates are for."""
        return f"{self.service}.{self.namespace}.svc"


def now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


@asynccontextmanager
async def leader_controller(operator: LeaderContext) -> AsyncIterator[Controller]:
    """A controller; it is told, and runs, in this loop."""
    async with operator.client() as client:
        objects, secrets = ObjectClient(client), Secrets(client, operator.namespace)
        certificates, believed = _certificates(operator, secrets), _believed(operator, client)
        with suppress(ClusterError, AuthorityError):  # each pass does it again; this is for the first policy of all
            if believed.is_self_managed():
                kept = await certificates.ensure(operator.held())
                await believed.set(authorities.read(kept.data))
        controller = _controller(operator, client, objects, secrets, certificates, believed)
        await controller.resync()
        yield controller


def _controller(
    operator: LeaderContext,
    client: Client,
    objects: ObjectClient,
    secrets: Secrets,
    certificates: SchedulerCertificates,
    believed: WebhookCABundle,
) -> Controller:
    settings, leads, namespace = operator.settings, operator.is_leader, operator.namespace
    gathered, lacking, belonging = PolicyIndex(operator.model), MissingPermissions(), NamespaceOwner(objects, namespace)
    announcer = EventRecorder(client, operator.instance, lacking)
    others = ProvidedCertificates(secrets, operator.host, now)
    replicas = _replicas(operator, objects, others, believed)
    knowing = FactsGatherer(
        client=client,
        namespace=namespace,
        url=operator.url,
        certificates=certificates,
        provided=others,
        ca_bundle=believed,
        replicas=replicas,
        held=operator.held,
        requested=operator.requested,
        nodes=operator.nodes,
        now=now,
    )
    statuses = StatusWriter(
        policy_index=gathered,
        states=lambda: replicas.states,
        events=announcer,
        missing_permissions=lacking,
        is_leader=leads,
        warnings=lambda policy: operator.warnings(policy, lambda: rounds.poll_now()),
        on_written=lambda kind, policy: controller.on_policy_event(kind, policy),
        now=now,
    )
    foreign = ForeignSchedulers(objects=objects, namespace=namespace, missing_permissions=lacking, now=now)
    schedulers = SchedulerQueue(
        policy_index=gathered,
        reconciler=_passes(operator, objects, belonging, secrets, replicas, foreign),
        statuses=statuses,
        events=announcer,
        managed=ManagedSchedulers(objects, namespace),
        states=lambda: replicas.states,
        settings=settings,
        facts=knowing.facts,
        pop_restored=knowing.pop_restored,
        is_leader=leads,
        drift=operator.drift,
        now=now,
    )
    rounds = ReplicaPoller(
        policy_index=gathered,
        queue=schedulers,
        statuses=statuses,
        replicas=replicas,
        events=announcer,
        waker=Waker(client, namespace, now, asyncio.get_running_loop().time, lacking),
        missing_permissions=lacking,
        settings=settings,
        is_rotating=lambda: knowing.is_rotating,
        rotate=knowing.rotate,
        ca_bundle=believed.sync,
        is_leader=leads,
        resync=lambda: controller.resync(),
    )
    controller = Controller(
        policy_index=gathered,
        objects=objects,
        namespace=namespace,
        owner=belonging,
        queue=schedulers,
        poller=rounds,
        missing_permissions=lacking,
        background=[foreign.run, *(one.run for one in watch_external_objects(client, namespace, schedulers.enqueue))],
    )
    return controller


def _replicas(
    operator: LeaderContext, objects: ObjectClient, others: ProvidedCertificates, believed: WebhookCABundle
) -> ReplicaClient:
    async def context() -> ssl.SSLContext:
        return operator.context() if believed.is_self_managed() else await others.context()

    return ReplicaClient(
        objects=objects,
        namespace=operator.namespace,
        selector=operator.selector,
        host=operator.host,
        port=operator.port,
        context=context,
    )


def _passes(
    operator: LeaderContext,
    objects: ObjectClient,
    belonging: NamespaceOwner,
    secrets: Secrets,
    replicas: ReplicaClient,
    foreign: ForeignSchedulers,
) -> Reconciler:
    async def context(scheduler: str) -> ssl.SSLContext | None:
        """What it shows and whom it knows, out of its Secret."""
        secret = await secrets.get(Names(scheduler, operator.namespace).certificate)
        if secret is None:
            return None
        return client_context(secret.data["ca.crt"], secret.data["tls.crt"], secret.data["tls.key"])

    return Reconciler(
        objects=objects,
        foreign=foreign,
        owner=belonging,
        namespace=operator.namespace,
        engine=TemplateEngine(templates()),
        context=context,
        refused_callers=lambda addresses: replicas.refused_callers([*addresses]),
        now=lambda: now().timestamp(),
    )


def _believed(operator: LeaderContext, client: Client) -> WebhookCABundle:
    return WebhookCABundle(client, operator.namespace, lambda: operator.settings().tls.mode == "SelfManaged")


def _certificates(operator: LeaderContext, secrets: Secrets) -> SchedulerCertificates:
    return SchedulerCertificates(
        secrets=secrets,
        name=AUTHORITY,
        secret_of=lambda name: Names(name, operator.namespace).certificate,
        labels_of=lambda name: Names(name, operator.namespace).labels,
        now=now,
    )
