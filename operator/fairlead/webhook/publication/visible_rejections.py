"""Pods that wait because of one policy alone, as their node affinity says, so that autoscalers see it.

kube-scheduler asks us about a pod only with nodes that its affinity selects: pods that we leave without a node are not
among these, and `RejectedPods` knows them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fairlead.cel.values.structs import empty, from_json
from fairlead.cooperative import Steps
from fairlead.policy.affinity.label_requirement import Matches, node_selection
from fairlead.policy.affinity.published_pods import Manifest, MatchExpressions, required_terms
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.rule_columns import filter_columns
from fairlead.policy.evaluate.verdict_cache import UncachedPass
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.scheduler_filters import filters_for
from fairlead.webhook.extender.call import CallClock
from fairlead.webhook.extender.rejected_pods import CONDITIONS
from fairlead.webhook.extender.requests import MalformedError
from fairlead.webhook.extender.state import ServingState

PODS_MAX: Final = 64
"""Pods of which each is looked at; those of one controller are alike, and one stands for all."""
_NODES_AT_ONCE: Final = 50
_NODES_MAX: Final = 1_000
"""Nodes with room on which rules are evaluated."""

AlternativesByPolicy = Sequence[tuple[str, list[MatchExpressions]]]
"""Alternatives by policy."""


class WaitingPods:
    """Pods that wait with published node affinity, of each controller one and how many there are."""

    def __init__(self) -> None:
        self.pods: Final[dict[str, tuple[Any, Manifest, AlternativesByPolicy]]] = {}
        self.counts: Final[Counter[str]] = Counter()

    def add(self, pod: Any, read: Callable[[Any], tuple[Manifest, AlternativesByPolicy]]) -> None:
        """Add a pod, which is read unless another one of its controller was; those beyond the limit are left out."""
        owners = (str(one.uid) for one in pod.metadata.ownerReferences if one.controller)
        key = next(owners, str(pod.metadata.uid))
        if key not in self.pods:
            if len(self.pods) >= PODS_MAX:
                return
            self.pods[key] = pod, *read(pod)
        self.counts[key] += 1


def is_unschedulable(pod: Any) -> bool:
    """Report whether the scheduler says that a pod found no node."""
    return any(
        one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable"
        for one in pod.status.conditions
    )


def visible_rejections(
    state: ServingState, waiting: WaitingPods, when: Callable[[], CallClock]
) -> Steps[Mapping[str, int]]:
    """Count the pods that wait because of one policy alone, by its name, with a pause after some nodes."""
    found: Counter[str] = Counter()
    for key, (pod, manifest, published) in waiting.pods.items():
        yield
        try:
            policy = yield from _rejecting_alone(state, pod, manifest, published, when)
        except (MalformedError, TooSlowError):
            continue
        if policy:
            found[policy] += waiting.counts[key]
    return found


def _rejecting_alone(
    state: ServingState, pod: Any, manifest: Manifest, published: AlternativesByPolicy, when: Callable[[], CallClock]
) -> Steps[str]:
    """Return the policy that alone keeps a pod from nodes with room; "" if there is none, or several.

    Raises MalformedError and TooSlowError.
    """
    view = state.pod_view(pod)
    state.read_requests(view)
    slots = yield from _nodes_with_room(state, view, manifest, published)
    if not slots:
        return ""
    passes = _passes_by_policy(state, view, when())
    alone = set[str]()
    for number, slot in enumerate(slots, 1):
        now = when().now
        rejecting = [policy for policy, one in passes if not one.passes(slot, now)]
        if not rejecting:
            return ""
        alone.update(rejecting if len(rejecting) == 1 else ())
        if not number % _NODES_AT_ONCE:
            yield
    return alone.pop() if len(alone) == 1 else ""


def _nodes_with_room(
    state: ServingState, view: PodView, manifest: Manifest, published: AlternativesByPolicy
) -> Steps[Sequence[int]]:
    """Return the nodes, by slot, that only published affinity keeps from the scheduler.

    Empty if the pod's whole affinity selects one that has room: the scheduler asks us about such a pod.
    """
    spec = view.pod.spec
    bare = replace(view.pod, spec=replace(spec, affinity=empty("Affinity")))
    filters = filters_for(PodView(bare, view.namespaceObject, view.request))
    selects, selects_without = _selects(required_terms(manifest) or ()), _selects(_own_terms(manifest, published))
    found: list[int] = []
    for slot, node in enumerate(state.scores.nodes.home.views):
        if not slot % _NODES_AT_ONCE:
            yield
        if node is None or not selects_without(node.labels, node.name) or any(one.judge(node) for one in filters):
            continue
        if selects(node.labels, node.name):
            return ()
        if len(found) < _NODES_MAX:
            found.append(slot)
    return found


def _own_terms(manifest: Manifest, published: AlternativesByPolicy) -> Sequence[Mapping[str, Any]]:
    """Return the terms of a pod without what is published for it; none if it then selects every node."""
    added = [one for _, alternatives in published for requirements in alternatives for one in requirements]
    own = [
        {**term, "matchExpressions": [one for one in term.get("matchExpressions", ()) if one not in added]}
        for term in required_terms(manifest) or ()
    ]
    return own if all(one["matchExpressions"] or one.get("matchFields") for one in own) else ()


def _selects(terms: Sequence[Mapping[str, Any]]) -> Matches:
    required = from_json("NodeSelector", {"nodeSelectorTerms": terms}) if terms else None
    return node_selection({}, required)[0]


def _passes_by_policy(state: ServingState, view: PodView, when: CallClock) -> Sequence[tuple[str, UncachedPass]]:
    """Return each policy that applies to a pod, with its filters. Raises TooSlowError."""
    found: list[tuple[str, UncachedPass]] = []
    for evaluator in state.entries.values():
        matched = evaluator.policies.matching(
            view,
            str(view.pod.spec.schedulerName),
            when.now,
            clock=when.clock,
            deadline_ns=when.clock() + CONDITIONS,
        )
        nodes = evaluator.nodes
        found += [
            (one.policy.name, UncachedPass(filter_columns(one, view, nodes, RuleErrorTally()), nodes))
            for one in matched
        ]
    return found
