"""The pod to place, as rules see it. Expressions and strategies read the same object."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fairlead.cel.values.schema import NAMESPACE
from fairlead.cel.values.structs import empty
from fairlead.policy.views.placed_pod import controller_of
from fairlead.policy.views.pod_usage import NO_USAGE, Usage
from fairlead.strategies.facts import Amounts, ControllerRef, Predicted, RequestingContainers

_NO_AMOUNTS: Final[Amounts] = {}
_ZERO: Final = frozenset({"", "0"})


class PodView:
    """The pod to place."""

    __slots__ = ("_read_usage", "_usage", "granted_uid", "knows_namespace", "namespaceObject", "pod", "request")

    def __init__(
        self,
        pod: Any,
        namespace: Any = None,
        request: Amounts = _NO_AMOUNTS,
        read_usage: Callable[[Any, Amounts], Usage] | None = None,
        granted_uid: str = "",
    ) -> None:
        """`read_usage` reads limits and predictions from the pod and its requests, when a rule asks for them.

        `granted_uid` is the pod's UID if a ledger has an entry for it.
        """
        self.pod = pod
        self.knows_namespace = namespace is not None
        self.namespaceObject: Any = namespace if namespace is not None else empty(NAMESPACE)
        self.set_requests(request, read_usage, granted_uid)

    def set_requests(
        self, request: Amounts, read_usage: Callable[[Any, Amounts], Usage] | None, granted_uid: str
    ) -> None:
        """Set what rules read and the match of a policy does not: it is known only once a policy applies."""
        self.request = request
        self.granted_uid = granted_uid
        self._read_usage = read_usage
        self._usage: Usage | None = None

    @property
    def usage(self) -> Usage:
        """Return its limits, and what its containers say of the usage to expect."""
        if self._usage is None:
            self._usage = NO_USAGE if self._read_usage is None else self._read_usage(self.pod, self.request)
        return self._usage

    @property
    def limit(self) -> Amounts:
        """Return its limits."""
        return self.usage.limit

    def predicted(self, resource: str) -> Predicted:
        """Return what usage of a resource is expected of it."""
        return self.usage.of(resource)

    @property
    def priority(self) -> int:
        """Return the priority."""
        return int(self.pod.spec.priority)

    @property
    def nominated(self) -> str:
        """Return the node on which pods were evicted for it; empty if there is none."""
        return str(self.pod.status.nominatedNodeName)

    def requesting_containers(self, resource: str) -> RequestingContainers:
        """Return how many of its containers ask for a resource."""
        spec = self.pod.spec
        return RequestingContainers(_asking(spec.containers, resource), _asking(spec.initContainers, resource))

    @property
    def namespace(self) -> str:
        """Return the namespace, which is `default` if the object has none."""
        return str(self.pod.metadata.namespace) or "default"

    @property
    def name(self) -> str:
        """Return the name."""
        return str(self.pod.metadata.name)

    @property
    def uid(self) -> str:
        """Return the UID."""
        return str(self.pod.metadata.uid)

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels."""
        labels: Mapping[str, str] = self.pod.metadata.labels
        return labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the annotations."""
        annotations: Mapping[str, str] = self.pod.metadata.annotations
        return annotations

    @property
    def controller(self) -> ControllerRef | None:
        """Return the owner that controls it; None if there is none."""
        return controller_of(self.pod.metadata)


def _asking(containers: Iterable[Any], resource: str) -> int:
    # Of extended resources requests and limits are equal; of an object from a file one may be missing.
    amounts = [(one.resources.requests, one.resources.limits) for one in containers]
    return sum(any(listed.get(resource, "") not in _ZERO for listed in both) for both in amounts)
