"""Serving state: the policies by verb and failure policy, and the view of the cluster that verbs answer from."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from fairlead.mirror.resource_limits import usage_of
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.policy_conflicts import Conflict
from fairlead.policy.evaluate.class_cache import CacheCounts, Classes
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.shadow.shadow_rules import ShadowRules, shadow_rules
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.facts import Amounts
from fairlead.strategies.reads import overlap
from fairlead.webhook.extender.caches import FullNodeCache, NodeNameCache
from fairlead.webhook.extender.call import CallClock, FailurePolicy
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker, CircuitScope, Part
from fairlead.webhook.extender.group_view import NO_GROUPS, GroupView
from fairlead.webhook.extender.requests import UNREADABLE, BindArgs, Bytes, MalformedError, unreadable

_IMAGES: Final = ("status", "images")


class ClusterView(Protocol):
    """View of the cluster that the verbs need, besides the nodes."""

    def namespace(self, name: str, /) -> Any | None:
        """Return a namespace; None if the mirror does not hold it."""

    def request_of(self, pod: Any, /) -> Amounts:
        """Return the requests of an unplaced pod. Raises ValueError for an unreadable quantity."""

    def granted_uid(self, pod: Any, /) -> str:
        """Return the UID of an unplaced pod for which a ledger has an entry that is not over; empty if none has."""

    def requests_of_placed(self, placed: Any, /) -> Amounts:
        """Return what a placed pod adds to `requested` of its node."""

    def unplaced(self, namespace: str, name: str, /) -> Any | None:
        """Return an unplaced pod of a managed scheduler; None if the mirror does not hold it."""

    def decode_full_node(self, node: bytes, /, *, images: bool) -> Any:
        """Decode a node of a request from JSON; without its images unless a policy reads them.

        Depends on nothing else. Raises one of `requests.UNREADABLE` if it is not a node.
        """

    def view_full_node(self, full_node: Any, /) -> NodeView:
        """Return the view of a decoded node with the pods that the mirror has on the node of its name."""


@dataclass(frozen=True, slots=True)
class ServingState:
    """A policy set with its evaluators. A new set gets a new state; circuits and name cache stay."""

    policies: PolicySet
    mirror: ClusterView
    entries: Mapping[FailurePolicy, Evaluator]
    scores: Evaluator
    circuit_breaker: CircuitBreaker
    node_names: NodeNameCache
    full_nodes: FullNodeCache[Any]
    groups: GroupView = NO_GROUPS
    shadow: ShadowRules | None = None
    """Rules in shadow, which no verb asks; None if there are none."""
    conflicts: Counter[Conflict] = field(default_factory=Counter)
    """Pods affected by each annotation conflict."""

    def pod_view(self, pod: Any) -> PodView:
        """Return the view of a request's pod without its resource requests, enough to match policies.

        Most pods match none, and requests take longer to read than the rest: `read_requests` adds them.
        """
        return PodView(pod, self.mirror.namespace(str(pod.metadata.namespace) or "default"))

    def read_requests(self, view: PodView) -> None:
        """Read the resource requests of a pod into its view, as rules need it. Raises MalformedError."""
        try:
            request = self.mirror.request_of(view.pod)
        except ValueError as error:
            raise MalformedError(f"the pod cannot be read: {unreadable(error)}") from None
        view.set_requests(request, usage_of, self.mirror.granted_uid(view.pod))

    def unplaced(self, request: BindArgs) -> Any | None:
        """Return the pod of a bind; None if it has a node, or the mirror does not hold it yet."""
        pod = self.mirror.unplaced(request.namespace, request.name)
        return pod if pod is not None and pod.metadata.uid == request.uid else None

    def full_node_view(self, written: Bytes) -> NodeView:
        """Return the view of a node of a request. Raises MalformedError."""
        try:
            return self.mirror.view_full_node(self.full_nodes.node(written))
        except UNREADABLE as error:
            raise MalformedError(f"a node cannot be read: {unreadable(error)}") from None

    def record_timeout(self, policy: str, part: Part, pod: Any, at: int) -> CircuitScope | None:
        """Record that a policy missed the deadline for a pod; return for which pods its circuit opened, if it did."""
        evaluators = (self.scores,) if part == "scores" else self.entries.values()
        for one in (one for evaluator in evaluators for one in evaluator.policies.policies):
            if one.name == policy:
                return self.circuit_breaker.record_timeout(one, part, self.pod_view(pod), at)
        return None

    @property
    def progress(self) -> tuple[int, int]:
        """Return numbers of which one grows whenever there is something to precompute.

        They count changes of nodes, and classes of pods: a new class has verdicts of the nodes of its call only.
        """
        return self.scores.nodes.head, self.scores.classes.counts.misses

    def precompute(self, when: CallClock) -> bool:
        """Compute pending verdicts in idle time; return whether all are done."""
        now, clock, deadline_ns = when[:3]
        return all(
            one.precompute(now=now, clock=clock, deadline_ns=deadline_ns)
            for one in (*self.entries.values(), self.scores)
        )


def build_serving_state(
    policies: PolicySet,
    nodes: Nodes,
    mirror: ClusterView,
    circuit_breaker: CircuitBreaker,
    names: NodeNameCache,
    tally: RuleErrorTally,
    counts: CacheCounts | None = None,
    groups: GroupView = NO_GROUPS,
) -> ServingState:
    """Build the serving state: each evaluator gets only the rules it evaluates, and caches nothing else."""
    classes = Classes(counts=counts or CacheCounts())

    def evaluator_of(chosen: list[CompiledPolicy]) -> Evaluator:
        return Evaluator(PolicySet(tuple(chosen), policies.generation), nodes, tally=tally, classes=classes)

    filtering = [replace(one, scores=()) for one in policies.policies if one.filters or one.protections or one.binds]
    scoring = [
        replace(one, filters=(), protections=(), annotations=(), gangs=(), domain_rules=())
        for one in policies.policies
        if one.scores
    ]
    entries: Mapping[FailurePolicy, Evaluator] = {
        "Fail": evaluator_of([one for one in filtering if one.rejects_on_failure]),
        "Ignore": evaluator_of([one for one in filtering if not one.rejects_on_failure]),
    }
    images = any(overlap(_IMAGES, path) for policy in policies.policies for path in policy.reads.node)
    full_nodes = FullNodeCache(lambda node: mirror.decode_full_node(node, images=images))
    scores, shadow = evaluator_of(scoring), shadow_rules(policies, nodes)
    return ServingState(policies, mirror, entries, scores, circuit_breaker, names, full_nodes, groups, shadow)
