"""Holder: which calls are held, released and refused, and which group has the turn."""

from collections.abc import Callable, Iterable
from typing import Final

import pytest

from fairlead.groups.group import Group, Membership, group_hash
from fairlead.groups.held_calls import DELETED, ELSEWHERE, POSTING, REGROUPED, STOPPED, SUPERSEDED
from fairlead.groups.holder import Holder
from fairlead.groups.member_calls import (
    Action,
    AttemptEnded,
    AttemptResult,
    CommitCall,
    MemberCall,
    RefuseCall,
    ReleaseCall,
    WakeCause,
    WakePods,
)
from fairlead.groups.members import GroupIndex
from fairlead.groups.turns import PLACING, RESTING, WAITING, PreferredGroup, PublishedRest, PublishedTurn, Turns
from fairlead.time_units import SECOND_NS

HERE: Final = "10.0.0.1"
ELSE: Final = "10.0.0.2"
NO_ROOM: Final = "0/4 nodes are available: 4 Insufficient cpu."
EPOCH: Final = 1_800_000_000.0


def group(name: str) -> Group:
    return Group("sched", "ns", name)


class Scene:
    """A holder, its index, and what came of each call. Members `a0`, `a1` and so on are of the group `a`."""

    def __init__(self, hold_s: int = 30, **sizes: int) -> None:
        """Begin with all members of each group known; those that come first by name are the older ones."""
        self.index = GroupIndex()
        self.holder = Holder(self.index)
        self.hold_s, self.sizes = hold_s, sizes
        self.at_s = 0.0
        self.calls: list[str] = []
        """Pods by the number of their call."""
        self.answers: dict[int, str] = {}
        self.commits: list[int] = []
        self.wakes: list[WakeCause] = []
        self.ended: list[AttemptEnded] = []
        for age, (name, size) in enumerate(sizes.items()):
            for number in range(size):
                self.index.put_known(f"{name}{number}", self.membership(f"{name}{number}"), created=age)

    @property
    def now(self) -> int:
        """Return the time."""
        return round(self.at_s * SECOND_NS)

    def membership(self, uid: str, size: int | None = None) -> Membership:
        return Membership(group(uid[0]), size or self.sizes[uid[0]], self.hold_s, "policy", "gang")

    def hear(self, actions: Iterable[Action]) -> None:
        """Carry out commands; the one who committed says so later."""
        for one in actions:
            match one:
                case CommitCall(id_):
                    assert id_ not in self.answers
                    self.commits.append(id_)
                case ReleaseCall(id_):
                    self._answer(id_, "released")
                case RefuseCall(id_, why):
                    self._answer(id_, why)
                case WakePods(cause):
                    self.wakes.append(cause)
                case AttemptEnded():
                    self.ended.append(one)

    def _answer(self, id_: int, answer: str) -> None:
        assert id_ not in self.answers, f"{self.calls[id_]} is answered twice"
        self.answers[id_] = answer

    def call(self, *uids: str, address: str = HERE, size: int | None = None) -> "Scene":
        """Let calls arrive."""
        for uid in uids:
            call = MemberCall(len(self.calls), uid, address, self.membership(uid, size), f"node-of-{uid}")
            self.calls.append(uid)
            self.hear(self.holder.call(self.now, call))
        return self

    def commit(self, *uids: str, rv: str = "1") -> "Scene":
        """Let the newest calls for pods be committed."""
        for uid in uids:
            self.hear(self.holder.committed(self.now, self.id_of(uid), rv))
        return self

    def hold(self, *uids: str, address: str = HERE) -> "Scene":
        """Let calls arrive and be committed."""
        for uid in uids:
            self.call(uid, address=address).commit(uid)
        return self

    def id_of(self, uid: str) -> int:
        """Return the number of the newest call for a pod."""
        return max(id_ for id_, called in enumerate(self.calls) if called == uid)

    def of(self, uid: str) -> str:
        """Return what came of the newest call for a pod; "" while it has no answer."""
        return self.answers.get(self.id_of(uid), "")

    def of_all(self, *uids: str) -> set[str]:
        return {self.of(uid) for uid in uids}

    def delete(self, *uids: str) -> "Scene":
        for uid in uids:
            changes = self.index.remove(uid)
            self.hear(self.holder.pod_deleted(self.now, uid))
            for one in changes:
                self.hear(self.holder.members_changed(self.now, one))
        return self

    def know(self, uid: str, size: int | None = None, priority: int = 0, created: int = 0) -> "Scene":
        for one in self.index.put_known(uid, self.membership(uid, size), priority, created):
            self.hear(self.holder.members_changed(self.now, one))
        return self

    def done(self, *uids: str, bound: bool = True) -> "Scene":
        for uid in uids:
            self.hear(self.holder.done(self.now, self.id_of(uid), bound=bound))
        return self

    def place(self, *uids: str) -> "Scene":
        """Let calls be held, and bound, of a whole group."""
        return self.hold(*uids).done(*uids)

    def find_no_node(self, uid: str, message: str = NO_ROOM) -> "Scene":
        self.hear(self.holder.unschedulable(self.now, uid, group(uid[0]), message))
        return self

    def at(self, at_s: float) -> "Scene":
        """Let the time come, with a tick at each moment that the holder names."""
        while (due := self.holder.next_at()) is not None and due < at_s * SECOND_NS:
            assert due >= self.now
            self.at_s = due / SECOND_NS
            self.hear(self.holder.tick(due))
            assert self.holder.next_at() != due
        self.at_s = at_s
        self.hear(self.holder.tick(self.now))
        return self

    def fail(self, *uids: str) -> "Scene":
        """Let an attempt with these members fail at once."""
        self.hold(*uids)
        return self.find_no_node(f"{uids[0][0]}9")

    @property
    def turns(self) -> Turns:
        return self.holder.turns(self.now, EPOCH + self.at_s)

    @property
    def has_turn(self) -> str:
        """Return the group that has the turn."""
        turn = self.turns.turn
        return next((name for name in self.sizes if turn and turn.group == group_hash(group(name))), "")

    @property
    def preferred(self) -> str:
        """Return the group that is preferred."""
        first = self.turns.preferred
        return next((name for name in self.sizes if first and first.group == group_hash(group(name))), "")

    @property
    def results(self) -> list[str]:
        """Return the results of all attempts."""
        return [one.result.value for one in self.ended]


