"""A cluster as it is now, read with the rights of the person who asks. What may not be read is named, not guessed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.api.errors import InvalidObjectError
from fairlead.api.names import API_VERSION, GROUP, KIND, PLURAL, VERSION
from fairlead.api.parse import parse_policy
from fairlead.cli.failing import CommandError
from fairlead.cluster.client import Client
from fairlead.cluster.errors import ForbiddenError, GoneError, NotFoundError
from fairlead.cluster.resources import NODES, PODS, Page, Resource, Where
from fairlead.offline.blind import Kind
from fairlead.offline.snapshot import Key, Snapshot
from fairlead.policy.broken import standing_for
from fairlead.policy.compile import Rules, compile_policy
from fairlead.policy.compiled import CompiledPolicy
from fairlead.policy.errors import PolicyError
from fairlead.strategies.registry import installed, installed_policy

WITHIN_S: Final = 15.0
HERE: Final = "the cluster"
NAMESPACES: Final = Where(Resource("", "v1", "namespaces"))
POLICIES: Final = Where(Resource(GROUP, VERSION, PLURAL))
RUNNING: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
_PAGE: Final = 500
_TRIES: Final = 3


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""
    generation: int = 0
    deletionTimestamp: str | None = None  # noqa: N815 - as in the API


class _Status(msgspec.Struct, frozen=True):
    servingGeneration: int | None = None  # noqa: N815


class _Policy(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: Any = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class LivePolicy:
    """A policy of the cluster, and what its status says of it."""

    name: str
    generation: int
    serving: int | None
    """The generation that replicas serve, as the status says; None where it says nothing."""
    compiled: CompiledPolicy | None
    """None where another generation serves, which is no longer to be had."""
    fault: str = ""
    """Why it does not compile."""
    scheduler: str = ""
    """That its spec names."""

    def __str__(self) -> str:
        if self.fault:
            serves = f"replicas still serve generation {self.serving}" if self.serving else "its failurePolicy decides"
            return f"{self.name}: generation {self.generation} does not compile, {serves}: {self.fault}"
        if self.serving is None:
            return f"{self.name}: generation {self.generation}; its status does not say yet which generation serves"
        if self.serving != self.generation:
            return f"{self.name}: generation {self.generation}; replicas still serve generation {self.serving}"
        return f"{self.name}: generation {self.generation}, which replicas serve"


@dataclass(slots=True)
class Live:
    """What was read."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    policies: list[LivePolicy] = field(default_factory=list)
    unread: dict[Kind, str] = field(default_factory=dict)
    """What may not be read, and why."""


async def cluster(client: Client, *, policies: bool = False, pod: Key | None = None) -> Live:
    """Nodes, pods and namespaces; for one pod only its own namespace, and itself where pods may not be listed."""
    live = Live()
    await asyncio.gather(
        _needed("nodes", lambda: _list(client, NODES, "Node", live.snapshot)),
        _pods(client, live, pod),
        _namespaces(client, live, pod),
        _policies(client, live) if policies else _nothing(),
    )
    return live


async def pods(client: Client) -> Snapshot:
    """The pods alone."""
    snapshot = Snapshot()
    await _needed("pods", lambda: _list(client, PODS, "Pod", snapshot, RUNNING))
    return snapshot


async def _nothing() -> None:
    pass


async def _needed(what: str, read: Callable[[], Awaitable[None]]) -> None:
    try:
        await read()
    except ForbiddenError as error:
        raise CommandError(f"you may not list {what}, without which nothing can be said: {error.message}") from None


async def _pods(client: Client, live: Live, pod: Key | None) -> None:
    try:
        await _list(client, PODS, "Pod", live.snapshot, RUNNING)
    except ForbiddenError as error:
        if pod is None:
            raise CommandError(f"you may not list pods of all namespaces: {error.message}") from None
        live.unread["pods"] = error.message
    if pod is not None and pod not in live.snapshot.pods:  # it may have ended, too
        await _get(client, PODS.of(*pod), "Pod", live.snapshot)


async def _namespaces(client: Client, live: Live, pod: Key | None) -> None:
    try:
        if pod is None:
            await _list(client, NAMESPACES, "Namespace", live.snapshot)
        else:
            await _get(client, NAMESPACES.of("", pod[0]), "Namespace", live.snapshot)
    except ForbiddenError as error:
        live.unread["namespace"] = error.message


async def _policies(client: Client, live: Live) -> None:
    found: list[_Policy] = []
    try:
        async for page in client.pages(POLICIES, msgspec.json.Decoder(Page[_Policy]).decode):
            found += [one for one in page.items or () if one.metadata.deletionTimestamp is None]
    except NotFoundError:
        cure = "`fairlead crd | kubectl apply --server-side -f -`, or give --policies FILE"
        raise CommandError(f"this cluster does not know policies: {cure}") from None
    except ForbiddenError as error:
        raise CommandError(f"you may not list policies: {error.message}; or give --policies FILE") from None
    live.policies += _compiled(found)


async def _get(client: Client, where: Where, kind: str, snapshot: Snapshot) -> None:
    """One object, if it is there."""
    try:
        raw = await client.get(where, bytes)
    except NotFoundError:
        return
    snapshot.put_raw(raw, HERE, kind)


async def _list(
    client: Client, where: Where, kind: str, snapshot: Snapshot, query: Mapping[str, str] | None = None
) -> None:
    """All of a kind; from the beginning where it took so long that the API server has forgotten where it was."""
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


def _compiled(found: Sequence[_Policy]) -> Iterator[LivePolicy]:
    """The operator's settings may allow other prefixes of annotations than its defaults: nothing is said of these."""
    model, rules = installed_policy(), Rules({one.name: one for one in installed()}, ("",))
    for one in found:
        meta, serving = one.metadata, one.status.servingGeneration if one.status else None
        metadata = {"name": meta.name, "uid": meta.uid, "generation": meta.generation}
        obj = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": one.spec}
        try:
            compiled = compile_policy(parse_policy(obj, model), rules)
        except (InvalidObjectError, PolicyError) as error:
            stands = standing_for(obj) if serving is None else None
            why, scheduler = "; ".join(str(error).splitlines()), standing_for(obj).scheduler_name
            yield LivePolicy(meta.name, meta.generation, serving, stands, why, scheduler)
        else:
            yield LivePolicy(meta.name, meta.generation, serving, compiled, scheduler=compiled.scheduler_name)


def compiled_of(policies: Sequence[LivePolicy]) -> list[CompiledPolicy]:
    """Those that can be asked."""
    return [one.compiled for one in policies if one.compiled is not None]
