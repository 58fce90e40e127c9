"""Puts together what the leader does, with clients of its own, in the loop that it runs in."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.certificates.ca_bundle import Believed
from fairlead.control.certificates.issuer import Certificates
from fairlead.control.certificates.provided_certificates import OfOthers
from fairlead.control.decide.desired import Gathered, Obj
from fairlead.control.loop.controller import Controller
from fairlead.control.loop.poller import Rounds
from fairlead.control.loop.queue import Schedulers
from fairlead.control.loop.waker import Waker
from fairlead.control.reconcile.external_watch import followed
from fairlead.control.reconcile.facts_gatherer import Knowing
from fairlead.control.reconcile.foreign_owner import Foreign
from fairlead.control.reconcile.managed_schedulers import Ever
from fairlead.control.reconcile.missing_permissions import Lacking
from fairlead.control.reconcile.object_client import Objects
from fairlead.control.reconcile.owner_references import Belonging
from fairlead.control.reconcile.reconciler import Passes
from fairlead.control.reconcile.replicas import Replicas
from fairlead.control.status.events import Announcer
from fairlead.control.status.lint_cache import Warnings
from fairlead.control.status.writer import Statuses
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki import authority as authorities
from fairlead.pki.authority import Authority, AuthorityError
from fairlead.pki.tls_context import calling
from fairlead.render.object_names import Names
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import Engine

AUTHORITY: Final = authorities.SECRET
LEASE: Final = "fairlead"
"""Whoever holds it leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
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
    leads: Callable[[], bool]
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
async def leading(operator: Operator) -> AsyncIterator[Controller]:
    """A controller; it is told, and runs, in this loop."""
    async with operator.client() as client:
        objects, secrets = Objects(client), Secrets(client, operator.namespace)
        certificates, believed = _certificates(operator, secrets), _believed(operator, client)
        with suppress(ClusterError, AuthorityError):  # each pass does it again; this is for the first policy of all
            if believed.is_ours():
                kept = await certificates.ensure(operator.held())
                await believed.have(authorities.read(kept.data))
        controller = _controller(operator, client, objects, secrets, certificates, believed)
        await controller.look()
        yield controller


def _controller(
    operator: Operator,
    client: Client,
    objects: Objects,
    secrets: Secrets,
    certificates: Certificates,
    believed: Believed,
) -> Controller:
    settings, leads, namespace = operator.settings, operator.leads, operator.namespace
    gathered, lacking, belonging = Gathered(operator.model), Lacking(), Belonging(objects, namespace)
    announcer = Announcer(client, operator.instance, lacking)
    others = OfOthers(secrets, operator.host, now)
    replicas = _replicas(operator, objects, others, believed)
    knowing = Knowing(
        client=client,
        namespace=namespace,
        url=operator.url,
        certificates=certificates,
        others=others,
        believed=believed,
        replicas=replicas,
        held=operator.held,
        requested=operator.requested,
        nodes=operator.nodes,
        now=now,
    )
    statuses = Statuses(
        gathered=gathered,
        answers=lambda: replicas.answers,
        announcer=announcer,
        lacking=lacking,
        leads=leads,
        warnings=lambda policy: operator.warnings(policy, lambda: rounds.soon()),
        told=lambda kind, policy: controller.policy(kind, policy),
        now=now,
    )
    foreign = Foreign(objects=objects, namespace=namespace, lacking=lacking, now=now)
    schedulers = Schedulers(
        gathered=gathered,
        passes=_passes(operator, objects, belonging, secrets, replicas, foreign),
        statuses=statuses,
        announcer=announcer,
        ever=Ever(objects, namespace),
        answers=lambda: replicas.answers,
        settings=settings,
        facts=knowing.facts,
        restored=knowing.restored,
        leads=leads,
        drift=operator.drift,
        now=now,
    )
    rounds = Rounds(
        gathered=gathered,
        schedulers=schedulers,
        statuses=statuses,
        replicas=replicas,
        announcer=announcer,
        waker=Waker(client, namespace, now, asyncio.get_running_loop().time, lacking),
        lacking=lacking,
        settings=settings,
        rotates=lambda: knowing.rotates,
        rotate=knowing.rotate,
        believed=believed.again,
        leads=leads,
        look=lambda: controller.look(),
    )
    controller = Controller(
        gathered=gathered,
        objects=objects,
        namespace=namespace,
        belonging=belonging,
        schedulers=schedulers,
        rounds=rounds,
        lacking=lacking,
        beside=[foreign.run, *(one.run for one in followed(client, namespace, schedulers.due))],
    )
    return controller


def _replicas(operator: Operator, objects: Objects, others: OfOthers, believed: Believed) -> Replicas:
    async def context() -> ssl.SSLContext:
        return operator.context() if believed.is_ours() else await others.context()

    return Replicas(
        objects=objects,
        namespace=operator.namespace,
        selector=operator.selector,
        host=operator.host,
        port=operator.port,
        context=context,
    )


def _passes(
    operator: Operator,
    objects: Objects,
    belonging: Belonging,
    secrets: Secrets,
    replicas: Replicas,
    foreign: Foreign,
) -> Passes:
    async def context(scheduler: str) -> ssl.SSLContext | None:
        """What it shows and whom it knows, out of its Secret."""
        secret = await secrets.get(Names(scheduler, operator.namespace).certificate)
        if secret is None:
            return None
        return calling(secret.data["ca.crt"], secret.data["tls.crt"], secret.data["tls.key"])

    return Passes(
        objects=objects,
        foreign=foreign,
        belonging=belonging,
        namespace=operator.namespace,
        engine=Engine(templates()),
        context=context,
        turned_away=lambda addresses: replicas.turned_away([*addresses]),
        now=lambda: now().timestamp(),
    )


def _believed(operator: Operator, client: Client) -> Believed:
    return Believed(client, operator.namespace, lambda: operator.settings().tls.mode == "SelfManaged")


def _certificates(operator: Operator, secrets: Secrets) -> Certificates:
    return Certificates(
        secrets=secrets,
        name=AUTHORITY,
        secret_of=lambda name: Names(name, operator.namespace).certificate,
        labels_of=lambda name: Names(name, operator.namespace).labels,
        now=now,
    )