def found(held: int, size: int, attempt: int) -> str:
    return f"{held} of {size} members of the group found room (attempt {attempt})"


# -- complete


def test_all_are_released_together_when_they_are_as_many_as_the_size() -> None:
    scene = Scene(a=3).hold("a0", "a1")
    assert scene.of_all("a0", "a1") == {""}
    scene.hold("a2")
    assert scene.of_all("a0", "a1", "a2") == {"released"}


def test_only_what_is_committed_counts() -> None:
    scene = Scene(a=2).call("a0", "a1").commit("a0")
    assert (scene.of("a0"), scene.holder.held_count) == ("", 1)
    assert scene.commit("a1").of_all("a0", "a1") == {"released"}


@pytest.mark.parametrize(
    ("known", "said", "needed"), [(3, 3, 3), (4, 3, 4), (3, 5, 5)], ids=["all", "more known", "more said"]
)
def test_the_size_is_the_largest_that_known_members_and_callers_say(known: int, said: int, needed: int) -> None:
    scene = Scene(a=3)
    scene.know("a9", size=known)
    for number in range(needed):
        assert "released" not in scene.answers.values()
        scene.call(f"a{number}", size=said).commit(f"a{number}")
    assert [*scene.answers.values()] == ["released"] * needed


def test_without_the_member_that_said_the_largest_size_the_others_are_enough() -> None:
    scene = Scene(a=2).know("a9", size=3).hold("a0", "a1")
    assert scene.of("a0") == ""
    assert scene.delete("a9").of_all("a0", "a1") == {"released"}


def test_a_pod_that_is_called_for_twice_counts_once() -> None:
    scene = Scene(a=2).hold("a0").hold("a0")
    assert [scene.answers.get(0), scene.answers.get(1)] == [SUPERSEDED, None]
    assert scene.hold("a1").of_all("a0", "a1") == {"released"}
    assert scene.results == []


def test_the_newest_call_counts_only_when_it_is_committed() -> None:
    scene = Scene(a=2).hold("a0").call("a0").hold("a1")
    assert scene.of("a1") == ""
    scene.hear(scene.holder.committed(scene.now, 0, "1"))
    assert scene.of("a1") == "", "the older call is over"
    assert scene.commit("a0").of_all("a0", "a1") == {"released"}


def test_calls_from_two_addresses_do_not_count_together() -> None:
    scene = Scene(a=3).hold("a0", "a1").call("a2", address=ELSE)
    assert scene.of_all("a0", "a1") == {f"{ELSEWHERE} (attempt 1)"}
    assert scene.commit("a2").of("a2") == ""
    assert scene.hold("a0", "a1", address=ELSE).of_all("a0", "a1", "a2") == {"released"}


def test_an_arriving_call_of_another_address_is_ended_as_well() -> None:
    scene = Scene(a=2).call("a0").hold("a1", address=ELSE).commit("a0")
    assert (scene.of("a0"), scene.of("a1")) == (f"{ELSEWHERE} (attempt 1)", "")


