"""A cluster as it is now, read with the rights of the person who asks. What may not be read is named, not guessed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec

from fairlead.cli.failing import CommandError
from fairlead.cli.served import LivePolicy, Written, compiled
from fairlead.cluster.access import Access
from fairlead.cluster.client import Client
from fairlead.cluster.errors import ForbiddenError, GoneError, NotFoundError
from fairlead.cluster.resources import NODES, PODS, POLICIES, VERSION, Page, Resource, Where
from fairlead.offline.blind import Kind
from fairlead.offline.snapshot import Key, Snapshot

REACHED_S: Final = 3.0
WITHIN_S: Final = 30.0
HERE: Final = "the cluster"
NAMESPACES: Final = Where(Resource("", "v1", "namespaces"))
RUNNING: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
_PAGE: Final = 500
_TRIES: Final = 3


@dataclass(slots=True)
class Live:
    """What was read."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    policies: list[LivePolicy] = field(default_factory=list)
    unread: dict[Kind, str] = field(default_factory=dict)
    """What may not be read, and why."""


async def reach(access: Access) -> None:
    """Find out soon whether anybody is there: lists are waited for longer. Raises ClusterError."""
    async with Client(access, deadline_s=REACHED_S) as client:
        with suppress(ForbiddenError):  # somebody is
            await client.get(VERSION, bytes)


async def cluster(client: Client, *, policies: bool = False, pod: Key | None = None) -> Live:
    """Nodes, pods and namespaces; for one pod only its own namespace, and itself where pods may not be listed."""
    live = Live()
    reads = [
        _needed("nodes", lambda: _list(client, NODES, "Node", live.snapshot)),
        _pods(client, live, pod),
        _namespaces(client, live, pod),
        *([_policies(client, live)] if policies else []),
    ]
    # Of several that fail the same one is told, whichever was the fastest.
    for failed in await asyncio.gather(*reads, return_exceptions=True):
        if failed is not None:
            raise failed
    return live


async def pods(client: Client) -> Snapshot:
    """The pods alone."""
    snapshot = Snapshot()
    await _needed("pods", lambda: _list(client, PODS, "Pod", snapshot, RUNNING))
    return snapshot


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
    found: list[Written] = []
    try:
        async for page in client.pages(POLICIES, msgspec.json.Decoder(Page[Written]).decode):
            found += [one for one in page.items or () if one.metadata.deletionTimestamp is None]
    except NotFoundError:
        cure = "`fairlead crd | kubectl apply --server-side -f -`, or give --policies FILE"
        raise CommandError(f"this cluster does not know policies: {cure}") from None
    except ForbiddenError as error:
        raise CommandError(f"you may not list policies: {error.message}; or give --policies FILE") from None
    live.policies += compiled(found)


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
