"""Objects as bytes of the API server, and a mirror that takes them."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from fairlead.cel.values.structs import NO_INT, NO_TEXT
from fairlead.mirror import decode
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.watched_node import WatchedNode
from fairlead.policy.nodes.journal import JournalEntry
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.reads import NodeChange, Reads

CREATED: Final = "2026-01-01T00:00:00Z"
CREATED_NS: Final = 1_767_225_600 * 10**9
FOUND: Final = 1_800_000_000 * 10**9
Object = dict[str, Any]


def node(
    name: str = "n1",
    *,
    uid: str = "",
    version: int = 1,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    conditions: Sequence[Mapping[str, str]] = (),
    **spec: Any,
) -> Object:
    metadata = {"name": name, "uid": uid or f"u-{name}", "resourceVersion": str(version), "creationTimestamp": CREATED}
    return {
        "metadata": metadata | {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": spec,
        "status": {"allocatable": dict(allocatable or {"cpu": "8", "pods": "110"}), "conditions": [*conditions]},
    }


def pod(
    name: str = "p",
    *,
    on: str = "n1",
    uid: str = "",
    version: int = 1,
    cpu: str = "1",
    phase: str = "Running",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conditions: Sequence[Mapping[str, Any]] = (),
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    metadata = {"name": name, "namespace": "ml", "uid": uid or f"u-{name}", "resourceVersion": str(version)}
    containers = [{"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": metadata | {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"containers": containers, **({"nodeName": on} if on else {}), **spec},
        "status": {"phase": phase, "conditions": [*conditions], **(status or {})},
    }


def namespace(name: str = "ml", **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def written(obj: Object) -> bytes:
    return json.dumps(obj, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    """Return what an object of the mirror has, whichever decoder made it; absent texts and numbers are None."""
    if value is NO_TEXT or value is NO_INT:
        return None
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


class FedMirror:
    """A mirror that is told of objects; it sees them at the time that its clock shows."""

    def __init__(self, *, annotations: Collection[str] = (), schedulers: Collection[str] = ("fairlead",)) -> None:
        self.now = FOUND
        self.mirror = Mirror(lambda: self.now, schedulers)
        self.mirror.nodes.note_reads([Reads(node=frozenset({()}))])  # every change of a node is in the journal
        self.placed = decode.PlacedDecoder(annotations)

    def node(self, *args: Any, **fields: Any) -> list[JournalEntry]:
        """Return the node that came of it."""
        return self._noted(lambda: self.mirror.node_sink.put(WatchedNode(written(node(*args, **fields)))))

    def pod(self, *args: Any, **fields: Any) -> list[JournalEntry]:
        return self._noted(lambda: self.mirror.placed_sink.put(self.placed(written(pod(*args, **fields)))))

    def unplaced(self, *args: Any, **fields: Any) -> None:
        self.mirror.unplaced_sink.put(decode.pod(written(pod(*args, on="", **fields))))

    def namespace(self, *args: Any, **labels: str) -> None:
        self.mirror.namespace_sink.put(decode.namespace(written(namespace(*args, **labels))))

    def node_gone(self, name: str) -> list[JournalEntry]:
        return self._noted(lambda: self.mirror.node_sink.remove(("", name)))

    def pod_gone(self, name: str) -> list[JournalEntry]:
        return self._noted(lambda: self.mirror.placed_sink.remove(("ml", name)))

    def view(self, name: str = "n1") -> NodeView:
        found = self.mirror.nodes.view_of(name)
        assert found is not None
        return found

    def bring(self, node: Any, **how: bool) -> NodeView:
        """Return the view of a node in a request."""
        return self.mirror.view_full_node(self.mirror.decode_full_node(written(node), **how))

    def on(self, name: str = "n1") -> list[str]:
        return sorted(one.name for one in self.view(name).pods)

    def _noted(self, do: Any) -> list[JournalEntry]:
        before = len(self.mirror.nodes.journal.entries)
        do()
        return [one for one in self.mirror.nodes.journal.entries[before:] if isinstance(one, JournalEntry)]


def change(entries: Sequence[JournalEntry]) -> NodeChange | None:
    """The only one; None stands for everything."""
    (entry,) = entries
    return entry.change
