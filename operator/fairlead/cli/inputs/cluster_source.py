"""The cluster that a command reads, as its options say: files, or the live cluster of the kubeconfig."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from fairlead.api.closest_name import closest_name
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs import caveats
from fairlead.cli.inputs.live_policies import LivePolicy, Written, compiled, compiled_of
from fairlead.cli.inputs.operator_survey import operator_namespaces
from fairlead.cli.inputs.simulation_inputs import LIVE, Pod, nodes_of, pods_of, policies_of, snapshot_of, waiting_pods
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.grants.ledger import LABEL
from fairlead.kube.access.access import Access, find_access
from fairlead.kube.errors import ForbiddenError, GoneError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import NODES, NOT_ENDED, PODS, POLICIES, VERSION, ObjectRef, Page, Resource
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.policy.compile.model import CompiledPolicy, shares_in_force
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.nodes.polls import Poll
from fairlead.process.settings import NAMESPACE
from fairlead.simulation.snapshot import Key, Snapshot
from fairlead.simulation.visibility import Kind, SkippedRule, judgeable
from fairlead.strategies.devices.layout import unhealthy_source

REACHED_S: Final = 3.0
WITHIN_S: Final = 30.0
HERE: Final = "the cluster"
NAMESPACES: Final = ObjectRef(Resource("", "v1", "namespaces"))
RUNNING: Final = {"fieldSelector": NOT_ENDED}
_PAGE: Final = 500
_TRIES: Final = 3


@dataclass(slots=True)
class Live:
    """The objects that were read."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    policies: list[LivePolicy] = field(default_factory=list)
    unread: dict[Kind, str] = field(default_factory=dict)
    """Kinds of objects that may not be read, and why."""
    unread_ledgers: str = ""
    """Why the ledgers of devices may not be read."""


async def reach(access: Access) -> None:
    """Check with a short deadline that the API server answers: lists get a longer one. Raises ClusterError."""
    async with Client(access, deadline_s=REACHED_S) as client:
        with suppress(ForbiddenError):  # it answers
            await client.get(VERSION, bytes)


async def cluster(client: Client, *, policies: bool = False, pod: Key | None = None) -> Live:
    """Read nodes, pods and namespaces; for one pod its own namespace, and only itself if pods may not be listed."""
    live = Live()
    reads = [
        _needed("nodes", lambda: _list(client, NODES, "Node", live.snapshot)),
        _read_pods(client, live, pod),
        _namespaces(client, live, pod),
        _ledgers(client, live),
        *([_policies(client, live)] if policies else []),
    ]
    # If several fail, always report the same one, not the fastest.
    for failed in await asyncio.gather(*reads, return_exceptions=True):
        if failed is not None:
            raise failed
    return live


async def pods(client: Client) -> Snapshot:
    """Read only the pods."""
    snapshot = Snapshot()
    await _needed("pods", lambda: _list(client, PODS, "Pod", snapshot, RUNNING))
    return snapshot


async def _needed(what: str, read: Callable[[], Awaitable[None]]) -> None:
    try:
        await read()
    except ForbiddenError as error:
        raise CommandError(f"you may not list {what}, which this command needs: {error.message}") from None


async def _read_pods(client: Client, live: Live, pod: Key | None) -> None:
    try:
        await _list(client, PODS, "Pod", live.snapshot, RUNNING)
    except ForbiddenError as error:
        if pod is None:
            raise CommandError(f"you may not list pods of all namespaces: {error.message}") from None
        live.unread["pods"] = error.message
    if pod is not None and pod not in live.snapshot.pods:  # it may have ended
        await _get(client, PODS.named(*pod), "Pod", live.snapshot)


async def _namespaces(client: Client, live: Live, pod: Key | None) -> None:
    try:
        if pod is None:
            await _list(client, NAMESPACES, "Namespace", live.snapshot)
        else:
            await _get(client, NAMESPACES.named("", pod[0]), "Namespace", live.snapshot)
    except ForbiddenError as error:
        live.unread["namespace"] = error.message


async def _ledgers(client: Client, live: Live) -> None:
    query = {"labelSelector": LABEL}
    try:
        await _list(client, CONFIG_MAPS, "ConfigMap", live.snapshot, query)
    except ForbiddenError:
        for namespace in await operator_namespaces(ObjectClient(client)) or [NAMESPACE]:
            at = ObjectRef(CONFIG_MAPS.resource, namespace)
            try:
                await _list(client, at, "ConfigMap", live.snapshot, query)
            except ForbiddenError as error:
                live.unread_ledgers = error.message


async def _policies(client: Client, live: Live) -> None:
    found: list[Written] = []
    try:
        async for page in client.pages(POLICIES, msgspec.json.Decoder(Page[Written]).decode):
            found += [one for one in page.items or () if one.metadata.deletionTimestamp is None]
    except NotFoundError:
        cure = "install the chart, or give --policies FILE"
        raise CommandError(f"this cluster has no CustomResourceDefinition of policies: {cure}") from None
    except ForbiddenError as error:
        raise CommandError(
            f"you may not list policies: {error.message}; get that permission, or give --policies FILE"
        ) from None
    live.policies += compiled(found, custom_strategies())


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


