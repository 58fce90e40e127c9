"""Group holding: members are indexed, their bind calls held until all have found room, and turns published."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from fairlead.documents import subject_hash
from fairlead.groups.group import Group, Membership
from fairlead.groups.member_calls import WakeCause
from fairlead.groups.turns import NO_TURNS, Turns, rejection
from fairlead.groups.waiting import waiting_groups
from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.metrics import Counter, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.filter_result import NO_DOMAIN, SharedDomain
from fairlead.replica_state import ReplicaState
from fairlead.strategies.domains import Values
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.device_grants import DeviceGrants
from fairlead.webhook.capability import Capability
from fairlead.webhook.domains.domain_views import DomainsLately
from fairlead.webhook.extender.group_view import GroupView
from fairlead.webhook.holding.group_binds import READ_S, GroupBinds
from fairlead.webhook.holding.group_metrics import GroupMetrics
from fairlead.webhook.holding.group_watch import GroupWatch
from fairlead.webhook.holding.held_binds import HeldBinds, HoldingListener
from fairlead.webhook.holding.passed_calls import PassingOn
from fairlead.webhook.holding.turns_feed import TurnsFeed, TurnsPublisher

if TYPE_CHECKING:
    from fairlead.webhook.domains.domain_views import DomainViews

_LOOK_S: Final = 1.0
"""Time between two looks whether this replica leads, and between two reads of which the first has failed."""


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
        self._held_binds: dict[str, HeldBinds] = {}
        self.watch: Final = GroupWatch(mirror, now, self._read_started)
        self.watch.held_binds = self._held_binds
        self.binds: Final = GroupBinds(self.watch, grants.granter, grants.bindings, self._held_binds.get)
        self._feed = None if namespace is None else TurnsFeed(client, namespace)
        self._publisher = None if namespace is None else TurnsPublisher(client, namespace, self._turns_to_publish)
        self._is_leader: Callable[[], bool] = lambda: False
        self._drains = False
        self._reading: dict[Group, asyncio.Task[None]] = {}
        self.domains: DomainViews | None = None
        """Domains of groups, where they are kept."""
        self._lately = DomainsLately()
        self.wake: Callable[[], None] = lambda: None
        """Called when pods that filter refused should be tried again."""
        self._passed_on = Counter(
            "fairlead_group_passed_on",
            "Bind calls of members that were passed on to the replica which holds them, by the result: answered, "
            "failed, hung up or no holder.",
            ("result",),
        )
        self._metrics = GroupMetrics(self.watch.index, self._held_binds, now, clock)

    def pass_on(self, holder: Callable[[], str], context: Callable[[], Awaitable[ssl.SSLContext]], host: str) -> None:
        """Pass calls on to the replica that holds, which has this host name in its certificate."""
        self.binds.pass_on = PassingOn(holder, context, host, self._passed_on.add)

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        """Watch of the published turns, once a policy has groups. They are advice: calls are answered without it."""
        return {} if self._feed is None else self._feed.reflectors

    def rejection(self, uid: str, membership: Membership, now: int, /) -> str | None:
        """Return why a member is rejected on every node at this time of day; None if it is not."""
        scheduler = membership.group.scheduler
        return rejection(uid, membership, self.watch.index, self._turns_of(scheduler, now), now / SECOND_NS)

    def is_placed(self, group: Group, /) -> bool:
        """Return whether a placed pod of a group lives, by the mirror."""
        return self.watch.index.is_placed(group)

    def shared_domain(self, group: str, at: int, /) -> SharedDomain:
        """Return the domain of a group, which is given as its namespace and value with a slash between them."""
        if self.domains is None:
            return NO_DOMAIN
        if (domain := self.domains.domain_of(group)) is not None:
            return SharedDomain(domain)
        turns = {} if self._feed is None else {**self._feed.sink.turns}
        turns |= {name: held.turns(self._now() / SECOND_NS) for name, held in self._held_binds.items()}
        hashed = subject_hash(group)
        avoided = next((one.avoided[hashed] for one in turns.values() if hashed in one.avoided), None)
        return SharedDomain(avoided=avoided, lately=self._lately.of(group, at))

    def holds_lately(self, group: str, domains: Values, at: int, /) -> None:
        """Hear which domains hold a group that has none yet, or in which of them a member is to be bound."""
        self._lately.put(group, domains, at)

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
        self.watch.use(policies)
        self._hold()  # first: the rest may take too long, and is not waited for then
        if self.watch.schedulers and self._feed is not None:
            self._feed.want()
        await self.watch.wait_until_looked()
        if self.watch.schedulers and self._feed is not None:
            await self._feed.wait_until_listed()

    async def lead(self, is_leader: Callable[[], bool]) -> None:
        """Hold calls while this replica leads, until cancelled."""
        self._is_leader = is_leader
        try:
            while True:  # it may lead no more for a moment, which nothing else has noticed
                if is_leader():
                    self._hold()
                else:
                    self._let_go()
                await asyncio.sleep(_LOOK_S)
        finally:
            self._is_leader = lambda: False
            self._let_go()

    async def stop(self) -> None:
        """Refuse all calls that are held, and each further one."""
        self._drains = True
        self._let_go()

    def missing_permissions(self) -> Iterator[str]:
        """Yield the permission that the turns are not watched for want of, or not published."""
        yield from (one.state.missing_permission for one in self.on_demand.values() if one.state.missing_permission)
        if self._publisher is not None and self._publisher.missing:
            yield self._publisher.missing

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report with the groups of each policy that have waited for long."""
        waiting = waiting_groups(self.watch.index, self._now() / SECOND_NS)
        if not waiting:
            return state
        policies = {
            name: replace(policy, waiting_groups=waiting.get(name)) if policy.hold_s else policy
            for name, policy in state.policies.items()
        }
        return replace(state, policies=policies)

    def register(self, metrics: Metrics) -> None:
        """Register its metrics."""
        metrics.add(self._passed_on)
        self._metrics.register(metrics)

    def _may_hold(self) -> bool:
        return self._is_leader() and not self._drains

    def _hold(self) -> None:
        """Hold the calls of each scheduler that has groups, and of no other, if this process does."""
        if not self._may_hold():
            return
        schedulers = {*self.watch.schedulers}
        for scheduler in [name for name, one in self._held_binds.items() if one.is_stopped or name not in schedulers]:
            self._held_binds.pop(scheduler).stop()
        for scheduler in schedulers - self._held_binds.keys():
            listener = HoldingListener(
                partial(self._published, scheduler), partial(self._wake, scheduler), self._metrics.attempt_ended
            )
            self._held_binds[scheduler] = HeldBinds(
                self.watch.index, self._steps, self._clock, listener, self._is_leader
            )
            self._metrics.begin(scheduler)
            self._published(scheduler)  # in place of what another one has published

    def _let_go(self) -> None:
        held = [*self._held_binds.values()]
        self._held_binds.clear()
        for one in held:
            one.stop()

    def _turns_of(self, scheduler: str, now: int) -> Turns:
        if (held := self._held_binds.get(scheduler)) is not None:
            return held.turns(now / SECOND_NS)
        return NO_TURNS if self._feed is None else self._feed.sink.turns.get(scheduler, NO_TURNS)

    def _turns_to_publish(self, scheduler: str) -> Turns | None:
        held = self._held_binds.get(scheduler)
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
        """Read whether a group has started. A read that is under way sees what the mirror hears meanwhile."""
        if group not in self._reading:
            self._reading[group] = asyncio.get_running_loop().create_task(self._tell_started(group))

    async def _tell_started(self, group: Group) -> None:
        """Read a placed pod of a group of which calls are held, again while that fails, and tell of the result."""
        try:
            while (held := self._held_binds.get(group.scheduler)) is not None and held.has_calls_of(group):
                has_started = await self.binds.has_started(group, lambda: READ_S)
                if has_started:
                    held.started(group)
                if has_started is not None:
                    return
                await asyncio.sleep(_LOOK_S)
        finally:
            del self._reading[group]
