"""What pods count for, by the rules of kube-scheduler. Each case says how the expected value comes about."""

from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.mirror.resource_requests import allocatable_of, request_of, requests_of_pod

_Object = dict[str, Any]
_NO_MORE: Mapping[str, str] = {}


def _c(name: str = "a", *, always: bool = False, more: Mapping[str, str] = _NO_MORE, **requests: str) -> _Object:
    container: _Object = {"name": name, "resources": {"requests": _renamed(requests) | dict(more)}}
    return container | ({"restartPolicy": "Always"} if always else {})


def _s(name: str = "a", allocated: Mapping[str, str] | None = None, **actual: str) -> _Object:
    resources = {"resources": {"requests": _renamed(actual)}} if actual else {}
    return {"name": name, **resources, **({"allocatedResources": dict(allocated)} if allocated else {})}


def _renamed(amounts: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): amount for name, amount in amounts.items()}


def _pod(*containers: _Object, init: tuple[_Object, ...] = (), **rest: Any) -> _Object:
    status = {key: rest.pop(key) for key in ("containerStatuses", "initContainerStatuses") if key in rest}
    status |= rest.pop("status", {})
    return {"spec": {"containers": [*containers], "initContainers": [*init], **rest}, "status": status}


_PENDING: Mapping[str, _Object] = {
    reason: {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}]}
    for reason in ("Infeasible", "Deferred")
}
_CASES: Mapping[str, tuple[_Object, _Object]] = {
    "containers are added": (_pod(_c("a", cpu="1"), _c("b", cpu="500m", memory="1Ki")), {"cpu": 1.5, "memory": 1024}),
    "who asks for nothing counts as a pod": (_pod(_c()), {}),
    "limits alone are none: the API server has made requests of them": (
        _pod({"name": "a", "resources": {"limits": {"cpu": "1"}}}),
        {},
    ),
    "other resources are pieces": (
        _pod(_c(more={"example.org/gpu": "2", "hugepages-2Mi": "4Mi"})),
        {"example.org/gpu": 2, "hugepages-2Mi": 4 << 20},
    ),
    "the largest init container counts if it is more": (
        # 3 > 1 + 1 cores; 100 < 2 x 200 bytes
        _pod(
            _c("a", cpu="1", memory="200"),
            _c("b", cpu="1", memory="200"),
            init=(_c("i", cpu="3", memory="100"), _c("j", cpu="2")),
        ),
        {"cpu": 3, "memory": 400},
    ),
    "sidecars run beside the containers": (
        _pod(_c("a", cpu="1"), init=(_c("s", cpu="500m", always=True),)),
        {"cpu": 1.5},
    ),
    "an init container runs beside the sidecars before it": (
        # i beside s: 2 + 0.5 = 2.5 > 1 + 0.5
        _pod(_c("a", cpu="1"), init=(_c("s", cpu="500m", always=True), _c("i", cpu="2"))),
        {"cpu": 2.5},
    ),
    "and not beside those after it": (
        # i alone: 2 > 1 + 0.5
        _pod(_c("a", cpu="1"), init=(_c("i", cpu="2"), _c("s", cpu="500m", always=True))),
        {"cpu": 2},
    ),
    "sidecars start one after the other": (
        # s, i beside s: 3.25, t beside s: 0.5; the pod: 1 + 0.25 + 0.25
        _pod(
            _c("a", cpu="1"),
            init=(_c("s", cpu="250m", always=True), _c("i", cpu="3"), _c("t", cpu="250m", always=True)),
        ),
        {"cpu": 3.25},
    ),
    "overhead comes on top": (
        _pod(_c(cpu="1"), overhead={"cpu": "250m", "memory": "120Mi"}),
        {"cpu": 1.25, "memory": 120 << 20},
    ),
    "what the pod asks for as a whole stands in place of its containers": (
        _pod(_c(cpu="1", ephemeral_storage="1Gi"), resources={"requests": {"cpu": "3", "memory": "1Gi"}}),
        {"cpu": 3, "memory": 1 << 30, "ephemeral-storage": 1 << 30},
    ),
    "also where it is less, and with the overhead on top": (
        _pod(_c(cpu="4"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "1"}),
        {"cpu": 3},
    ),
    "huge pages can be asked for as a whole, storage cannot": (
        _pod(
            _c(ephemeral_storage="1Ki"),
            resources={"requests": {"hugepages-2Mi": "2Mi", "ephemeral-storage": "9Ki"}},
        ),
        {"hugepages-2Mi": 2 << 20, "ephemeral-storage": 1024},
    ),
    "a resize up counts as soon as it is wanted": (
        _pod(_c(cpu="2"), containerStatuses=[_s(allocated={"cpu": "1"}, cpu="1")]),
        {"cpu": 2},
    ),
    "a resize down counts when it is in effect": (
        _pod(_c(cpu="1"), containerStatuses=[_s(allocated={"cpu": "1"}, cpu="2")]),
        {"cpu": 2},
    ),
    "what is allocated counts even where it is not in effect yet": (
        _pod(_c(cpu="1"), containerStatuses=[_s(allocated={"cpu": "3"}, cpu="2")]),
        {"cpu": 3},
    ),
    "a resize that the node will never have does not count": (
        _pod(_c(cpu="64"), containerStatuses=[_s(allocated={"cpu": "1"}, cpu="1")], status={**_PENDING["Infeasible"]}),
        {"cpu": 1},
    ),
    "one that is put off does": (
        _pod(_c(cpu="64"), containerStatuses=[_s(allocated={"cpu": "1"}, cpu="1")], status={**_PENDING["Deferred"]}),
        {"cpu": 64},
    ),
    "one that is under way counts as what is allocated": (
        _pod(
            _c(cpu="2"),
            containerStatuses=[_s(allocated={"cpu": "2"}, cpu="1")],
            status={"conditions": [{"type": "PodResizeInProgress", "status": "True"}]},
        ),
        {"cpu": 2},
    ),
    "of a container that the kubelet says nothing of, nothing counts while the node cannot have what is wanted": (
        # so it is from 1.37; until then b counted as it is wanted
        _pod(
            _c("a", cpu="64"),
            _c("b", cpu="1"),
            containerStatuses=[_s("a", allocated={"cpu": "1"}, cpu="1")],
            status={**_PENDING["Infeasible"]},
        ),
        {"cpu": 1},
    ),
    "nor of an init container": (
        _pod(
            _c("a", cpu="64"),
            init=(_c("i", cpu="3"),),
            containerStatuses=[_s("a", allocated={"cpu": "1"}, cpu="1")],
            initContainerStatuses=[_s("i")],
            status={**_PENDING["Infeasible"]},
        ),
        {"cpu": 1},
    ),
    "one that it reports counts": (
        _pod(
            _c("a", cpu="64"),
            init=(_c("i", cpu="3"),),
            containerStatuses=[_s("a", allocated={"cpu": "1"}, cpu="1")],
            initContainerStatuses=[_s("i", allocated={"cpu": "3"})],
            status={**_PENDING["Infeasible"]},
        ),
        {"cpu": 3},
    ),
    "a container that the kubelet has not seen yet counts as it is wanted": (
        _pod(_c("a", cpu="1"), _c("b", cpu="1"), containerStatuses=[_s("a", allocated={"cpu": "2"}, cpu="2")]),
        {"cpu": 3},
    ),
    "the most is taken of the pod, not of each container": (
        # wanted 1 + 3, in effect 3 + 1: four of both, where each for itself would be six
        _pod(
            _c("a", cpu="1"),
            _c("b", cpu="3"),
            containerStatuses=[_s("a", allocated={"cpu": "3"}, cpu="3"), _s("b", allocated={"cpu": "1"}, cpu="1")],
        ),
        {"cpu": 4},
    ),
    "sidecars are resized, too": (
        _pod(
            _c("a", cpu="1"),
            init=(_c("s", cpu="1", always=True),),
            initContainerStatuses=[_s("s", allocated={"cpu": "2"}, cpu="2")],
        ),
        {"cpu": 3},
    ),
    "up before that is in effect": (
        # s beside a: 3 + 1; the init container after it beside s: 2 + 3
        _pod(
            _c("a", cpu="1"),
            init=(_c("s", cpu="3", always=True), _c("i", cpu="2")),
            containerStatuses=[_s("a", allocated={"cpu": "1"}, cpu="1")],
            initContainerStatuses=[_s("s", allocated={"cpu": "1"}, cpu="1"), _s("i", allocated={"cpu": "2"}, cpu="2")],
        ),
        {"cpu": 5},
    ),
    "and not to what the node will never have": (
        _pod(
            _c("a", cpu="1"),
            init=(_c("s", cpu="64", always=True),),
            containerStatuses=[_s("a", allocated={"cpu": "1"}, cpu="1")],
            initContainerStatuses=[_s("s", allocated={"cpu": "2"}, cpu="1")],
            status={**_PENDING["Infeasible"]},
        ),
        {"cpu": 3},
    ),
    "the kubelet's word on the pod as a whole is taken before that on its containers": (
        _pod(
            _c(cpu="1"),
            containerStatuses=[_s(allocated={"cpu": "7"}, cpu="7")],
            status={"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}},
        ),
        {"cpu": 3},
    ),
    "a pod as a whole is resized": (
        _pod(
            _c(cpu="1"),
            resources={"requests": {"cpu": "2"}},
            status={"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "4"}}},
        ),
        {"cpu": 4},
    ),
    "unless the node will never have it": (
        _pod(
            _c(cpu="1"),
            resources={"requests": {"cpu": "64"}},
            status={
                "allocatedResources": {"cpu": "2"},
                "resources": {"requests": {"cpu": "2"}},
                **_PENDING["Infeasible"],
            },
        ),
        {"cpu": 2},
    ),
    "one that is put off counts": (
        _pod(
            _c(cpu="1"),
            resources={"requests": {"cpu": "64"}},
            status={
                "allocatedResources": {"cpu": "2"},
                "resources": {"requests": {"cpu": "2"}},
                **_PENDING["Deferred"],
            },
        ),
        {"cpu": 64},
    ),
    "as a whole it has what is in effect, also where it asks for other things": (
        _pod(
            _c(cpu="1", memory="1Ki"),
            resources={"requests": {"cpu": "2"}},
            status={"allocatedResources": {"cpu": "2", "memory": "1Ki"}, "resources": {"requests": {"memory": "3Ki"}}},
        ),
        {"cpu": 2, "memory": 3072},
    ),
    "nothing is in effect yet": (
        _pod(_c(cpu="1"), resources={"requests": {"cpu": "2"}}, status={"resources": {}}),
        {"cpu": 2},
    ),
    "parts are added before they are rounded up": (
        # 0.4 + 0.4 thousandths of a core are one; 1.5 bytes are two
        _pod(_c("a", cpu="400u", memory="500m"), _c("b", cpu="400u", memory="1")),
        {"cpu": 0.001, "memory": 2},
    ),
    "what is larger than any node is very large": (_pod(_c(memory="1e500")), {"memory": float((1 << 63) - 1)}),
    "so is what no float holds, alone or added up": (
        _pod(_c("a", cpu="1e309", memory="1e308"), _c("b", memory="1" * 400)),
        {"cpu": float((1 << 63) - 1), "memory": 2.0 * ((1 << 63) - 1)},
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_what_a_pod_requests(case: str) -> None:
    pod, want = _CASES[case]
    nothing = {"cpu": 0, "memory": 0, "ephemeral-storage": 0, "pods": 1}
    assert request_of(from_json("Pod", pod)) == nothing | want


def test_a_text_that_is_no_quantity_is_the_callers_fault() -> None:
    with pytest.raises(ValueError, match="'many' is no quantity"):
        request_of(from_json("Pod", _pod(_c(cpu="many"))))


def test_amounts_are_whole_numbers_until_rules_see_them() -> None:
    amounts = requests_of_pod(from_json("Pod", _pod(_c(cpu="100m", memory="128Mi"))))
    assert amounts == {"cpu": 100, "memory": 128 << 20, "ephemeral-storage": 0, "pods": 1}
    assert {type(amount) for amount in amounts.values()} == {int}


def test_a_node_has_what_it_says() -> None:
    node = from_json("Node", {"status": {"allocatable": {"cpu": "3920m", "memory": "1Gi", "pods": "110"}}})
    assert allocatable_of(node) == {"cpu": 3920, "memory": 1 << 30, "pods": 110}
