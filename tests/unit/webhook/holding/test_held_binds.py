"""Held binds do what their holder commands, and every call is answered."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from fairlead.grants.group_domain import RequiredDomain
from fairlead.groups.group import Group, Membership, group_hash
from fairlead.groups.member_calls import AttemptEnded, ReleaseCall, WakeCause
from fairlead.groups.members import GroupIndex
from fairlead.groups.turn_order import PREFERRED_S
from fairlead.webhook.binding.bind_steps import BindResult, BindSteps, Bound, Budget, Committed, NotBound, PodBind
from fairlead.webhook.holding.held_binds import COMMIT_NS, LOOK_S, POSTED_AT_ONCE, HeldBinds, HoldingListener
from scripted.loop import in_loop
from support.policy import SECOND

RED = Group("fairlead", "ml", "red")
ADDRESS = "10.0.0.1"
HOUR_NS: Final = 3600 * SECOND
NO_DEVICES: Final = cast("Any", SimpleNamespace(ask=()))


@dataclass
class Steps:
    """The two steps of binds, which take as long as a test wants."""

    refused: frozenset[str] = frozenset()
    """UIDs that are granted nothing."""
    slow: asyncio.Event | None = None
    """What commits wait for."""
    has_domain: bool = False
    """Whether what is committed has an entry for the domain of the group."""
    versions: dict[str, str] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    left_s: list[float] = field(default_factory=list)
    """Time that each commit has."""
    posted: list[tuple[str, str]] = field(default_factory=list)
    fails: frozenset[str] = frozenset()
    """UIDs whose Bindings are refused."""
    faulty: frozenset[str] = frozenset()
    """UIDs with which a commit fails in a way that nothing foresees."""
    post: asyncio.Event | None = None
    """What Bindings wait for."""
    at_once: int = 0
    most: int = 0
    """Bindings that were posted at the same time."""

    async def commit(self, call: PodBind, budget: Budget) -> Committed | BindResult:
        self.commits.append(call.uid)
        self.left_s.append(budget.left_s())
        if self.slow is not None:
            await self.slow.wait()
        if call.uid in self.faulty:
            raise RuntimeError("a slip")
        if call.uid in self.refused:
            return NotBound("no room on the cards")
        return Committed(self.versions.get(call.uid, "1"), has_domain=self.has_domain)

    async def bind(self, call: PodBind, _budget: Budget, committed: Committed | None = None) -> BindResult:
        assert committed is not None
        self.posted.append((call.uid, committed.rv))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await (asyncio.sleep(0) if self.post is None else self.post.wait())
        finally:
            self.at_once -= 1
        return NotBound("denied") if call.uid in self.fails else Bound(None)


@dataclass
class Poster:
    """A caller that may hang up."""

    hung_up: bool = False
    asked: int = 0

    def is_abandoned(self) -> bool:
        self.asked += 1
        return self.hung_up


class Scene:
    """Members of one group, and the calls for them."""

    def __init__(self, steps: Steps | None = None, size: int = 2, known: int = 2) -> None:
        self.steps, self.size, self.index = steps or Steps(), size, GroupIndex()
        self.wakes: list[WakeCause] = []
        self.attempts: list[AttemptEnded] = []
        self.leads = True
        self.held = HeldBinds(
            self.index,
            cast("BindSteps", self.steps),
            perf_counter_ns,
            HoldingListener(lambda: None, self.wakes.append, self.attempts.append),
            lambda: self.leads,
        )
        for number in range(known):
            self.index.put_known(f"u-{number}", self.membership())

    def membership(self) -> Membership:
        return Membership(RED, self.size, 30, "policy", "gang")

    def call(
        self, number: int, poster: Poster | None = None, address: str = ADDRESS, within_ns: int = HOUR_NS
    ) -> "asyncio.Task[BindResult]":
        bind = PodBind(f"u-{number}", f"ml/p-{number}", "n", NO_DEVICES, cast("Any", poster or Poster()))
        return asyncio.create_task(self.held.bind(bind, self.membership(), address, perf_counter_ns() + within_ns))


async def turns_pass(until: Callable[[], object]) -> None:
    """Let others go on until that is so."""
    async with asyncio.timeout(10):
        while not until():
            await asyncio.sleep(0.001)


def whys(results: Sequence[BindResult]) -> list[str]:
    return [one.why if isinstance(one, NotBound) else "" for one in results]


@in_loop
async def test_nothing_is_posted_before_all_are_held_and_then_everything_at_its_version() -> None:
    scene = Scene(Steps(versions={"u-1": "7"}), size=3, known=3)
    calls = [scene.call(0), scene.call(1)]
    await turns_pass(lambda: len(scene.steps.commits) == 2)
    await asyncio.sleep(0.01)
    assert scene.steps.posted == []
    calls.append(scene.call(2))
    assert [*await asyncio.gather(*calls)] == [Bound(None)] * 3
    assert sorted(scene.steps.posted) == [("u-0", "1"), ("u-1", "7"), ("u-2", "1")]
    assert [one.result.value for one in scene.attempts] == ["started"]
    assert len(scene.held) == 0


@in_loop
async def test_the_domain_of_an_attempt_that_failed_is_published() -> None:
    scene = Scene()
    domain = {"rack": "a"}
    bind = PodBind(
        "u-0", "ml/p-0", "n", NO_DEVICES, cast("Any", Poster()), "", (RequiredDomain("ml/red", domain, "p"),)
    )
    call = asyncio.create_task(scene.held.bind(bind, scene.membership(), ADDRESS, perf_counter_ns() + HOUR_NS))
    await turns_pass(lambda: scene.steps.commits and scene.held.turns(0).turn)
    await asyncio.sleep(0)
    assert scene.held.turns(0).avoided == {}
    scene.held.unschedulable("u-1", RED, "0/1 nodes are available")
    assert whys([await call]) == ["1 of 2 members of the group found room (attempt 1)"]
    assert scene.held.turns(0).avoided == {group_hash(RED): domain}


@in_loop
async def test_what_cannot_be_granted_is_refused_alone_and_may_come_again() -> None:
    scene = Scene(Steps(refused=frozenset({"u-1"})))
    first, second = scene.call(0), scene.call(1)
    assert whys([await second]) == ["no room on the cards"]
    assert not first.done()
    scene.steps.refused = frozenset()
    assert [*await asyncio.gather(first, scene.call(1))] == [Bound(None)] * 2


@in_loop
async def test_a_pod_that_has_changed_is_committed_once_more_before_it_is_released() -> None:
    scene = Scene()
    first = scene.call(0)
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    scene.steps.versions["u-0"] = "9"
    scene.held.pod_changed("u-0", "9")
    assert [*await asyncio.gather(first, scene.call(1))] == [Bound(None)] * 2
    assert ("u-0", "9") in scene.steps.posted


@in_loop
async def test_a_change_while_the_commit_is_under_way_commits_once_more() -> None:
    slow = asyncio.Event()
    scene = Scene(Steps(slow=slow))
    first = scene.call(0)
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    scene.held.pod_changed("u-0", "9")
    scene.steps.versions["u-0"] = "9"
    slow.set()
    assert [*await asyncio.gather(first, scene.call(1))] == [Bound(None)] * 2
    assert ("u-0", "9") in scene.steps.posted


@in_loop
async def test_a_caller_that_has_hung_up_is_not_counted() -> None:
    scene = Scene()
    gone = Poster()
    first = scene.call(0, gone)
    await turns_pass(lambda: scene.steps.commits == ["u-0"] and gone.asked > 1)
    gone.hung_up = True  # after more than one look
    assert whys([await first]) == ["the caller has hung up"]
    second = scene.call(1)
    await turns_pass(lambda: scene.steps.commits == ["u-0", "u-1"])
    await asyncio.sleep(0.01)
    assert scene.steps.posted == []
    scene.held.stop()
    await second


@in_loop
async def test_calls_of_two_addresses_do_not_count_together() -> None:
    scene = Scene()
    first = scene.call(0)
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    second = scene.call(1, address="10.0.0.2")
    assert whys([await first]) != [""]
    assert scene.steps.posted == []
    scene.held.stop()
    await second


@in_loop
async def test_the_end_of_holding_answers_every_call_and_takes_no_more() -> None:
    scene = Scene(size=3, known=3)
    calls = [scene.call(0), scene.call(1)]
    await turns_pass(lambda: len(scene.steps.commits) == 2)
    scene.held.stop()
    assert all(whys(await asyncio.gather(*calls)))
    assert all(whys([await scene.call(2)]))
    assert scene.steps.posted == []


@pytest.mark.parametrize("fails", [frozenset[str](), frozenset({"u-0"})])
def test_members_of_a_group_that_has_started_wait_for_nobody(fails: frozenset[str]) -> None:
    async def run() -> None:
        scene = Scene(Steps(fails=fails), size=3, known=3)
        calls = [scene.call(0), scene.call(1)]
        await turns_pass(lambda: len(scene.steps.commits) == 2)
        scene.held.started(RED)
        found = await asyncio.gather(*calls)
        assert [isinstance(one, Bound) for one in found] == ["u-0" not in fails, True]

    asyncio.run(run())


@in_loop
async def test_a_call_that_is_cancelled_leaves_the_count() -> None:
    scene = Scene()
    first = scene.call(0)
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert len(scene.held) == 0
    assert [one.result.value for one in scene.attempts] == ["abandoned"]


@in_loop
async def test_the_timer_goes_off_earlier_when_something_else_is_due_before(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, loop = Scene(), asyncio.get_running_loop()
    delays, later = list[float](), loop.call_later

    def call_later(delay: float, *call: Any) -> asyncio.TimerHandle:
        if delay > LOOK_S:
            delays.append(delay)
        return later(delay, *call)

    monkeypatch.setattr(loop, "call_later", call_later)
    first = scene.call(0)
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    of_other = Membership(Group("fairlead", "ml", "blue"), 1, 30, "policy", "gang")
    scene.index.put_known("v-0", of_other)
    other = PodBind("v-0", "ml/v-0", "n", NO_DEVICES, cast("Any", Poster()))
    assert whys([await scene.held.bind(other, of_other, ADDRESS, perf_counter_ns() + HOUR_NS)]) != [""]
    assert min(delays) > PREFERRED_S + 1
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert 0 < delays[-1] <= PREFERRED_S  # the other one has the turn that is free now, for so long


@in_loop
async def test_a_caller_that_hangs_up_just_before_the_last_call_is_not_counted() -> None:
    scene, gone = Scene(), Poster()
    first = scene.call(0, gone)
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    second = scene.call(1)
    gone.hung_up = True
    assert whys([await first]) == ["the caller has hung up"]
    await turns_pass(lambda: len(scene.steps.commits) == 2)
    await asyncio.sleep(0.01)
    assert scene.steps.posted == []
    scene.held.stop()
    await second


@in_loop
async def test_nothing_is_counted_of_a_caller_that_hung_up_before_the_group_became_smaller() -> None:
    scene, gone = Scene(known=2), Poster()
    large = Membership(RED, 3, 30, "policy", "gang")
    scene.index.put_known("u-2", large)
    calls = [scene.call(0), scene.call(1, gone)]
    await turns_pass(lambda: len(scene.steps.commits) == 2)
    gone.hung_up = True
    for change in scene.index.remove("u-2"):
        scene.held.members_changed(change)
    assert whys([await calls[1]]) == ["the caller has hung up"]
    assert scene.steps.posted == []
    scene.held.stop()
    await calls[0]


@in_loop
async def test_who_leads_no_more_releases_nothing() -> None:
    scene = Scene()
    first = scene.call(0)
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    scene.leads = False
    assert all(whys(await asyncio.gather(first, scene.call(1))))
    assert (scene.steps.posted, scene.held.is_stopped) == ([], True)


@in_loop
async def test_leadership_that_is_lost_during_the_last_commit_releases_nothing() -> None:
    scene = Scene(Steps(slow=asyncio.Event()))
    calls = [scene.call(0), scene.call(1)]
    await turns_pass(lambda: len(scene.steps.commits) == 2)
    scene.leads = False
    assert scene.steps.slow is not None
    scene.steps.slow.set()
    assert all(whys(await asyncio.gather(*calls)))
    assert scene.steps.posted == []


@in_loop
async def test_a_call_is_answered_before_its_scheduler_gives_up() -> None:
    scene = Scene()
    assert whys([await scene.call(0, within_ns=SECOND // 100)]) == [
        "no time is left to bind the pod before the scheduler gives up"
    ]
    assert [one.result.value for one in scene.attempts] == ["abandoned"]


@in_loop
async def test_a_commit_that_fails_unforeseen_refuses_its_call_alone() -> None:
    scene = Scene(Steps(faulty=frozenset({"u-1"})))
    first = scene.call(0)
    assert whys([await scene.call(1)]) == ["what the pod needs could not be committed"]
    assert not first.done()
    scene.steps.faulty = frozenset()
    assert [*await asyncio.gather(first, scene.call(1))] == [Bound(None)] * 2


@in_loop
async def test_a_turn_whose_only_call_was_granted_nothing_is_free_again() -> None:
    scene = Scene(Steps(refused=frozenset({"u-0"})))
    assert whys([await scene.call(0)]) == ["no room on the cards"]
    assert scene.held.turns(0).turn is None
    assert [one.result.value for one in scene.attempts] == ["abandoned"]


@in_loop
async def test_a_group_of_which_no_binding_is_accepted_has_not_started() -> None:
    scene = Scene(Steps(fails=frozenset({"u-0", "u-1"})))
    assert whys(await asyncio.gather(scene.call(0), scene.call(1))) == ["denied"] * 2
    assert [one.result.value for one in scene.attempts] == ["not bound"]


@in_loop
async def test_a_commit_has_a_time_of_its_own_however_long_the_call_is_held() -> None:
    scene = Scene()
    await asyncio.gather(scene.call(0), scene.call(1))
    assert max(scene.steps.left_s) <= COMMIT_NS / SECOND


@in_loop
async def test_an_entry_may_stand_for_a_call_that_is_refused_after_its_commit_and_while_it_goes_on() -> None:
    bind = PodBind(
        "u-0", "ml/p-0", "n", NO_DEVICES, cast("Any", Poster()), "", (RequiredDomain("ml/red", {"rack": "a"}, "p"),)
    )
    for slow in (None, asyncio.Event()):
        scene = Scene(Steps(slow=slow, has_domain=True))
        held = scene.held.bind(bind, scene.membership(), ADDRESS, perf_counter_ns() + HOUR_NS)
        call = asyncio.create_task(held)
        await turns_pass(lambda scene=scene: scene.steps.commits)  # type: ignore[misc]
        await asyncio.sleep(0)
        scene.held.stop()
        result = await call
        assert isinstance(result, NotBound)
        assert result.may_stand


@in_loop
async def test_so_many_bindings_are_posted_at_once() -> None:
    size = POSTED_AT_ONCE + 36
    scene = Scene(Steps(post=asyncio.Event()), size=size, known=size)
    calls = [scene.call(number) for number in range(size)]
    await turns_pass(lambda: len(scene.steps.posted) == POSTED_AT_ONCE)
    assert scene.steps.post is not None
    scene.steps.post.set()
    assert [*await asyncio.gather(*calls)] == [Bound(None)] * size
    assert (len(scene.steps.posted), scene.steps.most) == (size, POSTED_AT_ONCE)


@in_loop
async def test_a_call_that_is_cancelled_while_its_binding_is_posted_ends_its_part_of_the_turn() -> None:
    scene = Scene(Steps(post=asyncio.Event()))
    calls = [scene.call(0), scene.call(1)]
    await turns_pass(lambda: len(scene.steps.posted) == 2)
    calls[0].cancel()
    assert scene.steps.post is not None
    scene.steps.post.set()
    assert await calls[1] == Bound(None)
    assert [one.result.value for one in scene.attempts] == ["started"]


@in_loop
async def test_a_call_that_is_cancelled_as_it_is_released_ends_its_part_of_the_turn() -> None:
    scene = Scene()
    calls = [scene.call(0)]
    await turns_pass(lambda: scene.steps.commits == ["u-0"])
    tells = scene.held._do

    def cancels(actions: Any) -> None:
        tells(actions)
        if any(isinstance(one, ReleaseCall) for one in actions):
            calls[0].cancel()  # before it has read that it is released

    scene.held._do = cancels  # type: ignore[method-assign]
    calls.append(scene.call(1))
    assert await calls[1] == Bound(None)
    assert ([one.result.value for one in scene.attempts], scene.steps.posted) == (["started"], [("u-1", "1")])
