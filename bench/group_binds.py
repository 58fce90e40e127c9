"""Groups with a real kube-scheduler: until all members are bound, what held calls keep, and binds of pods in no group.

A real etcd, API server and `fairlead serve`. Pods that ask for more than a node has let all other members of their
group be held until the attempt fails.
"""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from bench import grants, programs, stage
from bench.measure import Benchmark, Benchmarks, Size
from bench.report import main
from bench.scheduler import Wiring, scheduler_running
from bench.stage import NAME, PODS, Stage, stage_running
from testbed.api import Object, wait_for
from testbed.node_template import equal

HOLD_S: Final = 60
_NODES, _MANY, _MOST = 10, 200, 500
_JOB, _SIZE = "example.org/job", "example.org/size"
_GANG: Final[Mapping[str, str]] = {
    "name": "jobs",
    "group": f"pod.metadata.labels[?'{_JOB}'].orValue('')",
    "size": f"int(pod.metadata.annotations[?'{_SIZE}'].orValue('1'))",
    "holdFor": f"{HOLD_S}s",
}
_LOOK_S: Final = 0.05
_MIB: Final = 1 << 20
_PAGE: Final = 1 << 12


def _policy(**more: Any) -> Mapping[str, Any]:
    """Return the policy of the benchmark of grants, with more in its binding."""
    spec = grants.POLICY["spec"]
    return {**grants.POLICY, "spec": {**spec, "binding": {**spec["binding"], **more}}}


@cache
def _measured(size: Size) -> Mapping[str, float]:
    """Return what all of it took, and by how much the server grew while calls were held."""
    with (
        stage_running(_NODES, equal(cpu="64", pods=250), name="bench-groups") as running,
        tempfile.TemporaryDirectory() as name,
        ExitStack() as programs_of,
    ):
        running.api.create("/api/v1/namespaces", {"metadata": {"name": grants.LEDGERS}})
        folders = {has_groups: Path(name, str(has_groups)) for has_groups in (False, True)}
        servers = dict[bool, programs.Extender]()
        for has_groups, folder in folders.items():
            folder.mkdir()
            policy = _policy(gang=[_GANG]) if has_groups else _policy()
            serving = programs.fairlead_running(folder, [policy], running.kubeconfig)
            servers[has_groups] = programs_of.enter_context(serving)
        binds = {
            has_groups: programs_of.enter_context(grants.binding(own, folders[has_groups]))
            for has_groups, own in servers.items()
        }
        found = {"plain": _plain_binds(running, binds, 4 * size.rounds)}
        running.delete_pods()

        own, numbers, shrink = servers[True], count(), size.nodes / Size().nodes
        entries = Wiring(hold_s=HOLD_S).entries(own)
        programs_of.enter_context(scheduler_running(folders[True], running.kubeconfig, NAME, entries, _NODES))
        many, most = (max(2, round(shrink * one)) for one in (_MANY, _MOST))
        _start(running, numbers, 2)  # connections are made, and code is loaded
        memory = psutil.Process(own.pid).memory_info
        before = memory().rss  # the heap that a group leaves is there for the next one
        found |= {"many": _start(running, numbers, many), "most": _start(running, numbers, most)}
        too_large, *others = _members(next(numbers), most, too_large=1)
        name_of_it = running.api.create(PODS, too_large)["metadata"]["name"]
        # Told again later, with the same text, it is no news by which the attempt would fail.
        wait_for("it to find no node", lambda: running.api.get(f"{PODS}/{name_of_it}")["status"].get("conditions"))
        running.api.create_all(PODS, others)
        wait_for("all but one to be held", lambda: _held(own) == most - 1 or None, every_s=_LOOK_S, timeout_s=HOLD_S)
        return found | {"memory": max(_PAGE, memory().rss - before) / _MIB}


def _start(running: Stage, numbers: Iterator[int], size: int) -> float:
    """Return the seconds from the first call that makes a member until all members have a node."""
    members = [*_members(next(numbers), size)]
    began = time.monotonic()
    running.api.create_all(PODS, members)
    wait_for("the group to start", lambda: _bound(running) == size or None, every_s=_LOOK_S, timeout_s=2 * HOLD_S)
    took = time.monotonic() - began
    running.delete_pods()
    return took


def _bound(running: Stage) -> int:
    return len(running.api.items(PODS, fieldSelector="spec.nodeName!="))


def _members(number: int, size: int, too_large: int = 0) -> Iterator[Object]:
    for at in range(size):
        made = stage.pod(at)
        made["metadata"] = {
            "name": f"job-{number}-{at}",
            "labels": {_JOB: f"job-{number}"},
            "annotations": {_SIZE: str(size)},
        }
        if at < too_large:
            made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000"
        yield made


def _held(own: programs.Extender) -> int:
    found = re.search(r"^fairlead_held_binds\{.*\} (\d+)", own.metrics(), re.MULTILINE)
    return int(found[1]) if found else 0


def _plain_binds(running: Stage, binds: Mapping[bool, Callable[[Object], float]], of_each: int) -> float:
    """Return what a bind takes with groups among the policies, by what it takes without: the medians."""
    taken: dict[bool, list[float]] = {False: [], True: []}
    names = [str(one["metadata"]["name"]) for one in running.api.items("/api/v1/nodes")]
    pods = [running.api.create(PODS, stage.pod(number))["metadata"] for number in range(2 * of_each)]
    args = [
        {"PodName": pod["name"], "PodNamespace": NAME, "PodUID": pod["uid"], "Node": names[number % len(names)]}
        for number, pod in enumerate(pods)
    ]
    for has_groups, one in grants.shuffled([(bool(number % 2), one) for number, one in enumerate(args)]):
        time.sleep(grants.PAUSE_S)
        taken[has_groups].append(binds[has_groups](one))
    return median(taken[True]) / median(taken[False])


BENCHMARKS: Final[Benchmarks] = {
    "groups-200-members": Benchmark("s", lambda size: [_measured(size)["many"]]),
    "groups-500-members": Benchmark("s", lambda size: [_measured(size)["most"]]),
    "groups-499-held-memory": Benchmark("MiB", lambda size: [_measured(size)["memory"]]),
    "bind-without-group-to-without-groups": Benchmark("ratio", lambda size: [_measured(size)["plain"]]),
}

if __name__ == "__main__":
    main(BENCHMARKS)
