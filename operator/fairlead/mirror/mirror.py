"""The mirror: nodes, pods and namespaces as rules see them; objects in, `Nodes` with exact changes out.

No I/O, one writer. Each kind has a sink. Kinds may come in any order: a pod on an unknown node waits for the node. Pods
that have ended hold no resources and are not stored: list pods with the selectors below, as kube-scheduler does, and
the API server reports a pod that ends as deleted.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from fairlead.mirror import decode
from fairlead.mirror.interning import intern_node
from fairlead.mirror.node_devices import DevicesOfNodes
from fairlead.mirror.node_entry import FullNode, NodeEntry
from fairlead.mirror.pod_entry import Key, PodEntry, entry_of
from fairlead.mirror.pod_watcher import PodWatcher, PodWatchers
from fairlead.mirror.resource_requests import ENDED, Amounts, request_of
from fairlead.mirror.watched_node import WatchedNode
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.reads import NodeChange

PLACED: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of placed pods."""
UNPLACED: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of unplaced pods."""

_UNREADABLE: Final = (ValueError, NotImplementedError, RecursionError)
"""Errors of reading what an object says: a quantity or time that is none, or a structure that is too deep."""
_NO_CHANGE: Final = NodeChange()
_DEVICES_CHANGED: Final = NodeChange(devices=True)


class Mirror:
    """Nodes with their pods, namespaces, and the unplaced pods of managed schedulers.

    `clock` returns the time of day in nanoseconds.
    """

    def __init__(self, clock: Callable[[], int], schedulers: Iterable[str] = ()) -> None:
        entries: dict[str, NodeEntry] = {}
        self.nodes: Final = Nodes()
        placed, unplaced = dict[Key, PodEntry](), dict[Key, Any]()
        self.watchers: Final = PodWatchers()
        self.devices: Final = DevicesOfNodes(placed, unplaced, self.namespace, self._devices_changed)
        self.node_sink: Final = NodeSink(self.nodes, entries, clock, self.devices)
        self.placed_sink: Final = PlacedSink(self.nodes, entries, placed, self.devices)
        self.unplaced_sink: Final = UnplacedSink(schedulers, unplaced, self.devices.pod_changed)
        self.namespace_sink: Final = NamespaceSink(self.devices.namespace_changed)
        for sink in (self.node_sink, self.placed_sink, self.unplaced_sink, self.namespace_sink):
            sink.watchers = self.watchers
        self._entries: Final = entries
        self._clock: Final = clock

    def namespace(self, name: str) -> Any | None:
        """Return a namespace; None if unknown."""
        return self.namespace_sink.objects.get(name)

    def unplaced(self, namespace: str, name: str) -> Any | None:
        """Return an unplaced pod of a managed scheduler; None if unknown."""
        return self.unplaced_sink.objects.get((namespace, name))

    def request_of(self, pod: Any) -> Amounts:
        """Return the requests of an unplaced pod. Raises ValueError for an unreadable quantity."""
        return request_of(pod)

    def placed_on(self, node: str) -> Iterable[PodEntry]:
        """Return the pods on a node."""
        entry = self._entries.get(node)
        return () if entry is None else entry.pods.values()

    def granted_uid(self, pod: Any) -> str:
        """Return the UID of an unplaced pod for which a ledger has an entry that is not over; empty if none has."""
        if not self.devices.has_ledgers:
            return ""
        uid = str(pod.metadata.uid)
        return self.devices.granted_uid((str(pod.metadata.namespace), str(pod.metadata.name)), uid)

    def requests_of_placed(self, placed: Any) -> Amounts:
        """Return what a placed pod adds to `requested` of its node; nothing if it is no longer there."""
        found = self.placed_sink.objects.get((placed.metadata.namespace, placed.metadata.name))
        return {} if found is None or found.pod.uid != placed.uid else found.request.amounts

    def decode_full_node(self, node: bytes | msgspec.Raw, *, images: bool = True) -> FullNode:
        """Decode a node of a request; with its images only if a rule reads them.

        Raises msgspec.DecodeError or ValueError if it is not a node.
        """
        return FullNode.of(decode.node(node) if images else decode.node_without_images(node))

    def view_full_node(self, full_node: FullNode) -> NodeView:
        """Return the view of a full node with the known pods of the node of its name; nothing is stored."""
        name = str(full_node.node.metadata.name)
        entry = self._entries.get(name) or NodeEntry(self.devices.of(name))
        return entry.view_of(full_node, self._clock())

    def _devices_changed(self, node: str) -> None:
        entry = self._entries.get(node)
        if entry is None:
            return
        before, entry.devices = entry.devices, self.devices.of(node)
        if entry.node is not None and entry.devices != before:
            self.nodes.put(entry.view(), _DEVICES_CHANGED)


class _Sink:
    watchers: PodWatcher = PodWatcher()

    def begin(self) -> None:
        """Do nothing: objects that a list does not name are removed one by one."""

    def end(self) -> None:
        """Do nothing."""


class NodeSink(_Sink):
    """Sink of nodes."""

    def __init__(
        self, nodes: Nodes, entries: dict[str, NodeEntry], clock: Callable[[], int], devices: DevicesOfNodes
    ) -> None:
        self._nodes, self._entries, self._clock, self._devices = nodes, entries, clock, devices

    def put(self, node: Any, /) -> None:
        """Add or update a node; a WatchedNode is decoded in full if more than its heartbeats is new."""
        name = node.metadata.name
        entry = self._entries.get(name) or NodeEntry(self._devices.of(name))
        change: NodeChange | None
        before = entry.node
        settled = node.settled if node.__class__ is WatchedNode else None
        try:
            if settled is not None and settled == entry.settled:
                node, change = node.after(before)
                entry.update_heartbeat(node)
            else:
                node = node if settled is None else node.decode()
                images_hash = intern_node(node, before, entry.images_hash)
                change = entry.update_node(node, self._clock())
                entry.settled, entry.images_hash = settled, images_hash
        except _UNREADABLE as error:
            raise msgspec.ValidationError(str(error)) from error
        self._entries[name] = entry
        if change != _NO_CHANGE:
            self._nodes.put(entry.view(), change)
        if before is None:
            self.watchers.node_joined()

    def remove(self, key: Key, /) -> None:
        """Remove a node; it may return before its pods are gone."""
        if (entry := self._entries.get(key[1])) is not None:
            entry.clear_node()
            self._nodes.remove(key[1])
            if not entry.pods:
                del self._entries[key[1]]


class PlacedSink(_Sink):
    """Sink of placed pods."""

    def __init__(
        self, nodes: Nodes, entries: dict[str, NodeEntry], objects: dict[Key, PodEntry], devices: DevicesOfNodes
    ) -> None:
        self._nodes, self._entries, self._devices = nodes, entries, devices
        self.objects: Final = objects

    def put(self, pod: decode.WirePod, /) -> None:
        """Add or update a pod."""
        before = self.objects.get((pod.metadata.namespace, pod.metadata.name))
        if not pod.spec.nodeName or pod.status.phase in ENDED:
            if before is not None:
                self.remove(before.key)
            return
        try:
            after = entry_of(pod)
        except _UNREADABLE as error:
            raise msgspec.ValidationError(str(error)) from error
        if before is not None and after.is_as(before):
            return
        self.objects[after.key] = after
        if before is not None and before.pod.uid != after.pod.uid:
            self._devices.placed_gone(before.key, before.pod.uid)
        if before is not None and before.node != after.node:
            self._swap(before.node, before, None)
            before = None
        self._swap(after.node, before, after)
        self._devices.pod_changed(after.key)
        self.watchers.put_placed(after.key, after)

    def remove(self, key: Key, /) -> None:
        """Remove a pod."""
        if (before := self.objects.pop(key, None)) is not None:
            self._devices.placed_gone(key, before.pod.uid)
            self._swap(before.node, before, None)
            self._devices.pod_changed(key)
            self.watchers.remove_placed(key)

    def _swap(self, node: str, before: PodEntry | None, after: PodEntry | None) -> None:
        entry = self._entries.get(node)
        if entry is None:
            entry = self._entries[node] = NodeEntry(self._devices.of(node))
        change = entry.replace_pod(before, after)
        if entry.node is not None:
            self._nodes.put(entry.view(), change)
        elif not entry.pods:
            del self._entries[node]


class NamespaceSink(_Sink):
    """Sink of namespaces; `changed` is called with the name of one."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self.objects: Final[dict[str, Any]] = {}
        self._changed = changed

    def put(self, namespace: Any, /) -> None:
        """Add or update a namespace."""
        before = self.objects.get(namespace.metadata.name)
        self.objects[namespace.metadata.name] = namespace
        self._changed(namespace.metadata.name)
        self.watchers.namespace_changed(namespace, before)

    def remove(self, key: Key, /) -> None:
        """Remove a namespace."""
        self.objects.pop(key[1], None)


