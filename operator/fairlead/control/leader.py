"""Puts together what the leader does, with clients of its own, in the loop that it runs in."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from fairlead import pem
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cluster.access import Access
from fairlead.cluster.client import Client
from fairlead.cluster.errors import ClusterError, ForbiddenError
from fairlead.cluster.resources import VERSION
from fairlead.cluster.secrets import Secrets
from fairlead.control import admission_authority
from fairlead.control import authority as authorities
from fairlead.control.announce import Announcer
from fairlead.control.authority import Authority, AuthorityError
from fairlead.control.certificates import Certificates
from fairlead.control.certificates_plan import Await, Replica
from fairlead.control.controller import Controller
from fairlead.control.ever import Ever
from fairlead.control.gathering import Gathered, Obj
from fairlead.control.lacking import Lacking
from fairlead.control.objects import Objects
from fairlead.control.of_others import OfOthers
from fairlead.control.passes import Passes
from fairlead.control.replicas import Replicas
from fairlead.control.waking import Waker
from fairlead.pairs import load_pair
from fairlead.render.engine import Engine
from fairlead.render.facts import Facts
from fairlead.render.names import Names
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.shipped import templates
from fairlead.webhook.state import ReplicaState

AUTHORITY: Final = "fairlead-ca"
LEASE: Final = "fairlead"
"""Whoever holds it leads."""
_VERSIONS_FOR: Final = timedelta(minutes=10)
"""Several API servers of different versions answer while a control plane is upgraded."""


class _Version(msgspec.Struct):
    gitVersion: str  # noqa: N815  as the API has it


_version: Final = msgspec.json.Decoder(_Version).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What a replica knows of itself, and hands to what it does when it leads."""

    access: Callable[[], Access]
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
    nodes: Callable[[], int]
    leads: Callable[[], bool]
    warnings: Callable[[Obj], list[tuple[str, str]]]
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
    async with Client(operator.access()) as client:
        objects, secrets = Objects(client), Secrets(client, operator.namespace)
        certificates, believed = _certificates(operator, secrets), _Believed(operator, client)
        with suppress(ClusterError, AuthorityError):  # each pass does it again; this is for the first policy of all
            if is_own(operator):
                kept = await certificates.ensure(operator.held())
                await believed.have(authorities.read(kept.data))
        others = OfOthers(secrets, operator.host, now)

        async def context() -> ssl.SSLContext:
            return operator.context() if is_own(operator) else await others.context()

        replicas = Replicas(
            objects=objects,
            namespace=operator.namespace,
            selector=operator.selector,
            host=operator.host,
            port=operator.port,
            context=context,
        )
        waits, lacking = list[Await](), Lacking()
        controller = Controller(
            gathered=Gathered(operator.model),
            passes=Passes(
                objects=objects,
                namespace=operator.namespace,
                engine=Engine(templates()),
                context=lambda name: _shown(secrets, Names(name, operator.namespace).certificate),
                turned_away=lambda addresses: replicas.turned_away([*addresses]),
                now=lambda: now().timestamp(),
            ),
            replicas=replicas,
            announcer=Announcer(client, operator.instance, lacking),
            waker=Waker(client, operator.namespace, now, lacking),
            lacking=lacking,
            settings=operator.settings,
            facts=_facts(operator, client, certificates, others, replicas, waits, believed),
            rotates=lambda: bool(waits) or operator.requested(),
            believed=believed.again,
            ever=Ever(objects, operator.namespace),
            leads=operator.leads,
            warnings=operator.warnings,
            drift=operator.drift,
        )
        await controller.look()
        yield controller


async def _shown(secrets: Secrets, name: str) -> ssl.SSLContext | None:
    """What a scheduler shows and whom it knows, out of its Secret."""
    secret = await secrets.get(name)
    if secret is None:
        return None
    context = ssl.create_default_context(cadata=secret.data["ca.crt"].decode())
    load_pair(context, secret.data["tls.crt"], secret.data["tls.key"])
    return context


def is_own(operator: Operator) -> bool:
    """Whether certificates are of our own authority; whoever else makes them also says who is to be believed."""
    return operator.settings().tls.mode == "SelfManaged"


@dataclass(slots=True, eq=False)
class _Believed:
    """Whom the API server is to believe."""

    operator: Operator
    client: Client
    authority: Authority | None = None

    async def have(self, authority: Authority) -> None:
        """Have it believed from now on."""
        self.authority = authority
        await self.again()

    async def again(self) -> None:
        """The chart may have made its configuration anew, which tells nobody else."""
        if self.authority is not None and is_own(self.operator):
            await admission_authority.trust(self.client, self.operator.namespace, self.authority.trusted)


def _certificates(operator: Operator, secrets: Secrets) -> Certificates:
    return Certificates(
        secrets=secrets,
        name=AUTHORITY,
        secret_of=lambda name: Names(name, operator.namespace).certificate,
        labels_of=lambda name: Names(name, operator.namespace).labels,
        now=now,
    )


def _facts(
    operator: Operator,
    client: Client,
    certificates: Certificates,
    others: OfOthers,
    replicas: Replicas,
    waits: list[Await],
    believed: _Believed,
) -> Callable[[str, Mapping[str, str]], Awaitable[Facts]]:
    versions: dict[str, datetime] = {}

    async def own(schedulers: Mapping[str, str]) -> bytes:
        rolled = {name: pem.digest(bundle.encode()) if bundle else "" for name, bundle in schedulers.items()}
        answers = {name: _replica(one) for name, one in replicas.answers.items()}
        passed = await certificates.step(rolled, answers, operator.held())
        waits[:] = [] if passed.waits is None else [passed.waits]
        with suppress(ForbiddenError):  # it is done again, and said, where no scheduler waits for it
            await believed.have(passed.authority)
        return passed.authority.known

    async def facts(scheduler: str, schedulers: Mapping[str, str]) -> Facts:
        if is_own(operator):
            known = await own(schedulers)
        else:
            await others.scheduler(scheduler)
            known = await others.authority()
        versions[(await client.get(VERSION, _version)).gitVersion] = now()
        return Facts(
            namespace=operator.namespace,
            url=operator.url,
            ca_bundle=known.decode(),
            server_versions=tuple(sorted(one for one, seen in versions.items() if now() - seen < _VERSIONS_FOR)),
            nodes=operator.nodes(),
        )

    return facts


def _replica(said: Any) -> Replica | None:
    return Replica(said.authorities, said.issuer) if isinstance(said, ReplicaState) else None
