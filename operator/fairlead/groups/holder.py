"""Holder of the bind calls of groups, for one scheduler: calls and news in, commands out, and the time as a parameter.

One group has the turn, from its first call to the last answer. Its calls are held until they are as many as its size,
all from one address and with everything committed; then they are released. An attempt that fails answers all of them,
and the group rests.
"""

from fairlead.groups.current_turn import CallState, Turn
from fairlead.groups.group import Group, Membership
from fairlead.groups.held_calls import DELETED, ELSEWHERE, POSTING, REGROUPED, STOPPED, SUPERSEDED, HeldCalls
from fairlead.groups.member_calls import (
    Action,
    AttemptEnded,
    AttemptResult,
    MemberCall,
    RefuseCall,
    WakeCause,
    WakePods,
)
from fairlead.groups.members import GroupChange, GroupIndex
from fairlead.groups.publication import turns_of, version_of
from fairlead.groups.turn_order import TurnOrder
from fairlead.groups.turns import PLACING, RESTING, TEXTS, Turns
from fairlead.time_units import SECOND_NS


class Holder:
    """Holder of the calls of one scheduler's groups.

    Each method that takes `now` is an event: it returns what is to be done, in order. Moments are nanoseconds of a
    monotonic clock. Events of calls that are over are no errors, and have no effect.
    """

    def __init__(self, index: GroupIndex) -> None:
        """Begin without calls. Of each change the index must have heard before the holder does."""
        self.revision = 0
        """Number that grows when `turns` would return something else."""
        self._index = index
        self._calls = HeldCalls()
        self._turn: Turn | None = None
        self._order = TurnOrder(index)
        self._is_stopped = False
        self._version = version_of(None, self._order, index)

    def call(self, now: int, call: MemberCall) -> list[Action]:
        """Hear of a call of a member whose group has not started."""
        self._advance(now)
        earlier = self._calls.of_pod(call.uid)
        group = call.membership.group
        if self._is_stopped:
            why = STOPPED
        elif earlier is not None and earlier.is_released:
            why = POSTING
        else:
            if earlier is not None:
                self._calls.refuse(earlier, SUPERSEDED)
            if self._order.rests.is_resting(group, now):
                why = RESTING
            elif self._turn is not None and self._turn.group != group:
                why = PLACING
                self._order.add(group)
            else:
                why = ""
                self._calls.admit(call, self._turn_for(now, call))
        if why:
            self._calls.actions.append(RefuseCall(call.id, why))
        return self._settle(now)

    def committed(self, now: int, call: int, rv: str) -> list[Action]:
        """Hear that a call's devices and domain are committed at this version of its pod."""
        self._advance(now)
        found = self._calls.get(call)
        if found is None or found.state is not CallState.ARRIVING:
            pass
        elif not found.is_committed_at(rv):
            self._calls.commit_again(found)
        elif found.turn is None:
            self._calls.release(found)
        else:
            found.state = CallState.HELD
            if not found.was_held:
                found.was_held, found.turn.further_at = True, now
        return self._settle(now)

    def commit_failed(self, now: int, call: int) -> list[Action]:
        """Hear that a call was not granted what it asks for, and is answered by the one who says so."""
        return self._leave(now, call)

    def hung_up(self, now: int, call: int) -> list[Action]:
        """Hear that a caller has hung up; a call that was released goes on."""
        return self._leave(now, call)

    def done(self, now: int, call: int, *, bound: bool) -> list[Action]:
        """Hear that a released call was answered, and whether its Binding has landed for sure."""
        self._advance(now)
        found = self._calls.get(call)
        if found is not None and found.is_released:
            self._calls.drop(found)
            if found.turn is not None:
                found.turn.posting -= 1
                if bound:
                    self._hear_started(found.turn.group)
        return self._settle(now)

    def pod_changed(self, now: int, uid: str, rv: str) -> list[Action]:
        """Hear of a version of an unplaced pod, of any pod: a held call is committed at the newest one."""
        if self._calls.waiting_of_pod(uid) is None:
            return []
        self._advance(now)
        found = self._calls.waiting_of_pod(uid)
        if found is not None and found.hear(rv) and found.state is CallState.HELD:
            self._calls.commit_again(found)
        return self._settle(now)

    def pod_deleted(self, now: int, uid: str) -> list[Action]:
        """Hear that a pod has a deletionTimestamp or is gone."""
        self._advance(now)
        if (found := self._calls.waiting_of_pod(uid)) is not None:
            self._calls.refuse(found, DELETED)
        return self._settle(now)

    def regrouped(self, now: int, uid: str, membership: Membership | None) -> list[Action]:
        """Hear the membership of a pod by its newest version and the newest policies: another one ends the attempt."""
        self._advance(now)
        found = self._calls.waiting_of_pod(uid)
        if found is not None and found.call.membership != membership:
            if found.turn is None or found.turn.released:
                self._calls.refuse(found, REGROUPED)
            else:
                self._fail(now, found.turn, AttemptResult.REGROUPED)
        return self._settle(now)

    def unschedulable(self, now: int, uid: str, group: Group, message: str) -> list[Action]:
        """Hear that a known member got, just now, PodScheduled=False with reason Unschedulable and this message."""
        self._advance(now)
        turn = self._turn
        if PLACING in message:
            self._wait_or_wake(now, group, WakeCause.TURN_FREE)
        elif turn is None or turn.group != group or turn.released or self._calls.of_pod(uid) is not None:
            pass
        elif not any(text in message for text in TEXTS):
            # What filter says of a group tells nothing about the room on nodes.
            self._fail(now, turn, AttemptResult.UNSCHEDULABLE)
        return self._settle(now)

    def started(self, now: int, group: Group) -> list[Action]:
        """Hear that a group has started: a read has shown a placed pod of it that lives."""
        self._advance(now)
        self._hear_started(group)
        return self._settle(now)

    def members_changed(self, now: int, change: GroupChange) -> list[Action]:
        """Hear what the index returned."""
        self._advance(now)
        group = change.group
        if self._turn is None or self._turn.group != group:
            self._order.forget_unknown(group)
        if change.completed and not self._index.is_placed(group):
            self._wait_or_wake(now, group, WakeCause.MEMBER_KNOWN)
        return self._settle(now)

    def room_came(self, now: int) -> list[Action]:
        """Hear that a node joined or a placed pod went."""
        self._order.rests.shorten(now)
        return self.tick(now)

    def tick(self, now: int) -> list[Action]:
        """Do what is due. Each other event does it as well."""
        self._advance(now)
        return self._settle(now)

    def stop(self, now: int) -> list[Action]:
        """Answer all calls but those that were released, and refuse each further one."""
        self._advance(now)
        self._is_stopped = True
        if self._turn is not None and not self._turn.released:
            self._fail(now, self._turn, AttemptResult.STOPPED)
        for one in self._calls:
            if not one.is_released:
                self._calls.refuse(one, STOPPED)
        return self._settle(now)

    def next_at(self) -> int | None:
        """Return the moment of the next tick; None if nothing is due without an event."""
        due = [] if self._turn is None else [self._turn.due_at()]
        if not self._is_stopped:
            due += self._order.next_at()
        return min(due, default=None)

    def turns(self, now: int, now_s: float) -> Turns:
        """Return what is to be published; the second time is the same moment in unix seconds."""
        return turns_of(self._turn, self._order, self._index, now_s - now / SECOND_NS)

    def uids(self) -> list[str]:
        """Return the UIDs of the pods whose calls are arriving or held."""
        return [one.call.uid for one in self._calls if not one.is_released]

    def has_calls_of(self, group: Group) -> bool:
        """Return whether calls of a group are arriving or held: only then a read for `started` is worth its cost."""
        return self._turn is not None and self._turn.group == group and bool(self._turn.waiting())

    @property
    def held_count(self) -> int:
        """Return the number of calls that are held."""
        return 0 if self._turn is None else len(self._turn.held_calls())

    def _turn_for(self, now: int, call: MemberCall) -> Turn:
        """Return the turn of a call's group, which begins with it or goes on: no other group has it."""
        group, turn = call.membership.group, self._turn
        if turn is None:
            ends = now + call.membership.hold_s * SECOND_NS
            turn = self._turn = Turn(group, self._order.take(group), now, ends, now, call.address, {})
        elif turn.address != call.address:
            # A process of the scheduler that ends, and the next one, have each reserved room in a cache of its own.
            for one in turn.waiting():
                self._calls.refuse(one, f"{ELSEWHERE} (attempt {turn.attempt})")
            turn.address, turn.attempt = call.address, self._order.rests.begin(group)
        return turn

    def _leave(self, now: int, call: int) -> list[Action]:
        self._advance(now)
        found = self._calls.get(call)
        if found is not None and not found.is_released:
            self._calls.drop(found)
        return self._settle(now)

    def _wait_or_wake(self, now: int, group: Group, cause: WakeCause) -> None:
        """Let a group that could be placed wait for the turn, or wake its members if they may have it."""
        if self._order.rests.is_resting(group, now):
            return
        is_taken = self._turn is not None and self._turn.group != group
        if is_taken or self._order.preferred not in (None, group):
            self._order.add(group)
        else:
            self._calls.actions.append(WakePods(cause))

    def _advance(self, now: int) -> None:
        """Do what is due."""
        turn = self._turn
        if turn is not None and now >= turn.due_at():
            if turn.released:
                self._finish(now, turn)
            else:
                is_late = now >= turn.ends
                self._fail(now, turn, AttemptResult.OUT_OF_TIME if is_late else AttemptResult.NONE_FURTHER)
        if not self._is_stopped:
            self._calls.actions += map(WakePods, self._order.advance(now, is_free=self._turn is None))

    def _settle(self, now: int) -> list[Action]:
        """Release or end what the event has made complete or empty, and return what is to be done."""
        turn = self._turn
        if turn is not None:
            if turn.released:
                if not turn.posting:
                    self._finish(now, turn)
            elif turn.has_started or not turn.calls:
                result = AttemptResult.STARTED_OTHERWISE if turn.has_started else AttemptResult.ABANDONED
                self._end(now, turn, result, 0, self._index.size(turn.group))
            elif len(held := turn.held_calls()) >= (size := turn.size(self._index)):
                turn.release(now, size, len(held))
                for one in held:
                    self._calls.release(one)
        if (version := version_of(self._turn, self._order, self._index)) != self._version:
            self._version = version
            self.revision += 1
        return self._calls.take_actions()

    def _finish(self, now: int, turn: Turn) -> None:
        """End the turn of a group that was released."""
        if turn.has_started:
            self._end(now, turn, AttemptResult.STARTED, turn.released, turn.size_then)
        else:
            self._fail(now, turn, AttemptResult.NOT_BOUND)

    def _fail(self, now: int, turn: Turn, result: AttemptResult) -> None:
        count, size = turn.count(), turn.size(self._index)
        # A text that differs each time lets the scheduler change the pod, which ends what its version was granted.
        why = f"{count} of {size} members of the group found room (attempt {turn.attempt})"
        for one in turn.waiting():
            self._calls.refuse(one, why)
        self._order.rests.fail(turn.group, now)
        self._end(now, turn, result, count, size)

    def _end(self, now: int, turn: Turn, result: AttemptResult, count: int, size: int) -> None:
        self._turn = None
        self._calls.actions.append(AttemptEnded(turn.group, turn.attempt, result, count, size, turn.began))
        if self._is_stopped:
            return
        self._order.forget_unknown(turn.group)
        self._order.choose(now)
        if result.is_failure or len(self._order):
            self._calls.actions.append(WakePods(WakeCause.TURN_FREE))

    def _hear_started(self, group: Group) -> None:
        if self._turn is not None and self._turn.group == group:
            self._calls.let_go(self._turn)
        self._order.forget(group)
