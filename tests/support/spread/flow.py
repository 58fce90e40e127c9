"""Makes pods, takes them away after their time, and simulates the load of nodes meanwhile, in threads of its own."""

import itertools
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Self

from support.spread.simulation import LIFE_S, RATE, REQUEST, Look, SimulatedLoad, cores_of
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError

_MAKERS = 4
_STEP_S = 0.25
_PLACED_S = 60.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod that has a node."""

    name: str
    node: str
    scheduled: int
    """When the API server says that it was, in whole seconds since 1970."""
    at: float
    """When that was seen, of a clock that never goes back."""
    cores: float


@dataclass(slots=True, eq=False, kw_only=True)
class Flow:
    """In a namespace without pods, for its scheduler."""

    api: Api
    namespace: str
    scheduler: str
    nodes: Sequence[str]
    seed: int = 0
    load: SimulatedLoad = field(init=False)
    placed: dict[str, Placed] = field(default_factory=dict)
    """All that ever had a node, by name."""
    looks: list[Look] = field(default_factory=list)
    scrapes: list[float] = field(default_factory=list)
    """When the load was asked for, in seconds since 1970."""
    _present: dict[str, Placed] = field(default_factory=dict)
    _end: threading.Event = field(default_factory=threading.Event)
    _faults: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.load = SimulatedLoad(self.nodes, self.seed)

    @property
    def path(self) -> str:
        """Path of the pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def __enter__(self) -> Self:
        version = self.api.get(self.path)["metadata"]["resourceVersion"]
        makers = (partial(self._make, time.monotonic(), first) for first in range(_MAKERS))
        for work in (*makers, self._sweep, self._simulate, partial(self._watch, version)):
            thread = threading.Thread(target=self._guarded, args=(work,), name="spread", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def scrape(self) -> str:
        """Return what an exporter serves, and remember when."""
        text = self.load.text()
        self.scrapes.append(time.time())
        return text

    def run(self, seconds: float) -> list[Look]:
        """Wait so long, and until as many pods have got a node; return what was seen meanwhile."""
        begun, count, seen = time.monotonic(), len(self.placed), len(self.looks)

        def enough() -> bool:
            self._check()
            return time.monotonic() >= begun + seconds and len(self.placed) >= count + RATE * seconds

        wait_for(f"{RATE * seconds:g} pods more to be placed", enough, timeout_s=seconds + _PLACED_S)
        return self.looks[seen:]

    def _make(self, begun: float, first: int) -> None:
        for number in itertools.count(first, _MAKERS):
            if self._end.wait(max(0.0, begun + number / RATE - time.monotonic())):
                return
            self.api.create(self.path, _pod(number, self.scheduler))

    def _watch(self, version: str) -> None:
        while not self._end.is_set():
            query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "5"}
            for line in self.api.lines(self.path, **query):
                event: Object = json.loads(line)
                pod: Object = event["object"]
                if event["type"] == "ERROR":
                    raise ClusterError(f"the watch of pods: {pod}")
                version = pod["metadata"]["resourceVersion"]
                name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
                if node and name not in self.placed:
                    self.placed[name] = self._present[name] = Placed(
                        name, node, _scheduled(pod), time.monotonic(), cores_of(int(name.rpartition("-")[2]))
                    )

    def _sweep(self) -> None:
        with ThreadPoolExecutor(_MAKERS) as pool:
            while not self._end.wait(_STEP_S):
                over = [one for one in self._present.copy().values() if time.monotonic() - one.at >= LIFE_S]
                [*pool.map(self._take_away, over)]

    def _take_away(self, one: Placed) -> None:
        self.api.delete(f"{self.path}/{one.name}")
        del self._present[one.name]

    def _simulate(self) -> None:
        before = time.monotonic()
        while not self._end.wait(_STEP_S):
            cores = defaultdict[str, float](float)
            for one in self._present.copy().values():
                cores[one.node] += one.cores
            now = time.monotonic()
            self.load.advance(cores, now - before)
            self.looks.append(Look(now, dict(self.load.loads)))
            before = now

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  whoever waits for the flow raises it
            self._faults.append(f"{type(error).__name__}: {error}")

    def _check(self) -> None:
        if self._faults:
            raise AssertionError(f"the flow itself has failed: {'; '.join(self._faults)}")


def _scheduled(pod: Object) -> int:
    conditions = pod.get("status", {}).get("conditions", [])
    times = [
        one["lastTransitionTime"] for one in conditions if one["type"] == "PodScheduled" and one["status"] == "True"
    ]
    return int(datetime.fromisoformat(times[0]).timestamp())


def _pod(number: int, scheduler: str) -> Object:
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": REQUEST}}}
    spec = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    return {"metadata": {"name": f"s-{number:06}", "labels": {"app": "web"}}, "spec": spec}
