"""Holder under events in any order, against what a bystander counts who knows nothing of turns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

import pytest

from fairlead.groups.group import Group, Membership
from fairlead.groups.holder import Holder
from fairlead.groups.member_calls import (
    Action,
    AttemptEnded,
    AttemptResult,
    CommitCall,
    MemberCall,
    RefuseCall,
    ReleaseCall,
)
from fairlead.groups.members import GroupChange, GroupIndex
from fairlead.groups.turns import PLACING, RESTING, Turns
from fairlead.time_units import SECOND_NS

GROUPS: Final = {name: Group("sched", "ns", name) for name in "abc"}
SIZES: Final = {"a": 2, "b": 3, "c": 2}
UIDS: Final = ("a0", "a1", "a2", "b0", "b1", "b2", "b3", "c0", "c1")
ADDRESSES: Final = ("here", "here", "here", "there")
MESSAGES: Final = ("4 Insufficient cpu", f"4 {PLACING}", f"4 {RESTING}", "4 node(s) had untolerated taints")
WAITS_S: Final = (0.1, 1, 4, 5, 9, 31)
LONGEST_TURN_S: Final = 20 + 30


@dataclass
class SeenCall:
    """Call as the one who made it sees it."""

    id: int
    uid: str
    address: str
    size: int
    began: int
    committed: int = 0
    """Version at which it was committed; 0 if it is not."""
    was_started: bool = False
    """Whether its group was seen to start before, in the turn in which it came."""
    heard: int = 0
    """Newest version that was heard of meanwhile."""
    is_released: bool = False

    @property
    def counts(self) -> bool:
        """Return whether it may count as a member that found room."""
        return self.committed > 0 and self.committed >= self.heard


@dataclass
class Bystander:
    """Events for a holder, and a check of all that it says."""

    index: GroupIndex = field(default_factory=GroupIndex)
    now: int = 0
    step: int = 0
    calls: dict[int, SeenCall] = field(default_factory=dict)
    """Calls without an answer, and those whose Binding is being posted."""
    to_commit: list[int] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UIDS, 1))
    started: dict[Group, int] = field(default_factory=dict)
    """Step at which a group was last seen to have started."""
    attempts: set[tuple[Group, int]] = field(default_factory=set)
    """Attempts that have ended, since their group was last forgotten."""
    has_stopped: bool = False
    results: set[AttemptResult] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with all members known."""
        self.holder = Holder(self.index)
        self.shown = self.turns, self.holder.revision
        for uid in UIDS:
            self.know(uid, 0)

    @property
    def turns(self) -> Turns:
        """Return what is published."""
        return self.holder.turns(0, 1e9)

    def of_group(self, group: Group) -> list[SeenCall]:
        """Return the calls of a group."""
        return [one for one in self.calls.values() if GROUPS[one.uid[0]] == group]

    def hear(self, actions: Sequence[Action]) -> None:
        """Check what the holder wants done, and do it."""
        released = [self.calls[one.id] for one in actions if isinstance(one, ReleaseCall)]
        failed: list[Group] = []
        for one in actions:
            match one:
                case CommitCall(id_):
                    assert id_ in self.calls
                    assert id_ not in self.to_commit, "one commit at a time"
                    self.to_commit.append(id_)
                case ReleaseCall(id_):
                    assert not self.calls[id_].is_released, "released once"
                    self.calls[id_].is_released = True
                case RefuseCall(id_, why):
                    assert why
                    assert not self.calls[id_].is_released, "answered once"
                    self.forget_call(id_)
                case AttemptEnded(group, attempt, result):
                    self.results.add(result)
                    assert (group, attempt) not in self.attempts, "each attempt has a number of its own"
                    self.attempts.add((group, attempt))
                    if result in (AttemptResult.STARTED, AttemptResult.STARTED_OTHERWISE):
                        self.forget_attempts(group)
                    else:
                        failed.append(group)
        for group in failed:
            waiting = [one for one in self.of_group(group) if not one.is_released]
            assert all(self.is_single(one) for one in waiting), "each call is answered"
        for group in GROUPS.values():
            self.check_released(group, [one for one in released if GROUPS[one.uid[0]] == group])
        self.check()

    def check_released(self, group: Group, released: list[SeenCall]) -> None:
        """Check that as many members as the size found room, where the group is not seen to have started."""
        if all(self.is_single(one) for one in released):
            return
        says = [one.size for one in self.of_group(group) if one in released or not one.is_released]
        assert len({one.uid for one in released}) >= max(self.index.size(group), *says), "all or none"
        assert len({one.address for one in released}) == 1, "one process of the scheduler has room for all"
        assert all(one.counts for one in released), "all are granted what they ask for, at their newest version"

    def is_single(self, call: SeenCall) -> bool:
        """Return whether a call needs no other one, because its group has started."""
        return call.was_started or self.started.get(GROUPS[call.uid[0]], -1) >= call.began

    def check(self) -> None:
        """Check what holds after each event."""
        waiting = [one for one in self.calls.values() if not one.is_released]
        groups = {one.uid[0] for one in waiting if not self.is_single(one)}
        assert len(groups) <= 1, "one group has the turn"
        assert len({one.uid for one in waiting}) == len(waiting), "one call a pod"
        assert {*self.holder.uids()} == {one.uid for one in waiting}
        assert self.holder.held_count <= sum(one.counts for one in waiting)
        assert not (self.has_stopped and waiting), "after a stop no call waits"
        due = self.holder.next_at()
        assert due is None or due > self.now, "what is due is done"
        turns, revision = self.turns, self.holder.revision
        assert turns == self.shown[0] or revision > self.shown[1], "what changes is published"
        self.shown = turns, revision
        kept = vars(self.holder)["_order"]
        assert len(kept.rests) <= len(GROUPS)
        assert len(kept) <= len(GROUPS)
        assert not vars(kept)["_waiting"] & kept.rests.current.keys(), "who rests does not wait"

    def forget_call(self, id_: int) -> None:
        del self.calls[id_]
        if id_ in self.to_commit:
            self.to_commit.remove(id_)

    def forget_attempts(self, group: Group) -> None:
        self.attempts = {one for one in self.attempts if one[0] != group}

    def changed(self, changes: Iterable[GroupChange]) -> None:
        for one in changes:
            if not self.index.known(one.group):
                self.forget_attempts(one.group)
            self.hear(self.holder.members_changed(self.now, one))

    # Events: each chooses by two numbers, and does nothing if there is nothing to choose from.

    def call(self, first: int, second: int) -> None:
        uid, size = UIDS[first % len(UIDS)], SIZES[UIDS[first % len(UIDS)][0]] + (second == 11)
        posted = [one.began for one in self.of_group(GROUPS[uid[0]]) if one.is_released]
        call = SeenCall(self.step, uid, ADDRESSES[second % 4], size, self.step)
        call.was_started = bool(posted) and self.started.get(GROUPS[uid[0]], -1) > min(posted)
        self.calls[call.id] = call
        self.hear(self.holder.call(self.now, MemberCall(call.id, uid, call.address, membership(uid, size))))

    def commit(self, first: int, second: int) -> None:
        if not self.to_commit:
            return
        call = self.calls[self.to_commit.pop(first % len(self.to_commit))]
        if second == 0:
            self.forget_call(call.id)
            self.hear(self.holder.commit_failed(self.now, call.id))
            return
        call.committed = max(1, self.versions[call.uid] - (second == 1))
        self.hear(self.holder.committed(self.now, call.id, str(call.committed)))

    def hold(self, first: int, second: int) -> None:
        self.call(first, second)
        self.commit(len(self.to_commit) - 1, 2)

    def hang_up(self, first: int, _second: int) -> None:
        if self.calls:
            call = [*self.calls.values()][first % len(self.calls)]
            if not call.is_released:
                self.forget_call(call.id)
            self.hear(self.holder.hung_up(self.now, call.id))

    def done(self, first: int, second: int) -> None:
        released = [one for one in self.calls.values() if one.is_released]
        if released:
            call = released[first % len(released)]
            if second % 3:
                self.started[GROUPS[call.uid[0]]] = self.step
                self.forget_attempts(GROUPS[call.uid[0]])
            del self.calls[call.id]
            self.hear(self.holder.done(self.now, call.id, bound=bool(second % 3)))

    def know(self, first: int | str, second: int) -> None:
        uid = first if isinstance(first, str) else UIDS[first % len(UIDS)]
        size = SIZES[uid[0]] + (second > 9)
        self.changed(self.index.put_known(uid, membership(uid, size), second, second))

    def delete(self, first: int, second: int) -> None:
        uid = UIDS[first % len(UIDS)]
        changes = self.index.remove(uid)
        if second % 4:  # else it got a gate, or was placed: then its call goes on
            self.hear(self.holder.pod_deleted(self.now, uid))
            assert all(one.uid != uid or one.is_released for one in self.calls.values()), "its call is answered"
        self.changed(changes)

    def patch(self, first: int, _second: int) -> None:
        uid = UIDS[first % len(UIDS)]
        self.versions[uid] += 1
        for one in self.calls.values():
            one.heard = self.versions[uid] if one.uid == uid else one.heard
        self.hear(self.holder.pod_changed(self.now, uid, str(self.versions[uid])))

    def start(self, first: int, second: int) -> None:
        group = GROUPS["abc"[first % 3]]
        if second % 2:
            self.started[group] = self.step
            self.forget_attempts(group)
            self.hear(self.holder.started(self.now, group))
        elif self.index.is_placed(group):
            self.changed(self.index.remove_placed(("ns", group.value)))
        else:
            self.changed(self.index.put_placed(("ns", group.value), (group,)))

    def find_no_node(self, first: int, second: int) -> None:
        uid = UIDS[first % len(UIDS)]
        self.hear(self.holder.unschedulable(self.now, uid, GROUPS[uid[0]], MESSAGES[second % 4]))

    def regroup(self, first: int, second: int) -> None:
        uid = UIDS[first % len(UIDS)]
        self.hear(self.holder.regrouped(self.now, uid, membership(uid, 7) if second % 2 else None))

    def room(self, _first: int, _second: int) -> None:
        self.hear(self.holder.room_came(self.now))

    def wait(self, first: int, second: int) -> None:
        """Let time pass; the ticks may be late."""
        until = self.now + round(WAITS_S[first % len(WAITS_S)] * SECOND_NS)
        while second % 2 and (due := self.holder.next_at()) is not None and due < until:
            self.now = due
            self.hear(self.holder.tick(due))
        self.now = until
        self.hear(self.holder.tick(until))

    def stop(self) -> None:
        self.has_stopped = True
        self.hear(self.holder.stop(self.now))


