"""Makes pods, watches where they come to, and takes them away again, in threads of its own."""

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from support.kube import audit
from support.kube.lasting_watch import RELISTED, LastingWatch
from support.stream.follow import Follow
from support.stream.tally import CUT_OFF, MANY, Row, StreamedPod, table, tally, wrong
from testbed.api import Api, ApiError, Object, wait_for
from testbed.errors import ClusterError

LOG = logging.getLogger(__name__)
RATE = 20
"""Pods a second."""
LOST_S = 60.0
"""After a fault's end a pod without a node is lost."""
VALUES: Mapping[str, Any] = {"drainSeconds": 5, "schedulerDefaults": {"timeout": "5s"}}
"""Values of the chart. What a machine is too slow for within a second is no fault: only what rolls and dies may make an
attempt fail.
"""
_MAKERS = 4
"""One alone waits for the API server between two pods, and on a busy machine would make fewer."""
_KEPT = 10
"""For so many seconds: nodes must never be full."""
_WAITING = 2 * RATE
"""So many may wait for a node, until fewer are made: binds of more at once would time out on a busy machine, be tried
again, and so keep it busy."""
_LIVING = 15 * RATE
"""So many may be there, until fewer are made: a busy machine takes them away later, and nodes must never be full."""
_AGAIN_S = 0.5
"""Until an API server that has gone is asked again."""
_BINDING = '"subresource":"binding"'

Failures = Callable[[], Mapping[str, int]]
"""How many attempts failed, by the pod's name."""


