"""Devices of nodes: which entries of ledgers count, and which pods wait for a node that was cleared for them.

What filters and scores see is advice: an entry counts while its pod is on the node, or is unplaced in the state in
which it was granted. A pod that is unknown here may exist, or be gone; only the one that writes a ledger asks the API
server which it is. If such entries counted, a full node would stay full, because no one would write its ledger.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fairlead.api.devices import DeviceShare
from fairlead.grants.device_usage import PodGrant
from fairlead.grants.entry import AnyEntry, LedgerEntry, NewerEntry, all_devices
from fairlead.grants.entry_state import GONE, EntryState, Gone, PodState, judge
from fairlead.mirror.pod_entry import Key, PodEntry, key_of, text_of
from fairlead.mirror.recorded_grants import RecordedGrants
from fairlead.mirror.resource_requests import request_of
from fairlead.policy.views.device_facts import NO_DEVICES, NodeDevices, UnhealthySource
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.devices.record import is_taken
from fairlead.strategies.facts import Nominated

_NO_POD: Final = ""
"""Stands for the pod of an entry that does not tell it."""


class _KeptEntry(NamedTuple):
    """Entry of a node's ledger."""

    uid: str
    pod: str
    """Namespace and name, with a slash between them: the text that the entry has, and not another one."""
    entry: AnyEntry


class _NodesBy(dict[str, tuple[str, ...]]):
    """Nodes by a pod that their ledgers name, or by its UID.

    Nearly all have one, for which a set would take five times as much.
    """

    def add(self, key: str, node: str) -> None:
        """Add a node to those of a key."""
        nodes = self.get(key, ())
        if node not in nodes:
            self[key] = (*nodes, node)

    def discard(self, key: str, node: str) -> None:
        """Remove a node from those of a key, if it is one of them."""
        nodes = self.get(key, ())
        if nodes == (node,):
            del self[key]
        elif node in nodes:
            self[key] = tuple([one for one in nodes if one != node])


