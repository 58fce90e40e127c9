"""Measured data: the polls and documents that policies read, their report, metrics and pages."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.metrics import Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import DATA_PATH, DataEntryState, ReplicaState
from fairlead.webhook.capability import Capability, FindPage, ReadinessCheck
from fairlead.webhook.measured_data.data_report import DataReport
from fairlead.webhook.measured_data.node_data_feed import NodeDataFeed


class MeasuredData(Capability):
    """Measured data of the nodes of a replica."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        namespace: str,
        settings_folder: Path,
        *,
        serving: Callable[[], Iterable[CompiledPolicy]],
        now: Callable[[], int],
        is_synced: Callable[[str], bool],
    ) -> None:
        """`settings_folder` has the credentials of Prometheus servers; `is_synced` says which kinds are listed."""
        self.feed: Final = NodeDataFeed(
            client, mirror.nodes, namespace, settings_folder, now=now, is_synced=lambda: is_synced("nodes")
        )
        self._report = DataReport(
            serving, mirror.nodes, lambda: self.feed.poll_states, now, namespaces=mirror.namespace_sink.objects
        )
        self._is_synced = is_synced

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        """Watch of the ConfigMaps that policies name."""
        return self.feed.reflectors

    def use_settings(self, settings: OperatorSettings) -> None:
        """Ask the Prometheus servers of the settings."""
        self.feed.set_servers(settings.prometheus)

    async def run(self) -> None:
        """Poll until cancelled."""
        await self.feed.run()

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Poll for these policies from now on; return when each new poll succeeded once, or after a while."""
        await self.feed.follow(policies)

    def checks(self) -> Iterator[ReadinessCheck]:
        """Yield whether the first values are there, if any are polled that decide."""
        if (readiness := self.feed.readiness()) is not None:
            yield ReadinessCheck("data", *readiness)

    def remarks(self) -> Iterator[ReadinessCheck]:
        """Yield which polls fail or have advice."""
        for text in self.feed.remarks():
            yield ReadinessCheck("data", ok=True, text=text)

    def lacking(self) -> Iterator[str]:
        """Yield the entries that decide and have no value as their source cannot be reached, each with the source."""
        for entries in self.entries().values():
            yield from (f"{one.name} ({one.source})" for one in entries if one.is_cut_off)

    def register(self, metrics: Metrics) -> None:
        """Register the metrics of entries and polls."""
        self._report.register(metrics)

    def entries(self) -> Mapping[str, tuple[DataEntryState, ...]]:
        """Return the state of each measured entry by policy; nothing before the cluster was listed."""
        return self._report.entries() if self._is_synced("") else {}

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report with the state of each entry."""
        entries = self.entries()
        policies = {
            name: replace(policy, data=entries[name]) if policy.mode and name in entries else policy
            for name, policy in state.policies.items()
        }
        return replace(state, policies=policies)

    @property
    def pages(self) -> Mapping[str, FindPage]:
        """Page with the values of an entry, at POLICY/ENTRY."""
        return {DATA_PATH: lambda path: self._report.values(*path.partition("/")[::2])}
