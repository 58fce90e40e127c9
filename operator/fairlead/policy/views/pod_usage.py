"""Limits of pods, the usage that they predict, and when pods were placed: what rules about load need of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from fairlead.grants.device_usage import RequestingPod
from fairlead.strategies.facts import Amounts, Predicted, RecentPlacement

_DAEMONS: Final = ("DaemonSet", "Node")
_ENDED: Final = ("Succeeded", "Failed")
_DIGITS: Final = 9


class Usage(Struct, frozen=True, gc=False):
    """Limits of a pod, and what its containers say of the usage to expect."""

    limit: Amounts
    """At least what the pod requests; what no container limits is absent."""
    unlimited: frozenset[str]
    """Resources that some container does not limit, of those that another one names."""
    predicted: Mapping[str, Predicted]
    """By resource; one that is not named is named by no container."""
    containers: int
    """Containers that run side by side."""

    def of(self, resource: str) -> Predicted:
        """Return what is predicted for a resource."""
        return self.predicted.get(resource) or Predicted(unsaid=self.containers)

    def limits(self, resource: str) -> bool:
        """Report whether every container limits a resource."""
        return resource in self.limit and resource not in self.unlimited


NO_USAGE: Final = Usage({}, frozenset(), {}, 0)


class Counted(Protocol):
    """Requests of a pod as the scheduler counts them, and its usage."""

    @property
    def amounts(self) -> Amounts:
        """Its requests."""

    @property
    def usage(self) -> Usage:
        """Its limits and predictions."""


class PlacedEntry(Protocol):
    """Placed pod with what it counts for."""

    @property
    def pod(self) -> Any:
        """The pod, a `PlacedPod`."""

    @property
    def request(self) -> Counted:
        """Its requests and usage."""


class UnmeasuredEntries:
    """Pods on a node that a measurement cannot contain yet."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Sequence[PlacedEntry] = ()) -> None:
        self._entries = entries

    def request(self, resource: str) -> float:
        """Return the sum of their requests."""
        if not self._entries:
            return 0.0
        return round(sum(one.request.amounts.get(resource, 0.0) for one in self._entries), _DIGITS)

    def predicted(self, resource: str) -> Predicted:
        """Return the sum of what is expected of them."""
        return _added([one.request.usage.of(resource) for one in self._entries])


NONE_UNMEASURED: Final = UnmeasuredEntries()


def newest_first(entries: Sequence[PlacedEntry]) -> list[tuple[int, PlacedEntry]]:
    """Return placed pods with the time of their placement."""
    placed = [(one.pod.placed_at, one) for one in entries]
    return sorted(((at, one) for at, one in placed if at is not None), key=lambda each: -each[0])


def placements(timed: Sequence[tuple[int, PlacedEntry]], after: int) -> list[RecentPlacement]:
    """Return the placements after a moment, without daemons and the node's own pods."""
    found = list[RecentPlacement]()
    for at, one in timed:
        if at <= after:
            break
        owner = one.pod.controller
        if owner is None or owner.kind not in _DAEMONS:
            found.append(RecentPlacement(at, one.pod, one.request.amounts))
    return found


def pods_requesting(entries: Sequence[PlacedEntry], resource: str) -> list[RequestingPod]:
    """Return the placed pods that request a resource and have not ended; pods from files may have no UID."""
    return [
        RequestingPod(one.pod.uid or f"{one.pod.namespace}/{one.pod.name}", amount, one.pod.deleting)
        for one in entries
        if (amount := one.request.amounts.get(resource, 0.0)) > 0 and one.pod.phase not in _ENDED
    ]


def limits_of(entries: Sequence[PlacedEntry]) -> tuple[Amounts, Mapping[str, int]]:
    """Return the limits of all pods together, each at least what it requests, and how many pods have none."""
    sums, without = dict[str, float](), dict[str, int]()
    resources = {name for one in entries for name in (*one.request.amounts, *one.request.usage.limit)}
    for name in resources:
        parts = [max(one.request.usage.limit.get(name, 0.0), one.request.amounts.get(name, 0.0)) for one in entries]
        sums[name] = round(sum(parts), _DIGITS)
        without[name] = 0 if _always_has_limit(name) else sum(not one.request.usage.limits(name) for one in entries)
    return sums, without


def _always_has_limit(resource: str) -> bool:
    """Report whether a resource is used with a limit only: extended resources and huge pages."""
    return "/" in resource or resource.startswith("hugepages-")


def _added(parts: Sequence[Predicted]) -> Predicted:
    if not parts:
        return Predicted()
    return Predicted(
        round(sum(one.limits for one in parts), _DIGITS),
        round(sum(one.requests for one in parts), _DIGITS),
        sum(one.unsaid for one in parts),
    )
