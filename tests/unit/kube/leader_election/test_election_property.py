"""Many replicas, an API server that is slow and fails, clocks that run as they like: two never act at once.

A replica acts while its own clock says so, also while it is stopped or cut off; one that is killed acts no more. What
it began as a leader goes on for a while after it has resigned, but writes nothing: whoever writes asks `Elector.leads`.
"""

import heapq
import itertools
import random
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.kube.leader_election.election import (
    Done,
    Election,
    LeaseTimings,
    Read,
    Record,
    Release,
    Resign,
    Wait,
    Write,
)
from support.examples import MANY

TERMS = LeaseTimings()
APART = 0.15
"""How far clocks may run from the true time."""
PEACE_S = 25.0 * (1 + APART)


@dataclass
class Server:
    """One Lease."""

    lease: Record | None = None
    version: int = 0

    def read(self) -> Record | None:
        return self.lease

    def write(self, version: str, holder: str, transitions: int) -> Record | None:
        """None: a conflict."""
        if version != (self.lease.version if self.lease else ""):
            return None
        self.version += 1
        self.lease = Record(str(self.version), holder, TERMS.lease_s if holder else 1, transitions)
        return self.lease


@dataclass
class Replica:
    """One that follows the steps, on a clock of its own."""

    name: str
    rate: float
    offset: float
    election: Election = field(init=False)
    alive: bool = True
    stopping: bool = False
    over: bool = False
    ended_at: float = 0.0
    """When what it began as a leader has stopped."""
    duty: bool = False
    asked: int = 0
    """The request whose answer it waits for."""

    def __post_init__(self) -> None:
        self.election = Election(self.name, TERMS)

    def local(self, time: float) -> float:
        return self.offset + self.rate * time

    def acts(self, time: float) -> bool:
        until = self.election.until
        return self.alive and not self.over and until is not None and self.local(time) < until and self.duty