def test_calls_from_another_address_do_not_prolong_the_turn() -> None:
    scene = Scene(a=2)
    for number in range(9):
        scene.at(number * 4).hold("a0", address=(HERE, ELSE)[number % 2])
    assert scene.results == ["out of time"]
    assert scene.ended[0].began == 0


def test_each_end_by_another_address_has_a_text_of_its_own() -> None:
    scene = Scene(a=2).hold("a0").hold("a1", address=ELSE).hold("a0")
    assert [scene.answers[0], scene.answers[1]] == [f"{ELSEWHERE} (attempt 1)", f"{ELSEWHERE} (attempt 2)"]


# -- versions


def test_a_pod_that_changes_while_it_is_held_is_committed_again() -> None:
    scene = Scene(a=2).hold("a0")
    scene.hear(scene.holder.pod_changed(scene.now, "a0", "2"))
    assert scene.commits == [0, 0]
    assert scene.hold("a1").of_all("a0", "a1") == {""}
    assert scene.commit("a0", rv="2").of_all("a0", "a1") == {"released"}


def test_what_is_committed_at_an_old_version_is_committed_again() -> None:
    scene = Scene(a=2).hold("a0").call("a1")
    scene.hear(scene.holder.pod_changed(scene.now, "a1", "7"))
    assert scene.commits == [0, 1], "one commit at a time"
    scene.commit("a1", rv="6")
    assert (scene.commits, scene.of("a1")) == ([0, 1, 1], "")
    assert scene.commit("a1", rv="7").of("a1") == "released"


@pytest.mark.parametrize(("uid", "rv"), [("a0", "10"), ("a0", "9"), ("a9", "11")], ids=["same", "older", "other pod's"])
def test_a_version_that_is_not_newer_changes_nothing(uid: str, rv: str) -> None:
    scene = Scene(a=2).call("a0").commit("a0", rv="10")
    scene.hear(scene.holder.pod_changed(scene.now, uid, rv))
    assert (scene.commits, scene.holder.held_count) == ([0], 1)


def test_versions_without_an_order_are_committed_again() -> None:
    scene = Scene(a=2).call("a0").commit("a0", rv="x")
    scene.hear(scene.holder.pod_changed(scene.now, "a0", "y"))
    assert scene.commits == [0, 0]
    assert scene.commit("a0", rv="z").holder.held_count == 1


def test_a_commit_that_is_repeated_does_not_keep_the_attempt_alive() -> None:
    scene = Scene(a=2).hold("a0")
    for at_s in range(1, 10):
        scene.at(at_s)
        scene.hear(scene.holder.pod_changed(scene.now, "a0", str(at_s + 1)))
        scene.commit("a0", rv=str(at_s + 1))
    assert scene.at(10).results == ["none further"]


# -- turn


def test_another_group_is_refused_while_a_group_has_the_turn() -> None:
    scene = Scene(a=2, b=2).call("a0").call("b0")
    assert (scene.of("b0"), scene.has_turn) == (PLACING, "a")


def test_a_group_that_rests_is_refused_whoever_has_the_turn() -> None:
    scene = Scene(a=2, b=2).fail("a0").call("a0").call("b0").call("a1")
    assert (scene.of("a0"), scene.of("a1"), scene.has_turn) == (RESTING, RESTING, "b")


def test_the_turn_lasts_until_the_last_answer() -> None:
    scene = Scene(a=2, b=2).hold("a0", "a1").done("a0").call("b0")
    assert scene.of("b0") == PLACING
    assert scene.done("a1").call("b0").of("b0") == ""
    assert scene.results == ["started"]


def test_a_call_that_is_answered_twice_changes_nothing() -> None:
    scene = Scene(a=2, b=2).hold("a0", "a1").done("a0").done("a0").call("b0")
    assert (scene.of("b0"), scene.results) == (PLACING, [])


def test_a_pod_whose_binding_is_being_posted_is_not_held_again() -> None:
    scene = Scene(a=2).hold("a0", "a1").call("a0")
    assert (scene.of("a0"), scene.commits) == (POSTING, [0, 1])


def test_members_beyond_the_size_are_released_singly_when_the_first_is_bound() -> None:
    scene = Scene(a=2).hold("a0", "a1").hold("a2").call("a3")
    assert scene.of_all("a2", "a3") == {""}
    scene.done("a0")
    assert (scene.of("a2"), scene.of("a3")) == ("released", "")
    scene.done("a1").hold("a4")
    assert (scene.commit("a3").of("a3"), scene.results) == ("released", ["started"])


def test_members_that_come_when_the_first_is_bound_wait_for_no_other() -> None:
    scene = Scene(a=2).hold("a0", "a1").done("a0").hold("a2", address=ELSE)
    assert (scene.of("a2"), scene.has_turn) == ("released", "a")


