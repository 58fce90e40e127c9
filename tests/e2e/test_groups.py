"""Groups with two replicas of the operator and the scheduler that it renders: held, passed on, and through faults."""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Self

import pytest

from fairlead.groups.turns import read_turns, turns_name
from support.chart.chart import NAMESPACE
from support.chart.release import OPERATOR, SCHEDULER, Release, processes, released
from support.kube.crd import POLICIES
from support.stream import VALUES, Follow, Stream
from testbed import tables
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster

_NAMESPACE = "groups"
_SLOT, _PLACES, _SIZE = "example.org/slot", 10, 8
_WIDE, _WIDTH = "example.org/wide", 60
"""Resource of which each node has so much, for groups larger than the nodes are many."""
_USUAL = 50
_HELD = int(os.environ.get("FAIRLEAD_GROUP_HELD", _USUAL))
"""Members that are held beside a stream of other pods."""
_GANG: dict[str, Any] = {
    "name": "whole-job",
    "group": "pod.metadata.labels[?'job-name'].orValue('')",
    "size": "int(pod.metadata.annotations[?'example.org/size'].orValue('1'))",
    "holdFor": "2m",  # a busy machine needs more than 30 s until hundreds are held
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str) -> Iterator[Release]:
    with released(cluster, operator_image_tag, _PLACES, {_SLOT: "1", _WIDE: str(_WIDTH)}) as made:
        made.install(**VALUES)
        made.put("groups", binding={"gang": [_GANG]})
        made.ready("groups", within="180s")
        made.runs(2)
        yield made


@pytest.fixture(scope="module")
def pods(release: Release) -> Iterator[str]:
    path = f"/api/v1/namespaces/{_NAMESPACE}"
    release.api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    wait_for("its service account", lambda: release.api.exists(f"{path}/serviceaccounts/default"))
    yield f"{path}/pods"
    release.api.delete(path)


