"""A watch of all pods that counts each moment in which a card holds more than it has."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Self

from support.kube.lasting_watch import RELISTED, LastingWatch
from testbed.api import Api, Object

_COPY = "fairlead.dev/devices"


@dataclass(slots=True, eq=False)
class CardWatch:
    """From when it is entered on; pods are those of one namespace."""

    api: Api
    path: str
    resource: str
    size: int
    """What a card has."""
    overbooked: int = 0
    """Moments in which some card held more; a moment is a change of a pod."""
    bound: int = 0
    """Pods that were seen bound."""
    without_grant: int = 0
    """Of these, pods whose Binding bore no grant."""
    most: int = 0
    _held: dict[str, tuple[str, dict[str, int]]] = field(default_factory=dict)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _version: str = ""

    def __enter__(self) -> Self:
        self._version = self.api.get(self.path)["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._watch, name="cards", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def reached(self, version: str) -> bool:
        """Return whether all changes up to a version were seen."""
        return int(self._version) >= int(version)

    def _watch(self) -> None:
        watch = LastingWatch(self.api, self.path, self._version, self._end.is_set)
        for event in watch.events(timeoutSeconds="3", allowWatchBookmarks="true"):
            if event["type"] == RELISTED:
                left = {item["metadata"]["uid"] for item in event["object"]["items"]}
                self._held = {uid: grant for uid, grant in self._held.items() if uid in left}
            elif event["type"] != "BOOKMARK":
                self._take(event)
            self._version = watch.version

    def _take(self, event: Object) -> None:
        pod: Object = event["object"]
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if event["type"] == "DELETED" or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self._held.pop(uid, None)
            return
        if not node or uid in self._held:
            return
        self.bound += 1
        copy = json.loads(pod["metadata"].get("annotations", {}).get(_COPY, "{}"))
        self.without_grant += not copy
        self._held[uid] = node, {one["id"]: one[self.resource] for one in copy.get("gpu", ())}
        cards = Counter[tuple[str, str]]()
        for its_node, grant in self._held.values():
            for card, amount in grant.items():
                cards[its_node, card] += amount
        highest = max(cards.values(), default=0)
        self.most = max(self.most, highest)
        self.overbooked += highest > self.size