@dataclass(slots=True)
class ClusterSource:
    """A cluster, as far as it can be read."""

    where: str
    live: Live = field(default_factory=Live)
    is_live: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """The objects of the cluster."""
        return self.live.snapshot

    @property
    def policies(self) -> PolicySet:
        """The policies of the cluster."""
        return policy_set(compiled_of(self.live.policies))

    def notes_on_ledgers(self, policies: Iterable[CompiledPolicy]) -> Iterator[str]:
        """Yield notes if what is granted of devices may not be read, or is kept in several namespaces."""
        if shares_in_force(policies):
            if self.live.unread_ledgers:
                yield f"ledgers of devices are unknown, and annotations of pods are used: {self.live.unread_ledgers}"
            yield from caveats.of_ledgers(self.snapshot)

    def notes(
        self, policies: Iterable[CompiledPolicy], pods: Sequence[Pod], given: argparse.Namespace
    ) -> Iterator[str]:
        """Yield notes on the limits of results about these pods."""
        yield from caveats.of_snapshot(self.snapshot, self.live.unread, self.where)
        yield from self.notes_on_ledgers(policies)
        if "namespace" not in self.live.unread:
            keys = [one.key for one in pods]
            is_now = self.is_live or given.now is not None
            yield from caveats.of_policies(policies, self.snapshot, keys, self.where, is_now=is_now)


def open_source(given: argparse.Namespace, *, policies: bool = False, pod: Key | None = None) -> ClusterSource:
    """Return the cluster of the options, if live also its policies on request. Raises CommandError and others."""
    names: list[str] = given.snapshot
    if LIVE not in names:
        sight = ClusterSource(", ".join(names), Live(snapshot_of(names)))
    elif names != [LIVE]:
        raise CommandError(f"--snapshot {' '.join(names)}: give either files or {LIVE}")
    else:
        sight = ClusterSource(HERE, asyncio.run(_cluster(given, policies=policies, pod=pod)), is_live=True)
    nodes_of(sight.snapshot, sight.where)
    return sight


def policies_in_files(given: argparse.Namespace) -> PolicySet | None:
    """Return the policies of the options; None if those of the cluster are meant. Raises CommandError and others."""
    if given.policies:
        return policies_of(given.policies)
    if given.snapshot != [LIVE]:
        raise CommandError("--snapshot files hold no policies: also give --policies FILE")
    return None


def add_unhealthy(given: argparse.Namespace, source: ClusterSource, policies: Iterable[CompiledPolicy]) -> None:
    """Read the ConfigMaps of a live cluster that policies name for unhealthy devices, as far as one may."""
    found = (unhealthy_source(share.entry) for _, share in shares_in_force(policies))
    if source.is_live and (namespaces := sorted({one[0] for one in found if one is not None})):
        asyncio.run(_read_config_maps(given, source.snapshot, namespaces))


async def _read_config_maps(given: argparse.Namespace, snapshot: Snapshot, namespaces: Iterable[str]) -> None:
    async with Client(find_access(given.kubeconfig, given.context), deadline_s=WITHIN_S) as client:
        for namespace in namespaces:
            found = Snapshot()
            with suppress(ForbiddenError):  # explanations say that the list is not read
                await _list(client, ObjectRef(CONFIG_MAPS.resource, namespace), "ConfigMap", found)
            snapshot.config_maps.update(found.config_maps)


def unknown_node(name: str, names: Iterable[str]) -> CommandError:
    """Return the error for a node that is not there."""
    near = closest_name(name, names)
    return CommandError(f"there is no node {name!r}" + (f": did you mean {near}?" if near else ""))


def pods_to_check(given: argparse.Namespace, sight: ClusterSource, policies: PolicySet) -> list[Pod]:
    """Return the pods of the options. Raises CommandError and others."""
    names: list[str] = given.pods
    if LIVE not in names:
        return pods_of(snapshot_of(names), ", ".join(names))
    if names != [LIVE]:
        raise CommandError(f"--pods {' '.join(names)}: give either files or {LIVE}")
    there = sight.snapshot if sight.is_live else asyncio.run(_read_cluster(given))
    return waiting_pods(there, policies)


def judgeable_policies(
    policies: PolicySet, sight: ClusterSource, given: Collection[Poll]
) -> tuple[PolicySet, list[SkippedRule]]:
    """Return the policies without the rules that read what is not known, and those rules."""
    found, left_out = judgeable(policies.policies, [*sight.live.unread], given)
    return policy_set(found) if left_out else policies, left_out


async def _cluster(given: argparse.Namespace, *, policies: bool, pod: Key | None) -> Live:
    access = find_access(given.kubeconfig, given.context)
    await reach(access)
    async with Client(access, deadline_s=WITHIN_S) as client:
        return await cluster(client, policies=policies, pod=pod)


async def _read_cluster(given: argparse.Namespace) -> Snapshot:
    access = find_access(given.kubeconfig, given.context)
    await reach(access)
    async with Client(access, deadline_s=WITHIN_S) as client:
        return await pods(client)
