"""The API server is away for half a minute: filter and prioritize go on from the mirror, and everything heals after."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import psutil
import pytest

from extender import Stage
from extender.half_held import HalfHeld
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION
from support.chart.published_affinity import affinity_added, publish
from support.kube.api_restart import start_api
from support.process.serving import Serving
from testbed import process
from testbed.api import Api, ApiError, Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster, Kubectl, MakeNodes, raised
from testbed.layout import folder_of
from testbed.node_template import equal
from testbed.providers import Local

_PODS = 60
_GANG: Object = {"name": "job", "group": "pod.metadata.labels['job']", "size": "8"}


@dataclass(frozen=True, slots=True)
class _Fault:
    """How the API server goes, and how it comes back."""

    begin: Callable[[Local], None]
    end: Callable[[Local], None]
    for_s: float


def _suspend(local: Local) -> None:
    _apiserver(local).suspend()


def _resume(local: Local) -> None:
    _apiserver(local).resume()


def _kill(local: Local) -> None:
    process.kill([_apiserver(local)])


def _apiserver(local: Local) -> psutil.Process:
    found = process.find(folder_of(local.cluster), "kube-apiserver")
    assert found is not None
    return found


_FAULTS: Mapping[str, _Fault] = {
    "it does not answer": _Fault(_suspend, _resume, 30),
    "it is gone": _Fault(_kill, Local.up, 5),
}


@pytest.fixture(scope="module")
def local(this_run: str, kubernetes_version: str) -> Local:
    """A cluster that nobody shares."""
    return Local(f"test-away-{this_run}", kubernetes=kubernetes_version, node=False)


@pytest.fixture(scope="module")
def control_plane(local: Local, kubernetes_version: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Tests here use this one."""
    with raised(local, kubernetes_version, pytestconfig) as cluster:
        yield cluster


@pytest.mark.parametrize("case", _FAULTS)
def test_it_goes_on_from_the_mirror_and_heals(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, local: Local, case: str
) -> None:
    """Half of the nodes are full, as only the mirror knows. The pods that wait ask for nothing: so it stays."""
    fault = _FAULTS[case]
    nodes = kwok_nodes(6, equal(cpu="20"))
    full, empty = nodes[:3], nodes[3:]
    for node in full:
        stage.make_pod(f"large-{node}", on=node, cpu="10")
    room = "free['cpu'] >= 15.0 || pod.metadata.name.startsWith('web')"
    serving.put(
        "room",
        filters=[{"name": "room", "expression": room}],
        scores=[{"name": "empty", "expression": "100.0 * free['cpu'] / allocatable['cpu']"}],
    )
    serving.start()
    stage.start(*serving.entries(), podMaxBackoffSeconds=1)
    pod: Object = {"metadata": {"name": "probe", "namespace": stage.name}, "spec": {"schedulerName": stage.name}}

    def said(nodes: list[str]) -> tuple[list[str], list[str]]:
        asked = {"Pod": pod, "NodeNames": nodes}
        scores = serving.call("prioritize", asked)
        return serving.call("filter", asked)["NodeNames"], sorted(one["Host"] for one in scores)

    wait_for("the mirror to know the pods", lambda: said(nodes) == (empty, empty))
    with serving.stopped():  # else all that the scheduler knows of might be placed by now, and it would ask no more
        stage.make_pods(f"web-{number}" for number in range(_PODS))
        wait_for("the scheduler to know of them", lambda: f'"{stage.name}/web-' in stage.log())
        fault.begin(local)
    try:
        _check_it_goes_on(serving, lambda: said(nodes), fault.for_s)
    finally:
        fault.end(local)
    assert len(stage.all_placed()) == len(full) + _PODS
    new = kwok_nodes(7, equal(cpu="20"))[-1]
    wait_for("the mirror to know a new node", lambda: new in said([new])[0])
    stage.make_pod("after")
    stage.placed("after")


def test_a_group_that_is_held_by_half_starts_whole(
    half: HalfHeld, stage: Stage, serving: Serving, kwok_nodes: MakeNodes, local: Local
) -> None:
    """The members that are missing come while the API server does not answer: no Binding of the first half is there."""
    kwok_nodes(8, equal(cpu="1"))
    serving.put("groups", binding={"gang": [_GANG]})
    serving.start()
    half.waits = True
    stage.start(*serving.entries(hold_s=30), half.entry)
    stage.make_pods([f"half-{number}" for number in range(8)], cpu="1", labels={"job": "half"})
    assert half.reached.wait(60)
    wait_for("half to be held", lambda: serving.metric("fairlead_held_binds") == half.count or None)
    assert not any(stage.places().values())
    fault = _Fault(_suspend, _resume, 10)
    fault.begin(local)
    began = time.monotonic()
    half.let_go()
    try:
        wait_for("the time to be over", lambda: time.monotonic() > began + fault.for_s or None)
    finally:
        fault.end(local)
    assert len(stage.all_placed()) == 8
    print(f"complete after {time.monotonic() - began:.2f} s, of which {fault.for_s} without the API server")


