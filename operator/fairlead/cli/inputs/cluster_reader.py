"""Objects of the live cluster of the kubeconfig, read with the permissions of the caller."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.last_good import with_last_good
from fairlead.cli.inputs.live_policies import LivePolicy, StoredPolicy, compile_policies
from fairlead.cli.inputs.operator_survey import operator_namespaces
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.grants.ledger import GROUPS_LABEL, LABEL
from fairlead.groups.turns import LABEL as TURNS
from fairlead.kube.errors import ForbiddenError, GoneError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import (
    NODES,
    NOT_ENDED,
    PODS,
    POLICIES,
    PUBLISHED_AFFINITIES,
    ObjectRef,
    Page,
    Resource,
)
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.learned.published import LABEL as LEARNED
from fairlead.pki.identities import NAMESPACE
from fairlead.policy.affinity.published_parts import AffinityByScheduler
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import shares_in_force
from fairlead.simulation.snapshot import Key, Snapshot
from fairlead.simulation.visibility import ObjectKind
from fairlead.strategies.devices.layout import unhealthy_source

HERE: Final = "the cluster"
NAMESPACES: Final = ObjectRef(Resource("", "v1", "namespaces"))
RUNNING: Final = {"fieldSelector": NOT_ENDED}
_PAGE: Final = 500
_TRIES: Final = 3


class _Published(msgspec.Struct):
    spec: dict[str, Any]


@dataclass(slots=True)
class LiveObjects:
    """The objects that were read."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    policies: list[LivePolicy] = field(default_factory=list)
    unread: dict[ObjectKind, str] = field(default_factory=dict)
    """Kinds of objects that may not be read, and why."""
    unread_ledgers: str = ""
    """Reason why the ledgers of devices may not be read."""
    unread_learned: str = ""
    """Reason why what rules have learned may not be read."""
    unread_turns: str = ""
    """Reason why the turns of groups may not be read."""
    unread_domains: str = ""
    """Reason why the domains of groups may not be read."""
    given_learned: Collection[tuple[str, str]] = ()
    """Policies and their rules of which files say what they have learned."""

    @property
    def unread_kinds(self) -> list[ObjectKind]:
        """Kinds of what rules read that may not be read, what they have learned among them."""
        return [*self.unread, *(("learned",) if self.unread_learned else ())]


async def read_objects(client: Client, live: LiveObjects, scope: Key | None = None) -> None:
    """Read nodes, pods, namespaces, ledgers and learned state.

    Of a scope, a namespace and the name of a pod or "", only the namespace is read, and if pods of all namespaces may
    not be listed, only what is in the scope.
    """
    reads = [
        _needed("nodes", lambda: _list(client, NODES, "Node", live.snapshot)),
        _read_pods(client, live, scope),
        _namespaces(client, live, scope),
        _documents(client, live),
    ]
    # If several fail, always report the same one, not the fastest.
    for failed in await asyncio.gather(*reads, return_exceptions=True):
        if failed is not None:
            raise failed


async def read_pods(client: Client) -> Snapshot:
    """Read only the pods."""
    snapshot = Snapshot()
    await _needed("pods", lambda: _list(client, PODS, "Pod", snapshot, RUNNING))
    return snapshot


async def _needed(what: str, read: Callable[[], Awaitable[None]]) -> None:
    try:
        await read()
    except ForbiddenError as error:
        raise CommandError(f"you may not list {what}, which this command needs: {error.message}") from None


async def _read_pods(client: Client, live: LiveObjects, scope: Key | None) -> None:
    try:
        await _list(client, PODS, "Pod", live.snapshot, RUNNING)
    except ForbiddenError as error:
        if scope is None:
            raise CommandError(f"you may not list pods of all namespaces: {error.message}") from None
        live.unread["pods"] = error.message
        if not scope[1]:
            within = ObjectRef(PODS.resource, scope[0])
            what = f"pods of the namespace {scope[0]}"
            await _needed(what, lambda: _list(client, within, "Pod", live.snapshot, RUNNING))
    if scope is not None and scope[1] and scope not in live.snapshot.pods:  # it may have ended
        await _get(client, PODS.named(*scope), "Pod", live.snapshot)


async def _namespaces(client: Client, live: LiveObjects, scope: Key | None) -> None:
    try:
        if scope is None:
            await _list(client, NAMESPACES, "Namespace", live.snapshot)
        else:
            await _get(client, NAMESPACES.named("", scope[0]), "Namespace", live.snapshot)
    except ForbiddenError as error:
        live.unread["namespace"] = error.message


