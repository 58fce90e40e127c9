"""Learning: what rules have learned is followed by every replica, and learned and published by the one that leads."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.learned.outcomes import FAILURE, SUCCESS
from fairlead.metrics import Counter, Labels, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.replica_state import ReplicaState
from fairlead.time_units import SECOND_NS
from fairlead.webhook.capability import Capability, ReadinessCheck
from fairlead.webhook.data_sources.loop_turns import LoopTurns
from fairlead.webhook.learning.followed_rules import (
    AnyRule,
    FollowedRequests,
    FollowedRule,
    followed_requests,
    followed_rules,
)
from fairlead.webhook.learning.memory_states import MemoryStates
from fairlead.webhook.learning.outcome_watch import OutcomeWatch
from fairlead.webhook.learning.publisher import Publisher
from fairlead.webhook.learning.request_watch import RequestWatch
from fairlead.webhook.learning.state_feed import StateFeed, StateSink

_LOOK_S: Final = 0.1
"""Time between two looks whether the mirror is filled."""


class Learning(Capability):
    """Learned state of the rules of a replica."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        namespace: str | None,
        now: Callable[[], int],
        is_synced: Callable[[str], bool],
    ) -> None:
        """`namespace` has the published state: None if nothing is published, and this process learns for itself.

        `is_synced` says with "" whether the mirror is listed.
        """
        self._now, self._is_synced, self._mirror = now, is_synced, mirror
        self._sink = StateSink(mirror.nodes, now)
        self._observations = Counter(
            "fairlead_learned_observations",
            "Outcomes of pods that the replica that leads has seen, by the outcome: success, late_failure or failure."
            " Those of a list, which shows again what was counted before, are left out. Pods whose requests were"
            " learned have the outcome pod.",
            ("policy", "rule", "outcome"),
        )
        self._publications = Counter(
            "fairlead_learned_publications",
            "Writes of learned state, by the result: written, conflict (decided again on the newer version) or failed.",
            ("result",),
        )
        self._feed: StateFeed | MemoryStates
        self._publisher: Publisher | MemoryStates
        pause = LoopTurns().run
        if namespace is None:
            self._feed = self._publisher = MemoryStates(self._sink, now, pause)
        else:
            self._feed = StateFeed(client, namespace, self._sink)
            self._publisher = Publisher(client, namespace, now, pause, self._publications.add)
        self._late = Counter(
            "fairlead_learned_late",
            "Outcomes that came too late to be counted, or for which there was no room.",
            ("policy", "rule"),
        )
        self._watch = OutcomeWatch(
            client,
            mirror,
            now,
            self._feed,
            self._publisher,
            RequestWatch(mirror, now, self._sink, lambda rule: self._observations.add(*rule.labels, "pod")),
            self._count,
            lambda rule, late: self._late.add(*rule.labels, amount=late),
        )
        self._rules: Sequence[AnyRule] = ()
        self._decides = False
        """Whether a rule that learns decides."""

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Watch of the published state, while a rule that learns decides."""
        return self._feed.reflectors if self._decides else {}

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        """The same, while none does: rules in shadow keep no replica from being ready."""
        return {} if self._decides else self._feed.reflectors

    @property
    def is_listed(self) -> bool:
        """Return whether what rules have learned is known, if any learn."""
        return self._feed.is_listed or not self._rules

    async def run(self) -> None:
        """Follow the published state until cancelled."""
        await self._feed.run()

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Follow what these policies learn from now on; return once what they have learned is listed, if it decides."""
        outcomes = followed_rules(policies)
        if outcomes:
            for _ in self._mirror.nodes.keep_keys():
                await asyncio.sleep(0)
        rules: Sequence[AnyRule] = [*outcomes, *followed_requests(policies)]
        self._decides = any(one.enforced and (one.reads.learned or one.reads.demands) for one in policies)
        await self._feed.follow(rules, wait=self._decides)
        self._rules = rules

    async def lead(self, is_leader: Callable[[], bool]) -> None:
        """Watch outcomes of pods, and publish what is learned of them, until cancelled."""
        while not self._is_synced(""):
            await asyncio.sleep(_LOOK_S)
        await self._watch.run(lambda: self._rules, is_leader)

    def remarks(self) -> Iterator[ReadinessCheck]:
        """Yield whose outcomes are watched, and what cannot be read."""
        for scheduler, reflector in self._watch.reflectors.items():
            state = reflector.state
            number = f"{len(reflector.objects)} pods" if state.synced else "no list yet"
            parts = f"{scheduler}: {number}", state.last_error
            yield ReadinessCheck("outcomes", ok=True, text=": ".join(filter(None, parts)))
        for published in self._sink.states.values():
            if published is not None and published.document.fault:
                yield ReadinessCheck("learned state", ok=True, text=published.document.fault)

    def missing_permissions(self) -> Iterator[str]:
        """Yield the permission that a publication was refused for want of."""
        if self._publisher.missing:
            yield self._publisher.missing

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report with the learned state of each policy that cannot be read."""
        faults: dict[tuple[str, str], list[str]] = {}
        for one in self._sink.states.values():
            if one is not None and one.document.fault:
                faults.setdefault((one.rule.policy, one.rule.uid), []).append(one.document.fault)
        if not faults:
            return state
        policies = {
            name: replace(policy, unreadable=tuple(faults.get((name, policy.uid), ()))) if policy.mode else policy
            for name, policy in state.policies.items()
        }
        return replace(state, policies=policies)

    def register(self, metrics: Metrics) -> None:
        """Register its metrics."""
        metrics.add(self._observations, self._late, self._publications)
        metrics.gauge(
            "fairlead_learned_entries",
            "Pairs of a type of pods and a node that a rule has learned, or pods whose requests it has.",
            "policy",
            "rule",
            ask=lambda: self._of_rules(self._pairs),
        )
        metrics.gauge(
            "fairlead_learned_bytes",
            "Bytes of what a rule has learned, as it is published.",
            "policy",
            "rule",
            ask=lambda: self._of_rules(lambda one: sum(state.size for state in self._sink.of_rule(one.table))),
        )
        metrics.gauge(
            "fairlead_learned_age_seconds",
            "Time since this replica saw a change of what a rule has learned.",
            "policy",
            "rule",
            ask=self._ages,
        )

    def _count(self, rule: FollowedRule, reward: float) -> None:
        outcome = "success" if reward == SUCCESS else "failure" if reward == FAILURE else "late_failure"
        self._observations.add(*rule.labels, outcome)

    def _of_rules(self, ask: Callable[[AnyRule], float]) -> dict[Labels, float]:
        return {one.labels: ask(one) for one in self._rules}

    def _pairs(self, rule: AnyRule) -> int:
        if isinstance(rule, FollowedRequests):
            return self._sink.requests.pods(rule.table)
        table = self._mirror.nodes.learned.tables.get(rule.table)
        return 0 if table is None else table.pairs

    def _ages(self) -> dict[Labels, float]:
        now = self._now()
        known = {one.labels: self._sink.changed_at.get(one.table) for one in self._rules}
        return {labels: max(0.0, (now - at) / SECOND_NS) for labels, at in known.items() if at is not None}
