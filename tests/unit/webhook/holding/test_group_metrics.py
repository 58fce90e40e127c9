"""Metrics of groups: states, waits, and how long members of groups that started were held."""

from typing import TYPE_CHECKING, Final, cast

import pytest

from fairlead.groups.group import Group, Membership, group_hash
from fairlead.groups.member_calls import AttemptEnded, AttemptResult
from fairlead.groups.members import GroupIndex
from fairlead.groups.turns import NO_TURNS, PublishedRest, PublishedTurn, Turns
from fairlead.metrics import Counter, Gauges, Histogram, Metrics
from fairlead.time_units import SECOND_NS
from fairlead.webhook.holding.group_metrics import GroupMetrics

if TYPE_CHECKING:
    from fairlead.webhook.holding.held_binds import HeldBinds

NOW_S: Final = 1_800_000_000


class Holds:
    """Holder of some calls that publishes what a test says."""

    def __init__(self, turns: Turns = NO_TURNS, calls: int = 0) -> None:
        self.published, self.calls = turns, calls

    def __len__(self) -> int:
        return self.calls

    def turns(self, _: float) -> Turns:
        return self.published


class Scene:
    """Metrics of a replica, and a clock."""

    def __init__(self, **held: Holds) -> None:
        self.index, self.held, self.time_s = GroupIndex(), held, 0
        self.metrics = GroupMetrics(
            self.index,
            cast("dict[str, HeldBinds]", self.held),
            lambda: (NOW_S + self.time_s) * SECOND_NS,
            lambda: (7 + self.time_s) * SECOND_NS,
        )
        registry = Metrics()
        self.metrics.register(registry)
        self._by_name = {one.name: one for one in registry.own}

    def gauge(self, name: str) -> dict[tuple[str, ...], float]:
        made = self._by_name[name]
        assert isinstance(made, Gauges)
        return {**made.ask()}

    def attempts(self) -> dict[str, float]:
        made = self._by_name["fairlead_group_attempts"]
        assert isinstance(made, Counter)
        return {result: value for (_, result), value in made.values.items() if value}

    def held_s(self) -> tuple[int, float]:
        made = self._by_name["fairlead_group_hold_seconds"]
        assert isinstance(made, Histogram)
        return sum(made.counts["a",]), made.sums["a",]

    def know(self, value: str, count: int, size: int = 3, scheduler: str = "a") -> None:
        group = Group(scheduler, "ml", value)
        for at in range(count):
            self.index.put_known(f"{scheduler}/{value}-{at}", Membership(group, size, 30, "p", "g"))

    def place(self, value: str, scheduler: str = "a") -> None:
        self.index.put_placed(("ml", f"{scheduler}/{value}"), (Group(scheduler, "ml", value),))


def hash_of(value: str) -> str:
    return group_hash(Group("a", "ml", value))


def test_groups_by_state_on_the_replica_that_holds() -> None:
    turns = Turns(
        PublishedTurn(hash_of("turn"), NOW_S, NOW_S + 30, held_members=1, size=3, attempt=1),
        {hash_of("rests"): PublishedRest(NOW_S + 5, 1), hash_of("gone"): PublishedRest(NOW_S + 5, 1)},
    )
    scene = Scene(a=Holds(turns, calls=4), b=Holds())
    for value in ("turn", "rests", "waits", "few", "both"):
        scene.know(value, 1 if value == "few" else 3)
    scene.place("both")
    scene.place("runs")
    scene.know("elsewhere", 3, scheduler="c")
    scene.place("elsewhere", scheduler="c")
    states = scene.gauge("fairlead_groups")
    assert {state: count for (scheduler, state), count in states.items() if scheduler == "a"} == {
        "Waiting": 2,
        "Turn": 1,
        "Resting": 1,
        "Started": 2,
    }
    assert {state: count for (scheduler, state), count in states.items() if scheduler == "b"} == dict.fromkeys(
        ("Waiting", "Turn", "Resting", "Started"), 0
    )
    assert {scheduler for scheduler, _ in states} == {"a", "b"}
    assert scene.gauge("fairlead_held_binds") == {("a",): 4, ("b",): 0}


def test_a_replica_that_does_not_hold_shows_nothing() -> None:
    scene = Scene()
    scene.know("red", 3)
    scene.place("runs")
    assert scene.gauge("fairlead_groups") == scene.gauge("fairlead_group_longest_wait_seconds") == {}


def test_the_longest_wait_is_that_of_a_complete_group_that_has_not_started() -> None:
    scene = Scene(a=Holds())
    longest = "fairlead_group_longest_wait_seconds"

    def wait(time_s: int) -> float:
        scene.time_s = time_s
        return scene.gauge(longest)["a",]

    scene.know("few", 2)
    assert wait(0) == 0
    scene.know("red", 3)
    assert (wait(10), wait(70)) == (0, 60)
    scene.know("blue", 3)
    assert wait(80) == 70
    scene.place("red")
    assert wait(90) == 10, "of blue, which was first seen at 80"
    scene.index.remove("a/blue-0")
    assert wait(100) == 0
    scene.know("blue", 3)
    assert (wait(110), wait(115)) == (0, 5), "it was not complete in between"


def test_another_replica_that_takes_over_knows_how_long_groups_have_waited() -> None:
    scene = Scene()
    scene.know("red", 3)
    assert scene.gauge("fairlead_group_longest_wait_seconds") == {}
    scene.time_s = 3700
    scene.held["a"] = Holds()
    assert scene.gauge("fairlead_group_longest_wait_seconds") == {("a",): 3700}


@pytest.mark.parametrize("result", AttemptResult)
def test_how_long_members_of_groups_that_started_were_held(result: AttemptResult) -> None:
    scene = Scene(a=Holds())
    scene.metrics.begin("a")
    assert (scene.attempts(), scene.held_s()) == ({}, (0, 0))
    scene.time_s = 4
    scene.metrics.attempt_ended(AttemptEnded(Group("a", "ml", "red"), 1, result, 3, 3, began=8 * SECOND_NS))
    assert scene.attempts() == {result.value: 1}
    assert scene.held_s() == ((1, 3) if result is AttemptResult.STARTED else (0, 0))
