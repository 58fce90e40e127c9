"""Calls that a holder was told of and that are not over, and what is to be done about them."""

from collections.abc import Iterator
from typing import Final

from fairlead.groups.current_turn import CallState, HeldCall, Turn
from fairlead.groups.member_calls import Action, CommitCall, MemberCall, RefuseCall, ReleaseCall

SUPERSEDED: Final = "the scheduler has called for this pod again"
POSTING: Final = "an earlier call for this pod is being answered"
STOPPED: Final = "this replica holds no groups any more"
DELETED: Final = "the pod is deleted"
REGROUPED: Final = "the pod is in another group now"
ELSEWHERE: Final = "another process of the scheduler has called for the group"


class HeldCalls:
    """Calls by their number and by the UID of their pod, of which each has one call."""

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self._by_id: dict[int, HeldCall] = {}
        self._by_uid: dict[str, HeldCall] = {}

    def __iter__(self) -> Iterator[HeldCall]:
        return iter([*self._by_id.values()])

    def get(self, id_: int) -> HeldCall | None:
        """Return the call of this number."""
        return self._by_id.get(id_)

    def of_pod(self, uid: str) -> HeldCall | None:
        """Return the call for a pod."""
        return self._by_uid.get(uid)

    def waiting_of_pod(self, uid: str) -> HeldCall | None:
        """Return the call for a pod if it is arriving or held."""
        found = self._by_uid.get(uid)
        return None if found is None or found.is_released else found

    def admit(self, call: MemberCall, turn: Turn) -> None:
        """Let a call arrive; no other one is there for its pod."""
        new = HeldCall(call, None if turn.has_started else turn)
        self._by_id[call.id] = self._by_uid[call.uid] = new
        if new.turn is not None:
            turn.calls[call.id] = new
        self.actions.append(CommitCall(call.id))

    def commit_again(self, call: HeldCall) -> None:
        """Let a call arrive again, because its pod has changed."""
        call.state = CallState.ARRIVING
        self.actions.append(CommitCall(call.call.id))

    def release(self, call: HeldCall) -> None:
        """Let the Binding of a call be posted."""
        call.state = CallState.RELEASED
        self.actions.append(ReleaseCall(call.call.id))

    def refuse(self, call: HeldCall, why: str) -> None:
        """Answer a call."""
        self.actions.append(RefuseCall(call.call.id, why))
        self.drop(call)

    def drop(self, call: HeldCall) -> None:
        """Forget a call that is over."""
        del self._by_id[call.call.id]
        del self._by_uid[call.call.uid]
        if call.turn is not None:
            call.turn.calls.pop(call.call.id, None)

    def let_go(self, turn: Turn) -> None:
        """Let the calls of a group that has started wait for each other no more."""
        turn.has_started = True
        for one in turn.waiting():
            del turn.calls[one.call.id]
            one.turn = None
            if one.state is CallState.HELD:
                self.release(one)

    def take_actions(self) -> list[Action]:
        """Return what is to be done, once."""
        actions, self.actions = self.actions, []
        return actions
