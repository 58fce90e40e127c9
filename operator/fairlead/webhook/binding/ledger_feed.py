"""Watch of the ledgers, from the first policy that grants devices on."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

import msgspec

from fairlead.grants.entry import AnyEntry
from fairlead.grants.entry_state import EntryState, judge, judge_read
from fairlead.grants.ledger import LABEL, Ledger, decode_ledger, delete_body, ledger_name
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import EventSink, Key, Meta
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.node_devices import DevicesOfNodes
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.binding.api_calls import Failed
from fairlead.webhook.binding.ledger_client import LedgerClient
from fairlead.webhook.binding.mirror_views import MirrorViews

LOG: Final = logging.getLogger(__name__)
_READ_S: Final = 5.0
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode


class ListedLedger(msgspec.Struct, frozen=True):
    """A ledger with the metadata of its ConfigMap."""

    metadata: Meta
    ledger: Ledger


class LedgerSink(EventSink):
    """Sink of ledgers, which tells the mirror what is granted of each node."""

    def __init__(self, views: MirrorViews, devices: DevicesOfNodes) -> None:
        self._views, self._devices = views, devices
        self._nodes: dict[Key, str] = {}
        self.on_removed: Callable[[str], None] = lambda _: None

    def put(self, item: ListedLedger, /) -> None:
        """Add or update a ledger."""
        ledger = item.ledger
        if item.metadata.name != ledger_name(ledger.subject):
            return  # a copy, which is no ledger
        self._nodes[item.metadata.namespace, item.metadata.name] = ledger.subject
        self._views.ledgers[ledger.subject] = ledger
        self._devices.put_ledger(ledger.subject, ledger.all.items())

    def remove(self, key: Key, /) -> None:
        """Remove a ledger."""
        if (node := self._nodes.pop(key, None)) is not None:
            self._views.ledgers.pop(node, None)
            self._devices.remove_ledger(node)
            self.on_removed(node)


class LedgerFeed:
    """Watch of the ledgers in the operator's namespace, from the first policy that grants devices on."""

    def __init__(
        self, client: Client, server: LedgerClient, namespace: str, views: MirrorViews, mirror: Mirror
    ) -> None:
        where = ObjectRef(CONFIG_MAPS.resource, namespace)
        self._server, self._views, self._nodes = server, views, mirror.nodes
        self._devices = mirror.devices
        self.sink: Final = LedgerSink(views, mirror.devices)
        self._watches = ReflectorSet()
        self._reflector: Final[Reflector[ListedLedger]] = Reflector(
            client, where, decode=_listed, sink=self.sink, query={"labelSelector": LABEL}
        )

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watch by its name, once a policy that serves, or has served, grants devices."""
        return self._watches.reflectors

    async def follow(self, policies: Iterable[CompiledPolicy]) -> None:
        """Watch if one of these policies grants devices; return once the ledgers are listed."""
        shares = [rule.share.entry for one in policies for rule in one.device_shares]
        self._devices.set_shares(shares)
        if shares:
            self._watches.want({"ledgers": lambda: self._reflector})
            await self._reflector.wait_until_listed()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self._watches.run()

    async def delete_unused(self) -> None:
        """Delete the ledgers of nodes that are gone, once nothing in them holds.

        Each deletion names the version that was judged, so that it takes no entry with it that was added since.
        """
        for node, ledger in [*self._views.ledgers.items()]:
            if node in self._nodes.slots:
                continue
            over = {uid for uid, entry in ledger.all.items() if await self._is_over(node, uid, entry)}
            if delete_body(ledger, over, is_needed=False) is not None:
                try:
                    await self._server.delete_ledger(ledger)
                except ClusterError as error:  # it is tried again
                    LOG.info("ledger.delete_failed", extra={"object": ledger_name(node), "error": str(error)})

    async def _is_over(self, node: str, uid: str, entry: AnyEntry) -> bool:
        state = judge(uid, entry, node, self._views.seen(uid, entry.pod))
        if state is EntryState.UNCLEAR and entry.pod:
            read = await self._server.read_pod(entry.pod, _READ_S)
            return not isinstance(read, Failed) and judge_read(uid, entry, node, read).is_over
        return state.is_over


def _listed(body: msgspec.Raw) -> ListedLedger:
    obj = _decode(body)
    return ListedLedger(msgspec.convert(obj["metadata"], Meta), decode_ledger(obj))
