"""What the API server adds to the requests of pods from files."""

from typing import Any

import pytest

from fairlead.simulation.default_requests import with_default_requests
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
