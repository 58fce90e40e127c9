"""The four watches that fill the mirror, and which pods and annotations they read."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.kube.http.client import Client
from fairlead.kube.resources import NAMESPACES, NODES, PODS
from fairlead.kube.watch.reflector import Reflector
from fairlead.mirror import decode
from fairlead.mirror.mirror import PLACED, UNPLACED, Mirror
from fairlead.mirror.watched_node import WatchedNode

_PAUSE_OF_NODES_S: Final = 0.01
"""Nodes are told of often, as each sends heartbeats, and seldom become different. Pods must be known at once: the next
call may come for a pod that must not join them."""


class MirrorFeed:
    """Watches that keep a mirror equal to the API server."""

    def __init__(self, client: Client, mirror: Mirror) -> None:
        self.client: Final = client
        self._mirror = mirror
        self._placed = decode.PlacedDecoder()
        self._interest_set = asyncio.Event()
        self._is_synced = False
        self._annotations: frozenset[str] = frozenset()
        self._listed: frozenset[str] = frozenset()
        self._listing: asyncio.Future[None] | None = None
        self.reflectors: Final[Mapping[str, Reflector[Any]]] = {
            "nodes": Reflector(client, NODES, decode=WatchedNode, sink=mirror.node_sink, pause_s=_PAUSE_OF_NODES_S),
            "pods": Reflector(
                client, PODS, decode=self._placed, sink=mirror.placed_sink, query={"fieldSelector": PLACED}
            ),
            "unplaced pods": Reflector(
                client, PODS, decode=decode.pod, sink=mirror.unplaced_sink, query={"fieldSelector": UNPLACED}
            ),
            "namespaces": Reflector(client, NAMESPACES, decode=decode.namespace, sink=mirror.namespace_sink),
        }

    @property
    def synced(self) -> bool:
        """Return whether everything has been listed once; each call asks, so what stays true is kept."""
        if not self._is_synced:
            self._is_synced = all(one.state.synced for one in self.reflectors.values())
        return self._is_synced

    @property
    def object_count(self) -> int:
        """Return the number of objects in the mirror."""
        return sum(len(one.objects) for one in self.reflectors.values())

    def has_annotations(self, annotations: frozenset[str]) -> bool:
        """Return whether pods were listed with these annotations."""
        return annotations <= self._listed

    async def set_interest(
        self, annotations: Iterable[str], schedulers: Iterable[str], in_shadow: Iterable[str] = ()
    ) -> None:
        """Set which annotations of placed pods are read, and whose unplaced pods are kept; return once they are there.

        Until then the previous annotations stay as well: the policies that read them are still serving. Those that only
        rules in shadow read are requested, and not waited for. Nothing is listed before the first call.
        """
        before, enforced = self._annotations, frozenset(annotations)
        self._annotations = enforced | frozenset(in_shadow)
        new_schedulers = self._mirror.unplaced_sink.set_schedulers(schedulers)
        new_annotations = self._placed.want(before | self._annotations)
        if self._interest_set.is_set():
            if new_schedulers:
                self.reflectors["unplaced pods"].relist()
            if new_annotations:
                self.reflectors["pods"].relist()
                self._listing = asyncio.ensure_future(self._list_pods(self._annotations))
            if self._listing is not None and not self.has_annotations(enforced):
                await asyncio.shield(self._listing)
        else:
            self._listed = self._annotations
        self._placed.want(self._annotations)
        self._listed &= self._annotations
        self._interest_set.set()

    async def _list_pods(self, annotations: frozenset[str]) -> None:
        """Wait until pods are listed with these annotations."""
        await self.reflectors["pods"].wait_until_listed()
        self._listed = (self._listed | annotations) & self._annotations

    async def run(self) -> None:
        """Run the watches until cancelled."""
        await self._interest_set.wait()
        async with asyncio.TaskGroup() as group:
            for one in self.reflectors.values():
                group.create_task(one.run())
