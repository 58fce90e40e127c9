"""Limits of the pods on a node together, and how many pods have none."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.mirror.resource_limits import usage_of
from fairlead.mirror.resource_requests import request_of
from fairlead.policy.views.pod_usage import limits_of

GPU, PAGES = "example.org/gpu", "hugepages-2Mi"


def _pod(*containers: Mapping[str, Mapping[str, str]], init: Sequence[Mapping[str, Any]] = (), **rest: Any) -> Any:
    listed = [{"name": f"c{at}", "resources": one} for at, one in enumerate(containers)]
    return {"spec": {"containers": listed, "initContainers": [*init], **rest}}


def _same(**amounts: str) -> dict[str, dict[str, str]]:
    named = {{"gpu": GPU, "pages": PAGES}.get(name, name): amount for name, amount in amounts.items()}
    return {"requests": named, "limits": named}


_SIDECAR = {"name": "s", "restartPolicy": "Always"}
_CASES: dict[str, tuple[list[Any], str, float, int]] = {
    "each has a limit": ([_pod(_same(cpu="1")), _pod(_same(cpu="2"))], "cpu", 3.0, 0),
    "one has none": ([_pod(_same(cpu="1")), _pod({"requests": {"cpu": "2"}})], "cpu", 3.0, 1),
    "one names nothing": ([_pod(_same(cpu="1")), _pod({})], "cpu", 1.0, 1),
    "a container has none": ([_pod(_same(cpu="1"), {})], "cpu", 1.0, 1),
    "a sidecar has none": ([_pod(_same(cpu="1"), init=[_SIDECAR])], "cpu", 1.0, 1),
    "the pod has one": ([_pod({}, {}, resources=_same(cpu="1"))], "cpu", 1.0, 0),
    # The API server takes no request without a limit for these, and no other pod gets any.
    "who names no device uses none": ([_pod(_same(gpu="2"), {}, init=[_SIDECAR]), _pod({})], GPU, 2.0, 0),
    "nor huge pages": ([_pod(_same(pages="4Mi"), {}), _pod({})], PAGES, float(4 << 20), 0),
}


@pytest.mark.parametrize(("pods", "resource", "limit", "unlimited"), _CASES.values(), ids=_CASES)
def test_limits_are_added_and_who_has_none_is_counted(
    pods: list[Any], resource: str, limit: float, unlimited: int
) -> None:
    entries = []
    for one in pods:
        pod = from_json("Pod", one)
        amounts = request_of(pod)
        entries.append(SimpleNamespace(pod=pod, request=SimpleNamespace(amounts=amounts, usage=usage_of(pod, amounts))))
    sums, without = limits_of(entries)
    assert (sums[resource], without[resource]) == (limit, unlimited)
