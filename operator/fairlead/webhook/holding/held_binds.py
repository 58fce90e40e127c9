"""Held bind calls of one scheduler: what its holder commands is done here, with tasks and a timer.

The holder decides and does nothing; here nothing is decided. Each call has an inbox, into which come the commands for
it and the outcomes of what it does.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from msgspec import Struct

from fairlead.groups.group import Group, Membership
from fairlead.groups.holder import Holder
from fairlead.groups.member_calls import (
    Action,
    AttemptEnded,
    CommitCall,
    MemberCall,
    RefuseCall,
    ReleaseCall,
    WakeCause,
    WakePods,
)
from fairlead.groups.members import GroupChange, GroupIndex
from fairlead.groups.turns import Turns
from fairlead.logs import FaultError
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.bind_steps import BindResult, BindSteps, Bound, Budget, Committed, NotBound, PodBind
from fairlead.webhook.binding.poster import ABANDONED, NO_TIME
from fairlead.webhook.holding.failed_domains import FailedDomains

LOG: Final = logging.getLogger(__name__)
POSTED_AT_ONCE: Final = 64
COMMIT_NS: Final = 4 * SECOND_NS
"""Time for a commit, as an ordinary bind has it: a call may be committed again long after it came."""
LOOK_S: Final = 0.1
"""Time between two looks whether callers have hung up, while calls are held."""


@dataclass(frozen=True, slots=True)
class HoldingListener:
    """Functions that hear what comes of held calls."""

    on_published: Callable[[], None] = lambda: None
    """What the holder publishes has changed."""
    on_wake: Callable[[WakeCause], None] = lambda _: None
    """Pods that filter refused should be tried again, once what is published was written."""
    on_attempt: Callable[[AttemptEnded], None] = lambda _: None


class _Left(Struct, frozen=True):
    """News that a call waits no more: its caller has hung up, or is about to."""

    why: str


class _CommitEnded(Struct, frozen=True):
    """News that a commit is over."""

    result: Committed | BindResult


@dataclass(slots=True, eq=False)
class _Call:
    """A call while it is answered."""

    id: int
    bind: PodBind
    deadline_ns: int
    inbox: "asyncio.Queue[Action | _CommitEnded | _Left]" = field(default_factory=asyncio.Queue)
    commit: "asyncio.Task[None] | None" = None
    commit_again: bool = False
    """Whether the pod has changed while its commit was under way."""
    committed: Committed | None = None
    has_left: bool = False

    def why_it_leaves(self, now: int) -> str:
        """Return why it waits no more; "" if it does."""
        if self.bind.poster.is_abandoned():
            return ABANDONED.why
        return NO_TIME.why if now >= self.deadline_ns else ""


class HeldBinds:
    """Held bind calls of one scheduler, while this process holds them."""

    def __init__(
        self,
        index: GroupIndex,
        steps: BindSteps,
        clock: Callable[[], int],
        listener: HoldingListener,
        may_hold: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_hold` is asked before calls are released: a process that was stopped for a while may lead no more."""
        self._holder = Holder(index)
        self._steps, self._clock, self._listener, self._may_hold = steps, clock, listener, may_hold
        self._calls: dict[int, _Call] = {}
        self._commits = set[asyncio.Task[None]]()
        self._last_id = 0
        self._revision = self._holder.revision
        self._failed = FailedDomains(lambda group: index.known(group) > 0)
        self._turns: tuple[tuple[int, int], Turns] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: int | None = None
        """Moment of the timer."""
        self._looks: asyncio.TimerHandle | None = None
        self._posting = asyncio.Semaphore(POSTED_AT_ONCE)
        self.is_stopped = False

    def __len__(self) -> int:
        return len(self._calls)

    def turns(self, now_s: float) -> Turns:
        """Return what is to be published, at a unix time; it is the same object until that changes."""
        revision = self._holder.revision, self._failed.revision
        if self._turns is None or self._turns[0] != revision:
            self._turns = revision, self._failed.added_to(self._holder.turns(self._clock(), now_s))
        return self._turns[1]

    async def bind(self, call: PodBind, membership: Membership, address: str, deadline_ns: int) -> BindResult:
        """Hold the call of a member until it is released or refused, and return what came of it."""
        self._last_id += 1
        made = _Call(self._last_id, call, deadline_ns)
        self._calls[made.id] = made
        try:
            self._look_soon()
            self._check_leadership()
            self._do(self._holder.call(self._clock(), MemberCall(made.id, call.uid, address, membership, call.node)))
            return await self._answer(made)
        finally:
            del self._calls[made.id]
            now = self._clock()  # neither has an effect on a call that was answered
            self._do(self._holder.hung_up(now, made.id))
            self._do(self._holder.done(now, made.id, bound=False))

    def members_changed(self, change: GroupChange) -> None:
        """Hear what the index returned."""
        if self._holder.has_calls_of(change.group):
            self._before_completion()  # the size may be smaller now
        self._do(self._holder.members_changed(self._clock(), change))

    def has_calls_of(self, group: Group) -> bool:
        """Return whether calls of this group are held."""
        return self._holder.has_calls_of(group)

    def pod_changed(self, uid: str, rv: str) -> None:
        """Hear of a version of an unplaced pod."""
        self._do(self._holder.pod_changed(self._clock(), uid, rv))

    def pod_deleted(self, uid: str) -> None:
        """Hear that a pod has a deletionTimestamp or is gone."""
        self._do(self._holder.pod_deleted(self._clock(), uid))

    def unschedulable(self, uid: str, group: Group, message: str) -> None:
        """Hear that a pod found no node, just now, with this message."""
        self._do(self._holder.unschedulable(self._clock(), uid, group, message))

    def started(self, group: Group) -> None:
        """Hear that a read has shown a placed pod of a group that lives."""
        self._do(self._holder.started(self._clock(), group))

    def room_came(self) -> None:
        """Hear that a node joined or a placed pod went."""
        self._do(self._holder.room_came(self._clock()))

    def regrouped(self, uid: str, membership: Membership | None) -> None:
        """Hear the membership of a pod by its newest version and the newest policies."""
        self._do(self._holder.regrouped(self._clock(), uid, membership))

    def stop(self) -> None:
        """Refuse all calls that are not released, and each further one."""
        self.is_stopped = True
        self._do(self._holder.stop(self._clock()))

    def _do(self, actions: Sequence[Action]) -> None:
        """Do what the holder commands: calls first, which nothing else must keep waiting."""
        news = list[Callable[[], None]]()
        for action in actions:
            if isinstance(action, WakePods):
                news.append(partial(self._listener.on_wake, action.cause))
            elif isinstance(action, AttemptEnded):
                self._failed.ended(action)
                news.append(partial(self._listener.on_attempt, action))
            elif (call := self._calls.get(action.id)) is not None:
                call.inbox.put_nowait(action)
        self._set_timer()
        if self._holder.revision != self._revision:
            self._revision = self._holder.revision
            self._listener.on_published()
        for tell in news:
            tell()

    def _set_timer(self) -> None:
        at = self._holder.next_at()
        if at == self._due:
            return
        self._due = at
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            within_s = max(0, at - self._clock()) / SECOND_NS
            self._timer = asyncio.get_running_loop().call_later(within_s, self._tick)

    def _tick(self) -> None:
        self._timer = self._due = None
        self._do(self._holder.tick(self._clock()))

    def _look_soon(self) -> None:
        if self._looks is None:
            self._looks = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Let calls leave whose callers have hung up; look again while there are calls."""
        self._looks = None
        self._let_leave()
        if self._calls:
            self._look_soon()

    def _let_leave(self) -> None:
        now = self._clock()
        for call in [*self._calls.values()]:
            if not call.has_left and (why := call.why_it_leaves(now)):
                call.has_left = True
                call.inbox.put_nowait(_Left(why))
                self._do(self._holder.hung_up(now, call.id))

    def _check_leadership(self) -> None:
        if not self.is_stopped and not self._may_hold():
            self.stop()

    def _before_completion(self) -> None:
        """Have everything counted as it is, because what comes next may complete the group."""
        self._check_leadership()
        self._let_leave()

    async def _answer(self, call: _Call) -> BindResult:
        while True:
            news = await call.inbox.get()
            if isinstance(news, _Left | RefuseCall):
                return NotBound(news.why, may_stand=_may_have_entry(call))
            if isinstance(news, ReleaseCall):
                return await self._post(call)
            if isinstance(news, CommitCall):
                if call.commit is None:
                    self._begin_commit(call)
                else:
                    call.commit_again = True
            elif isinstance(news, _CommitEnded):
                call.commit = None
                if not isinstance(news.result, Committed):
                    self._do(self._holder.commit_failed(self._clock(), call.id))
                    return news.result
                call.committed = news.result
                self._failed.committed(call.bind.domains)
                if call.commit_again:
                    call.commit_again = False
                    self._begin_commit(call)
                else:
                    self._before_completion()
                    self._do(self._holder.committed(self._clock(), call.id, news.result.rv))

    def _begin_commit(self, call: _Call) -> None:
        """Commit a call. It goes on when the call was answered meanwhile: an entry may be half written."""
        call.commit = asyncio.create_task(self._commit(call))
        self._commits.add(call.commit)
        call.commit.add_done_callback(self._commits.discard)

    async def _commit(self, call: _Call) -> None:
        result: Committed | BindResult = NotBound("what the pod needs could not be committed", may_stand=True)
        try:
            ends = min(call.deadline_ns, self._clock() + COMMIT_NS)
            result = await self._steps.commit(call.bind, Budget.until(ends, self._clock))
        except Exception as error:  # the call is answered all the same
            LOG.exception("held_bind.fault", exc_info=FaultError(error), extra={"pod": call.bind.uid})
        finally:
            call.inbox.put_nowait(_CommitEnded(result))

    async def _post(self, call: _Call) -> BindResult:
        bound = False
        try:
            async with self._posting:
                budget = Budget.until(call.deadline_ns, self._clock)
                result = await self._steps.bind(call.bind, budget, call.committed)
            bound = isinstance(result, Bound)
            return result
        finally:
            self._do(self._holder.done(self._clock(), call.id, bound=bound))


def _may_have_entry(call: _Call) -> bool:
    """Return whether an entry may stand in a ledger for a call that is not bound."""
    if call.commit is not None:
        return call.bind.wants_entries
    return call.committed is not None and call.committed.has_entries
