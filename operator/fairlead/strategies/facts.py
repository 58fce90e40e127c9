"""Facts that a rule may read about a pod, a node and the pods on it: protocols that the views implement.

Times are integer nanoseconds since 1970. Facts never raise: what is missing is None, empty, or `Unknown`.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from fairlead.grants.device_usage import PodGrant, RequestingPod
from fairlead.learned.pair import LearnedOutcomes

Stamped = Literal["labels", "annotations"]
"""Fields for which the API stores no time of change, and `NodeFacts.since` does."""


class Unknown(Struct, frozen=True):
    """Rule error: nothing can be decided, and why. The rule's `onError` decides."""

    what: str
    """Subject of the sentence, such as `data load`..."""
    why: str
    """...and its predicate, such as `is stale`. Both are the same for every node."""
    until: int | None = None
    """Earliest moment at which this may change although no fact does."""
    passes: bool = False
    """True for a node that cannot have been measured, as it is in a simulation only: filters pass it."""
    expected: bool = False
    """True if it is no error: the rule has nothing to say about pods like this one."""

    def __str__(self) -> str:
        return f"{self.what} {self.why}"


class NodeCondition(Struct, frozen=True):
    """Condition of a node."""

    status: str
    """True, False or Unknown; other values are passed on unchanged."""
    since: int | None
    """Transition time; None if it is missing or unreadable."""


class ControllerRef(NamedTuple):
    """Owner of a pod that controls it."""

    kind: str
    name: str


Amounts = Mapping[str, float]  # by resource, in base units: cores, bytes, pieces


class Predicted(NamedTuple):
    """Usage of a resource that is expected of pods, by what their containers say of it."""

    limits: float = 0.0
    """Limits of the containers that have one, and the overhead of the pods."""
    requests: float = 0.0
    """Requests of the containers without a limit."""
    unsaid: int = 0
    """Containers with neither."""


class UnmeasuredPods(Protocol):
    """Pods on a node that a measurement cannot contain yet."""

    def request(self, resource: str) -> float:
        """Return the sum of their requests."""

    def predicted(self, resource: str) -> Predicted:
        """Return the sum of what is expected of them."""


class RequestingContainers(NamedTuple):
    """Containers of a pod that ask for a resource."""

    containers: int = 0
    init_containers: int = 0
    """Those that run before the others, sidecars included."""


class PodFacts(Protocol):
    """Facts about the pod to be placed."""

    @property
    def namespace(self) -> str:
        """Never empty."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""

    @property
    def controller(self) -> ControllerRef | None:
        """Owner that controls it."""

    @property
    def request(self) -> Amounts:
        """Its requests, as the scheduler counts them."""

    @property
    def limit(self) -> Amounts:
        """Its limits, counted alike; what is not limited is absent."""

    def predicted(self, resource: str) -> Predicted:
        """Return what usage is expected of it."""

    @property
    def priority(self) -> int:
        """Its priority."""

    @property
    def nominated(self) -> str:
        """Node on which pods were evicted for it; empty if there is none."""

    def requesting_containers(self, resource: str) -> RequestingContainers:
        """Return how many of its containers ask for a resource."""

    @property
    def granted_uid(self) -> str:
        """Its UID if a ledger has an entry for it although it is not placed yet; empty if none has."""


class Nominated(NamedTuple):
    """Unplaced pod that is nominated to a node, because pods were evicted for it there."""

    pod: PodFacts
    created: int


class PodOnNode(Protocol):
    """Facts about a placed pod, also while it is being deleted. Pods that ended may be left out."""

    @property
    def namespace(self) -> str:
        """Never empty."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def controller(self) -> ControllerRef | None:
        """Owner that controls it."""

    @property
    def phase(self) -> str:
        """Pending, Running, Succeeded, Failed or Unknown; empty if not set yet."""

    @property
    def ready(self) -> bool:
        """True if its condition Ready is True."""

    @property
    def ready_since(self) -> int | None:
        """Transition time of its condition Ready; None if it is missing or unreadable."""

    @property
    def deleting(self) -> bool:
        """True if it has a deletionTimestamp."""


class RecentPlacement(NamedTuple):
    """Pod on a node, and when it was placed there."""

    at: int
    """Transition time of its condition PodScheduled, else its creation."""
    pod: PodOnNode
    request: Amounts


class NodeFacts(Protocol):
    """Facts about a node at one moment."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID: a node that is made again under the same name has another one."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""

    @property
    def created(self) -> int | None:
        """Creation time of the object."""

    @property
    def pods(self) -> Sequence[PodOnNode]:
        """Pods on the node, in no particular order."""

    def controlled(self, namespace: str, controller: ControllerRef) -> Sequence[PodOnNode]:
        """Return the pods of this controller: one look-up, however many pods there are."""

    def condition(self, kind: str) -> NodeCondition | None:
        """Return the condition of this type; None if there is none."""

    def since(self, where: Stamped, key: str, value: str | None) -> int | None:
        """Return when the key got this value, or with None when it was added, as this process saw it.

        A value that the process found when it first saw the node counts from the creation of the node, so that a
        restart changes nothing. None if the key does not have the value now, or if the moment is unknown.
        """

    @property
    def allocatable(self) -> Amounts:
        """Amounts that its pods may use."""

    @property
    def capacity(self) -> Amounts:
        """Amounts that it has."""

    @property
    def requested(self) -> Amounts:
        """Requests of the pods on it, as the scheduler counts them."""

    @property
    def limits(self) -> Amounts:
        """The limits of the pods on it, each at least what the pod requests."""

    @property
    def unlimited(self) -> Mapping[str, int]:
        """Number of the pods on it that have no limit, by resource; none for what is used with a limit only."""

    def data(self, name: str) -> float | Unknown:
        """Return the value of an entry of the policy's `data`: finite, or why there is none.

        A value that becomes stale is a change of this fact; rules need not check its age.
        """

    def unmeasured(self, name: str, lag_s: int) -> UnmeasuredPods:
        """Return the pods that were placed later than this long before the time of an entry's value.

        There are none if the value has no time.
        """

    def placed(self, after: int) -> Sequence[RecentPlacement]:
        """Return the placements after a moment, newest first, without daemons and the node's own pods."""

    @property
    def learned(self) -> LearnedOutcomes | Unknown:
        """Outcomes that the rule has learned of pods of this type on the node, or why they are not known."""

    @property
    def granted(self) -> Sequence[PodGrant]:
        """Grants of its devices that are in force or may become so, in no particular order."""

    def pods_requesting(self, resource: str) -> Sequence[RequestingPod]:
        """Return the placed pods that request a resource and have not ended."""

    @property
    def nominated(self) -> Sequence[Nominated]:
        """Unplaced pods that are nominated to it, in no particular order."""

    def unhealthy(self, namespace: str, prefix: str, key: str) -> str | Unknown:
        """Return the text in its ConfigMap of unhealthy devices; empty if there is none."""

    def cached(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what was computed for a key from this node before, else compute it."""
