"""Watchers hear what comes and goes in the mirror, after it is there; a fault of one is heard by no other."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.mirror.pod_watcher import PodWatcher
from support.mirror import FedMirror


class Noted(PodWatcher):
    """A watcher that notes what it hears, with what the mirror has then."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror, self.news = mirror, list[tuple[Any, ...]]()

    def put_unplaced(self, pod: Any, before: Any | None) -> None:
        version = None if before is None else str(before.metadata.resourceVersion)
        is_there = self.mirror.unplaced("ml", str(pod.metadata.name)) is pod
        self.news.append(("unplaced", str(pod.metadata.uid), version, is_there))

    def remove_unplaced(self, pod: Any) -> None:
        is_there = self.mirror.unplaced("ml", str(pod.metadata.name)) is not None
        self.news.append(("not unplaced", str(pod.metadata.uid), is_there))

    def put_placed(self, key: Key, entry: PodEntry) -> None:
        self.news.append(("placed", key[1], entry.node, [one.pod.name for one in self.mirror.placed_on(entry.node)]))

    def remove_placed(self, key: Key) -> None:
        self.news.append(("not placed", key[1], key in self.mirror.placed_sink.objects))

    def namespace_changed(self, namespace: Any, before: Any | None) -> None:
        labels = None if before is None else dict(before.metadata.labels)
        self.news.append(("namespace", dict(namespace.metadata.labels), labels))

    def node_joined(self) -> None:
        self.news.append(("node", len(self.mirror.nodes.slots)))

    def take(self) -> list[tuple[Any, ...]]:
        news, self.news = self.news, []
        return news


class Faulty(PodWatcher):
    """A watcher that fails at everything."""

    def __getattribute__(self, name: str) -> Any:
        raise KeyError(name)


def unplaced_gone(told: FedMirror) -> None:
    told.mirror.unplaced_sink.remove(("ml", "p"))


# what is told to the mirror, and what a watcher hears of it
STEPS: list[tuple[Callable[[FedMirror], object], list[tuple[Any, ...]]]] = [
    (lambda told: told.node("n1"), [("node", 1)]),
    (lambda told: told.node("n1", labels={"a": "b"}, version=2), []),
    (lambda told: told.node("n2"), [("node", 2)]),
    (lambda told: told.unplaced(schedulerName="fairlead"), [("unplaced", "u-p", None, True)]),
    (lambda told: told.unplaced(schedulerName="fairlead", version=2), [("unplaced", "u-p", "1", True)]),
    (lambda told: told.unplaced("other", schedulerName="another"), []),
    (unplaced_gone, [("not unplaced", "u-p", False)]),
    (unplaced_gone, []),
    (lambda told: told.pod(), [("placed", "p", "n1", ["p"])]),
    (lambda told: told.pod(version=2), []),
    (lambda told: told.pod(labels={"a": "b"}, version=3), [("placed", "p", "n1", ["p"])]),
    (lambda told: told.pod(phase="Succeeded", version=4), [("not placed", "p", False)]),
    (lambda told: told.pod_gone("p"), []),
    (lambda told: told.pod("q"), [("placed", "q", "n1", ["q"])]),
    (lambda told: told.pod_gone("q"), [("not placed", "q", False)]),
    (lambda told: told.namespace(), [("namespace", {}, None)]),
    (lambda told: told.namespace(team="a"), [("namespace", {"team": "a"}, {})]),
    (lambda told: told.node_gone("n2"), []),
    (lambda told: told.node("n2", version=3), [("node", 2)]),
    (lambda told: told.unplaced(schedulerName="fairlead"), [("unplaced", "u-p", None, True)]),
    (lambda told: told.mirror.unplaced_sink.set_schedulers(["another"]), [("not unplaced", "u-p", False)]),
]


def test_each_thing_is_heard_once_and_after_it_is_there() -> None:
    told = FedMirror()
    noted = Noted(told.mirror)
    told.mirror.watchers.add(noted)
    told.mirror.watchers.add(noted)
    found = []
    for do, _ in STEPS:
        do(told)
        found.append(noted.take())
    assert found == [news for _, news in STEPS]


def test_a_watcher_that_fails_keeps_neither_the_mirror_nor_others_from_going_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = FedMirror()
    noted = Noted(told.mirror)
    for watcher in (Faulty(), noted):
        told.mirror.watchers.add(watcher)
    for do, news in STEPS:
        do(told)
        assert noted.take() == news
    lines = [one for one in caplog.records if one.msg == "mirror.watcher_fault"]
    assert 1 <= len(lines) <= 10
    assert vars(lines[0])["watcher"] == "Faulty"


def test_a_watcher_that_is_discarded_hears_nothing_more() -> None:
    told = FedMirror()
    noted = Noted(told.mirror)
    told.mirror.watchers.add(noted)
    told.mirror.watchers.discard(noted)
    told.mirror.watchers.discard(noted)
    told.node()
    assert noted.take() == []
