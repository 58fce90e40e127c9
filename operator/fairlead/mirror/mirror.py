"""What the cluster holds, as rules see it: objects in, `Nodes` with exact changes out. No I/O, one writer.

Each kind goes into a sink of its own. Kinds may come in any order: a pod on a node that is not known yet waits for it.
Pods that have ended hold nothing any more and are not kept: list pods by the selectors here, as the scheduler does, and
the API server says of a pod that ends that it went.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from fairlead.mirror import decode
from fairlead.mirror.interning import shared_node
from fairlead.mirror.node_entry import FullNode, NodeEntry
from fairlead.mirror.pod_entry import Key, PodEntry, entry_of
from fairlead.mirror.resource_requests import ENDED, Amounts, request_of
from fairlead.policy.views.node_table import Nodes
from fairlead.policy.views.pod_and_node import NodeView
from fairlead.strategies.reads import Change

PLACED: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods on nodes."""
UNPLACED: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
"""And of those that wait for a scheduler."""

_NO_CHANGE: Final = Change()


class Mirror:
    """Nodes and what is on them, namespaces, and the pods that wait for one of our schedulers.

    The clock gives the time of day in nanoseconds.
    """

    def __init__(self, clock: Callable[[], int], schedulers: Iterable[str] = ()) -> None:
        held: dict[str, NodeEntry] = {}
        self.nodes: Final = Nodes()
        self.node_sink: Final = NodeSink(self.nodes, held, clock)
        self.placed_sink: Final = PlacedSink(self.nodes, held)
        self.unplaced_sink: Final = UnplacedSink(schedulers)
        self.namespace_sink: Final = NamespaceSink()
        self._held: Final = held
        self._clock: Final = clock

    def namespace(self, name: str) -> Any | None:
        """The namespace, if it is known."""
        return self.namespace_sink.objects.get(name)

    def unplaced(self, namespace: str, name: str) -> Any | None:
        """A pod of our schedulers that has no node yet, if it is known."""
        return self.unplaced_sink.objects.get((namespace, name))

    def request_of(self, pod: Any) -> Amounts:
        """What a pod to be placed asks for. Raises ValueError for a quantity that cannot be read."""
        return request_of(pod)

    def requests_of_placed(self, placed: Any) -> Amounts:
        """What a pod on a node counts for in the node's `requested`; nothing if it is not on one any more."""
        found = self.placed_sink.objects.get((placed.metadata.namespace, placed.metadata.name))
        return {} if found is None or found.pod.uid != placed.uid else found.request.amounts

    def decode_full_node(self, node: bytes | msgspec.Raw, *, images: bool = True) -> FullNode:
        """A node that a caller brings along. Whether its images are read is up to the rules.

        Raises msgspec.DecodeError or ValueError if it is none.
        """
        return FullNode.of(decode.node(node) if images else decode.node_without_images(node))

    def view_full_node(self, given: FullNode) -> NodeView:
        """Such a node, with the pods that are known to be on one of its name; none of it is kept."""
        here = self._held.get(given.node.metadata.name) or NodeEntry()
        return here.view_of(given, self._clock())


class _Sink:
    def begin(self) -> None:
        """A list begins: nothing has to be done, since what it does not name is removed one by one."""

    def end(self) -> None:
        """A list is complete."""


class NodeSink(_Sink):
    """Takes nodes."""

    def __init__(self, nodes: Nodes, held: dict[str, NodeEntry], clock: Callable[[], int]) -> None:
        self._nodes, self._held, self._clock = nodes, held, clock

    def put(self, node: Any, /) -> None:
        """A node came or became different."""
        here = self._held.get(node.metadata.name)
        if here is None:
            here = self._held[node.metadata.name] = NodeEntry()
        change = here.update_node(shared_node(node), self._clock())
        if change != _NO_CHANGE:
            self._nodes.put(here.view(), change)

    def remove(self, key: Key, /) -> None:
        """A node went; it may come again before its pods are gone."""
        if (here := self._held.get(key[1])) is not None:
            here.clear_node()
            self._nodes.remove(key[1])
            if not here.pods:
                del self._held[key[1]]


class PlacedSink(_Sink):
    """Takes pods that are bound to a node."""

    def __init__(self, nodes: Nodes, held: dict[str, NodeEntry]) -> None:
        self._nodes, self._held = nodes, held
        self.objects: Final[dict[Key, PodEntry]] = {}

    def put(self, one: decode.WirePod, /) -> None:
        """A pod came or became different."""
        before = self.objects.get((one.metadata.namespace, one.metadata.name))
        if not one.spec.nodeName or one.status.phase in ENDED:
            if before is not None:
                self.remove(before.key)
            return
        after = entry_of(one)
        if before is not None and after.is_as(before):
            return
        self.objects[after.key] = after
        if before is not None and before.node != after.node:
            self._swap(before.node, before, None)
            before = None
        self._swap(after.node, before, after)

    def remove(self, key: Key, /) -> None:
        """A pod went."""
        if (before := self.objects.pop(key, None)) is not None:
            self._swap(before.node, before, None)

    def _swap(self, node: str, before: PodEntry | None, after: PodEntry | None) -> None:
        here = self._held.get(node)
        if here is None:
            here = self._held[node] = NodeEntry()
        change = here.replace_pod(before, after)
        if here.node is not None:
            self._nodes.put(here.view(), change)
        elif not here.pods:
            del self._held[node]


class NamespaceSink(_Sink):
    """Takes namespaces."""

    def __init__(self) -> None:
        self.objects: Final[dict[str, Any]] = {}

    def put(self, namespace: Any, /) -> None:
        """A namespace came or became different."""
        self.objects[namespace.metadata.name] = namespace

    def remove(self, key: Key, /) -> None:
        """A namespace went."""
        self.objects.pop(key[1], None)


class UnplacedSink(_Sink):
    """Takes pods that are bound to no node, and keeps those of our schedulers."""

    def __init__(self, schedulers: Iterable[str]) -> None:
        self._schedulers = frozenset(schedulers)
        self.objects: Final[dict[Key, Any]] = {}

    def set_schedulers(self, schedulers: Iterable[str]) -> bool:
        """Which schedulers are ours from now on; whether the pods must be listed again, because one of them is new."""
        before, self._schedulers = self._schedulers, frozenset(schedulers)
        for key in [key for key, pod in self.objects.items() if not self._is_ours(pod)]:
            del self.objects[key]
        return not self._schedulers <= before

    def put(self, pod: Any, /) -> None:
        """A pod of whatever scheduler came or became different."""
        key = (pod.metadata.namespace, pod.metadata.name)
        if self._is_ours(pod) and not pod.spec.nodeName:
            self.objects[key] = pod
        else:
            self.remove(key)

    def remove(self, key: Key, /) -> None:
        """A pod went, or is bound."""
        self.objects.pop(key, None)

    def _is_ours(self, pod: Any) -> bool:
        return pod.spec.schedulerName in self._schedulers
