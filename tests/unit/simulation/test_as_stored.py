"""Objects from files, as the API server would store them."""

import json
from typing import Any

import pytest

from fairlead.simulation.as_stored import with_default_requests, with_text_amounts
from fairlead.simulation.snapshot import Snapshot

GPU = "example.org/gpu"


def _pod(resources: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "resources": resources}]}}


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        pytest.param({"limits": {GPU: "1"}}, {GPU: "1"}, id="limits alone"),
        pytest.param({"limits": {GPU: "1", "cpu": "2"}, "requests": {"cpu": "1"}}, {GPU: "1", "cpu": "1"}, id="less"),
        pytest.param({"limits": {GPU: "1"}, "requests": None}, {GPU: "1"}, id="null"),
        pytest.param({"requests": {"cpu": "1"}}, {"cpu": "1"}, id="no limits"),
    ],
)
def test_a_container_requests_what_it_limits(resources: dict[str, Any], requests: dict[str, str]) -> None:
    before = _pod(resources)
    for field in ("containers", "initContainers"):
        [one] = with_default_requests({"spec": {field: before["spec"]["containers"]}})["spec"][field]
        assert one["resources"]["requests"] == requests
    assert before == _pod(resources)


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"spec": None},
        {"spec": {"containers": "a"}},
        {"spec": {"containers": ["a", {}, {"resources": []}]}},
        _pod({"limits": ["a"]}),
        _pod({"limits": {"cpu": "1"}, "requests": "a"}),
    ],
)
def test_what_is_no_pod_stays_as_it_is(pod: dict[str, Any]) -> None:
    assert with_default_requests(pod) == pod


def test_pods_that_an_api_server_has_stored_stay_as_they_are() -> None:
    """It would have added them."""
    written, stored = _pod({"limits": {GPU: "1"}}), _pod({"limits": {GPU: "1"}})
    stored["metadata"] = {"name": "q", "uid": "1"}
    snapshot = Snapshot()
    snapshot.put(written)
    snapshot.put(stored)
    assert [b"requests" in bytes(one.raw) for one in snapshot.pods.values()] == [True, False]


def test_amounts_may_be_numbers() -> None:
    pod = _pod({"limits": {GPU: 1, "cpu": 0.5}, "requests": {"memory": "1Gi"}})
    pod["spec"]["priority"] = 7
    snapshot = Snapshot()
    snapshot.put(pod)
    snapshot.put({"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 8}, "capacity": {}}})
    [held], [node] = snapshot.pods.values(), snapshot.nodes.values()
    read = json.loads(held.raw)
    assert read["spec"]["containers"][0]["resources"] == {
        "limits": {GPU: "1", "cpu": "0.5"},
        "requests": {GPU: "1", "cpu": "0.5", "memory": "1Gi"},
    }
    assert read["spec"]["priority"] == 7
    assert json.loads(node.raw)["status"]["allocatable"] == {"cpu": "8"}
    assert with_text_amounts({"limits": True}) == {"limits": True}
