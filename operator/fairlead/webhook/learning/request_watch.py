"""Watch of the requests of pods that wait, on the replica that leads: those of the mirror, as they come."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from fairlead.learned.learner import DemandLearner
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_watcher import PodWatcher
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS
from fairlead.webhook.learning.followed_rules import FollowedRequests, matching_policies
from fairlead.webhook.learning.state_feed import StateSink

if TYPE_CHECKING:
    from fairlead.policy.nodes.learned_tables import TableOfRule

_SEEN_MAX: Final = 20_000


class RequestWatch(PodWatcher):
    """Learners of the requests of pods, while this replica leads."""

    def __init__(
        self, mirror: Mirror, now: Callable[[], int], states: StateSink, on_pod: Callable[[FollowedRequests], None]
    ) -> None:
        """`now` is in nanoseconds; `on_pod` is called with each pod that a rule learns from."""
        self._mirror, self._now, self._states, self._on_pod = mirror, now, states, on_pod
        self._rules: Mapping[TableOfRule, FollowedRequests] = {}
        self._policies: PolicySet = PolicySet()
        self._seen: dict[str, None] = {}
        self.learners: dict[TableOfRule, DemandLearner] = {}

    def set_rules(self, rules: Iterable[FollowedRequests]) -> None:
        """Learn for these rules from now on, and for no others."""
        self._rules = {one.table: one for one in rules}
        self._policies = matching_policies(self._rules.values())
        self.learners = {table: self._learner(one) for table, one in self._rules.items()}
        self._seen.clear()
        if not self._rules:
            self._mirror.watchers.discard(self)
            return
        self._mirror.watchers.add(self)
        for pod in [*self._mirror.unplaced_sink.objects.values()]:
            self._observe(pod)

    def put_unplaced(self, pod: Any, before: Any | None) -> None:  # noqa: ARG002
        """Learn from a pod that waits."""
        self._observe(pod)

    def _learner(self, rule: FollowedRequests) -> DemandLearner:
        learner = self.learners.get(rule.table)
        if learner is None:
            learner = DemandLearner(rule.rule, rule.demands.samples)
            self._states.show_all(learner.versions)
        learner.versions.rule, learner.samples = rule.rule, rule.demands.samples
        return learner

    def _observe(self, pod: Any) -> None:
        """Learn from a pod when it is first seen: its requests do not change."""
        uid = str(pod.metadata.uid)
        if uid in self._seen:
            return
        view = PodView(pod, self._mirror.namespace(str(pod.metadata.namespace)))
        matched = self._policies.matching(view, str(pod.spec.schedulerName), self._now())
        if any(each.undecided is not None and not view.knows_namespace for each in matched):
            return
        self._seen[uid] = None
        if len(self._seen) > _SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        names = {each.policy.name for each in matched if each.undecided is None}
        wanted = [one for one in self._rules.values() if one.policy.name in names]
        if not wanted:
            return
        try:
            request = self._mirror.request_of(pod)
        except ValueError:
            return
        arrival = int(pod.metadata.creationTimestamp or 0) // SECOND_NS, uid
        for one in wanted:
            self.learners[one.table].observe(arrival, tuple(request.get(name, 0.0) for name in one.demands.resources))
            self._on_pod(one)
