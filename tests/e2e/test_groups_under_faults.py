"""Replicas are stopped and killed, packets are late, groups want more room than there is: none starts in part.

Pods are bound as a scheduler does that keeps the room of a pod while its call is open. `FAIRLEAD_CHAOS_SEEDS=20` runs
as many seeds as the decision page tells of, and compares with members that are bound singly.
"""

import logging
import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
import yaml

from extender import Stage
from support.grants.late_packets import late_packets, through
from support.kube.lasting_watch import LastingWatch
from support.process.serving import MakeServing, Serving
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

LOG = logging.getLogger(__name__)
SEEDS = int(os.environ.get("FAIRLEAD_CHAOS_SEEDS", "2"))
IS_LONG = "FAIRLEAD_CHAOS_SEEDS" in os.environ
JOB = "example.org/job"
SIZE, GROUPS, PLACES = 8, 12, 20
_GANG: dict[str, Any] = {"name": "job", "group": f"pod.metadata.labels['{JOB}']", "size": str(SIZE), "holdFor": "5s"}
_FOR_S = 20.0 if IS_LONG else 12.0
_FAULT_S = 1.5
_STOPPED_S = (0.3, 2.5)
_BACKOFF_S = (0.2, 1.0)
_LONGER_S = 60.0
"""Time after the last fault in which a group has to be complete, if none was before."""
_LATE_S = 3.0


@dataclass(slots=True, eq=False)
class GroupWatch:
    """From when it is entered on: which members have a node, and for how long groups had only a part of them."""

    api: Api
    path: str
    nodes: dict[str, str] = field(default_factory=dict)
    """Node of each pod that was ever bound, by its name."""
    bound: Counter[str] = field(default_factory=Counter)
    """Bound members of each group."""
    first: dict[str, float] = field(default_factory=dict)
    """When the first member of a group was bound."""
    complete: dict[str, float] = field(default_factory=dict)
    """When the last one was."""
    early: set[str] = field(default_factory=set)
    """Groups with a bound member, of which never as many calls were open as it has members."""
    most_open: Counter[str] = field(default_factory=Counter)
    """Most calls of a group that were open at once."""
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _version: str = ""

    def __enter__(self) -> Self:
        self._version = self.api.get(self.path)["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._watch, name="groups", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()

    def reached(self, version: str) -> bool:
        """Return whether all changes up to a version were seen."""
        return int(self._version) >= int(version)

    def longest_in_part(self) -> float:
        """Return for how long a group had only a part of its members bound."""
        now = time.monotonic()
        return max((self.complete.get(group, now) - began for group, began in self.first.items()), default=0.0)

    def _watch(self) -> None:
        watch = LastingWatch(self.api, self.path, self._version, self._end.is_set)
        for event in watch.events(timeoutSeconds="3", allowWatchBookmarks="true"):
            if event["type"] in ("ADDED", "MODIFIED"):
                self._take(event["object"])
            self._version = watch.version

    def _take(self, pod: Object) -> None:
        name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
        if not node or name in self.nodes:
            return
        group, now = pod["metadata"]["labels"][JOB], time.monotonic()
        self.bound[group] += 1
        self.nodes[name] = node
        self.first.setdefault(group, now)
        if self.most_open[group] < SIZE:
            self.early.add(group)
        if self.bound[group] == SIZE:
            self.complete[group] = now


@dataclass(slots=True, eq=False)
class Cycles:
    """A scheduler: one pod after the other gets a place, which is kept until its bind call is answered."""

    stage: Stage
    replicas: list[Serving]
    watch: GroupWatch
    seed: int
    free: set[str]
    refused: int = 0
    _open: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queue: deque[tuple[float, str]] = field(default_factory=deque)
    _number: int = 0

    def run(self, for_s: float, longer_s: float) -> None:
        """Make the pods, and place them for so long, and then until a group is complete."""
        chance = random.Random(self.seed)  # noqa: S311  a test
        groups = [f"g{number}" for number in range(GROUPS)]
        names = [f"{group}-{number}" for number in range(SIZE) for group in groups]
        self.stage.api.create_all(self.stage.path, [self._pod(name) for name in names])
        uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in self.stage.api.items(self.stage.path)}
        chance.shuffle(names)
        self._queue.extend((0.0, name) for name in names)
        taken_away, end = set[str](), time.monotonic() + for_s
        with ThreadPoolExecutor(len(names)) as pool:
            while time.monotonic() < (end if self.watch.complete else end + longer_s) and len(taken_away) < GROUPS:
                for group in self.watch.complete.keys() - taken_away:
                    taken_away.add(group)
                    pool.submit(self._end, group)
                time.sleep(0.005)
                with self._lock:
                    due, name = self._queue.popleft() if self._queue else (float("inf"), "")
                    if due > time.monotonic():
                        if name:
                            self._queue.append((due, name))
                        continue
                    place = chance.choice(sorted(self.free)) if self.free else ""
                    self.free.discard(place)
                if place:
                    pool.submit(self._bind, name, uids[name], place, chance.choice(self.replicas))
                else:
                    pool.submit(self._again, name, "Unschedulable", "Insufficient cpu")

    def _bind(self, name: str, uid: str, place: str, replica: Serving) -> None:
        group = name.partition("-")[0]
        with self._lock:
            self._open[group] += 1
            self.watch.most_open[group] = max(self.watch.most_open[group], self._open[group])
        args = {"PodName": name, "PodNamespace": self.stage.name, "PodUID": uid, "Node": place}
        try:
            why = replica.call("bind", args).get("Error", "")
        except (OSError, ValueError) as error:  # it is stopped, killed, or starts
            why = str(error) or type(error).__name__
        with self._lock:
            self._open[group] -= 1
        if why:
            with self._lock:
                self.refused += 1
                self.free.add(place)
            self._again(name, "SchedulerError", why)

    def _again(self, name: str, reason: str, why: str) -> None:
        """Tell the pod why, and let it come again unless it has a node."""
        with self._lock:
            self._number += 1
            number = self._number
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": f"{why} ({number})"}
        path = f"{self.stage.path}/{name}"
        with suppress(ClusterError):
            self.stage.api.patch(f"{path}/status", {"status": {"conditions": [condition]}})
            if not self.stage.api.get(path)["spec"].get("nodeName"):
                backoff_s = random.Random(f"{self.seed} {number}").uniform(*_BACKOFF_S)  # noqa: S311  a test
                with self._lock:
                    self._queue.append((time.monotonic() + backoff_s, name))

    def _end(self, group: str) -> None:
        for number in range(SIZE):
            name = f"{group}-{number}"
            self.stage.api.delete(f"{self.stage.path}/{name}", gracePeriodSeconds="0")
            with self._lock:
                self.free.add(self.watch.nodes[name])

    def _pod(self, name: str) -> Object:
        spec = {"schedulerName": self.stage.name, "automountServiceAccountToken": False}
        labels = {JOB: name.partition("-")[0]}
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": spec | {"containers": [{"name": "main", "image": "main"}]},
        }


