"""Watcher of the mirror: it hears of pods and nodes as they come and go."""

from typing import Any

from fairlead.mirror.pod_entry import Key, PodEntry


class PodWatcher:
    """Watcher of the mirror. Each method does nothing unless it is overridden; all are called after the change."""

    def put_unplaced(self, pod: Any, before: Any | None) -> None:
        """Hear of an unplaced pod of a managed scheduler, and of what the mirror had under its name."""

    def remove_unplaced(self, pod: Any) -> None:
        """Hear that an unplaced pod is gone, or has a node."""

    def put_placed(self, key: Key, entry: PodEntry) -> None:
        """Hear of a placed pod, which may be another one than before under its name."""

    def remove_placed(self, key: Key) -> None:
        """Hear that a placed pod is gone, or has ended."""

    def namespace_changed(self, name: str) -> None:
        """Hear of a namespace that was added or changed."""

    def node_joined(self) -> None:
        """Hear of a node that was not there before."""
