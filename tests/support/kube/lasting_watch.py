"""A watch that outlives its API server: after a gap it begins with a list of all objects."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from urllib3.exceptions import HTTPError

from testbed.api import Api, Object
from testbed.errors import ClusterError

RELISTED: Final = "RELISTED"
"""Type of the event whose object is the list: what is not in it is gone. An event for each of its items follows."""
_TYPES: Final = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
_PAUSE_S: Final = 0.5


@dataclass(slots=True)
class LastingWatch:
    """Of the objects at a path, from a resourceVersion on."""

    api: Api
    path: str
    version: str
    is_over: Callable[[], bool]

    def events(self, **query: str) -> Iterator[Object]:
        """Yield events until it is over."""
        while not self.is_over():
            try:
                yield from self._watched(query)
            except (ClusterError, HTTPError, ValueError):  # the last is half a line
                yield from self._relisted()

    def _watched(self, query: Mapping[str, str]) -> Iterator[Object]:
        for line in self.api.lines(self.path, watch="true", resourceVersion=self.version, **query):
            event: Object = json.loads(line)
            if event.get("type") not in _TYPES:
                raise ClusterError(f"the watch of {self.path}: {event}")
            self.version = event["object"]["metadata"]["resourceVersion"]
            yield event

    def _relisted(self) -> Iterator[Object]:
        while not self.is_over():
            try:
                listed = self.api.get(self.path)
            except ClusterError:
                time.sleep(_PAUSE_S)
                continue
            self.version = listed["metadata"]["resourceVersion"]
            yield {"type": RELISTED, "object": listed}
            yield from ({"type": "ADDED", "object": item} for item in listed["items"])
            return