def test_a_group_of_which_no_binding_landed_has_failed() -> None:
    scene = Scene(a=2).hold("a0", "a1").hold("a2").done("a0", "a1", bound=False)
    assert (scene.of("a2"), scene.results) == (found(2, 2, 1), ["not bound"])
    assert scene.call("a0").of("a0") == RESTING


def test_the_turn_ends_although_a_binding_is_never_answered() -> None:
    scene = Scene(a=2, b=2).hold("a0", "a1").done("a0").at(29).call("b0").at(30).call("b1")
    assert (scene.of("b0"), scene.of("b1"), scene.results) == (PLACING, "", ["started"])
    assert scene.done("a1").has_turn == "b"


# -- leaving


def leave_by_hang_up(scene: Scene, uid: str) -> None:
    scene.hear(scene.holder.hung_up(scene.now, scene.id_of(uid)))


def leave_by_commit(scene: Scene, uid: str) -> None:
    scene.hear(scene.holder.commit_failed(scene.now, scene.id_of(uid)))


def leave_by_deletion(scene: Scene, uid: str) -> None:
    scene.delete(uid)


WAYS: Final = [leave_by_hang_up, leave_by_commit, leave_by_deletion]


@pytest.mark.parametrize("leave", WAYS)
def test_a_member_that_leaves_counts_no_more(leave: Callable[[Scene, str], None]) -> None:
    scene = Scene(a=3).know("a9", size=3).hold("a0", "a1")
    leave(scene, "a1")
    assert (scene.holder.held_count, scene.results) == (1, [])
    scene.hold("a2")
    assert scene.of_all("a0", "a2") == {""}
    assert scene.hold("a9").of_all("a0", "a2", "a9") == {"released"}


@pytest.mark.parametrize("leave", WAYS)
def test_the_last_member_that_leaves_gives_the_turn_back_without_a_rest(leave: Callable[[Scene, str], None]) -> None:
    scene = Scene(a=2, b=2).call("a0").call("b0")
    leave(scene, "a0")
    assert (scene.results, scene.has_turn, scene.preferred) == (["abandoned"], "", "b")
    assert scene.wakes == [WakeCause.TURN_FREE]
    assert scene.call("a1").of("a1") == ""


@pytest.mark.parametrize("leave", WAYS)
def test_a_member_that_was_released_does_not_leave(leave: Callable[[Scene, str], None]) -> None:
    scene = Scene(a=2).hold("a0", "a1")
    leave(scene, "a0")
    assert (scene.of("a0"), scene.has_turn) == ("released", "a")
    assert scene.done("a0", "a1").results == ["started"]


def test_only_a_deletion_is_answered_by_the_holder() -> None:
    scene = Scene(a=4).hold("a0", "a1", "a2")
    for uid, leave in zip(("a0", "a1", "a2"), WAYS, strict=True):
        leave(scene, uid)
    assert scene.answers == {2: DELETED}


def test_calls_that_are_over_are_heard_of_without_effect() -> None:
    scene = Scene(a=2).hold("a0", "a1").done("a0", "a1")
    for id_ in (0, 99):
        for actions in (
            scene.holder.committed(0, id_, "1"),
            scene.holder.commit_failed(0, id_),
            scene.holder.hung_up(0, id_),
            scene.holder.done(0, id_, bound=True),
        ):
            assert actions == []


# -- failure


def out_of_time(scene: Scene) -> None:
    for number in range(4):
        scene.at(8 * number)
        scene.hold(f"a{number}")
    scene.at(30)


def none_further(scene: Scene) -> None:
    scene.hold("a0", "a1", "a2").at(5).hold("a3").at(15)


def unschedulable(scene: Scene) -> None:
    scene.hold("a0", "a1", "a2", "a3").find_no_node("a4")


def regrouped(scene: Scene) -> None:
    scene.hold("a0", "a1", "a2", "a3")
    scene.hear(scene.holder.regrouped(scene.now, "a2", None))


def stopped(scene: Scene) -> None:
    scene.hold("a0", "a1", "a2", "a3")
    scene.hear(scene.holder.stop(scene.now))


@pytest.mark.parametrize(
    ("fail", "result"),
    [
        (out_of_time, AttemptResult.OUT_OF_TIME),
        (none_further, AttemptResult.NONE_FURTHER),
        (unschedulable, AttemptResult.UNSCHEDULABLE),
        (regrouped, AttemptResult.REGROUPED),
        (stopped, AttemptResult.STOPPED),
    ],
)
def test_an_attempt_that_fails_answers_every_call(fail: Callable[[Scene], None], result: AttemptResult) -> None:
    scene = Scene(a=5, b=2)
    fail(scene)
    assert scene.of_all("a0", "a1", "a2", "a3") == {found(4, 5, 1)}
    assert [(one.result, one.held_members, one.size, one.attempt) for one in scene.ended] == [(result, 4, 5, 1)]
    assert scene.has_turn == ""


