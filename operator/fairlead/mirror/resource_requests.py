"""What pods ask for and nodes have, by the rules of kube-scheduler: `PodRequests` and `NodeInfo` of Kubernetes 1.37.

1.35 and 1.36 take the largest of what is wanted, allocated and in effect for each container that the kubelet reports,
1.37 for the pod as a whole. They count more than we do while one container of a pod is resized up and another one down,
and where a resize that cannot be granted is wanted of a pod with containers that the kubelet reports no amounts of.

Whole numbers are added and taken away, so that what is kept equals what is computed from nothing: thousandths of a
core, bytes, pieces. Pods are counted as a resource of which each asks for one: the scheduler compares their number
with what a node allows, too.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from fairlead.cel.functions.quantity import NANO, parse
from fairlead.cel.values.errors import CelError
from fairlead.cel.values.structs import empty
from fairlead.cel.values.value_types import INT_MAX

Exact = Mapping[str, int]
"""By resource: thousandths of a core, bytes, pieces."""
Amounts = Mapping[str, float]
"""The same as rules see it: cores, bytes, pieces."""

CPU: Final = "cpu"
PODS: Final = "pods"
COUNTED: Final = (CPU, "memory", "ephemeral-storage", PODS)
"""What the scheduler counts of every pod and node, zero where nothing is said."""
ENDED: Final = ("Succeeded", "Failed")

_MILLI: Final = 1000
_MOST: Final = INT_MAX * NANO
_PER_POD: Final = (CPU, "memory")
_HUGE_PAGES: Final = "hugepages-"
RESIZE_PENDING: Final = "PodResizePending"
_NOTHING: Final = empty("ResourceRequirements")

_Nano = dict[str, int]
_Listed = Mapping[str, str]


def requested_by(pod: Any) -> Exact:
    """What a pod counts for on its node: fields are read as those of the message `Pod` are called."""
    amounts = {name: _whole(name, nano) for name, nano in _requests(pod).items()}
    return {**dict.fromkeys(COUNTED, 0), **amounts, PODS: 1}


def allocatable_of(node: Any) -> Exact:
    """What a node has for pods; a resource that it does not name it does not have."""
    return {name: _whole(name, _nano(text)) for name, text in node.status.allocatable.items()}


def request_of(pod: Any) -> Amounts:
    """What a pod requests, as rules see it. Raises ValueError for a quantity that cannot be read."""
    return as_amounts(requested_by(pod))


def as_amounts(exact: Exact) -> Amounts:
    """Whole numbers as rules see them."""
    return {name: amount / _MILLI if name == CPU else float(amount) for name, amount in exact.items()}


def _requests(pod: Any) -> _Nano:
    found = _of_containers(pod)
    of_pod = pod.spec.resources.requests
    if any(_may_be_of_pod(name) for name in of_pod):
        status = pod.status.resources
        wanted: list[_Listed] = [of_pod]
        if status is not _NOTHING:
            wanted = [{} if _is_infeasible(pod) else of_pod, status.requests, pod.status.allocatedResources]
        effective = _largest(_listed(one) for one in wanted)
        found.update({name: nano for name, nano in effective.items() if _may_be_of_pod(name)})
    _add(found, _listed(pod.spec.overhead))
    return found


def _of_containers(pod: Any) -> _Nano:
    """The most of what is wanted, what the kubelet has allocated, and what is in effect."""
    spec, status = pod.spec, pod.status
    by_name = {one.name: one for one in (*status.initContainerStatuses, *status.containerStatuses)}
    infeasible = _is_infeasible(pod)

    def wanted(container: Any) -> _Listed:
        listed: _Listed = container.resources.requests
        return listed

    def allocated(container: Any) -> _Listed:
        seen = by_name.get(container.name)
        if seen is not None and seen.allocatedResources:
            listed: _Listed = seen.allocatedResources
            return listed
        return {} if infeasible else wanted(container)

    def in_effect(container: Any) -> _Listed:
        seen = by_name.get(container.name)
        if seen is not None and seen.resources.requests:
            listed: _Listed = seen.resources.requests
            return listed
        return allocated(container)

    kinds = [] if infeasible else [_together(spec, wanted)]
    if status.allocatedResources and status.resources.requests:
        kinds += [_listed(status.allocatedResources), _listed(status.resources.requests)]
    elif by_name or infeasible:
        kinds += [_together(spec, allocated), _together(spec, in_effect)]
    return _largest(kinds)


def _together(spec: Any, listed: Callable[[Any], _Listed]) -> _Nano:
    """Containers run side by side; before them, init containers one by one, each beside the sidecars before it."""
    total: _Nano = {}
    sidecars: _Nano = {}
    starting: _Nano = {}
    for container in spec.containers:
        _add(total, _listed(listed(container)))
    for container in spec.initContainers:
        mine = _listed(listed(container))
        if container.restartPolicy == "Always":
            _add(total, mine)
            _add(sidecars, mine)
            mine = sidecars
        else:
            _add(mine, sidecars)
        starting = _largest([starting, mine])
    return _largest([total, starting])


def _is_infeasible(pod: Any) -> bool:
    """Whether the kubelet has said that the node will never have what a resize wants."""
    pending = next((one for one in pod.status.conditions if one.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == "Infeasible"


def _may_be_of_pod(name: str) -> bool:
    return name in _PER_POD or name.startswith(_HUGE_PAGES)


def _add(total: _Nano, more: _Nano) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _largest(several: Iterable[_Nano]) -> _Nano:
    found: _Nano = {}
    for one in several:
        for name, nano in one.items():
            found[name] = max(nano, found.get(name, nano))
    return found


def _listed(amounts: _Listed) -> _Nano:
    return {name: _nano(text) for name, text in amounts.items()}


@lru_cache(maxsize=4096)
def _nano(text: str) -> int:
    """A quantity in billionths. The API server knows none that cannot be read.

    It knows some that no float holds, such as 1e309: what is beyond the scheduler's 64 bits is as much as these hold.
    """
    try:
        quantity = parse(text)
    except CelError:
        return _MOST
    if quantity is None:
        raise ValueError(f"{text[:50]!r} is no quantity")
    return max(-_MOST, min(quantity.nano, _MOST))


def _whole(name: str, nano: int) -> int:
    """Rounded up, as the scheduler does with what a whole pod asks for."""
    return -(-nano // (NANO // _MILLI if name == CPU else NANO))