async def _documents(client: Client, live: LiveObjects) -> None:
    live.unread_ledgers = await _labelled(client, live.snapshot, LABEL)
    live.unread_learned = await _labelled(client, live.snapshot, LEARNED)


async def _labelled(client: Client, snapshot: Snapshot, label: str) -> str:
    """Read the ConfigMaps with a label, if not of all namespaces then of the operators'; return why some are unread."""
    query, why = {"labelSelector": label}, ""
    try:
        await _list(client, CONFIG_MAPS, "ConfigMap", snapshot, query)
    except ForbiddenError:
        for namespace in await operator_namespaces(ObjectClient(client)) or [NAMESPACE]:
            at = ObjectRef(CONFIG_MAPS.resource, namespace)
            try:
                await _list(client, at, "ConfigMap", snapshot, query)
            except ForbiddenError as error:
                why = error.message
    return why


async def read_policies(client: Client, live: LiveObjects) -> None:
    """Read the policies, and of those of which replicas serve an older generation that one, as it is stored."""
    found: list[StoredPolicy] = []
    try:
        async for page in client.pages(POLICIES, msgspec.json.Decoder(Page[StoredPolicy]).decode):
            found += [one for one in page.items or () if one.metadata.deletionTimestamp is None]
    except NotFoundError:
        cure = "install the chart, or give --policies FILE"
        raise CommandError(f"this cluster has no CustomResourceDefinition of policies: {cure}") from None
    except ForbiddenError as error:
        raise CommandError(
            f"you may not list policies: {error.message}; get that permission, or give --policies FILE"
        ) from None
    live.policies += await with_last_good(client, [*compile_policies(found, custom_strategies())])


async def read_published(client: Client) -> AffinityByScheduler | None:
    """Return the node affinity that is published in the cluster, by scheduler; None if it may not be read."""
    found: dict[str, Any] = {}
    try:
        async for page in client.pages(PUBLISHED_AFFINITIES, msgspec.json.Decoder(Page[_Published]).decode):
            found |= {one.spec["schedulerName"]: one.spec for one in page.items or ()}
    except NotFoundError:  # the chart was installed by an older version
        return {}
    except ForbiddenError:
        return None
    return found


async def _get(client: Client, where: ObjectRef, kind: str, snapshot: Snapshot) -> None:
    """Read one object, if it exists."""
    try:
        raw = await client.get(where, bytes)
    except NotFoundError:
        return
    snapshot.put_raw(raw, HERE, kind)


async def _list(
    client: Client, where: ObjectRef, kind: str, snapshot: Snapshot, query: Mapping[str, str] | None = None
) -> None:
    """Read all objects of a kind; starts over if the API server has expired the continue token."""
    for left in reversed(range(_TRIES)):
        raws: list[msgspec.Raw] = []
        try:
            async for page in client.pages(where, _page, query=query or {}, limit=_PAGE):
                raws += page.items or ()
        except GoneError:
            if not left:
                raise
        else:
            for raw in raws:
                snapshot.put_raw(raw, HERE, kind)
            return


_page: Final = msgspec.json.Decoder(Page[msgspec.Raw]).decode


async def read_unhealthy(client: Client, snapshot: Snapshot, policies: Iterable[CompiledPolicy]) -> None:
    """Read the ConfigMaps that policies name for unhealthy devices, as far as one may."""
    found = (unhealthy_source(share.entry) for _, share in shares_in_force(policies))
    for namespace in sorted({one[0] for one in found if one is not None}):
        read = Snapshot()
        with suppress(ForbiddenError):  # explanations say that the list is not read
            await _list(client, ObjectRef(CONFIG_MAPS.resource, namespace), "ConfigMap", read)
        snapshot.config_maps.update(read.config_maps)


async def read_turns(client: Client, live: LiveObjects, policies: Iterable[CompiledPolicy]) -> None:
    """Read the ConfigMaps with the turns and domains of groups, if a policy has groups or requires domains."""
    policies = [*policies]
    if any(one.gangs for one in policies):
        live.unread_turns = await _labelled(client, live.snapshot, TURNS)
    if any(one.domain_rules for one in policies):
        live.unread_domains = await _labelled(client, live.snapshot, GROUPS_LABEL)