@pytest.mark.parametrize("fail", [out_of_time, none_further, unschedulable, regrouped])
def test_a_group_that_fails_rests_and_members_are_woken_as_the_turn_is_free(fail: Callable[[Scene], None]) -> None:
    scene = Scene(a=5)
    fail(scene)
    assert (scene.call("a0").of("a0"), scene.wakes) == (RESTING, [WakeCause.TURN_FREE])


@pytest.mark.parametrize(("at_s", "answer"), [(9.9, ""), (10, found(1, 2, 1))], ids=["before", "after"])
def test_the_time_without_a_further_member_begins_with_the_last(at_s: float, answer: str) -> None:
    assert Scene(a=2).at(3).hold("a0").at(3 + at_s).of("a0") == answer


def test_the_time_without_a_member_begins_with_the_turn() -> None:
    assert Scene(a=2).call("a0").at(10).of("a0") == found(0, 2, 1)


@pytest.mark.parametrize("hold_s", [5, 30, 120])
def test_the_time_to_hold_is_that_of_the_call_that_took_the_turn(hold_s: int) -> None:
    scene = Scene(hold_s=hold_s, a=200)
    numbers = [*range(0, hold_s, 4)]
    for at_s in numbers:
        scene.at(at_s).hold(f"a{at_s}")
    assert scene.at(hold_s - 0.1).of("a0") == ""
    assert scene.at(hold_s).of("a0") == found(len(numbers), 200, 1)


def test_an_event_that_comes_late_does_what_was_due_before() -> None:
    scene = Scene(a=2).hold("a0")
    scene.at_s = 60
    scene.hold("a1")
    assert (scene.of("a0"), scene.of("a1"), scene.results) == (found(1, 2, 1), RESTING, ["out of time"])


def test_an_arriving_call_is_answered_with_the_others_and_does_not_count() -> None:
    scene = Scene(a=3).hold("a0").call("a1").find_no_node("a2")
    assert scene.of_all("a0", "a1") == {found(1, 3, 1)}
    assert scene.commit("a1").answers == {0: found(1, 3, 1), 1: found(1, 3, 1)}


@pytest.mark.parametrize(
    ("uid", "message"),
    [
        ("a0", NO_ROOM),
        ("b1", NO_ROOM),
        ("a2", f"0/4 nodes are available: 3 Insufficient cpu, 1 {WAITING}."),
        ("a2", f"0/4 nodes are available: 4 {RESTING}."),
        ("a2", f"0/4 nodes are available: 4 {PLACING}."),
    ],
    ids=["held", "another group's", "filter did not know all", "filter said rest", "filter said turn"],
)
def test_only_a_member_that_is_not_held_and_found_no_room_ends_the_attempt(uid: str, message: str) -> None:
    scene = Scene(a=3, b=2).hold("a0").call("a1").find_no_node(uid, message).find_no_node("a1")
    assert (scene.of("a0"), scene.results) == ("", [])


def test_a_member_that_finds_no_room_after_the_release_ends_nothing() -> None:
    assert Scene(a=2).hold("a0", "a1").find_no_node("a2").done("a0", "a1").results == ["started"]


def test_the_same_membership_under_new_policies_ends_nothing() -> None:
    scene = Scene(a=2).hold("a0")
    scene.hear(scene.holder.regrouped(scene.now, "a0", scene.membership("a0")))
    scene.hear(scene.holder.regrouped(scene.now, "a1", None))
    assert scene.results == []


@pytest.mark.parametrize("size", [3, None])
def test_another_size_or_no_group_ends_the_attempt(size: int | None) -> None:
    scene = Scene(a=2).hold("a0")
    scene.hear(scene.holder.regrouped(scene.now, "a0", scene.membership("a0", size) if size else None))
    assert scene.results == ["regrouped"]


def test_a_member_beyond_the_size_that_is_regrouped_is_refused_alone() -> None:
    scene = Scene(a=2).hold("a0", "a1").hold("a2")
    scene.hear(scene.holder.regrouped(scene.now, "a2", None))
    assert (scene.of("a2"), scene.done("a0", "a1").results) == (REGROUPED, ["started"])


# -- rest


def test_rests_grow_and_stay_at_a_minute() -> None:
    scene, rests = Scene(a=2), []
    for _ in range(7):
        scene.fail("a0")
        began = scene.at_s
        while scene.turns.rests:
            scene.at(scene.at_s + 1)
        rests.append(scene.at_s - began)
    assert rests == [5, 10, 20, 40, 60, 60, 60]