class Job:
    """A group of its own, whose pods are gone in the end."""

    def __init__(self, release: Release, pods: str, size: int = _SIZE, resource: str = _SLOT) -> None:
        self.release, self.pods, self.size, self.resource = release, pods, size, resource
        self.name = f"job-{next(_numbers)}"
        self.began = 0.0
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release.api.delete(self.pods, labelSelector=f"job-name={self.name}")
        wait_for("its pods to be gone", lambda: not self.found() or None)

    def make(self, count: int | None = None, amount: int = 1) -> None:
        """Make its pods, each of which asks for so much."""
        self.began = time.monotonic()
        bodies = [self._pod(number, amount) for number in itertools.islice(self._numbers, count or self.size)]
        self.release.api.create_all(self.pods, bodies)

    def unmake(self, amount: int) -> None:
        """Delete those of its pods that ask for so much."""
        for pod in self.found():
            if pod["spec"]["containers"][0]["resources"]["requests"][self.resource] == str(amount):
                self.release.api.delete(f"{self.pods}/{pod['metadata']['name']}")

    def found(self) -> list[Object]:
        return list(self.release.api.items(self.pods, labelSelector=f"job-name={self.name}"))

    def bound(self) -> int:
        """Return how many of its pods have a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self.found())

    def starts(self, within_s: float = 60) -> float:
        """Wait until all are bound, and return how long that took."""
        wait_for(f"all of {self.name} to be bound", lambda: self.bound() == self.size or None, timeout_s=within_s)
        return time.monotonic() - self.began

    def _pod(self, number: int, amount: int) -> Object:
        labels, annotations = {"job-name": self.name}, {"example.org/size": str(self.size)}
        slots = {self.resource: str(amount)}
        return {
            "metadata": {"name": f"{self.name}-{number}", "labels": labels, "annotations": annotations},
            "spec": {
                "schedulerName": "fairlead",
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "main", "resources": {"requests": slots, "limits": slots}}],
            },
        }


@pytest.fixture(scope="module")
def incomplete(release: Release, pods: str) -> Iterator[Job]:
    """A group that waits for members from the first test to the last."""
    with Job(release, pods) as job:
        job.make(1)
        yield job


@pytest.mark.usefixtures("incomplete")
def test_a_group_starts_whichever_replica_its_scheduler_calls(
    release: Release, pods: str, pytestconfig: pytest.Config
) -> None:
    took = []
    for _ in range(4):
        with Job(release, pods) as job:
            job.make()
            took.append(job.starts())
    passed_on = release.counted("fairlead_group_passed_on").get('result="answered"', 0)
    if _HELD > _USUAL:
        with Job(release, pods, _HELD, _WIDE) as job:
            job.make()
            tables.leave(pytestconfig, f"a group of {_HELD}", f"{job.starts(300):.2f} s")
    times = ", ".join(f"{one:.2f}" for one in took)
    said = f"{times} s from the first pod to the last Binding; {passed_on:.0f} binds were passed on"
    tables.leave(pytestconfig, f"groups of {_SIZE}", said)


def test_a_group_for_which_there_is_no_room_has_no_part_bound(release: Release, pods: str) -> None:
    with Job(release, pods, _PLACES + 1) as large, Job(release, pods) as small:
        large.make()
        wait_for("an attempt to fail", lambda: _says(release, pods, large, "members of the group found room"))
        small.make()
        small.starts()
        assert large.bound() == 0


def _held(release: Release) -> int:
    """Return how many members are held, as the holder publishes it; each is held somewhere."""
    published = release.api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{turns_name('fairlead')}")
    turns = read_turns(published).value
    if turns is None or turns.turn is None:
        return 0
    assert len(turns.turn.nodes) == turns.turn.held_members
    return turns.turn.held_members


@pytest.fixture
def stream(release: Release) -> Iterator[Stream]:
    """Pods in no group, twenty a second."""
    path = "/api/v1/namespaces/plain"
    release.api.create("/api/v1/namespaces", {"metadata": {"name": "plain"}})
    wait_for("its service account", lambda: release.api.exists(f"{path}/serviceaccounts/default"))
    with closing(Api(release.cluster.kubeconfig)) as api, closing(Follow(release.cluster.audit_log)) as log:
        made = Stream(
            api=api,
            namespace="plain",
            log=log,
            nodes=dict.fromkeys(release.nodes, "a"),
            schedulers={"fairlead": {"a": "a", "b": "a"}},
        )
        made.begin()
        yield made
        made.end()
    release.api.delete(path)


def test_pods_in_no_group_are_bound_while_a_large_group_is_held_and_while_the_holder_is_killed(
    release: Release, pods: str, stream: Stream, pytestconfig: pytest.Config
) -> None:
    stream.flow(1)
    began = time.monotonic()
    stream.flow(2)
    alone = stream.longest_wait_s(began)
    with Job(release, pods, _HELD + 1, _WIDE) as large:
        large.make(1, amount=_WIDTH + 1)
        # Told again later, with the same text, it is no news by which the attempt would fail.
        wait_for("it finds no node", lambda: _says(release, pods, large, f"Insufficient {_WIDE}"))
        large.make(_HELD)
        wait_for("all but one to be held", lambda: _held(release) == _HELD or None, timeout_s=300)
        began = time.monotonic()
        stream.flow(2)
        while_held = stream.longest_wait_s(began)
        held_then = _held(release)
        assert held_then == _HELD
        assert large.bound() == 0
    stream.flow(1)
    began = time.monotonic()
    _kill_holder(release)
    stream.flow(3)
    said = (
        f"longest time without a pod bound: {alone:.2f} s alone, {while_held:.2f} s while {held_then} are held, "
        f"{stream.longest_wait_s(began):.2f} s while the holder is killed"
    )
    tables.leave(pytestconfig, "pods in no group beside groups", said)
    release.runs(2)


def _says(release: Release, pods: str, job: Job, text: str, count: int = 1) -> bool | None:
    conditions = [one for pod in job.found() for one in pod.get("status", {}).get("conditions", [])]
    return sum(text in one.get("message", "") for one in conditions) >= count or None


def _kill_holder(release: Release) -> None:
    for one in processes(release.leader()):
        one.kill()


def _kill_other(release: Release) -> None:
    names = {one["metadata"]["name"] for one in release.pods(OPERATOR)}
    for one in processes(min(names - {release.leader()})):
        one.kill()


def _end_scheduler(release: Release) -> None:
    release.kubectl("delete", "pod", "-n", NAMESPACE, "-l", SCHEDULER, "--wait=false")


def _kill_scheduler(release: Release) -> None:
    # A pod that ends, or begins, has no process: one that runs has refused the members.
    for one in processes(*(pod["metadata"]["name"] for pod in release.pods(SCHEDULER)), variable="HOSTNAME"):
        one.kill()


def _roll_operator(release: Release) -> None:
    release.kubectl("rollout", "restart", "deployment/fairlead", "-n", NAMESPACE)


@pytest.mark.parametrize("fault", [_kill_holder, _kill_other, _end_scheduler, _kill_scheduler, _roll_operator])
def test_no_part_starts_and_the_whole_does_through_faults(
    release: Release, pods: str, fault: Callable[[Release], None], pytestconfig: pytest.Config
) -> None:
    half = _SIZE // 2
    with Job(release, pods, resource=_WIDE) as job:
        job.make(_SIZE - half, amount=_WIDTH + 1)
        wait_for("they find no node", lambda: _says(release, pods, job, f"Insufficient {_WIDE}", _SIZE - half))
        job.make(half)
        wait_for("the others to be held", lambda: _held(release) == half or None)
        fault(release)
        job.unmake(_WIDTH + 1)
        assert job.bound() == 0
        job.make(_SIZE - half)
        took = job.starts(120)
        tables.leave(pytestconfig, f"half of a group of {_SIZE} held, {fault.__name__}", f"complete after {took:.1f} s")
    release.runs(2)


def test_a_group_that_waits_for_members_is_told_in_the_status(release: Release, incomplete: Job) -> None:
    def warning() -> Object | None:
        warnings = release.api.get(f"{POLICIES}/groups")["status"].get("warnings", ())
        return next((one for one in warnings if one["reason"] == "GroupsWaiting"), None)

    found = wait_for("the warning", warning)
    assert found["count"] == 1
    assert f"1 for members; for the longest, groups/{incomplete.name}" in found["message"]
