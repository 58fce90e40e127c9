"""Watch of the ledgers of one kind, from the first policy that needs them on."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NoReturn

import msgspec

from fairlead.grants.entry import AnyEntry
from fairlead.grants.entry_state import EntryState, judge, judge_read
from fairlead.grants.ledger import OF_NODES, Ledger, LedgerKind, decode_ledger, delete_body
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import EventSink, Key, Meta
from fairlead.webhook.binding.api_calls import Failed, PodViews
from fairlead.webhook.binding.ledger_client import LedgerClient

LOG: Final = logging.getLogger(__name__)
_READ_S: Final = 5.0
_decode: Final = msgspec.json.Decoder(dict[str, object]).decode


class ListedLedger(msgspec.Struct, frozen=True):
    """A ledger with the metadata of its ConfigMap."""

    metadata: Meta
    ledger: Ledger


class LedgerSink(EventSink):
    """Sink of ledgers of one kind."""

    def __init__(self, ledgers: dict[str, Ledger], on_put: Callable[[Ledger], None] = lambda _: None) -> None:
        """`ledgers`, by their subjects, are filled."""
        self._ledgers, self._on_put = ledgers, on_put
        self._subjects: dict[Key, str] = {}
        self.on_removed: Callable[[str], None] = lambda _: None

    def put(self, item: ListedLedger, /) -> None:
        """Add or update a ledger."""
        ledger = item.ledger
        if item.metadata.name != ledger.kind.name(ledger.subject):
            return  # a copy, which is no ledger
        self._subjects[item.metadata.namespace, item.metadata.name] = ledger.subject
        self._ledgers[ledger.subject] = ledger
        self._on_put(ledger)

    def remove(self, key: Key, /) -> None:
        """Remove a ledger."""
        if (subject := self._subjects.pop(key, None)) is not None:
            self._ledgers.pop(subject, None)
            self.on_removed(subject)


class LedgerFeed:
    """Watch of the ledgers of one kind in the operator's namespace, from the first policy that needs them on."""

    def __init__(
        self,
        client: Client,
        server: LedgerClient,
        namespace: str,
        ledgers: dict[str, Ledger],
        views: PodViews,
        *,
        kind: LedgerKind = OF_NODES,
        on_put: Callable[[Ledger], None] = lambda _: None,
    ) -> None:
        """`ledgers`, by their subjects, are filled."""
        where = ObjectRef(CONFIG_MAPS.resource, namespace)
        self._server, self._ledgers, self._views, self._kind = server, ledgers, views, kind
        self.sink: Final = LedgerSink(ledgers, on_put)
        self._watches = ReflectorSet()
        self._reflector: Final[Reflector[ListedLedger]] = Reflector(
            client, where, decode=partial(_listed, kind), sink=self.sink, query={"labelSelector": kind.label}
        )

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watch by its name, once it is needed, or was."""
        return self._watches.reflectors

    async def watch(self, name: str) -> None:
        """Watch from now on, under this name; return once the ledgers are listed."""
        self._watches.want({name: lambda: self._reflector})
        await self._reflector.wait_until_listed()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self._watches.run()

    async def delete_unused(self, is_needed: Callable[[str], bool]) -> None:
        """Delete the ledgers of subjects that do not need them, once nothing in them holds.

        Each deletion names the version that was judged, so that it takes no entry with it that was added since.
        """
        for subject, ledger in [*self._ledgers.items()]:
            if is_needed(subject):
                continue
            if delete_body(ledger, await self._over(ledger), is_needed=False) is not None:
                try:
                    await self._server.delete_ledger(ledger)
                except ClusterError as error:  # it is tried again
                    name = self._kind.name(subject)
                    LOG.info("ledger.delete_failed", extra={"object": name, "error": str(error)})

    async def _over(self, ledger: Ledger) -> set[str]:
        """Return entries that are over; not all of them if one holds, as then nothing else matters."""
        node = self._kind.node(ledger.subject)
        states = {uid: judge(uid, entry, node, self._views.seen(uid, entry.pod)) for uid, entry in ledger.all.items()}
        over = {uid for uid, state in states.items() if state.is_over}
        if EntryState.HOLDS in states.values():
            return over
        for uid in states.keys() - over:
            if not await self._is_over(uid, ledger.all[uid], node):
                break
            over.add(uid)
        return over

    async def _is_over(self, uid: str, entry: AnyEntry, node: str | None) -> bool:
        """Read the pod of an entry that is unclear."""
        if not entry.pod:
            return False
        read = await self._server.read_pod(entry.pod, _READ_S)
        return not isinstance(read, Failed) and judge_read(uid, entry, node, read).is_over


def _listed(kind: LedgerKind, body: msgspec.Raw) -> ListedLedger:
    obj = _decode(body)
    return ListedLedger(msgspec.convert(obj["metadata"], Meta), decode_ledger(obj, kind))
