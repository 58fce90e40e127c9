"""Grants that annotations of placed pods record: what counts on a node whose ledger is not seen.

A ledger may be missing: another program placed the pods, or it was deleted, or its label was. Only a bind makes one,
and no bind comes where a filter charges every pod to every device. So until a ledger is seen, annotations are believed,
as the bind that makes it will believe them. This is advice: that bind decides, on the ledger.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairlead.api.devices import DeviceShare
from fairlead.grants.entry import GrantedDevice
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.strategies.devices.record import may_record, recorded_by
from fairlead.strategies.devices.taken import Taken


class RecordedGrants:
    """Grants that annotations of placed pods record, by the entries of the policies that serve."""

    def __init__(self, placed: Mapping[Key, PodEntry]) -> None:
        self._placed = placed
        self._entries: Sequence[DeviceShare] = ()
        self._by_node: dict[str, dict[Key, tuple[GrantedDevice, ...]]] = {}
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
        if placed is not None and (grants := self._recorded(placed)):
            touched.add(placed.node)
            self._node_of[key] = placed.node
            self._by_node.setdefault(placed.node, {})[key] = grants
        return touched

    def on(self, node: str) -> Iterator[tuple[PodEntry, tuple[GrantedDevice, ...]]]:
        """Yield the pods on a node whose annotations record grants, with these."""
        for key, grants in self._by_node.get(node, {}).items():
            if (placed := self._placed.get(key)) is not None:
                yield placed, grants

    def _recorded(self, placed: PodEntry) -> tuple[GrantedDevice, ...]:
        found, taken = list[GrantedDevice](), Taken()
        annotations = placed.pod.metadata.annotations
        for entry in self._entries:
            grants = recorded_by(entry, annotations, placed.request.amounts)
            if grants is not None and taken.take(entry):
                found += grants
        return tuple(found)


def _may_record(placed: PodEntry) -> bool:
    return may_record(placed.pod.metadata.annotations)
