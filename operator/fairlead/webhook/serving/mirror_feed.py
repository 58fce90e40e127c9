"""The four lists that the mirror is made of, and what of them is asked for."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.kube.http.client import Client
from fairlead.kube.resources import NAMESPACES, NODES, PODS
from fairlead.kube.watch.reflector import Reflector
from fairlead.mirror import decode
from fairlead.mirror.mirror import PLACED, UNPLACED, Mirror


class MirrorFeed:
    """Keeps a mirror equal to what the API server has."""

    def __init__(self, client: Client, mirror: Mirror) -> None:
        self.client: Final = client
        self._mirror = mirror
        self._placed = decode.PlacedDecoder()
        self._told = asyncio.Event()
        self._annotations: frozenset[str] = frozenset()
        self.reflectors: Final[Mapping[str, Reflector[Any]]] = {
            "nodes": Reflector(client, NODES, decode=decode.node, sink=mirror.node_sink),
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
        """Whether everything was listed once."""
        return all(one.state.synced for one in self.reflectors.values())

    @property
    def held(self) -> int:
        """How many objects there are by now."""
        return sum(len(one.objects) for one in self.reflectors.values())

    async def set_interest(self, annotations: Iterable[str], schedulers: Iterable[str]) -> None:
        """Which annotations of placed pods are read, and whose unplaced pods are wanted, once this is over.

        Until then, those that were read before are held, too: the policies that read them go on serving. Nothing is
        listed before this was said once.
        """
        before, self._annotations = self._annotations, frozenset(annotations)
        others = self._mirror.unplaced_sink.set_schedulers(schedulers)
        more = self._placed.want(before | self._annotations)
        if self._told.is_set():
            if others:
                self.reflectors["unplaced pods"].relist()
            if more:
                self.reflectors["pods"].relist()
                await self.reflectors["pods"].listed()
        self._placed.want(self._annotations)
        self._told.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        await self._told.wait()
        async with asyncio.TaskGroup() as group:
            for one in self.reflectors.values():
                group.create_task(one.run())
