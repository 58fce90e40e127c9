"""Shadow: what rules in shadow would change, counted on every replica, for metrics and for the leader."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fairlead.logs import FaultError, RateLimiter
from fairlead.metrics import Counter, Gauges, Labels, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import compared
from fairlead.replica_state import PolicyState, ReplicaState
from fairlead.time_units import SECOND_NS
from fairlead.webhook.capability import Capability
from fairlead.webhook.data_sources.loop_turns import after_others, later
from fairlead.webhook.extender.call import DEADLINE_SHARE
from fairlead.webhook.extender.decisions import Decision, Listeners
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.shadow.comparisons import LiveComparisons
from fairlead.webhook.shadow.pod_counts import NoteEffects, PodCounts

if TYPE_CHECKING:
    from fairlead.policy.shadow.shadow_rules import ShadowRules

LOG: Final = logging.getLogger(__name__)
_ERRORS_S: Final = 5.0


class Shadow(Capability):
    """Rules in shadow of a replica. Without any, it listens to nothing."""

    def __init__(
        self,
        mirror: Mirror,
        listeners: Listeners,
        state: Callable[[], ServingState | None],
        now: Callable[[], int],
        timeout_s: float,
        is_listed: Callable[[frozenset[str]], bool],
        note_effects: NoteEffects = lambda _uid, _policy, _effects, _rules: None,
        has_values: Callable[[], bool] = lambda: True,
    ) -> None:
        """`timeout_s`: how long callers wait that do not say it; `note_effects` is as in `PodCounts`.

        `is_listed` returns whether the mirror has these annotations of pods on nodes, `has_values` whether first values
        are there or late.
        """
        self._mirror, self._listeners, self._state, self._timeout_s = mirror, listeners, state, timeout_s
        self._pods = Counter(
            "fairlead_shadow_pods",
            "Pods of which a call was compared with rules in shadow, and those with an effect if they were enforced: "
            "restricted, unschedulable, reordered or evictions. A pod counts once for each effect.",
            ("policy", "effect"),
        )
        self._calls = Counter(
            "fairlead_shadow_calls",
            "Calls of filter by whether they were compared with rules in shadow: compared, unknown (a node that changed"
            " after the call could change the effect) or skipped (there was no time).",
            ("policy", "result"),
        )
        self._nodes = Counter(
            "fairlead_shadow_rejected_nodes",
            "Nodes that passed a call, and that a filter in shadow alone would have rejected.",
            ("policy", "rule"),
        )
        self._errors = Counter(
            "fairlead_shadow_rule_errors",
            "Evaluations of a rule in shadow that ended with an error.",
            ("policy", "rule"),
        )
        self._counts = PodCounts(
            self._pods.add,
            self._calls.add,
            lambda policy, rule, nodes: self._nodes.add(policy, rule, amount=nodes),
            note_effects,
        )
        self.comparisons: Final = LiveComparisons(
            state, now, perf_counter_ns, self._budget_ns, self._counts, after_others, later, is_listed, has_values
        )
        self._counted: ShadowRules | None = None
        """Rules whose errors were counted last."""
        self._rate_limiter = RateLimiter()

    async def run(self) -> None:
        """Count errors of rules from time to time, until cancelled."""
        while True:
            await asyncio.sleep(_ERRORS_S)
            self.count_errors()

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Listen to decisions from now on if a rule of these policies is in shadow, else no more."""
        names = {one.name for one in policies if compared(one) is not None}
        self._counts.keep(names)
        if names:
            self._listeners.add(self.comparisons.hear)
            self._mirror.watchers.add(self.comparisons)
        else:
            self._listeners.discard(self.comparisons.hear)
            self._mirror.watchers.discard(self.comparisons)

    def count_errors(self) -> None:
        """Add the errors of rules since the last call to the metric, and log some."""
        state = self._state()
        before, self._counted = self._counted, None if state is None else state.shadow
        for rules in (before, self._counted):
            for one in () if rules is None else rules.tally.drain():
                self._errors.add(one.policy, one.rule, amount=one.count)
                if (more := self._rate_limiter.allow("rule")) is not None:
                    extra = {"policy": one.policy, "rule": one.rule, "error": one.last_message, **more}
                    if one.fault is None:
                        LOG.warning("shadow.rule_error", extra=extra)
                    else:
                        LOG.error("shadow.rule_fault", exc_info=FaultError(one.fault), extra=extra)

    def register(self, metrics: Metrics) -> None:
        """Register its metrics."""
        metrics.add(self._pods, self._calls, self._nodes, self._errors)
        metrics.add(
            Gauges(
                "fairlead_shadow_seconds",
                "Time that the serving thread spent on rules in shadow.",
                (),
                self._seconds,
                grows=True,
            )
        )

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report with the counts of each policy that has rules in shadow."""
        serving = self._state()
        rules = None if serving is None else serving.shadow
        if rules is None:
            return state
        counts = {name: self._counts.of(one) for name, one in rules.policies.items() if name in state.policies}

        def counted(name: str, policy: PolicyState) -> PolicyState:
            return replace(policy, shadow=counts[name].report()) if name in counts and policy.serving else policy

        return replace(state, policies={name: counted(name, one) for name, one in state.policies.items()})

    def _seconds(self) -> Mapping[Labels, float]:
        return {(): self.comparisons.seconds}

    def _budget_ns(self, decision: Decision) -> int:
        return int(DEADLINE_SHARE * (decision.caller.timeout_s or self._timeout_s) * SECOND_NS)
