"""Requests of pods and allocatable amounts of nodes, computed as kube-scheduler 1.37 does (`PodRequests`, `NodeInfo`).

1.33 to 1.36 take the maximum of the desired, allocated and effective amounts for each container that the kubelet
reports, 1.37 for the pod as a whole. The older versions count more than this module while one container of a pod is
resized up and another one down, and if an infeasible resize is desired of a pod with containers for which the kubelet
reports no amounts.

All arithmetic uses whole numbers (thousandths of a core, bytes, pieces), so sums that are updated step by step equal
sums computed from nothing. Pods are a resource of which each pod requests one: the scheduler compares their number with
the node's limit, too.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from fairlead.cel.functions.quantity import NANO, parse
from fairlead.cel.values.errors import CelError
from fairlead.cel.values.structs import empty
from fairlead.cel.values.value_types import INT_MAX

Exact = Mapping[str, int]
"""Amounts by resource: thousandths of a core, bytes, pieces."""
Amounts = Mapping[str, float]
"""Amounts as rules see them: cores, bytes, pieces."""

CPU: Final = "cpu"
PODS: Final = "pods"
COUNTED: Final = (CPU, "memory", "ephemeral-storage", PODS)
"""Resources that the scheduler counts for every pod and node, zero if not specified."""
ENDED: Final = ("Succeeded", "Failed")

_MILLI: Final = 1000
_MOST: Final = INT_MAX * NANO
_PER_POD: Final = (CPU, "memory")
_HUGE_PAGES: Final = "hugepages-"
RESIZE_PENDING: Final = "PodResizePending"
_NOTHING: Final = empty("ResourceRequirements")

_Nano = dict[str, int]
_Listed = Mapping[str, str]


def requests_of_pod(pod: Any) -> Exact:
    """Return what a pod counts for on its node. `pod` has the fields of the message `Pod`."""
    amounts = {name: round_up(name, nano) for name, nano in _requests(pod).items()}
    return {**dict.fromkeys(COUNTED, 0), **amounts, PODS: 1}


def allocatable_of(node: Any) -> Exact:
    """Return the allocatable amounts of a node; a resource that it does not name is absent."""
    return {name: round_up(name, _nano(text)) for name, text in node.status.allocatable.items()}


def request_of(pod: Any) -> Amounts:
    """Return the requests of a pod, as rules see them. Raises ValueError for an unreadable quantity."""
    return as_amounts(requests_of_pod(pod))


def as_amounts(exact: Exact) -> Amounts:
    """Convert exact amounts to those that rules see."""
    return {name: amount / _MILLI if name == CPU else float(amount) for name, amount in exact.items()}


def _requests(pod: Any) -> _Nano:
    found = _of_containers(pod)
    of_pod = pod.spec.resources.requests
    if any(set_for_pod(name) for name in of_pod):
        status = pod.status.resources
        desired: list[_Listed] = [of_pod]
        if status is not _NOTHING:
            desired = [{} if _is_infeasible(pod) else of_pod, status.requests, pod.status.allocatedResources]
        effective = _largest(nano_amounts(one) for one in desired)
        found.update({name: nano for name, nano in effective.items() if set_for_pod(name)})
    add_amounts(found, nano_amounts(pod.spec.overhead))
    return found


def _of_containers(pod: Any) -> _Nano:
    """Return the maximum of the desired, the allocated and the effective requests of the containers."""
    spec, status = pod.spec, pod.status
    by_name = {one.name: one for one in (*status.initContainerStatuses, *status.containerStatuses)}
    infeasible = _is_infeasible(pod)

    def desired(container: Any) -> _Listed:
        listed: _Listed = container.resources.requests
        return listed

    def allocated(container: Any) -> _Listed:
        seen = by_name.get(container.name)
        if seen is not None and seen.allocatedResources:
            listed: _Listed = seen.allocatedResources
            return listed
        return {} if infeasible else desired(container)

    def in_effect(container: Any) -> _Listed:
        seen = by_name.get(container.name)
        if seen is not None and seen.resources.requests:
            listed: _Listed = seen.resources.requests
            return listed
        return allocated(container)

    kinds = [] if infeasible else [combine_containers(spec, desired)]
    if status.allocatedResources and status.resources.requests:
        kinds += [nano_amounts(status.allocatedResources), nano_amounts(status.resources.requests)]
    elif by_name or infeasible:
        kinds += [combine_containers(spec, allocated), combine_containers(spec, in_effect)]
    return _largest(kinds)


def combine_containers(spec: Any, listed: Callable[[Any], _Listed]) -> _Nano:
    """Return the amounts of all containers together.

    Containers run side by side. Before them, init containers run one by one, each beside the earlier sidecars.
    """
    total: _Nano = {}
    sidecars: _Nano = {}
    starting: _Nano = {}
    for container in spec.containers:
        add_amounts(total, nano_amounts(listed(container)))
    for container in spec.initContainers:
        own = nano_amounts(listed(container))
        if container.restartPolicy == "Always":
            add_amounts(total, own)
            add_amounts(sidecars, own)
            own = sidecars
        else:
            add_amounts(own, sidecars)
        starting = _largest([starting, own])
    return _largest([total, starting])


def _is_infeasible(pod: Any) -> bool:
    """Return whether the kubelet has said that the node can never satisfy a resize."""
    pending = next((one for one in pod.status.conditions if one.type == RESIZE_PENDING), None)
    return pending is not None and pending.reason == "Infeasible"


def set_for_pod(name: str) -> bool:
    """Report whether a pod may set a resource for all its containers."""
    return name in _PER_POD or name.startswith(_HUGE_PAGES)


def add_amounts(total: _Nano, more: _Nano) -> None:
    """Add amounts to a total."""
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _largest(several: Iterable[_Nano]) -> _Nano:
    found: _Nano = {}
    for one in several:
        for name, nano in one.items():
            found[name] = max(nano, found.get(name, nano))
    return found


def nano_amounts(amounts: _Listed) -> _Nano:
    """Return amounts in billionths. Raises ValueError for an unreadable quantity."""
    return {name: _nano(text) for name, text in amounts.items()}


@lru_cache(maxsize=4096)
def _nano(text: str) -> int:
    """Return a quantity in billionths. Raises ValueError for one that the API server would reject, too.

    The API server accepts some that no float can hold, such as 1e309: anything beyond the scheduler's 64 bits counts as
    their maximum.
    """
    try:
        quantity = parse(text)
    except CelError:
        return _MOST
    if quantity is None:
        raise ValueError(f"{text[:50]!r} is no quantity")
    return max(-_MOST, min(quantity.nano, _MOST))


def round_up(name: str, nano: int) -> int:
    """Return an amount rounded up, as the scheduler does for a whole pod."""
    return -(-nano // (NANO // _MILLI if name == CPU else NANO))