def membership(uid: str, size: int) -> Membership:
    return Membership(GROUPS[uid[0]], size, 20, "policy", "gang")


EVENTS: Final[Mapping[str, Callable[[Bystander, int, int], None]]] = {
    "hold": Bystander.hold,
    "call": Bystander.call,
    "commit": Bystander.commit,
    "done": Bystander.done,
    "hang up": Bystander.hang_up,
    "know": Bystander.know,
    "delete": Bystander.delete,
    "patch": Bystander.patch,
    "start": Bystander.start,
    "find no node": Bystander.find_no_node,
    "regroup": Bystander.regroup,
    "room": Bystander.room,
    "wait": Bystander.wait,
}
OFTEN: Final = ["hold"] * 6 + ["call", "commit", "commit", "done", "done", "wait"]
Event = tuple[str, int, int]
CASES: Final = 500
EVENTS_MAX: Final = 70


def case_of(seed: int) -> list[Event]:
    numbers = Random(seed)  # noqa: S311
    names = [*OFTEN, *EVENTS]
    length = numbers.randrange(EVENTS_MAX)
    return [(numbers.choice(names), numbers.randrange(12), numbers.randrange(12)) for _ in range(length)]


def play(case: Sequence[Event]) -> Bystander:
    bystander = Bystander()
    for event, first, second in case:
        bystander.step += 1
        EVENTS[event](bystander, first, second)
    return bystander