def _check_it_goes_on(serving: Serving, said: Callable[[], object], for_s: float) -> None:
    """The same is said all the time; the scheduler asks, too, since it tries again and again to bind."""
    first, calls, before, end = said(), 1, _asked(serving), time.monotonic() + for_s

    def is_over() -> bool:
        nonlocal calls
        calls += 1
        assert said() == first
        assert serving.is_ready()
        return time.monotonic() > end

    wait_for("the time to be over", is_over, timeout_s=2 * for_s)
    assert _asked(serving) > before + calls - 1


def _asked(serving: Serving) -> float:
    return serving.metric("fairlead_webhook_request_duration_seconds_count", verb="filter")


RESTARTS: Final = int(os.environ.get("FAIRLEAD_API_RESTARTS", "0"))
"""Number of restarts of the API server while pods are created; each takes half a minute."""
_MAKERS, _PAUSE_S = 4, 0.05


@dataclass
class _Makers:
    """Pods that are created all the time: of a scheduler for which something is published, and of another."""

    api: Api
    path: str
    schedulers: tuple[str, str]
    made: list[tuple[float, bool]] = field(default_factory=list)
    """Time at which a pod of the first was created, and whether it has the affinity."""
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Answers of the API server in place of a pod, by the scheduler."""
    _end: threading.Event = field(default_factory=threading.Event)

    def work(self, maker: int) -> None:
        number = maker
        while not self._end.wait(_PAUSE_S):
            scheduler = self.schedulers[number // _MAKERS % 2]
            spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "main"}]}
            try:
                pod = self.api.create(self.path, {"metadata": {"name": f"web-{number}"}, "spec": spec})
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT:  # else it was created, and the answer was lost
                    self.refused[scheduler, f"{error.status} {error.message}"] += 1
            except ClusterError:
                continue  # nothing answers
            else:
                if scheduler == self.schedulers[0]:
                    has_it = PUBLISHED_ANNOTATION in pod["metadata"].get("annotations", {})
                    self.made.append((time.monotonic(), has_it))
            number += _MAKERS

    def end(self) -> None:
        self._end.set()


@pytest.mark.since("1.36")
@pytest.mark.asked_for("FAIRLEAD_API_RESTARTS")
@pytest.mark.filterwarnings("ignore:unclosed <ssl:ResourceWarning")  # of connections that end within their handshake
def test_an_api_server_that_starts_creates_every_pod(control_plane: Cluster, namespace: str, kubectl: Kubectl) -> None:
    """For up to half a minute it does not know the kind of the parameters: pods are then without their affinity."""
    api, path = control_plane.api, f"/api/v1/namespaces/{namespace}"
    wait_for("the account", lambda: api.exists(f"{path}/serviceaccounts/default"))
    filters = [{"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}]
    spec = {"schedulerName": namespace, "publish": "NodeAffinity", "filters": filters}
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    about = {"name": "p", "uid": "00000000-0000-0000-0000-000000000000", "generation": 1}
    makers = _Makers(api, f"{path}/pods", (namespace, f"{namespace}-other"))
    with affinity_added(control_plane, kubectl, "default"), ThreadPoolExecutor(_MAKERS) as pool:
        publish(api, {**kind, "metadata": about, "spec": spec})
        for maker in range(_MAKERS):
            pool.submit(makers.work, maker)
        try:
            for number in range(RESTARTS):
                wait_for("pods to have it", lambda: [has_it for _, has_it in makers.made[-20:]] == 20 * [True] or None)
                before = len(makers.made)
                start_api(control_plane, with_groups=False)
                ready = time.monotonic()
                wait_for("pods again", lambda before=before: len(makers.made) >= before + 100 or None)  # type: ignore[misc]
                wait_for("pods to have it", lambda: [has_it for _, has_it in makers.made[-20:]] == 20 * [True] or None)
                without = [at for at, has_it in makers.made[before:] if not has_it]
                lasted = max(0.0, max(without, default=0.0) - ready)
                print(f"restart {number + 1}: {len(without)} pods without it, the last {lasted:.1f} s after /readyz")
        finally:
            makers.end()
    for (scheduler, answer), count in makers.refused.items():
        print(f"{count} times, pods of {scheduler}: {answer}")
    assert not makers.refused
