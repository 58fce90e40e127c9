"""Grants that annotations of placed pods record: what counts on a node whose ledger is not seen.

A ledger may be missing: another program placed the pods, or it was deleted, or its label was. Only a bind makes one,
and no bind comes where a filter charges every pod to every device. So until a ledger is seen, annotations are believed,
as the bind that makes it will believe them. This is advice: that bind decides, on the ledger.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairlead.api.devices import DeviceShare
from fairlead.grants.adoption import REBUILT
from fairlead.grants.entry import LedgerEntry
from fairlead.mirror.pod_entry import Key, PodEntry, text_of
from fairlead.strategies.devices.record import may_record, recorded_by, together


class RecordedGrants:
    """Grants that annotations of placed pods record, by the entries of the policies that serve."""

    def __init__(self, placed: Mapping[Key, PodEntry]) -> None:
        self._placed = placed
        self._entries: Sequence[DeviceShare] = ()
        self._by_node: dict[str, dict[Key, LedgerEntry]] = {}
        self._node_of: dict[Key, str] = {}

    def set_entries(self, entries: Iterable[DeviceShare]) -> set[str]:
        """Set the entries, in the order of their policies; return the nodes on which grants may have changed."""
        listed = [*entries]
        if listed == self._entries:
            return set()
        self._entries = listed
        touched = {*self._by_node}
        for key in {*self._node_of} | {key for key, one in self._placed.items() if _may_record(one)}:
            touched |= self.pod_changed(key)
        return touched

    def pod_changed(self, key: Key) -> set[str]:
        """Note that a pod came, changed or went; return the nodes on which grants may have changed."""
        before, placed = self._node_of.pop(key, None), self._placed.get(key)
        if before is None and (placed is None or not self._entries or not _may_record(placed)):
            return set()
        touched = set[str]()
        if before is not None:
            touched.add(before)
            del self._by_node[before][key]
            if not self._by_node[before]:
                del self._by_node[before]
        if placed is not None and (entry := self._entry(placed)) is not None:
            touched.add(placed.node)
            self._node_of[key] = placed.node
            self._by_node.setdefault(placed.node, {})[key] = entry
        return touched

    def on(self, node: str) -> Iterator[tuple[PodEntry, LedgerEntry]]:
        """Yield the pods on a node whose annotations record grants, with the entry that a ledger would have of them."""
        for key, entry in self._by_node.get(node, {}).items():
            if (placed := self._placed.get(key)) is not None:
                yield placed, entry

    def _entry(self, placed: PodEntry) -> LedgerEntry | None:
        annotations, request = placed.pod.metadata.annotations, placed.request.amounts
        grant = together((one, recorded_by(one, annotations, request)) for one in self._entries)
        return LedgerEntry(text_of(placed.key), "", REBUILT, grant) if grant else None


def _may_record(placed: PodEntry) -> bool:
    return may_record(placed.pod.metadata.annotations)
