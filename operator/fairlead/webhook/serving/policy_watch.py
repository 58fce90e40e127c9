"""Policies from the API server: what is kept of each, and how they come to serve."""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec

from fairlead.api.names import API_VERSION, KIND
from fairlead.kube.http.client import Client
from fairlead.kube.resources import POLICIES
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Key
from fairlead.webhook.serving.last_good import LastGoodStore
from fairlead.webhook.serving.reloader import PolicyReloader


class PolicyHandler(Protocol):
    """Who wants to know."""

    def put(self, obj: Mapping[str, Any]) -> None:
        """A policy came or became different."""

    def remove(self, name: str) -> None:
        """A policy went."""


class Metadata(msgspec.Struct, frozen=True):
    """What is kept of it; called as in the API."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    generation: int = 0
    deletionTimestamp: str | None = None  # noqa: N815


class PolicyObject(msgspec.Struct, frozen=True):
    """A policy; what its spec holds is read by others."""

    metadata: Metadata = Metadata()
    apiVersion: str = API_VERSION  # noqa: N815
    kind: str = KIND
    spec: Any = None

    @property
    def obj(self) -> Mapping[str, Any]:
        """As it is compiled, and as it is kept."""
        meta = self.metadata
        metadata = {"name": meta.name, "uid": meta.uid, "generation": meta.generation}
        return {"apiVersion": self.apiVersion, "kind": self.kind, "metadata": metadata, "spec": self.spec}


class PolicySink:
    """Tells of policies; one that is being deleted has gone, whoever still holds on to it."""

    def __init__(self, told: PolicyHandler) -> None:
        self._told = told

    def begin(self) -> None:
        """A list begins."""

    def end(self) -> None:
        """A list is complete."""

    def put(self, item: PolicyObject, /) -> None:
        """A policy came or became different."""
        if item.metadata.deletionTimestamp is None:
            self._told.put(item.obj)
        else:
            self._told.remove(item.metadata.name)

    def remove(self, key: Key, /) -> None:
        """A policy went."""
        self._told.remove(key[1])


decode: Final[Callable[[msgspec.Raw], PolicyObject]] = msgspec.json.Decoder(PolicyObject).decode


def watch_policies(client: Client, told: PolicyHandler) -> Reflector[PolicyObject]:
    """Keeps somebody told of all policies."""
    return Reflector(client, POLICIES, decode=decode, sink=PolicySink(told))


class WatchedPolicies:
    """The policies of a cluster."""

    faults: Mapping[str, str] = MappingProxyType({})

    def __init__(self, client: Client, reloader: PolicyReloader, last_good: LastGoodStore) -> None:
        self._reloader, self._last_good = reloader, last_good
        self.objects: Final = watch_policies(client, reloader)

    async def begin(self) -> None:
        """Compile what every policy needs."""
        self._reloader.policies.warm()

    async def run(self) -> None:
        """What was good serves before anything else is compiled; what is not compiled yet has its failure policy."""
        kept = await self._last_good.loaded()
        self._reloader.policies.last_good = kept
        async with asyncio.TaskGroup() as group:
            group.create_task(self.objects.run())
            await self.objects.listed()
            present = {name for _, name in self.objects.objects}
            for name in {name for name, _ in kept} - present:  # they went while nobody was there
                self._last_good.forget(name)
            self._reloader.wake()
            await self._reloader.run()