class UnplacedSink(_Sink):
    """Sink of unplaced pods that keeps those of managed schedulers."""

    def __init__(self, schedulers: Iterable[str], objects: dict[Key, Any], changed: Callable[[Key], None]) -> None:
        self._schedulers = frozenset(schedulers)
        self._changed = changed
        self.objects: Final = objects

    def set_schedulers(self, schedulers: Iterable[str]) -> bool:
        """Set the managed schedulers; return True if one of them is new, so that pods must be listed again."""
        before, self._schedulers = self._schedulers, frozenset(schedulers)
        for key in [key for key, pod in self.objects.items() if not self._is_managed(pod)]:
            self.remove(key)
        return not self._schedulers <= before

    def put(self, pod: Any, /) -> None:
        """Add or update a pod of any scheduler."""
        key = (pod.metadata.namespace, pod.metadata.name)
        if self._is_managed(pod) and not pod.spec.nodeName:
            before = self.objects.get(key)
            self.objects[key] = pod
            self._changed(key)
            self.watchers.put_unplaced(pod, before)
        else:
            self.remove(key)

    def remove(self, key: Key, /) -> None:
        """Remove a pod that was deleted or bound."""
        if (before := self.objects.pop(key, None)) is not None:
            self._changed(key)
            self.watchers.remove_unplaced(before)

    def _is_managed(self, pod: Any) -> bool:
        return pod.spec.schedulerName in self._schedulers
