"""Watch of the ConfigMaps that name the unhealthy devices of nodes, of the policies that serve."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NoReturn

import msgspec

from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.kube.watch.config_maps import CONFIG_MAPS, ConfigMap
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import Key
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import shares_in_force
from fairlead.policy.views.device_facts import UnhealthySource
from fairlead.strategies.devices.layout import unhealthy_source

_decode: Final = msgspec.json.Decoder(ConfigMap).decode


class UnhealthySink:
    """Sink of the ConfigMaps of a namespace, which tells the mirror what they say once all are listed."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.sources = frozenset[UnhealthySource]()
        """Sources of which the mirror is told."""
        self._data: dict[str, ConfigMap] = {}
        self.listed: Final = asyncio.Event()

    def set_sources(self, sources: Iterable[UnhealthySource]) -> None:
        """Tell the mirror of these sources from now on, and of no others."""
        before, self.sources = self.sources, frozenset(sources)
        for source in before - self.sources:
            self._mirror.devices.remove_unhealthy(source, [*self._mirror.nodes.slots])
        if self.listed.is_set():
            for source in self.sources - before:
                self._tell(source, [*self._mirror.nodes.slots])

    def begin(self) -> None:
        """Ignore the start of a list."""

    def end(self) -> None:
        """Tell what all ConfigMaps say."""
        self.listed.set()
        for source in self.sources:
            self._tell(source, [*self._mirror.nodes.slots])

    def put(self, item: ConfigMap, /) -> None:
        """Add or update a ConfigMap."""
        self._data[item.metadata.name] = item
        self._changed(item.metadata.name)

    def remove(self, key: Key, /) -> None:
        """Remove a ConfigMap."""
        if self._data.pop(key[1], None) is not None:
            self._changed(key[1])

    def _changed(self, name: str) -> None:
        if self.listed.is_set():
            for source in self.sources:
                if name.startswith(source[1]):
                    self._tell(source, [name.removeprefix(source[1])])

    def _tell(self, source: UnhealthySource, nodes: Iterable[str]) -> None:
        _, prefix, key = source
        texts = {
            name.removeprefix(prefix): one.data.get(key, "")
            for name, one in self._data.items()
            if name.startswith(prefix)
        }
        self._mirror.devices.put_unhealthy(source, texts, nodes)


class UnhealthyFeed:
    """Watches of the namespaces whose ConfigMaps policies name."""

    def __init__(self, client: Client, mirror: Mirror) -> None:
        self._client, self._mirror = client, mirror
        self._sinks: dict[str, UnhealthySink] = {}
        self._watches = ReflectorSet()

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watches, by their names in /readyz and metrics."""
        return self._watches.reflectors

    def missing_permissions(self, policies: Iterable[CompiledPolicy]) -> Mapping[str, str]:
        """Return the missing permission of each of these policies whose ConfigMaps may not be read, by its name."""
        states = {name: one.state for name, one in self.reflectors.items()}
        return {
            policy: f"its unhealthy devices cannot be read: {state.missing_permission}"
            for policy, source in _sources(policies)
            if (state := states.get(_name(source[0]))) is not None and state.missing_permission
        }

    async def follow(self, policies: Iterable[CompiledPolicy]) -> None:
        """Watch for these policies from now on; return once all is listed."""
        wanted: dict[str, set[UnhealthySource]] = {}
        for _, source in _sources(policies):
            wanted.setdefault(source[0], set()).add(source)
        for namespace, sources in wanted.items():
            # Until the new policies serve, those before them read what they did.
            sink = self._sinks.setdefault(namespace, UnhealthySink(self._mirror))
            sink.set_sources(sink.sources | sources)
        self._want(self._sinks)
        try:
            await asyncio.gather(*(self._sinks[namespace].listed.wait() for namespace in wanted))
        finally:  # listed or not, the new policies serve from now on
            for namespace in self._sinks.keys() - wanted.keys():
                self._sinks.pop(namespace).set_sources(())
            self._want(self._sinks)
            for namespace, sink in self._sinks.items():
                sink.set_sources(wanted[namespace])

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self._watches.run()

    def _want(self, namespaces: Iterable[str]) -> None:
        self._watches.want({_name(one): partial(self._reflector, one) for one in namespaces})

    def _reflector(self, namespace: str) -> Reflector[ConfigMap]:
        where = ObjectRef(CONFIG_MAPS.resource, namespace)
        return Reflector(self._client, where, decode=_decode, sink=self._sinks[namespace])


def _sources(policies: Iterable[CompiledPolicy]) -> Iterator[tuple[str, UnhealthySource]]:
    """Yield the sources that enforced policies name, each with the policy's name."""
    for policy, share in shares_in_force(policies):
        if (source := unhealthy_source(share.entry)) is not None:
            yield policy, source


def _name(namespace: str) -> str:
    return f"unhealthy devices in {namespace}"