class DevicesOfNodes:
    """Facts about the devices of all nodes; `changed` is called with the name of a node whose facts changed."""

    def __init__(
        self,
        placed: Mapping[Key, PodEntry],
        unplaced: Mapping[Key, Any],
        namespace: Callable[[str], Any | None],
        changed: Callable[[str], None],
    ) -> None:
        self._placed, self._unplaced, self._namespace, self._changed = placed, unplaced, namespace, changed
        self._ledgers: dict[str, tuple[_KeptEntry, ...]] = {}
        self._nodes_of = _NodesBy()
        self._gone = Counter[str]()
        """In how many ledgers a pod has an entry that was placed and has ended or is gone, by its UID."""
        self._gone_from: dict[str, tuple[str, ...]] = {}
        """UIDs of such pods by node: of their entries nothing else is kept."""
        self._nominated: dict[str, dict[Key, Nominated]] = {}
        self._node_of_nominated: dict[Key, str] = {}
        self._unhealthy: dict[UnhealthySource, Mapping[str, str]] = {}
        self._recorded = RecordedGrants(placed)
        self._nameless = _NodesBy()
        """Nodes whose ledgers have an entry that does not tell its pod, by its UID, until that pod is seen."""
        self._names: dict[str, Key] = {}
        """Names of the pods of such entries, once they were seen."""

    def of(self, node: str) -> NodeDevices:
        """Return the facts about the devices of a node."""
        ledger, waiting = self._ledgers.get(node), self._nominated.get(node)
        if ledger is None:
            granted = [self.in_force(placed.pod.uid, made, placed.key) for placed, made in self._recorded.on(node)]
        else:
            granted = [one for kept in ledger if (one := self._granted(node, kept)) is not None]
        if not granted and waiting is None and not self._unhealthy:
            return NO_DEVICES
        return NodeDevices(
            tuple(granted),
            tuple((waiting or {}).values()),
            {source: texts.get(node, "") for source, texts in self._unhealthy.items()},
        )

    def in_force(self, uid: str, entry: AnyEntry, pod: Key | None = None) -> PodGrant:
        """Return the grant by an entry that is not over; whether its device is taken is what is known here.

        `pod` is the pod where the entry does not tell it.
        """
        pod = pod or key_of(entry.pod)
        placed = self._placed.get(pod)
        if isinstance(entry, LedgerEntry):
            devices, order, is_newer = all_devices(entry.grant), entry.order, False
        else:
            devices, order, is_newer = None, 0, isinstance(entry, NewerEntry)
        name = uid or f"{pod[0] or 'default'}/{pod[1]}"  # pods from files may have none
        if placed is None or placed.pod.uid != uid:
            return PodGrant(name, devices, is_newer, taken=False, assumed_at=order)
        taken = is_taken(placed.pod.metadata.annotations, placed.pod.phase)
        return PodGrant(name, devices, is_newer, taken=taken, assumed_at=order, is_placed=True)

    def seen(self, uid: str, pod: Key) -> PodState | Gone | None:
        """Return that the end or the deletion of a UID was heard, what is shown of it, or else of its pod's name."""
        return GONE if uid in self._gone else self.shown(self._names.get(uid, pod), uid)

    def shown(self, pod: Key, uid: str = "") -> PodState | None:
        """Return what is shown under a name: the pod of the UID, or else the placed one, or else the other."""
        placed, unplaced = self._placed.get(pod), self._unplaced.get(pod)
        if unplaced is not None and (placed is None or placed.pod.uid != uid == unplaced.metadata.uid):
            return PodState(str(unplaced.metadata.uid), text_of(pod), str(unplaced.metadata.resourceVersion))
        return None if placed is None else PodState(placed.pod.uid, text_of(pod), "", placed.node)

    def set_shares(self, entries: Iterable[DeviceShare]) -> None:
        """Set the entries of device shares whose grants annotations may record, in the order of their policies."""
        for node in self._recorded.set_entries(entries) - self._ledgers.keys():
            self._changed(node)

    def put_ledger(self, node: str, entries: Iterable[tuple[str, AnyEntry]]) -> None:
        """Set the entries of a node's ledger, with the UIDs of their pods."""
        listed = [_KeptEntry(uid, entry.pod, entry) for uid, entry in entries]
        self._forget(node, {one.uid for one in listed})
        gone = self._gone_from.get(node, ())
        listed = [one for one in listed if one.uid not in gone]
        self._find_names({one.uid for one in listed if one.pod == _NO_POD} - self._names.keys())
        found = tuple(self._named(node, one) for one in listed)
        self._ledgers[node] = found
        for one in found:
            self._nodes_of.add(one.pod, node)
        self._changed(node)

    def remove_ledger(self, node: str) -> None:
        """Remove a node's ledger."""
        self._forget(node, ())
        if self._ledgers.pop(node, None) is not None:
            self._changed(node)

    def put_unhealthy(self, source: UnhealthySource, texts: Mapping[str, str], nodes: Iterable[str]) -> None:
        """Set the texts of all ConfigMaps of a source by node; these nodes are looked at again."""
        self._unhealthy[source] = texts
        for node in nodes:
            self._changed(node)

    def remove_unhealthy(self, source: UnhealthySource, nodes: Iterable[str]) -> None:
        """Remove a source that is not read any more."""
        if self._unhealthy.pop(source, None) is not None:
            for node in nodes:
                self._changed(node)

    @property
    def has_ledgers(self) -> bool:
        """True if a node has a ledger."""
        return bool(self._ledgers)

    def granted_uid(self, key: Key, uid: str) -> str:
        """Return the UID of an unplaced pod for which a ledger has an entry that is not over; empty if none has."""
        for node in self._nodes_of.get(text_of(key), ()):
            for one in self._ledgers[node]:
                if one.uid == uid and isinstance(one.entry, LedgerEntry) and self._granted(node, one) is not None:
                    return uid
        return ""

    def placed_gone(self, key: Key, uid: str) -> None:
        """Note that a placed pod has ended or is gone, and will not come back."""
        pod = text_of(key)
        for node in self._nodes_of.get(pod, ()):
            ledger = self._ledgers[node]
            left = tuple([one for one in ledger if one.uid != uid])
            if len(left) == len(ledger):
                continue
            self._ledgers[node] = left
            self._gone[uid] += 1
            self._gone_from[node] = (*self._gone_from.get(node, ()), uid)
            self._names.pop(uid, None)
            for name in {one.pod for one in ledger} - {one.pod for one in left}:
                self._nodes_of.discard(name, node)
            self._changed(node)

    def namespace_changed(self, name: str) -> None:
        """Note that a namespace came or changed: what its nominated pods need may depend on it."""
        for key in [key for key in self._node_of_nominated if (key[0] or "default") == name]:
            self.pod_changed(key)

    def pod_changed(self, key: Key) -> None:
        """Note that a pod came, changed or went, placed or not."""
        pod = self._unplaced.get(key)
        if self._nameless:
            self._see(key)
        before = self._node_of_nominated.get(key)
        nominated = None if pod is None or not pod.status.nominatedNodeName else self._as_nominated(pod)
        after = None if nominated is None else nominated.pod.nominated
        touched = (self._recorded.pod_changed(key) - self._ledgers.keys()) | {*self._nodes_of.get(text_of(key), ())}
        if before is not None:
            touched.add(before)
            self._node_of_nominated.pop(key)
            self._nominated[before].pop(key)
            if not self._nominated[before]:
                del self._nominated[before]
        if nominated is not None and after is not None:
            touched.add(after)
            self._node_of_nominated[key] = after
            self._nominated.setdefault(after, {})[key] = nominated
        for node in touched:
            self._changed(node)

    def _forget(self, node: str, kept: Collection[str]) -> None:
        """Forget the entries of a node, and which of their pods are gone but for the UIDs that are kept."""
        for one in self._ledgers.get(node, ()):
            self._nodes_of.discard(one.pod, node)
            self._nameless.discard(one.uid, node)
            if one.uid not in kept:
                self._names.pop(one.uid, None)
        gone = self._gone_from.pop(node, ())
        for uid in gone:
            if uid not in kept:
                self._gone[uid] -= 1
                if not self._gone[uid]:
                    del self._gone[uid]
        if still := tuple([uid for uid in gone if uid in kept]):
            self._gone_from[node] = still

    def _find_names(self, uids: Collection[str]) -> None:
        """Look among all pods for those of entries that do not tell theirs, which only a person can have written."""
        if uids:
            self._names |= {uid: key for uid, key in self._uids() if uid in uids}

    def _uids(self) -> Iterator[tuple[str, Key]]:
        yield from ((str(one.pod.uid), key) for key, one in self._placed.items())
        yield from ((str(pod.metadata.uid), key) for key, pod in self._unplaced.items())

    def _named(self, node: str, kept: _KeptEntry) -> _KeptEntry:
        """Return an entry with the name of its pod, if that was seen."""
        if kept.pod != _NO_POD:
            return kept
        if (key := self._names.get(kept.uid)) is not None:
            return kept._replace(pod=text_of(key))
        self._nameless.add(kept.uid, node)
        return kept

    def _see(self, key: Key) -> None:
        """Note the name of a pod if it is one whose entries do not tell it."""
        placed, unplaced = self._placed.get(key), self._unplaced.get(key)
        uids = {str(placed.pod.uid)} if placed is not None else set()
        uids |= {str(unplaced.metadata.uid)} if unplaced is not None else set()
        for uid in uids & self._nameless.keys():
            self._names[uid] = key
            for node in self._nameless.pop(uid):
                self._ledgers[node] = tuple(self._named(node, one) for one in self._ledgers[node])
                self._nodes_of.add(text_of(key), node)

    def _as_nominated(self, pod: Any) -> Nominated | None:
        try:
            request = request_of(pod)
        except ValueError:  # it cannot be placed either
            return None
        namespace = self._namespace(str(pod.metadata.namespace) or "default")
        return Nominated(PodView(pod, namespace, request), pod.metadata.creationTimestamp or 0)

    def _granted(self, node: str, kept: _KeptEntry) -> PodGrant | None:
        """Return the grant by an entry; None if it is over, or if that is not clear here."""
        pod = key_of(kept.pod)
        state = judge(kept.uid, kept.entry, node, self.seen(kept.uid, pod))
        return self.in_force(kept.uid, kept.entry, pod) if state is EntryState.HOLDS else None
