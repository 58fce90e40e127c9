"""Watch of outcomes, on the replica that leads: one of the pods of each scheduler whose policies learn."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.learned.learner import PairLearner
from fairlead.mirror.mirror import Mirror
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.webhook.learning.followed_rules import AnyRule, FollowedRequests, FollowedRule
from fairlead.webhook.learning.memory_states import MemoryStates
from fairlead.webhook.learning.outcome_sink import OutcomeSink, watched_pod
from fairlead.webhook.learning.publisher import Learner, Publisher
from fairlead.webhook.learning.request_watch import RequestWatch
from fairlead.webhook.learning.state_feed import StateFeed

PUBLISH_S: Final = 15.0
_TICK_S: Final = 1.0
_PIECE: Final = 20
"""Pods of a list that are learned from before calls are answered: each takes 80 us."""
_LAST_S: Final = 3.0
"""Time for the last publication of a replica that ends."""


class OutcomeWatch:
    """Learners of the rules that are followed, while this replica leads."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        now: Callable[[], int],
        feed: StateFeed | MemoryStates,
        publisher: Publisher | MemoryStates,
        requests: RequestWatch,
        on_outcome: Callable[[FollowedRule, float], None],
        on_late: Callable[[FollowedRule, int], None],
    ) -> None:
        """Take the watch of requests, which runs beside this one.

        `on_late` is called with the number of outcomes that came too late to be counted.
        """
        self._requests = requests
        self._client, self._mirror, self._now = client, mirror, now
        self._feed, self._publisher = feed, publisher
        self._on_outcome, self._on_late = on_outcome, on_late
        self._rules: Mapping[TableOfRule, FollowedRule] = {}
        self._watches = ReflectorSet()
        self._sinks: dict[str, OutcomeSink] = {}
        self.learners: dict[TableOfRule, PairLearner] = {}

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watches, by the name of their scheduler."""
        return self._watches.reflectors

    def set_rules(self, rules: Iterable[FollowedRule]) -> None:
        """Learn for these rules from now on, and for no others."""
        self._rules = {one.table: one for one in rules}
        self.learners = {table: self._learner(one) for table, one in self._rules.items()}
        by_scheduler: dict[str, list[FollowedRule]] = {}
        for one in self._rules.values():
            by_scheduler.setdefault(one.policy.scheduler_name, []).append(one)
        self._sinks = {name: self._sinks.get(name) or self._sink(name) for name in by_scheduler}
        self._watches.want({name: partial(self._reflector, name) for name in by_scheduler})
        for name, its_rules in by_scheduler.items():
            if self._sinks[name].set_rules(its_rules, self.learners):
                self._watches.reflectors[name].relist()

    async def run(self, rules: Callable[[], Iterable[AnyRule]], is_leader: Callable[[], bool]) -> None:
        """Watch and publish until cancelled, and publish once more then if this replica leads still."""
        followed = list[AnyRule]()
        self._feed.sink.versions = lambda: [one.versions for _, one in self._all_learners()]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watches.run())
                group.create_task(self._publish_now_and_then())
                while True:
                    wanted = [*rules()]
                    if wanted != followed and self._feed.is_listed:
                        self.set_rules(one for one in wanted if isinstance(one, FollowedRule))
                        self._requests.set_rules(one for one in wanted if isinstance(one, FollowedRequests))
                        followed = wanted
                    for one in self._sinks.values():
                        one.tell_due()
                    await asyncio.sleep(_TICK_S)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_S if is_leader() else 0):
                    await self._publish()
            self._feed.sink.versions = tuple
            self.learners, self._sinks = {}, {}
            self._requests.set_rules(())
            self._watches.want({})

    async def _publish_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(PUBLISH_S)
            await self._publish()

    async def _publish(self) -> None:
        for table, learner in self._all_learners():
            await self._publisher.publish(learner)
            if (late := learner.take_late()) and table in self._rules:
                self._on_late(self._rules[table], late)

    def _all_learners(self) -> list[tuple[TableOfRule, Learner]]:
        return [*self.learners.items(), *self._requests.learners.items()]

    def _learner(self, rule: FollowedRule) -> PairLearner:
        learner = self.learners.get(rule.table)
        if learner is None:
            learner = PairLearner(rule.rule, rule.counting)
            self._feed.sink.show_all(learner.versions)
        learner.versions.rule, learner.meaning = rule.rule, rule.counting
        return learner

    def _sink(self, scheduler: str) -> OutcomeSink:
        return OutcomeSink(scheduler, self._mirror.nodes, self._mirror.namespace, self._now, self._on_outcome)

    def _reflector(self, scheduler: str) -> Reflector[Any]:
        query = {"fieldSelector": f"spec.schedulerName={scheduler}"}
        return Reflector(
            self._client,
            PODS,
            decode=watched_pod,
            sink=self._sinks[scheduler],
            query=query,
            puts_deleted=True,
            piece=_PIECE,
        )