def test_each_attempt_has_a_number_of_its_own() -> None:
    scene, texts = Scene(a=2), []
    for _ in range(3):
        scene.fail("a0")
        texts.append(scene.of("a0"))
        scene.at(scene.at_s + 61)
    assert texts == [found(1, 2, number) for number in (1, 2, 3)]


def test_attempts_without_an_end_in_a_rest_have_numbers_as_well() -> None:
    scene = Scene(a=2).call("a0")
    leave_by_hang_up(scene, "a0")
    assert scene.fail("a0").of("a0") == found(1, 2, 2)


@pytest.mark.parametrize(
    ("failures", "room_s", "passes_s"),
    [(3, 1, 10), (3, 13, 13), (1, 1, 5), (2, 4, 10), (5, 59, 59)],
    ids=["at once", "later", "short", "ten", "long"],
)
def test_a_rest_ends_early_when_room_came(failures: int, room_s: float, passes_s: float) -> None:
    scene = Scene(a=2)
    for _ in range(failures - 1):
        scene.fail("a0")
        scene.at(scene.at_s + 60)
    scene.fail("a0")
    began = scene.at_s
    scene.at(began + room_s)
    scene.hear(scene.holder.room_came(scene.now))
    if passes_s > room_s:
        assert scene.at(began + passes_s - 0.1).call("a0").of("a0") == RESTING
    assert scene.at(began + passes_s).call("a0").of("a0") == ""


def test_room_that_came_before_the_rest_does_not_end_it() -> None:
    scene = Scene(a=2)
    scene.fail("a0").at(60)
    scene.fail("a0").at(120)
    scene.hear(scene.holder.room_came(scene.now))
    scene.fail("a0").at(135)
    assert scene.call("a0").of("a0") == RESTING


def test_members_are_woken_when_a_rest_is_over() -> None:
    scene = Scene(a=2).fail("a0").at(4.9)
    scene.wakes.clear()
    assert scene.at(5).wakes == [WakeCause.REST_OVER]


def test_after_a_long_time_rests_begin_with_the_shortest() -> None:
    scene = Scene(a=2)
    for _ in range(3):
        scene.fail("a0").at(scene.at_s + 60)
    scene.at(scene.at_s + 700).fail("a0")
    assert scene.at(scene.at_s + 5).call("a0").of("a0") == ""


def test_a_group_that_has_started_has_no_attempts_behind_it() -> None:
    scene = Scene(a=2)
    scene.fail("a0").at(10).place("a0", "a1").fail("a0")
    assert scene.of("a0") == found(1, 2, 1)
    assert scene.at(15).call("a0").of("a0") == ""


# -- started otherwise


def test_held_calls_of_a_group_that_has_started_are_released_singly() -> None:
    scene = Scene(a=3, b=2).hold("a0").call("a1").call("b0")
    scene.hear(scene.holder.started(scene.now, group("a")))
    assert (scene.of("a0"), scene.of("a1"), scene.results) == ("released", "", ["started otherwise"])
    assert (scene.preferred, scene.commit("a1").of("a1")) == ("b", "released")


def test_another_groups_start_releases_no_call() -> None:
    scene = Scene(a=2, b=2).hold("a0")
    scene.hear(scene.holder.started(scene.now, group("b")))
    assert (scene.of("a0"), scene.holder.has_calls_of(group("a")), scene.holder.has_calls_of(group("b"))) == (
        "",
        True,
        False,
    )


def test_a_start_ends_the_rest() -> None:
    scene = Scene(a=2).fail("a0")
    scene.hear(scene.holder.started(scene.now, group("a")))
    assert scene.turns.rests == {}


def test_a_pod_of_a_group_that_has_started_is_committed_at_its_newest_version() -> None:
    scene = Scene(a=3).call("a0")
    scene.hear(scene.holder.started(scene.now, group("a")))
    scene.hear(scene.holder.pod_changed(scene.now, "a0", "5"))
    assert scene.commit("a0", rv="4").of("a0") == ""
    assert scene.commit("a0", rv="5").of("a0") == "released"


# -- order


def refused(**sizes: int) -> Scene:
    """Return a scene in which all groups after the first were refused for its turn."""
    scene = Scene(**sizes)
    scene.call("a0")
    for name in [*sizes][1:]:
        scene.call(f"{name}0")
    return scene


def give_back(scene: Scene) -> Scene:
    leave_by_hang_up(scene, "a0")
    return scene


def test_the_oldest_group_is_preferred() -> None:
    assert give_back(refused(a=2, b=2, c=2)).preferred == "b"


