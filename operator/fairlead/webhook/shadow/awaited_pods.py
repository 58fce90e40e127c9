"""Awaited pods: those for which annotations are in shadow, until the mirror sees on which node they are placed."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from fairlead.webhook.shadow.observed_calls import ObservedCall

PODS: Final = 256
BYTES: Final = 4 << 20


@dataclass(slots=True, eq=False)
class AwaitedPods:
    """Pods by UID, the latest ones, limited in number and bytes."""

    size: int = 0
    """Bytes of all."""
    _pods: OrderedDict[str, tuple[ObservedCall, int]] = field(default_factory=OrderedDict)

    def put(self, call: ObservedCall) -> None:
        """Await the pod of a call, or go on awaiting it."""
        self.take(call.pod.uid)
        size = call.size
        self._pods[call.pod.uid] = call, size
        self.size += size
        while len(self._pods) > PODS or self.size > BYTES:
            _, (_, gone) = self._pods.popitem(last=False)
            self.size -= gone

    def take(self, uid: str) -> ObservedCall | None:
        """Await a pod no longer; return its last call, None if it was not awaited."""
        found = self._pods.pop(uid, None)
        if found is None:
            return None
        self.size -= found[1]
        return found[0]
