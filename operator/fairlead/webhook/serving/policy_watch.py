"""Policies of the API server: a watch that feeds the reloader."""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from fairlead.api.names import API_VERSION, KIND
from fairlead.kube.http.client import Client
from fairlead.kube.resources import POLICIES
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Key
from fairlead.webhook.serving.last_good import LastGoodStore
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.reloader import PolicyReloader


class PolicyMetadata(msgspec.Struct, frozen=True):
    """Metadata of a policy, named as in the API."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    generation: int = 0
    creationTimestamp: str | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815


class PolicyObject(msgspec.Struct, frozen=True):
    """A policy; its spec is parsed by `api.parse`."""

    metadata: PolicyMetadata = PolicyMetadata()
    apiVersion: str = API_VERSION  # noqa: N815
    kind: str = KIND
    spec: Any = None

    @property
    def obj(self) -> Mapping[str, Any]:
        """Return the policy as a document, to be compiled and stored."""
        meta = self.metadata
        metadata = {
            "name": meta.name,
            "uid": meta.uid,
            "generation": meta.generation,
            "creationTimestamp": meta.creationTimestamp,
        }
        return {"apiVersion": self.apiVersion, "kind": self.kind, "metadata": metadata, "spec": self.spec}


class PolicySink:
    """Sink that puts policies into the store; one that is being deleted counts as deleted, whatever its finalizers."""

    def __init__(self, policies: PolicyStore) -> None:
        self._policies = policies

    def begin(self) -> None:
        """Ignore the start of a list."""

    def end(self) -> None:
        """Ignore the end of a list."""

    def put(self, item: PolicyObject, /) -> None:
        """Handle a new or changed policy."""
        if item.metadata.deletionTimestamp is None:
            self._policies.put(item.obj)
        else:
            self._policies.remove(item.metadata.name)

    def remove(self, key: Key, /) -> None:
        """Handle a deleted policy."""
        self._policies.remove(key[1])


decode: Final[Callable[[msgspec.Raw], PolicyObject]] = msgspec.json.Decoder(PolicyObject).decode


class WatchedPolicies:
    """Source of policies: the API server."""

    faults: Mapping[str, str] = MappingProxyType({})

    def __init__(self, client: Client, reloader: PolicyReloader, last_good: LastGoodStore) -> None:
        self._reloader, self._last_good = reloader, last_good
        self.objects: Final = Reflector(client, POLICIES, decode=decode, sink=PolicySink(reloader.policies))

    async def begin(self) -> None:
        """Compile a policy to warm up."""
        self._reloader.policies.warm()

    async def run(self) -> None:
        """Watch and compile policies.

        Last good generations serve before anything else is compiled; a policy that is not compiled yet gets its failure
        policy.
        """
        self._reloader.policies.last_good = await self._last_good.loaded()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.objects.run())
            await self.objects.wait_until_listed()
            self._reloader.policies.forget_missing()
            self._reloader.wake()
            await self._reloader.run()
