"""Outcomes of pods that are told once their time has come, if the pods are still there and still say so. No I/O."""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from fairlead.kube.watch.store import Key
from fairlead.learned.outcomes import PodOutcome


class DueOutcome(NamedTuple):
    """Outcome of a pod, and the rules that it is for."""

    at: int
    """Time in seconds since 1970."""
    pod: Key
    uid: str
    place: int
    """Place of the rules among those of the pod."""
    outcome: PodOutcome


class DueOutcomes:
    """Outcomes by their time. A pod that goes takes its own along: most pods go long before their time has come."""

    def __init__(self) -> None:
        self._of_pods: dict[Key, Sequence[DueOutcome]] = {}
        self._by_time: dict[int, dict[DueOutcome, None]] = {}
        self._times: list[int] = []

    def __len__(self) -> int:
        return sum(map(len, self._by_time.values()))

    def set(self, pod: Key, due: Sequence[DueOutcome]) -> None:
        """Keep these for a pod, in place of those that it had."""
        before = self._of_pods.pop(pod, ())
        for one in before:
            if one not in due:
                self._by_time.get(one.at, {}).pop(one, None)
        if due:
            self._of_pods[pod] = due
        for one in due:
            if one not in before:
                if one.at not in self._by_time:
                    self._by_time[one.at] = {}
                    heapq.heappush(self._times, one.at)
                self._by_time[one.at][one] = None

    def take(self, now: int) -> list[DueOutcome]:
        """Return and forget those whose time has come."""
        taken: list[DueOutcome] = []
        while self._times and self._times[0] <= now:
            taken += self._by_time.pop(heapq.heappop(self._times))
        return taken

    def clear(self) -> None:
        """Forget all."""
        self._of_pods.clear()
        self._by_time.clear()
        self._times.clear()
