"""Mutations of the code that holds groups, each of which breaks one of its rules. The explorer finds them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from fairlead.groups.current_turn import HeldCall
from fairlead.groups.group import Group
from fairlead.groups.held_calls import HeldCalls
from fairlead.groups.holder import Holder
from fairlead.groups.member_calls import MemberCall
from fairlead.mirror.pod_entry import Key
from fairlead.mirror.resource_requests import ENDED
from fairlead.webhook.binding.bind_steps import Budget, Committed
from fairlead.webhook.holding.group_binds import GroupBinds
from fairlead.webhook.holding.group_watch import GroupWatch
from fairlead.webhook.holding.held_binds import COMMIT_NS, HeldBinds, _CommitEnded
from support.grants.mutations import binding_of_any_version

Mutate = Callable[[pytest.MonkeyPatch], None]


def counted_by_call(patch: pytest.MonkeyPatch) -> None:
    """Count calls, not pods: one that is called for twice counts twice."""
    real = HeldCalls.of_pod

    def of_pod(self: HeldCalls, uid: str) -> Any:
        found = real(self, uid)
        return found if found is not None and found.is_released else None

    def drop(self: HeldCalls, call: HeldCall) -> None:
        del self._by_id[call.call.id]
        if self._by_uid.get(call.call.uid) is call:
            del self._by_uid[call.call.uid]
        if call.turn is not None:
            call.turn.calls.pop(call.call.id, None)

    patch.setattr(HeldCalls, "of_pod", of_pod)
    patch.setattr(HeldCalls, "drop", drop)


def addresses_together(patch: pytest.MonkeyPatch) -> None:
    """Count the calls of two processes of a scheduler together."""
    real = Holder.call

    def call(self: Holder, now: int, call: MemberCall) -> Any:
        return real(self, now, replace(call, address=""))

    patch.setattr(Holder, "call", call)


def started_by_the_mirror(patch: pytest.MonkeyPatch) -> None:
    """Take a group for started by what the mirror shows, without a read."""

    async def has_started(self: GroupBinds, group: Group, _left_s: Any) -> bool:
        return self._watch.index.is_placed(group)

    patch.setattr(GroupBinds, "has_started", has_started)


def started_by_terminating_pods(patch: pytest.MonkeyPatch) -> None:
    """Take a pod that is being deleted for one that lives."""

    def is_placed_in(self: GroupWatch, group: Group, pod: Any) -> bool:
        on_node = bool(pod.spec.nodeName) and str(pod.status.phase) not in ENDED
        return on_node and group in self._placed.of(pod, None)

    def put_placed(self: GroupWatch, key: Key, entry: Any) -> None:
        self._tell_of_placed(self.index.put_placed(key, self._placed.of(entry.pod, None)))

    patch.setattr(GroupWatch, "is_placed_in", is_placed_in)
    patch.setattr(GroupWatch, "put_placed", put_placed)


def hang_up_not_heard(patch: pytest.MonkeyPatch) -> None:
    """Count calls whose callers have hung up."""
    patch.setattr(HeldBinds, "_let_leave", lambda _self: None)


def commit_at_release(patch: pytest.MonkeyPatch) -> None:
    """Grant devices when all members are held, not when each of them is."""

    async def commit(self: Any, call: Any) -> None:
        seen = self._steps._views.pod(call.bind.pod)
        is_it = seen is not None and seen.uid == call.bind.uid
        call.inbox.put_nowait(_CommitEnded(Committed(seen.rv if is_it else call.bind.decided_at)))

    async def post(self: Any, call: Any) -> Any:
        try:
            ends = min(call.deadline_ns, self._clock() + COMMIT_NS)
            return await self._steps.bind(call.bind, Budget.until(ends, self._clock))
        finally:
            self._do(self._holder.done(self._clock(), call.id, bound=True))

    patch.setattr(HeldBinds, "_commit", commit)
    patch.setattr(HeldBinds, "_post", post)


MUTATIONS: Final[Sequence[Mutate]] = (
    counted_by_call,
    addresses_together,
    started_by_the_mirror,
    started_by_terminating_pods,
    binding_of_any_version,
    hang_up_not_heard,
    commit_at_release,
)