class World:
    """Events in their order. `dice` decides everything that is not decided."""

    def __init__(self, count: int, dice: random.Random, trouble: float) -> None:
        self.dice, self.trouble = dice, trouble
        self.time, self.order = 0.0, itertools.count()
        self.events: list[tuple[float, int, str, tuple[object, ...]]] = []
        self.server = Server()
        self.nobody_starts_before = 0.0
        self.replicas: list[Replica] = []
        self.led: set[str] = set()
        for _ in range(count):
            self.join()

    def join(self) -> None:
        name = f"r{len(self.replicas)}"
        one = Replica(name, 1 + self.dice.uniform(-APART, APART), self.dice.uniform(-1e6, 1e6))
        self.replicas.append(one)
        self.at(self.dice.uniform(0, 3), "step", one)

    def at(self, delay: float, what: str, *about: object) -> None:
        heapq.heappush(self.events, (self.time + delay, next(self.order), what, about))

    def run(self, seconds: float) -> None:
        end = self.time + seconds
        while self.events and self.events[0][0] <= end:
            self.time, _, what, about = heapq.heappop(self.events)
            getattr(self, what)(*about)
            self.check()
        self.time = end

    def check(self) -> None:
        acting = [one.name for one in self.replicas if one.acts(self.time)]
        assert len(acting) <= 1, f"at {self.time}: {acting}"
        self.led.update(acting)

    def step(self, one: Replica) -> None:
        if not one.alive or one.over:
            return
        if not one.asked and self.time < self.nobody_starts_before:
            self.at(1, "step", one)
            return
        now = one.local(self.time)
        if one.stopping and one.duty:
            self.end(one)
        ended = not one.duty and self.time >= one.ended_at
        match one.election.next(now, ended=ended, stopping=one.stopping):
            case Wait(seconds):
                self.at(seconds / one.rate + self.stall(), "step", one)
            case Resign():
                self.end(one)
                one.election = one.election.resigned(now)
                self.step(one)
            case Done():
                one.over = True
            case asked:
                self.ask(one, asked, now)

    def end(self, one: Replica) -> None:
        if one.duty:
            one.duty, one.ended_at = False, self.time + self.dice.uniform(0, 6)

    def stall(self) -> float:
        """The process is stopped for a while, or its thread has no turn."""
        return self.dice.uniform(0, 40) if self.dice.random() < self.trouble / 10 else self.dice.uniform(0, 0.1)

    def ask(self, one: Replica, asked: object, sent: float) -> None:
        one.asked += 1
        request = one.asked
        there, back = (self.delay() for _ in "ab")
        lost_there, lost_back = (self.dice.random() < self.trouble / 3 for _ in "ab")
        if not lost_there:
            self.at(there, "arrive", one, asked, sent, request, None if lost_back else back)
        patience = TERMS.request_s
        if one.election.until is not None:
            patience = min(patience, one.election.until - sent)
        self.at(max(0.0, patience) / one.rate + self.stall(), "give_up", one, request)

    def delay(self) -> float:
        return self.dice.uniform(0, 12) if self.dice.random() < self.trouble else self.dice.uniform(0, 0.2)

    def arrive(self, one: Replica, asked: object, sent: float, request: int, back: float | None) -> None:
        fails = self.dice.random() < self.trouble / 3
        seen: Record | None = None
        refused = fails
        match asked:
            case Read():
                seen = self.server.read()
            case Write(version, transitions) if not fails:
                seen = self.server.write(version, one.name, transitions)
                refused = seen is None
            case Release(version, transitions) if not fails:
                seen = self.server.write(version, "", transitions)
                refused = seen is None
        if back is not None:
            self.at(back, "answer", one, asked, sent, request, seen, refused)

    def answer(
        self, one: Replica, asked: object, sent: float, request: int, seen: Record | None, refused: bool
    ) -> None:
        if request != one.asked or not one.alive:
            return
        one.asked += 1
        now, before = one.local(self.time), one.election
        if refused:
            one.election = before.failed(now)
        elif isinstance(asked, Read):
            one.election = before.after_read(seen, now)
        elif seen is not None:
            one.election = before.after_write(seen, sent, now)
        if isinstance(asked, Release):
            one.election = one.election.resigned(now)
        elif before.until is None and one.election.until is not None:
            one.duty = True
        self.step(one)

    def give_up(self, one: Replica, request: int) -> None:
        if request == one.asked and one.alive:
            one.asked += 1
            one.election = one.election.failed(one.local(self.time))
            self.step(one)

    def kill(self) -> None:
        self.dice.choice(self.replicas).alive = False
        self.join()

    def stop(self) -> None:
        self.dice.choice(self.replicas).stopping = True
        self.join()

    def delete(self) -> None:
        """Somebody deletes the Lease under its holder; who starts at that moment cannot know, so nobody does."""
        if all(one.election.record is not None for one in self.replicas if one.alive and not one.over and one.asked):
            self.server.lease = None
            self.nobody_starts_before = self.time + TERMS.act_s / (1 - APART)


@example(2, 2190, 0.125, [(27.0, "delete")])  # a Lease is made late, by one who had given up waiting for it
@settings(max_examples=MANY)
@given(
    st.integers(1, 5),
    st.integers(0, 2**32),
    st.floats(0, 1),
    st.lists(st.tuples(st.floats(0.1, 40), st.sampled_from(["kill", "stop", "delete", "nothing"])), max_size=12),
)
def test_two_never_act_at_once_and_in_peace_somebody_does(
    count: int, seed: int, trouble: float, happenings: list[tuple[float, str]]
) -> None:
    world = World(count, random.Random(seed), trouble)  # noqa: S311  a simulation
    for seconds, what in happenings:
        world.run(seconds)
        if what != "nothing":
            getattr(world, what)()
    world.trouble = 0.0
    world.run(60)  # what was under way comes to its end
    world.led.clear()
    world.run(PEACE_S)
    assert len(world.led) == 1, world.led
    leader = next(one for one in world.replicas if one.name in world.led)
    leader.alive = False
    world.join()
    world.led.clear()
    world.run(PEACE_S)
    assert world.led - {leader.name}, "another one takes over"
