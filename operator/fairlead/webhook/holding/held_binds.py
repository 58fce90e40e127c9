"""Held bind calls of one scheduler: what its holder commands is done here, with tasks and a timer.

The holder decides and does nothing; here nothing is decided. Each call has an inbox, into which come the commands for
it and the outcomes of what it does.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.bind_steps import BindResult, BindSteps, Bound, Budget, Committed, NotBound, PodBind
from fairlead.webhook.binding.poster import ABANDONED

POSTED_AT_ONCE: Final = 64
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


class _HungUp(Struct, frozen=True):
    """News that the caller has closed the connection."""


class _CommitEnded(Struct, frozen=True):
    """News that a commit is over."""

    result: Committed | BindResult


@dataclass(slots=True, eq=False)
class _Call:
    """A call while it is answered."""

    id: int
    bind: PodBind
    budget: Budget
    inbox: "asyncio.Queue[Action | _CommitEnded | _HungUp]" = field(default_factory=asyncio.Queue)
    commit: "asyncio.Task[None] | None" = None
    commit_again: bool = False
    """Whether the pod has changed while its commit was under way."""
    committed: Committed | None = None


class HeldBinds:
    """Held bind calls of one scheduler, while this process holds them."""

    def __init__(
        self, index: GroupIndex, steps: BindSteps, clock: Callable[[], int], listener: HoldingListener
    ) -> None:
        self._holder = Holder(index)
        self._steps, self._clock, self._listener = steps, clock, listener
        self._calls: dict[int, _Call] = {}
        self._last_id = 0
        self._revision = self._holder.revision
        self._turns: tuple[int, Turns] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._looks: asyncio.TimerHandle | None = None
        self._posting = asyncio.Semaphore(POSTED_AT_ONCE)

    def __len__(self) -> int:
        return len(self._calls)

    def turns(self, now_s: float) -> Turns:
        """Return what is to be published, at a unix time; it is the same object until that changes."""
        if self._turns is None or self._turns[0] != self._holder.revision:
            self._turns = self._holder.revision, self._holder.turns(self._clock(), now_s)
        return self._turns[1]

    async def bind(self, call: PodBind, membership: Membership, address: str, budget: Budget) -> BindResult:
        """Hold the call of a member until it is released or refused, and return what came of it."""
        self._last_id += 1
        made = _Call(self._last_id, call, budget)
        self._calls[made.id] = made
        self._look_soon()
        self._do(self._holder.call(self._clock(), MemberCall(made.id, call.uid, address, membership)))
        try:
            return await self._answer(made)
        finally:
            del self._calls[made.id]
            self._do(self._holder.hung_up(self._clock(), made.id))  # without effect if it was answered

    def members_changed(self, change: GroupChange) -> None:
        """Hear what the index returned."""
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
        self._do(self._holder.stop(self._clock()))

    def _do(self, actions: Sequence[Action]) -> None:
        """Do what the holder commands."""
        if self._holder.revision != self._revision:
            self._revision = self._holder.revision
            self._listener.on_published()
        for action in actions:
            if isinstance(action, WakePods):
                self._listener.on_wake(action.cause)
            elif isinstance(action, AttemptEnded):
                self._listener.on_attempt(action)
            elif (call := self._calls.get(action.id)) is not None:
                call.inbox.put_nowait(action)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (at := self._holder.next_at()) is not None:
            within_s = max(0, at - self._clock()) / SECOND_NS
            self._timer = asyncio.get_running_loop().call_later(within_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._do(self._holder.tick(self._clock()))

    def _look_soon(self) -> None:
        if self._looks is None:
            self._looks = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Tell the calls whose callers have hung up; look again while there are calls."""
        self._looks = None
        for call in self._calls.values():
            if call.bind.poster.is_abandoned():
                call.inbox.put_nowait(_HungUp())
        if self._calls:
            self._look_soon()

    async def _answer(self, call: _Call) -> BindResult:
        while True:
            told = await call.inbox.get()
            if isinstance(told, _HungUp):
                return NotBound(ABANDONED.why)
            if isinstance(told, RefuseCall):
                return NotBound(told.why, may_stand=call.committed is not None and call.committed.entry is not None)
            if isinstance(told, ReleaseCall):
                return await self._post(call)
            if isinstance(told, CommitCall):
                if call.commit is None:
                    call.commit = asyncio.create_task(self._commit(call))
                else:
                    call.commit_again = True
            elif isinstance(told, _CommitEnded):
                call.commit = None
                if not isinstance(told.result, Committed):
                    self._do(self._holder.commit_failed(self._clock(), call.id))
                    return told.result
                call.committed = told.result
                if call.commit_again:
                    call.commit_again = False
                    call.commit = asyncio.create_task(self._commit(call))
                else:
                    self._do(self._holder.committed(self._clock(), call.id, told.result.rv))

    async def _commit(self, call: _Call) -> None:
        """Commit a call. It goes on when the call was answered meanwhile: an entry may be half written."""
        result: Committed | BindResult = NotBound("the devices of the pod could not be committed")
        try:
            result = await self._steps.commit(call.bind, call.budget)
        finally:
            call.inbox.put_nowait(_CommitEnded(result))

    async def _post(self, call: _Call) -> BindResult:
        bound = False
        try:
            async with self._posting:
                result = await self._steps.bind(call.bind, call.budget, call.committed)
            bound = isinstance(result, Bound)
            return result
        finally:
            self._do(self._holder.done(self._clock(), call.id, bound=bound))
