"""Domains of groups: their ledgers are watched from the first policy that requires one, and written before Bindings."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairlead.grants.group_domain import DomainRequest
from fairlead.grants.ledger import OF_GROUPS
from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.binding.device_grants import DeviceGrants
from fairlead.webhook.binding.ledger_feed import LedgerFeed
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.capability import Capability
from fairlead.webhook.domains.domain_views import DomainViews


class GroupDomains(Capability):
    """Domains of groups, as a replica keeps them."""

    def __init__(self, client: Client, namespace: str, grants: DeviceGrants) -> None:
        """`namespace` has the ledgers."""
        server = grants.ledger_client(namespace, OF_GROUPS)
        self.views: Final = DomainViews(grants.views)
        writer = LedgerWriter[DomainRequest](server, self.views, kind=OF_GROUPS)
        self._writer = writer
        self._feed = LedgerFeed(
            client,
            server,
            namespace,
            self.views.ledgers,
            self.views,
            kind=OF_GROUPS,
            on_put=lambda one: writer.drop_shown(one.subject),
        )
        self._feed.sink.on_removed = self._forget
        grants.granter.steps.domains = writer

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Watch of the ledgers, once a policy requires domains."""
        return self._feed.reflectors

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._feed.run()

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Watch if one of these policies requires domains; return once the ledgers are listed."""
        if any(one.domain_rules for one in policies):
            await self._feed.watch("domains")

    async def tend(self) -> None:
        """Delete the ledgers of groups in which nothing holds any more."""
        await self._feed.delete_unused(lambda _: False)

    def _forget(self, group: str) -> None:
        self.views.forget(group)
        self._writer.forget(group)