def test_the_group_of_the_highest_priority_is_preferred() -> None:
    scene = refused(a=2, b=2, c=2)
    scene.know("c1", priority=7, created=9)
    assert give_back(scene).preferred == "c"


@pytest.mark.parametrize("why", ["incomplete", "resting", "started", "gone"])
def test_a_group_that_cannot_be_placed_is_not_preferred(why: str) -> None:
    scene = refused(a=2, b=2, c=2)
    match why:
        case "incomplete":
            scene.know("b9", size=4)
        case "resting":
            scene = Scene(a=2, b=2, c=2).fail("b0")
            scene.call("a0").call("c0").find_no_node("b1", PLACING)
        case "started":
            scene.index.put_placed(("ns", "b7"), (group("b"),))
        case "gone":
            scene.delete("b0", "b1")
    assert give_back(scene).preferred == "c"


def test_a_group_that_was_not_refused_for_the_turn_is_not_preferred() -> None:
    scene = Scene(a=2, b=2, c=2).call("a0").call("c0")
    assert give_back(scene).preferred == "c"


def test_filters_refusal_for_the_turn_counts_as_one() -> None:
    scene = Scene(a=2, b=2).call("a0").find_no_node("b0", f"0/4 nodes are available: 4 {PLACING}.")
    assert give_back(scene).preferred == "b"


def test_a_refusal_for_the_turn_that_is_heard_late_wakes_as_the_turn_is_free() -> None:
    scene = Scene(a=2, b=2).find_no_node("b0", f"0/4 nodes are available: 4 {PLACING}.")
    assert scene.wakes == [WakeCause.TURN_FREE]


def test_the_group_is_preferred_for_five_seconds_and_then_the_others_are_woken() -> None:
    scene = give_back(refused(a=2, b=2, c=2)).at(4.9)
    assert (scene.preferred, scene.wakes) == ("b", [WakeCause.TURN_FREE])
    scene.at(5)
    assert (scene.preferred, scene.wakes) == ("", [WakeCause.TURN_FREE] * 2)


def test_a_group_that_was_preferred_and_did_not_come_waits_no_more() -> None:
    scene = give_back(refused(a=2, b=2, c=2)).at(5).call("a0")
    assert give_back(scene).preferred == "c"


def test_the_call_of_a_group_that_is_not_preferred_takes_the_turn_and_the_other_one_waits_on() -> None:
    scene = give_back(refused(a=2, b=2, c=2)).call("c0")
    assert (scene.has_turn, scene.preferred) == ("c", "")
    leave_by_hang_up(scene, "c0")
    assert scene.preferred == "b"


def test_a_group_that_takes_the_turn_waits_no_more() -> None:
    scene = give_back(refused(a=2, b=2)).call("b0")
    leave_by_hang_up(scene, "b0")
    assert (scene.preferred, scene.wakes) == ("", [WakeCause.TURN_FREE])


def test_a_group_whose_rest_is_over_waits_for_the_turn() -> None:
    scene = Scene(a=2, b=2).fail("a0").call("b0").at(6)
    assert scene.preferred == "", "the turn is taken"
    leave_by_hang_up(scene, "b0")
    assert scene.preferred == "a"


def test_a_group_is_preferred_when_its_rest_is_over_and_the_turn_is_free() -> None:
    scene = Scene(a=2, b=2).fail("a0").at(5)
    assert (scene.preferred, scene.turns.preferred) == ("a", PreferredGroup(group_hash(group("a")), EPOCH + 10))


def test_a_rest_that_is_over_takes_no_preference_away() -> None:
    scene = Scene(a=2, b=2, c=2).fail("a0").call("b0").call("c0").at(4)
    leave_by_hang_up(scene, "b0")
    assert scene.at(5).preferred == "c"
    assert scene.at(9).preferred == ""


def test_a_success_wakes_only_those_who_wait() -> None:
    assert Scene(a=2, b=2).place("a0", "a1").wakes == []
    assert Scene(a=2, b=2).hold("a0").call("b0").hold("a1").done("a0", "a1").wakes == [WakeCause.TURN_FREE]


# -- members


def test_the_last_member_known_wakes() -> None:
    scene = Scene(c=2).delete("c1")
    assert scene.wakes == []
    assert scene.know("c1").wakes == [WakeCause.MEMBER_KNOWN]


@pytest.mark.parametrize("why", ["turn", "preferred"])
def test_a_group_that_gets_complete_waits_its_turn(why: str) -> None:
    scene = refused(a=2, b=2, c=2) if why == "preferred" else Scene(a=2, c=2).call("a0")
    scene.delete("c1")
    if why == "preferred":
        give_back(scene)
    before = [*scene.wakes]
    scene.know("c1")
    assert scene.wakes == before
    if why == "preferred":
        scene.at(5).call("a0")
    assert give_back(scene).preferred == "c"


