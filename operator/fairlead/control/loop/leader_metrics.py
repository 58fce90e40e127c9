"""Metrics of the leader.

The leader's loop runs in its own thread, and scrapes are answered in another: gauges copy what they read in one step. A
replica that does not lead has no gauges of schedulers and policies.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from fairlead.control.reconcile.result import ROLLOUT_RESULTS, ReconcileResult
from fairlead.control.reconcile.scheduler_registry import SchedulerRegistry
from fairlead.control.status.crd_fields import CrdFields
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.kube.errors import ConflictError
from fairlead.metrics import LONG_BUCKETS, Labels, Metrics


class LeaderMetrics:
    """Counters and gauges of one replica while it leads."""

    def __init__(self, metrics: Metrics) -> None:
        self._registry: SchedulerRegistry | None = None
        self._depth: Callable[[], int] = lambda: 0
        self._crd_fields: CrdFields | None = None
        self._unreviewed: UnreviewedGenerations | None = None
        self._reconcile = metrics.histogram(
            "fairlead_reconcile_duration_seconds",
            "Time that a reconcile of a scheduler took, by the result: success, refused, conflict, error or fault.",
            "scheduler",
            "result",
            buckets=LONG_BUCKETS,
        )
        self._rollout = metrics.histogram(
            "fairlead_rollout_duration_seconds",
            "Time from the start of a rollout to its end, by the result: verified, rolled_back or rejected.",
            "scheduler",
            "result",
            buckets=LONG_BUCKETS,
        )
        self.drift = metrics.counter(
            "fairlead_drift_corrected", "Objects of the operator that others had changed or deleted.", "kind"
        )
        self.wakeups = metrics.counter(
            "fairlead_wakeups", "Times that rejected pods were woken, because they may be schedulable again."
        )
        self._transitions = metrics.counter("fairlead_leader_transitions", "Times that this replica became the leader.")
        metrics.gauge(
            "fairlead_reconcile_queue_depth",
            "Schedulers that wait for a reconcile.",
            ask=lambda: {(): self._depth()} if self._registry else {},
        )
        metrics.gauge(
            "fairlead_policy_unreviewed",
            "1 for a policy whose current generation no replica reviewed, because the API server does not reach the "
            "admission check.",
            "policy",
            ask=self._unreviewed_policies,
        )
        metrics.gauge(
            "fairlead_crd_outdated",
            "1 if the CustomResourceDefinition lacks strategies of the operator's version, 0 if not.",
            ask=self._crd_outdated,
        )
        metrics.gauge(
            "fairlead_scheduler_ready",
            "1 if the scheduler runs its desired configuration, 0 if not.",
            "scheduler",
            ask=self._ready,
        )
        metrics.gauge(
            "fairlead_scheduler_config_info",
            "Configuration of the scheduler that was verified last, by its hash.",
            "scheduler",
            "config_hash",
            ask=self._configurations,
        )
        metrics.gauge(
            "fairlead_policy_condition",
            "1 for the current status of each condition of each policy.",
            "policy",
            "type",
            "status",
            ask=self._conditions,
        )

    @contextmanager
    def export_gauges(
        self,
        registry: SchedulerRegistry,
        depth: Callable[[], int],
        crd_fields: CrdFields,
        unreviewed: UnreviewedGenerations,
    ) -> Iterator[None]:
        """Export the gauges of these schedulers while the context is open."""
        self._transitions.add()
        self._registry, self._depth, self._crd_fields = registry, depth, crd_fields
        self._unreviewed = unreviewed
        try:
            yield
        finally:
            self._registry = self._crd_fields = self._unreviewed = None

    def count_reconcile(self, scheduler: str, result: ReconcileResult | None, seconds: float) -> None:
        """Count a reconcile; None means that it ended with an internal error."""
        for each in ROLLOUT_RESULTS:
            self._rollout.begin(scheduler, each)
        self._reconcile.observe(seconds, scheduler, _label_of(result))
        if result is not None and result.rollout is not None:
            self._rollout.observe(result.rollout.seconds, scheduler, result.rollout.result)

    def _results(self) -> Mapping[str, ReconcileResult]:
        return {} if self._registry is None else dict(self._registry.results)

    def _unreviewed_policies(self) -> Mapping[Labels, float]:
        return {} if self._unreviewed is None else {(name,): 1.0 for name in self._unreviewed}

    def _crd_outdated(self) -> Mapping[Labels, float]:
        missing = self._crd_fields.missing if self._crd_fields is not None else None
        return {} if missing is None else {(): float(bool(missing))}

    def _ready(self) -> Mapping[Labels, float]:
        return {(name,): float(one.is_ready) for name, one in self._results().items() if one.decision is not None}

    def _configurations(self) -> Mapping[Labels, float]:
        return {
            (name, one.decision.persisted.rollout.last_good): 1
            for name, one in self._results().items()
            if one.decision is not None and one.decision.persisted.rollout.last_good
        }

    def _conditions(self) -> Mapping[Labels, float]:
        policies = {} if self._registry is None else dict(self._registry.policy_index.policies)
        return {
            (name, one["type"], one["status"]): 1
            for name, policy in policies.items()
            for one in policy.get("status", {}).get("conditions", ())
        }


def _label_of(result: ReconcileResult | None) -> str:
    if result is None:
        return "fault"
    if result.error is not None:
        return "conflict" if isinstance(result.error, ConflictError) else "error"
    return "refused" if result.refused else "success"