@contextmanager
def _faults(replicas: list[Serving], seed: int, for_s: float) -> Iterator[None]:
    """Stop or kill a replica again and again for so long."""
    until = time.monotonic() + for_s
    end, chance = threading.Event(), random.Random(f"faults {seed}")  # noqa: S311  a test

    def work() -> None:
        while time.monotonic() < until and not end.wait(chance.uniform(0.1, 2 * _FAULT_S)):
            one = chance.choice(replicas)
            if chance.random() < 0.5:
                with one.stopped():
                    end.wait(chance.uniform(*_STOPPED_S))
            else:
                one.kill()
                one.start()

    thread = threading.Thread(target=work, name="faults", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _started(
    stage: Stage, make_serving: MakeServing, nodes: list[str], folder: Path, seed: int, *, is_gang: bool = True
) -> GroupWatch:
    """Return what a watch has seen while groups were placed."""
    kubeconfig = make_serving().kubeconfig
    server = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    with ExitStack() as stack:
        port = stack.enter_context(late_packets(server.port or 443, seed))
        replicas = [make_serving(through(kubeconfig, port, folder / f"kubeconfig-{number}")) for number in range(2)]
        singly = {"annotations": [{"key": "example.org/by", "expression": "'us'"}]}
        for one in replicas:
            one.put("groups", binding={"gang": [_GANG]} if is_gang else singly)
            one.start()
        watch = stack.enter_context(GroupWatch(stage.api, stage.path))
        cycles = Cycles(stage, replicas, watch, seed, {*nodes})
        with _faults(replicas, seed, _FOR_S):
            cycles.run(_FOR_S, _LONGER_S if is_gang else 0.0)
        time.sleep(_LATE_S)
        last = stage.api.get(stage.path, limit="1")["metadata"]["resourceVersion"]
        wait_for("the watch to have seen all", lambda: watch.reached(last) or None)
        longest_s = watch.longest_in_part()
        for one in replicas:
            one.kill()
    stage.api.delete(stage.path, gracePeriodSeconds="0")
    in_part = len(watch.first) - len(watch.complete)
    LOG.info(
        "seed %d%s: %d of %d complete, %d in part at the end, %d began early, longest in part %.2f s, %d refused",
        *(seed, "" if is_gang else ", singly", len(watch.complete), GROUPS, in_part, len(watch.early)),
        *(longest_s, cycles.refused),
    )
    return watch


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_group_starts_in_part(
    stage: Stage, make_serving: MakeServing, kwok_nodes: MakeNodes, tmp_path: Path, seed: int
) -> None:
    found = _started(stage, make_serving, kwok_nodes(PLACES, equal(cpu="1")), tmp_path, seed)
    assert found.early == set()
    assert found.complete, "it has to be tried"


if IS_LONG:  # it compares, and proves nothing about the product

    def test_members_that_are_bound_singly_start_in_part(
        stage: Stage, make_serving: MakeServing, kwok_nodes: MakeNodes, tmp_path: Path
    ) -> None:
        found = _started(stage, make_serving, kwok_nodes(PLACES, equal(cpu="1")), tmp_path, 0, is_gang=False)
        assert len(found.early) > 1