@pytest.mark.parametrize("why", ["rest", "placed"])
def test_a_group_that_gets_complete_wakes_nothing_if_that_would_not_help(why: str) -> None:
    scene = Scene(a=2)
    if why == "rest":
        scene.fail("a0")
    else:
        scene.index.put_placed(("ns", "a7"), (group("a"),))
    scene.wakes.clear()
    assert scene.delete("a1").know("a1").wakes == []


def test_attempts_are_forgotten_with_the_last_known_member() -> None:
    scene = Scene(a=2).call("a0")
    leave_by_hang_up(scene, "a0")
    scene.delete("a0", "a1").know("a0").know("a1")
    assert scene.fail("a0").of("a0") == found(1, 2, 1)


def test_a_rest_outlives_the_last_known_member() -> None:
    scene = Scene(a=2).fail("a0").delete("a0", "a1").know("a0").know("a1").call("a0")
    assert scene.of("a0") == RESTING


def test_a_group_that_comes_back_while_it_rests_has_the_attempts_that_it_had() -> None:
    scene = Scene(a=2).fail("a0").delete("a0", "a1")
    scene.hear(scene.holder.room_came(scene.now))
    assert scene.know("a0").know("a1").at(6).fail("a0").of("a0") == found(1, 2, 2)


def test_a_group_of_which_no_member_is_known_does_not_wait() -> None:
    scene = Scene(a=2, b=2).delete("b0", "b1").call("a0").call("b0")
    assert give_back(scene).wakes == []


def test_a_group_without_known_members_is_forgotten_when_its_rest_is_over() -> None:
    scene = Scene(a=2).fail("a0").delete("a0", "a1").at(5)
    assert scene.preferred == ""
    assert scene.know("a0").know("a1").fail("a0").of("a0") == found(1, 2, 1)


# -- stop


def test_after_a_stop_each_call_is_refused() -> None:
    scene = Scene(a=2)
    scene.hear(scene.holder.stop(scene.now))
    assert (scene.call("a0").of("a0"), scene.results, scene.holder.next_at()) == (STOPPED, [], None)


def test_what_was_released_before_a_stop_is_finished() -> None:
    scene = Scene(a=2).hold("a0", "a1").hold("a2").call("a3")
    scene.hear(scene.holder.stop(scene.now))
    assert scene.of_all("a2", "a3") == {STOPPED}
    assert scene.done("a0", "a1").results == ["started"]
    assert (scene.wakes, scene.holder.next_at()) == ([], None)


def test_a_stop_answers_single_calls_as_well() -> None:
    scene = Scene(a=2).call("a0")
    scene.hear(scene.holder.started(scene.now, group("a")))
    scene.hear(scene.holder.stop(scene.now))
    assert scene.of("a0") == STOPPED


# -- publication


def test_the_turn_is_published_by_unix_time() -> None:
    scene = Scene(a=3).at(2).hold("a0").at(4).hold("a1")
    nodes = {"a0": "node-of-a0", "a1": "node-of-a1"}
    at = EPOCH + 2, EPOCH + 32
    assert scene.turns == Turns(PublishedTurn(group_hash(group("a")), *at, 2, 3, attempt=1, nodes=nodes))


def test_a_member_that_takes_the_place_of_another_one_is_published() -> None:
    scene = Scene(a=3).hold("a0")
    before = scene.holder.revision
    scene.call("a1").delete("a0").commit("a1")
    assert scene.holder.revision != before
    assert scene.turns.turn is not None
    assert scene.turns.turn.nodes == {"a1": "node-of-a1"}


def test_a_turn_whose_bindings_are_posted_is_published_with_all_that_were_released() -> None:
    scene = Scene(a=3).hold("a0", "a1").at(4).hold("a2").done("a1").delete("a2")
    nodes = {"a0": "node-of-a0", "a2": "node-of-a2"}
    at = EPOCH, EPOCH + 34
    assert scene.turns.turn == PublishedTurn(group_hash(group("a")), *at, 3, 3, attempt=1, nodes=nodes)


def test_rests_are_published_with_the_attempt() -> None:
    scene = Scene(a=2).at(1).fail("a0")
    assert scene.turns == Turns(rests={group_hash(group("a")): PublishedRest(EPOCH + 6, 1)})


def test_the_pods_with_calls_are_known() -> None:
    scene = Scene(a=2).hold("a0").call("a1")
    assert (scene.holder.uids(), scene.holder.held_count) == (["a0", "a1"], 1)
    assert scene.commit("a1").call("a2").holder.uids() == ["a2"]