@dataclass(slots=True, eq=False, kw_only=True)
class Stream:
    """Begun once and for all faults of a cluster."""

    api: Api
    namespace: str
    log: Follow
    """The API server's audit log."""
    nodes: Mapping[str, str]
    """The pool of each node."""
    schedulers: dict[str, Mapping[str, str]]
    """To which pool of nodes each brings pods of a pool. One more may be added at any time."""
    asks: Mapping[str, str] = field(default_factory=dict)
    """Extended resources of each pod."""
    pods: dict[str, StreamedPod] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    _bound: int = 0
    _forgotten: int = 0
    """Of those that came to a node."""
    _counted: set[str] = field(default_factory=set)
    _swept: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)
    _notes: dict[str, str] = field(default_factory=dict)
    """The last of the notes about each pod."""
    _no_more: threading.Event = field(default_factory=threading.Event)
    """Set: no pods are made any more."""
    _end: threading.Event = field(default_factory=threading.Event)
    _faults: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Path of the pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def begin(self) -> None:
        """In a namespace without pods."""
        version = self.api.get(self.path)["metadata"]["resourceVersion"]
        makers = (partial(self._make, time.monotonic(), first) for first in range(_MAKERS))
        for work in (*makers, self._sweep, lambda: self._watch(version)):
            thread = threading.Thread(target=self._guarded, args=(work,), name="stream", daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """No more pods."""
        self._no_more.set()
        self._end.set()
        for thread in self._threads:
            thread.join()

    def longest_wait_s(self, since: float) -> float:
        """The longest time from one pod that came to a node to the next, from a moment on."""
        times = sorted(pod.bound for pod in self._all() if pod.bound is not None and pod.bound >= since)
        return max((later - earlier for earlier, later in itertools.pairwise([since, *times])), default=0.0)

    def flow(self, seconds: int) -> None:
        """Wait until pods of so many seconds have come to a node."""
        since, count = time.monotonic(), seconds * RATE

        def placed() -> bool:
            self._check()
            return sum(pod.created > since and pod.bound is not None for pod in self._all()) >= count

        wait_for(f"{count} pods more to be placed", placed, timeout_s=LOST_S + seconds)

    @contextmanager
    def through(
        self, what: str, *, provoked: Failures | None = None, leaves: bool = False, lasts: bool = False
    ) -> Iterator[None]:
        """A fault, from its begin to its end. Its row counts all pods since the row before.

        `provoked`: attempts are to fail, and this knows of more of them than events tell. `leaves`: nobody is to place
        what comes after it has begun. `lasts`: it goes on to its end, and attempts may fail as long as that.
        """
        begun = time.monotonic()
        yield
        ended = time.monotonic()
        due = begun if leaves else ended
        pods = [pod for pod in self._all() if pod.created <= ended and pod.name not in self._counted]
        end = ended + LOST_S
        while any(pod.bound is None and pod.created <= due for pod in pods) and time.monotonic() < end:
            self._check()
            time.sleep(0.05)
        self._read(pods)
        for known in (self._events, *([provoked] if provoked else [])):
            for name, count in known().items():
                if name in self.pods:
                    self.pods[name].failed = max(self.pods[name].failed, count)
        self._counted.update(pod.name for pod in pods)
        row = tally(what, pods, begun, ended, due=due)
        self.rows.append(row)
        LOG.info("%s", table([row]))
        self._check()
        too_many = MANY if provoked or lasts else 1
        of_note = [*row.lost, *(pod.name for pod in pods if pod.failed >= too_many)]
        notes = [f"{name}: {self._notes[name]}" for name in of_note if name in self._notes]
        assert not (found := wrong(row, provoked=provoked is not None, lasts=lasts)), "; ".join(
            [what, *found, *notes[:3]]
        )

    def settled(self) -> list[StreamedPod]:
        """Return the pods whose outcome is known, or that are lost, and that were not counted before.

        They are forgotten once they were taken away: so a stream may last.
        """
        self._check()
        self._read_log()
        lost = time.monotonic() - 2 * LOST_S
        pods = [
            pod
            for pod in self._all()
            if pod.name not in self._counted and ((pod.bound is not None and pod.is_told) or pod.created < lost)
        ]
        self._counted.update(pod.name for pod in pods)
        for name in self._counted & self._swept:
            del self.pods[name]
            self._forgotten += 1
            self._counted.discard(name)
            self._swept.discard(name)
        return pods

    def end_settled(self) -> list[StreamedPod]:
        """No more pods; return those of which `settled` did not tell, once all have a node or are lost."""
        self._no_more.set()
        pods = self.settled()
        end = time.monotonic() + 2 * LOST_S
        while self.pods.keys() - self._counted and time.monotonic() < end + 1:
            time.sleep(0.1)
            pods += self.settled()
        self.end()
        return pods

    def total(self) -> Row:
        """Of all pods, with what was learnt since they were counted; who was lost stands in the rows."""
        self._read([])
        pods = self._all()
        begun, ended = (pick(pod.created for pod in pods) for pick in (min, max))
        return tally("all of it", pods, begun, ended, due=begun)

    def _read_log(self) -> None:
        for one in audit.answered_requests(line for line in self.log.lines() if _BINDING in line):
            if one.namespace == self.namespace and one.verb == "create" and one.name in self.pods:
                self.pods[one.name].codes.append(one.code)
                if HTTPStatus.BAD_REQUEST <= one.code < CUT_OFF:
                    self.pods[one.name].refusals.append(str(one))

    def _read(self, pods: list[StreamedPod]) -> None:
        """Read the audit log, which may be a moment behind the watch."""

        def all_told() -> bool:
            self._read_log()
            return all(pod.is_told for pod in pods if pod.bound is not None)

        try:
            wait_for("the audit log to tell of all", all_told)
        except ClusterError:
            return  # the row says which were never bound

    def _events(self) -> Mapping[str, int]:
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        found = Counter[str]()
        for one in self.api.items(path, fieldSelector="reason=FailedScheduling"):
            found[one["regarding"]["name"]] += (one.get("series") or {}).get("count", 1)
            self._notes[one["regarding"]["name"]] = one["note"]
            if one["metadata"]["uid"] not in self._said:
                self._said.add(one["metadata"]["uid"])
                LOG.info("%s: %s", one["regarding"]["name"], one["note"])
        return found

    def _make(self, begun: float, first: int) -> None:
        for number in itertools.count(first, _MAKERS):
            while self._is_full():
                if self._no_more.wait(0.1):
                    return
                begun += 0.1
            if self._no_more.wait(max(0.0, begun + number / RATE - time.monotonic())):
                return
            schedulers = [*self.schedulers]
            turn, of = divmod(number, len(schedulers))
            scheduler, pool = schedulers[of], "ab"[turn % 2]
            name, wanted = f"s-{number:06}", self.schedulers[scheduler][pool]
            self.pods[name] = StreamedPod(name=name, scheduler=scheduler, pool=wanted, created=time.monotonic())
            labels = {"pool": pool, "batch": str(number // RATE)}
            begun += self._create(self.pods[name], _pod(name, scheduler, labels, self.asks))

    def _is_full(self) -> bool:
        waiting = len(self.pods) + self._forgotten - self._bound
        return waiting >= _WAITING or len(self.pods) - len(self._swept) >= _LIVING

    def _create(self, pod: StreamedPod, body: Object) -> float:
        """Create a pod, again until the API server has answered; return for how long it did not.

        What comes after it is later by that, so that no flood follows.
        """
        asked = time.monotonic()
        for attempt in itertools.count():
            try:
                self.api.create(self.path, body)
            except ClusterError as error:
                if isinstance(error, ApiError) and error.status == HTTPStatus.CONFLICT and attempt:
                    break  # it was created, and the answer was lost
                if _is_answer(error):
                    raise
            else:
                break
            if self._no_more.wait(_AGAIN_S):
                del self.pods[pod.name]
                break
            if pod.bound is None:
                pod.created = time.monotonic()
        return pod.created - asked if attempt else 0.0

    def _sweep(self) -> None:
        """Take away the pods of a second that have a node, once they have had it for a while; others of it wait on.

        If those on nodes waited for the others, nodes could be full of pods that wait for pods that need their room.
        """
        left, following = dict[int, set[str]](), itertools.count()
        batch, names = _batch(next(following))
        while not self._end.wait(0.2):
            while all(name in self.pods for name in names):
                left[batch] = {*names}
                batch, names = _batch(next(following))
            over = {one: placed for one, pods in left.items() if (placed := self._over(pods))}
            with ThreadPoolExecutor(_MAKERS) as pool:
                for (one, placed), is_done in zip(over.items(), pool.map(self._take_away, over), strict=True):
                    if not is_done:
                        continue
                    self._swept |= placed
                    left[one] -= placed
                    if not left[one]:
                        del left[one]

    def _over(self, names: set[str]) -> set[str]:
        """Return those on nodes, once all of these have been there for long enough."""
        placed = {name for name in names if self.pods[name].bound is not None}
        return placed if all(_is_over(self.pods[name]) for name in placed) else set()

    def _take_away(self, batch: int) -> bool:
        try:
            self.api.delete(self.path, labelSelector=f"batch={batch}", fieldSelector="spec.nodeName!=")
        except ClusterError as error:
            if _is_answer(error):
                raise
            return False
        return True

    def _watch(self, version: str) -> None:
        for event in LastingWatch(self.api, self.path, version, self._end.is_set).events(timeoutSeconds="5"):
            if event["type"] == RELISTED:
                continue
            pod = self.pods.get(event["object"]["metadata"]["name"])
            node = event["object"]["spec"].get("nodeName")
            if pod is not None and node and pod.bound is None:
                pod.node_pool, pod.bound = self.nodes.get(node, "none"), time.monotonic()
                self._bound += 1

    def _all(self) -> list[StreamedPod]:
        return [*self.pods.copy().values()]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  whoever waits for the stream raises it
            self._faults.append(f"{type(error).__name__}: {error}")

    def _check(self) -> None:
        if self._faults:
            raise AssertionError(f"the stream itself has failed: {'; '.join(self._faults)}")


def _is_answer(error: ClusterError) -> bool:
    """Return whether an API server answered, and another attempt would get the same answer."""
    if not isinstance(error, ApiError) or error.status == HTTPStatus.TOO_MANY_REQUESTS:
        return False
    return error.status < HTTPStatus.INTERNAL_SERVER_ERROR and "not yet ready" not in error.message


def _batch(number: int) -> tuple[int, list[str]]:
    return number, [f"s-{number * RATE + at:06}" for at in range(RATE)]


def _is_over(pod: StreamedPod) -> bool:
    return pod.bound is not None and time.monotonic() - pod.bound >= _KEPT


def _pod(name: str, scheduler: str, labels: Mapping[str, str], asks: Mapping[str, str]) -> Object:
    spec = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "main", "resources": {"limits": dict(asks)}}],
    }
    return {"metadata": {"name": name, "labels": dict(labels)}, "spec": spec}
