"""Watchers of the mirror: they hear of pods, nodes and namespaces as they come and go."""

import logging
from collections.abc import Callable
from typing import Any, Final

from fairlead.logs import FaultError, RateLimiter
from fairlead.mirror.pod_entry import Key, PodEntry

LOG: Final = logging.getLogger(__name__)


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

    def namespace_changed(self, namespace: Any, before: Any | None) -> None:
        """Hear of a namespace that was added or changed, and of what it was before."""

    def node_joined(self) -> None:
        """Hear of a node that was not there before."""


class PodWatchers(PodWatcher):
    """Watchers that each hear everything. A fault of one is logged: the mirror and the others go on without it."""

    def __init__(self) -> None:
        self._each: tuple[PodWatcher, ...] = ()
        self._rate_limiter = RateLimiter()

    def add(self, watcher: PodWatcher) -> None:
        """Let a watcher hear what comes from now on."""
        if watcher not in self._each:
            self._each = (*self._each, watcher)

    def discard(self, watcher: PodWatcher) -> None:
        """Let a watcher hear nothing more."""
        self._each = tuple(one for one in self._each if one is not watcher)

    def put_unplaced(self, pod: Any, before: Any | None) -> None:
        """Tell all of an unplaced pod."""
        self._tell(lambda one: one.put_unplaced(pod, before))

    def remove_unplaced(self, pod: Any) -> None:
        """Tell all of an unplaced pod that is gone."""
        self._tell(lambda one: one.remove_unplaced(pod))

    def put_placed(self, key: Key, entry: PodEntry) -> None:
        """Tell all of a placed pod."""
        self._tell(lambda one: one.put_placed(key, entry))

    def remove_placed(self, key: Key) -> None:
        """Tell all of a placed pod that is gone."""
        self._tell(lambda one: one.remove_placed(key))

    def namespace_changed(self, namespace: Any, before: Any | None) -> None:
        """Tell all of a namespace."""
        self._tell(lambda one: one.namespace_changed(namespace, before))

    def node_joined(self) -> None:
        """Tell all of a new node."""
        self._tell(lambda one: one.node_joined())

    def _tell(self, news: Callable[[PodWatcher], None]) -> None:
        for one in self._each:
            try:
                news(one)
            except Exception as error:  # the watch that feeds the mirror must go on
                if (more := self._rate_limiter.allow(type(one).__name__)) is not None:
                    extra = {"watcher": type(one).__name__, **more}
                    LOG.exception("mirror.watcher_fault", exc_info=FaultError(error), extra=extra)