def check_that_a_stop_answers_all(case: Sequence[Event]) -> None:
    bystander = play(case)
    bystander.stop()
    bystander.call(0, 0)
    assert all(one.is_released for one in bystander.calls.values())


def check_that_all_ends(case: Sequence[Event]) -> None:
    """Check that a turn ends by time alone, and that nothing is kept of groups that are gone."""
    bystander = play(case)
    for id_ in [one for one in bystander.to_commit if bystander.is_single(bystander.calls[one])]:
        bystander.commit(bystander.to_commit.index(id_), 2)  # such a call waits for nothing but its commit
    ends = bystander.now + LONGEST_TURN_S * SECOND_NS
    while (due := bystander.holder.next_at()) is not None and due <= ends:
        bystander.now = due
        bystander.hear(bystander.holder.tick(due))
    assert bystander.turns.turn is None
    assert all(one.is_released for one in bystander.calls.values())
    for number in range(len(UIDS)):
        bystander.delete(number, 1)
    bystander.now += 100 * SECOND_NS
    bystander.hear(bystander.holder.tick(bystander.now))
    kept = vars(bystander.holder)["_order"]
    assert (len(kept.rests), kept.rests.current, len(kept), kept.preferred) == (0, {}, 0, None)
    assert bystander.holder.next_at() is None


@pytest.mark.parametrize("check", [check_that_a_stop_answers_all, check_that_all_ends])
def test_no_part_of_a_group_is_released_and_all_ends(check: Callable[[Sequence[Event]], None]) -> None:
    for seed in range(CASES):
        if (why := failure(check, case_of(seed))) is not None:
            case = shrunk(check, case_of(seed))
            pytest.fail(f"seed {seed}: {failure(check, case)}; first: {why}; after {case}")


def failure(check: Callable[[Sequence[Event]], None], case: Sequence[Event]) -> str | None:
    try:
        check(case)
    except Exception as error:  # noqa: BLE001
        return repr(error).partition("\n")[0]
    return None


def shrunk(check: Callable[[Sequence[Event]], None], case: list[Event]) -> list[Event]:
    """Return the case without all events that it fails without."""
    position = len(case)
    while position:
        position -= 1
        shorter = case[:position] + case[position + 1 :]
        if failure(check, shorter) is not None:
            case, position = shorter, min(position, len(shorter))
    return case


def test_cases_have_all_results() -> None:
    """So that what is checked in them says something."""
    results = set[AttemptResult]()
    for seed in range(CASES):
        results |= play(case_of(seed)).results
    assert results == {*AttemptResult} - {AttemptResult.STOPPED}


def test_a_case_that_fails_is_shrunk() -> None:
    def check(case: Sequence[Event]) -> None:
        assert ("room", 1, 2) not in case

    assert shrunk(check, [("wait", 0, 0), ("room", 1, 2), ("wait", 0, 0)]) == [("room", 1, 2)]
