"""Group holding: members are indexed, their bind calls held until all have found room, and turns published."""

import asyncio
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fairlead.groups.group import Group, Membership
from fairlead.groups.member_calls import WakeCause
from fairlead.groups.turns import NO_TURNS, Turns, rejection
from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.metrics import Counter, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.device_grants import DeviceGrants
from fairlead.webhook.capability import Capability
from fairlead.webhook.extender.group_view import GroupView
from fairlead.webhook.holding.group_binds import GroupBinds
from fairlead.webhook.holding.group_metrics import GroupMetrics
from fairlead.webhook.holding.group_watch import GroupWatch
from fairlead.webhook.holding.held_binds import HeldBinds, HoldingListener
from fairlead.webhook.holding.passed_calls import PassingOn
from fairlead.webhook.holding.turns_feed import TurnsFeed, TurnsPublisher

_STARTED_S: Final = 5.0


class GroupHolding(Capability, GroupView):
    """Groups of a replica."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        namespace: str | None,
        now: Callable[[], int],
        clock: Callable[[], int],
        grants: DeviceGrants,
    ) -> None:
        """`namespace` has the published turns: None if nothing is published, and this process holds for itself.

        `now` is the time of day, `clock` that of calls, both in nanoseconds.
        """
        self._now, self._clock, self._steps = now, clock, grants.granter.steps
        self.watch: Final = GroupWatch(mirror, now, self._read_started)
        self.binds: Final = GroupBinds(self.watch, grants.granter, grants.bindings, self._held.get)
        self._held: dict[str, HeldBinds] = {}
        self.watch.held = self._held
        self._feed = None if namespace is None else TurnsFeed(client, namespace)
        self._publisher = None if namespace is None else TurnsPublisher(client, namespace, self._turns_to_publish)
        self._holds = False
        self._reading = set[asyncio.Task[None]]()
        self.wake: Callable[[], None] = lambda: None
        """Called when pods that filter refused should be tried again."""
        self._passed_on = Counter(
            "fairlead_group_passed_on",
            "Bind calls of members that were passed on to the replica which holds them, by the result: answered, failed,"
            " hung up or no holder.",
            ("result",),
        )
        self._metrics = GroupMetrics(self.watch.index, self._held, now, clock)

    def pass_on(self, holder: Callable[[], str], context: Callable[[], ssl.SSLContext], host: str) -> None:
        """Pass calls on to the replica that holds, which has this host name in its certificate."""
        self.binds.pass_on = PassingOn(holder, context, host, self._passed_on.add)

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Watch of the published turns, once a policy has groups."""
        return {} if self._feed is None else self._feed.reflectors

    def rejection(self, uid: str, membership: Membership, now: int, /) -> str | None:
        """Return why a member is rejected on every node at this time of day; None if it is not."""
        scheduler = membership.group.scheduler
        return rejection(uid, membership, self.watch.index, self._turns_of(scheduler, now), now / SECOND_NS)

    def is_placed(self, group: Group, /) -> bool:
        """Return whether a placed pod of a group lives, by the mirror."""
        return self.watch.index.is_placed(group)

    def is_member(self, uid: str, /) -> bool:
        """Return whether an unplaced pod is a member of a group."""
        return self.watch.index.group_of(uid) is not None

    async def run(self) -> None:
        """Follow the published turns, and publish, until cancelled."""
        if self._feed is None or self._publisher is None:
            return
        async with asyncio.TaskGroup() as group:
            for work in (self._feed.run, self._publisher.run):
                group.create_task(work())

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Take the groups of these policies; return once all pods are indexed, and the turns are listed."""
        await self.watch.use(policies)
        self._hold()
        if self.watch.schedulers and self._feed is not None:
            await self._feed.follow()

    async def lead(self, is_leader: Callable[[], bool]) -> None:
        """Hold calls until cancelled."""
        self._holds = True
        self._hold()
        try:
            while is_leader():
                await asyncio.sleep(1)
        finally:
            self._let_go()

    async def stop(self) -> None:
        """Refuse all calls that are held."""
        self._let_go()

    def missing_permissions(self) -> Iterator[str]:
        """Yield the permission that a publication was refused for want of."""
        if self._publisher is not None and self._publisher.missing:
            yield self._publisher.missing

    def register(self, metrics: Metrics) -> None:
        """Register its metrics."""
        metrics.add(self._passed_on)
        self._metrics.register(metrics)

    def _hold(self) -> None:
        """Hold the calls of each scheduler that has groups, if this process does."""
        for scheduler in self.watch.schedulers if self._holds else ():
            if scheduler not in self._held:
                listener = HoldingListener(
                    partial(self._published, scheduler), partial(self._wake, scheduler), self._metrics.attempt_ended
                )
                self._held[scheduler] = HeldBinds(self.watch.index, self._steps, self._clock, listener)
                self._metrics.begin(scheduler)
                self._published(scheduler)  # in place of what another one has published

    def _let_go(self) -> None:
        self._holds = False
        held = [*self._held.values()]
        self._held.clear()
        for one in held:
            one.stop()

    def _turns_of(self, scheduler: str, now: int) -> Turns:
        if (held := self._held.get(scheduler)) is not None:
            return held.turns(now / SECOND_NS)
        return NO_TURNS if self._feed is None else self._feed.sink.turns.get(scheduler, NO_TURNS)

    def _turns_to_publish(self, scheduler: str) -> Turns | None:
        held = self._held.get(scheduler)
        return None if held is None else held.turns(self._now() / SECOND_NS)

    def _published(self, scheduler: str) -> None:
        if self._publisher is not None:
            self._publisher.publish(scheduler)

    def _wake(self, scheduler: str, _cause: WakeCause) -> None:
        if self._publisher is None:
            self.wake()
        else:
            self._publisher.publish(scheduler, self.wake)

    def _read_started(self, group: Group) -> None:
        task = asyncio.ensure_future(self._tell_started(group))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _tell_started(self, group: Group) -> None:
        if await self.binds.has_started(group, _STARTED_S) and (held := self._held.get(group.scheduler)) is not None:
            held.started(group)
