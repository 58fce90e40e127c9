"""Device grants: ledgers and lists of unhealthy devices are watched, and binds of pods that ask for devices decided."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fairlead.grants.ledger import OF_NODES, Ledger, LedgerKind
from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.metrics import Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.replica_state import DEVICES_PATH, ReplicaState
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.binding.binding_client import BindingClient
from fairlead.webhook.binding.device_survey import DeviceSurvey, GrantCounters
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.ledger_client import LedgerClient
from fairlead.webhook.binding.ledger_feed import LedgerFeed
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.mirror_views import MirrorViews
from fairlead.webhook.binding.pods_with_grants import PodDecoder
from fairlead.webhook.binding.unhealthy_devices_feed import UnhealthyFeed
from fairlead.webhook.capability import Capability, FindPage


class DeviceGrants(Capability):
    """Grants of the devices of nodes, and all that a replica watches for them."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        namespace: str,
        serving: Callable[[], Sequence[CompiledPolicy]],
    ) -> None:
        """`namespace` has the ledgers; `serving` returns the policies that serve."""
        self._pods = PodDecoder(serving, mirror.namespace)
        self.views: Final = MirrorViews(mirror, serving)
        views = self.views
        self.bindings: Final = BindingClient(client)
        self._counters = GrantCounters()
        self._ledger_client = self.ledger_client(namespace)
        self._ledgers = LedgerFeed(
            client,
            self._ledger_client,
            namespace,
            views.ledgers,
            views,
            on_put=self._put,
        )
        self._nodes, self._devices = mirror.nodes, mirror.devices
        self._unhealthy = UnhealthyFeed(client, mirror)
        self._serving = serving
        self._survey = DeviceSurvey(mirror, views, serving)
        self._writer = LedgerWriter(self._ledger_client, views)
        self.granter: Final = Granter(mirror, self._ledger_client, self._writer, views)
        self.granter.on_bind = self._counters.count_bind
        self.binder: Final = Binder(self.bindings, self.granter)
        self._ledgers.sink.on_removed = self._forget

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Watch of the ledgers, once a policy grants devices."""
        return self._ledgers.reflectors

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        """Watches of the namespaces that have lists of unhealthy devices."""
        return self._unhealthy.reflectors

    def ledger_client(self, namespace: str, kind: LedgerKind = OF_NODES) -> LedgerClient:
        """Return a client for ledgers of a kind, whose writes are counted."""
        made = LedgerClient(self.bindings, namespace, self._pods.read, kind)
        made.on_write = self._counters.wrote
        return made

    async def run(self) -> None:
        """Watch, and survey the devices now and then, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for work in (self._ledgers.run, self._unhealthy.run, self._survey.run):
                group.create_task(work())

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Watch what these policies need; return once it is listed."""
        await asyncio.gather(self._follow_ledgers(policies), self._unhealthy.follow(policies))

    async def _follow_ledgers(self, policies: Sequence[CompiledPolicy]) -> None:
        """Watch the ledgers if one of these policies grants devices; return once they are listed."""
        shares = [rule.share.entry for one in policies for rule in one.device_shares]
        self._devices.set_shares(shares)
        if shares:
            await self._ledgers.watch("ledgers")

    async def tend(self) -> None:
        """Delete the ledgers of nodes that are gone."""
        await self._ledgers.delete_unused(lambda node: node in self._nodes.slots)

    def _put(self, ledger: Ledger) -> None:
        """Take a version of a ledger from its watch."""
        self._devices.put_ledger(ledger.subject, ledger.all.items())
        self._writer.drop_shown(ledger.subject)

    def _forget(self, node: str) -> None:
        """Forget a ledger that was deleted."""
        self._devices.remove_ledger(node)
        self._writer.forget(node)

    def missing_permissions(self) -> Iterator[str]:
        """Yield the permission that a bind was refused for want of: for the Binding, the ledger or the pod."""
        if self.bindings.missing:
            yield self.bindings.missing

    def register(self, metrics: Metrics) -> None:
        """Register the metrics of grants and devices."""
        self._counters.register(metrics)
        self._survey.register(metrics)

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report with the missing permission of each policy whose unhealthy devices may not be read."""
        missing = self._unhealthy.missing_permissions(self._serving())
        policies = {
            name: replace(policy, missing_permission=missing[name]) if name in missing else policy
            for name, policy in state.policies.items()
        }
        return replace(state, policies=policies) if missing else state

    @property
    def pages(self) -> Mapping[str, FindPage]:
        """Page with the totals of devices, and below it those of a node."""
        return {DEVICES_PATH: self._survey.page}
