"""Containers that fail on a kwok node look as those that fail on a real kubelet, and teach the same."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from fairlead.learned.outcomes import decode_pod, outcomes_of
from testbed.api import Object
from testbed.fixtures import Cluster, MakeNodes
from testbed.kwok import FAILS_AFTER
from testbed.node_config import NODE, POD_IMAGE
from testbed.node_template import equal

RUNS_S: Final = 15
"""For so long the program tries to reach nothing, before it ends with exit code 1."""
RESTARTS: Final = 2
_WATCHED_S: Final = 180
_SETTLE_S: Final = 600


class Status(NamedTuple):
    """Status of a pod of one container, without times, and with the number of the container for its id."""

    phase: str
    ready: str
    why: str
    restarts: int
    is_ready: bool
    has_started: bool
    state: str
    last_state: str
    container: int


def kinds_of(state: Mapping[str, Any], numbers: dict[str, int]) -> str:
    """Tell a state in words."""
    if (ended := state.get("terminated")) is not None:
        number = numbers.setdefault(ended["containerID"], len(numbers))
        return f"container {number} {ended['reason']} {ended['exitCode']}"
    waiting = state.get("waiting", {}).get("reason", "")
    return f"waits {waiting}" if waiting else "runs" if "running" in state else ""


def statuses(pods: Sequence[Object]) -> list[Status]:
    """Return what was seen of a pod, each status once in a row."""
    found, numbers = list[Status](), dict[str, int]()
    for pod in pods:
        (one,) = pod["status"]["containerStatuses"]
        ready = next(each for each in pod["status"]["conditions"] if each["type"] == "Ready")
        number = numbers.setdefault(one["containerID"], len(numbers))
        status = Status(
            pod["status"]["phase"],
            ready["status"],
            f"{ready.get('reason', '')} {ready.get('message', '')}".strip(),
            one["restartCount"],
            one["ready"],
            one["started"],
            kinds_of(one["state"], numbers),
            kinds_of(one["lastState"], numbers),
            number,
        )
        if found[-1:] != [status]:
            found.append(status)
    return found


def ends(pods: Sequence[Object]) -> list[int]:
    """Return how long each container ran that has failed, in seconds."""
    found = dict[str, int]()
    for pod in pods:
        for one in pod["status"]["containerStatuses"]:
            for state in (one["lastState"], one["state"]):
                if (ended := state.get("terminated")) is not None:
                    began, finished = (time.strptime(ended[key], "%Y-%m-%dT%H:%M:%SZ") for key in _TIMES)
                    found[ended["containerID"]] = round(time.mktime(finished) - time.mktime(began))
    return [*found.values()]


_TIMES: Final = ("startedAt", "finishedAt")


def outcomes(pods: Sequence[Object]) -> list[float]:
    """Return the rewards of what all states of a pod tell, each once."""
    told: dict[str, float] = {}
    for pod in pods:
        found = outcomes_of(decode_pod(msgspec.json.encode(pod)), _SETTLE_S, int(time.time()))
        told |= {one.id: one.reward for one in found.outcomes}
    return [*told.values()]


@pytest.fixture
def seen(cluster: Cluster, kwok_nodes: MakeNodes, namespace: str) -> dict[str, list[Object]]:
    """All states of two pods that fail, on a real kubelet and on a kwok node, until both wait to be started again."""
    (kwok_node,) = kwok_nodes(1, equal())
    path = f"/api/v1/namespaces/{namespace}/pods"
    container: Object = {"name": "main", "image": POD_IMAGE, "imagePullPolicy": "IfNotPresent"}
    container["args"] = ["get", "http://127.0.0.1:1"]  # nothing listens there: it tries for 15 s
    for name, node in (("real", NODE), ("kwok", kwok_node)):
        metadata: Object = {"name": name, "annotations": {FAILS_AFTER: f"{RUNS_S}s"}}
        spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
        cluster.api.create(path, {"metadata": metadata, "spec": spec})
    found: dict[str, list[Object]] = {"real": [], "kwok": []}
    for line in cluster.api.lines(path, watch="true", resourceVersion="0", timeoutSeconds=str(_WATCHED_S)):
        pod: Object = json.loads(line)["object"]
        status = pod["status"].get("containerStatuses")
        pods = found[pod["metadata"]["name"]]
        if status and "containerID" in status[0] and not _waits_last(pods):
            pods.append(pod)
        if all(map(_waits_last, found.values())):
            return found
    raise AssertionError({name: statuses(pods) for name, pods in found.items()})


def _waits_last(pods: Sequence[Object]) -> bool:
    if not pods:
        return False
    (one,) = pods[-1]["status"]["containerStatuses"]
    return one["restartCount"] == RESTARTS and "waiting" in one["state"]


def test_a_container_that_fails_looks_as_on_a_real_kubelet(seen: Mapping[str, list[Object]]) -> None:
    real, kwok = statuses(seen["real"]), statuses(seen["kwok"])
    assert kwok == real
    assert ends(seen["kwok"]) == pytest.approx(ends(seen["real"]), abs=1)
    assert outcomes(seen["kwok"]) == outcomes(seen["real"]) == [0.0] * (RESTARTS + 1)
    messages = [
        pods[-1]["status"]["containerStatuses"][0]["state"]["waiting"]["message"].partition(" pod=")[0]
        for pods in seen.values()
    ]
    assert messages == ["back-off 20s restarting failed container=main"] * 2
