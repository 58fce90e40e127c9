"""The four lists that the mirror is made of, and what of them is asked for."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from fairlead.cluster import wire
from fairlead.cluster.client import Client
from fairlead.cluster.held import Key, Sink, Stamp
from fairlead.cluster.mirror import PLACED, UNPLACED, Mirror
from fairlead.cluster.reflector import Reflector
from fairlead.cluster.resources import NODES, PODS, Resource, Where

T = TypeVar("T")
NAMESPACES: Final = Where(Resource("", "v1", "namespaces"))


class Watching:
    """Keeps a mirror equal to what the API server has."""

    def __init__(self, client: Client, mirror: Mirror) -> None:
        self._mirror = mirror
        self._placed = wire.PlacedDecoder()

        def reflector(
            where: Where, decode: Callable[[msgspec.Raw], T], sink: Sink[T], selector: str = ""
        ) -> Reflector[T]:
            query = {"fieldSelector": selector} if selector else {}
            return Reflector(client, where, decode=decode, identify=_identify, sink=sink, query=query)

        self.reflectors: Final[Mapping[str, Reflector[Any]]] = {
            "nodes": reflector(NODES, wire.node, mirror.node_sink),
            "pods": reflector(PODS, self._placed, mirror.placed_sink, PLACED),
            "unplaced pods": reflector(PODS, wire.pod, mirror.unplaced_sink, UNPLACED),
            "namespaces": reflector(NAMESPACES, wire.namespace, mirror.namespace_sink),
        }

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        return all(one.state.synced for one in self.reflectors.values())

    def serve(self, annotations: Iterable[str], schedulers: Iterable[str]) -> None:
        """Which annotations of placed pods are read, and whose unplaced pods are wanted, from now on."""
        if self._placed.want(annotations):
            self.reflectors["pods"].relist()
        if self._mirror.unplaced_sink.serve(schedulers):
            self.reflectors["unplaced pods"].relist()

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self.reflectors.values():
                group.create_task(one.run())


def _identify(one: Any) -> tuple[Key, Stamp]:
    metadata = one.metadata
    return (metadata.namespace, metadata.name), Stamp(metadata.uid, metadata.resourceVersion)
