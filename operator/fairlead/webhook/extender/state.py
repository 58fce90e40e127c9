"""What the verbs answer from: the policies by what the scheduler calls them for, and what is known of the cluster."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.annotations import Conflict
from fairlead.policy.evaluate.class_cache import CacheCounts, Classes
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.evaluate.rule_errors import RuleErrorTally
from fairlead.policy.views.node_table import Nodes
from fairlead.policy.views.pod_and_node import Amounts, NodeView, PodView
from fairlead.strategies.reads import overlap
from fairlead.webhook.extender.caches import FullNodeCache, NodeNameCache
from fairlead.webhook.extender.call import CallClock, FailurePolicy
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker, Part, Scope
from fairlead.webhook.extender.requests import UNREADABLE, Bytes, MalformedError, unreadable

_IMAGES: Final = ("status", "images")


class ClusterView(Protocol):
    """What is known of the cluster beside the nodes."""

    def namespace(self, name: str, /) -> Any | None:
        """The namespace, if it is known."""

    def request_of(self, pod: Any, /) -> Amounts:
        """What a pod to be placed asks for. Raises ValueError for a quantity that cannot be read."""

    def requests_of_placed(self, placed: Any, /) -> Amounts:
        """What a pod on a node counts for in the node's `requested`."""

    def unplaced(self, namespace: str, name: str, /) -> Any | None:
        """A pod of our schedulers that has no node yet, if it is known."""

    def decode_full_node(self, node: bytes, /, *, images: bool) -> Any:
        """A node from a request, JSON; without its images where nobody reads them.

        Depends on nothing else. Raises what `protocol.UNREADABLE` names if that is no node.
        """

    def view_full_node(self, given: Any, /) -> NodeView:
        """Such a node, with the pods that are on the node of its name; the mirror stays as it is."""


@dataclass(frozen=True, slots=True)
class ServingState:
    """One policy set, and what it is asked about. A new set gets a new one; pace and names live on."""

    policies: PolicySet
    mirror: ClusterView
    gates: Mapping[FailurePolicy, Evaluator]
    scores: Evaluator
    circuit_breaker: CircuitBreaker
    node_names: NodeNameCache
    full_nodes: FullNodeCache[Any]
    conflicts: Counter[Conflict] = field(default_factory=Counter)
    """The pods to which each happened."""

    def pod_view(self, pod: Any) -> PodView:
        """The pod of a request, as far as it takes to find its policies."""
        return PodView(pod, self.mirror.namespace(str(pod.metadata.namespace) or "default"))

    def with_requests(self, view: PodView) -> PodView:
        """The same for rules. Raises MalformedError."""
        try:
            request = self.mirror.request_of(view.pod)
        except ValueError as error:
            raise MalformedError(f"the pod cannot be read: {unreadable(error)}") from None
        return PodView(view.pod, view.namespaceObject if view.knows_namespace else None, request)

    def full_node_view(self, written: Bytes) -> NodeView:
        """A node of a request. Raises MalformedError."""
        try:
            return self.mirror.view_full_node(self.full_nodes.node(written))
        except UNREADABLE as error:
            raise MalformedError(f"a node cannot be read: {unreadable(error)}") from None

    def record_timeout(self, policy: str, part: Part, pod: Any, at: int) -> Scope | None:
        """A policy was too slow about a pod of a request; for whom it is switched now, if it is."""
        asked = (self.scores,) if part == "scores" else self.gates.values()
        for one in (one for evaluator in asked for one in evaluator.policies.policies):
            if one.name == policy:
                return self.circuit_breaker.record_timeout(one, part, self.pod_view(pod), at)
        return None

    def precompute(self, when: CallClock) -> bool:
        """Compute in idle time what waits; whether all of it was done."""
        now, clock, deadline, _ = when
        return all(
            one.precompute(now=now, clock=clock, deadline=deadline) for one in (*self.gates.values(), self.scores)
        )


def build_serving_state(
    policies: PolicySet,
    nodes: Nodes,
    mirror: ClusterView,
    pace: CircuitBreaker,
    names: NodeNameCache,
    tally: RuleErrorTally,
    counts: CacheCounts | None = None,
) -> ServingState:
    """Each policy where it is asked, with the rules that are asked there: what is kept depends on nothing else."""
    classes = Classes(counts=counts or CacheCounts())

    def asked(chosen: list[CompiledPolicy]) -> Evaluator:
        return Evaluator(PolicySet(tuple(chosen), policies.generation), nodes, tally=tally, classes=classes)

    gating = [replace(one, scores=()) for one in policies.policies if one.filters or one.protections or one.annotations]
    rating = [replace(one, filters=(), protections=(), annotations=()) for one in policies.policies if one.scores]
    gates: Mapping[FailurePolicy, Evaluator] = {
        "Fail": asked([one for one in gating if one.rejects_on_failure]),
        "Ignore": asked([one for one in gating if not one.rejects_on_failure]),
    }
    images = any(overlap(_IMAGES, path) for policy in policies.policies for path in policy.reads.node)
    brought = FullNodeCache(lambda node: mirror.decode_full_node(node, images=images))
    return ServingState(policies, mirror, gates, asked(rating), pace, names, brought)
