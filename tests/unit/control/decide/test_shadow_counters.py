"""Counters of rules in shadow: nothing is lost or doubled by restarts, leaders that disagree, and lost answers."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead.control.decide import shadow_counters
from fairlead.control.decide.shadow_counters import (
    ALL,
    FOLDED_MAX,
    PROCESSES_MAX,
    RULES_MAX,
    SUMS,
    ShadowRecord,
    counts_of,
    merged,
)
from fairlead.control.status.shadow_status import decoded, shadow_status
from fairlead.replica_state import PolicyState, ReplicaState, ReplicaStates, ShadowCounts, ShadowRuleCounts

NOW: Final = "2026-01-01T00:00:00Z"
RULES: Final = ("f", "g")
PODS: Final = 2
ROOM: Final = 3
"""Processes that are kept apart, so that the others have to be folded."""
amounts = st.dictionaries(st.sampled_from([*SUMS, *RULES]), st.integers(0, 300), max_size=4)


def counts(generation: int = 1, **numbers: int) -> ShadowCounts:
    """Counts of a process: those of all rules together by their field, and pods by the name of a rule."""
    rules = tuple(
        ShadowRuleCounts(kind="Filter", name=name, pods=numbers.get(name, 0), unschedulable=numbers.get(name, 0) // 2)
        for name in RULES
    )
    return ShadowCounts(generation=str(generation), rules=rules, **{one: numbers.get(one, 0) for one in SUMS})


def sums(status: Mapping[str, Any]) -> dict[str, int]:
    """Sums of a status, as `counts` takes them."""
    found = {one: status["tooSlow" if one == "too_slow" else one] for one in SUMS}
    return found | {one["name"]: one["pods"] for one in status.get("rules", ())}


class Leader:
    """What one leader knows: the version of the policy that it saw last, and what replicas told it."""

    def __init__(self) -> None:
        self.version = 0
        self.policy: dict[str, Any] = {}
        self.states: ReplicaStates = {}


class Turn(NamedTuple):
    """What happens around one write."""

    polls: bool
    silent: set[int]
    watches: bool
    outcome: str
    restarts: bool


turns = st.builds(
    Turn,
    st.booleans(),
    st.sampled_from([set[int](), set[int](), {0}, {1}]),
    st.booleans(),
    st.sampled_from(["answered", "answered", "answer lost", "not sent"]),
    st.sampled_from([False, False, True]),
)


class ManyLeaders(RuleBasedStateMachine):
    """Two leaders that poll, decide and write when they like, over replicas that count, restart and fall silent."""

    def __init__(self) -> None:
        super().__init__()
        self._little_room = patch.object(shadow_counters, "PROCESSES_MAX", ROOM)
        self._little_room.start()

    @initialize()
    def begin(self) -> None:
        self.generation = self.version = 1
        self.status: dict[str, Any] = {}
        self.leaders = Leader(), Leader()
        self.started = 0
        self.running: list[tuple[str, dict[str, int]]] = []
        self.truth: dict[str, dict[str, int]] = {}
        """What each process has counted of this generation."""
        self.told: dict[str, dict[str, int]] = {}
        """What each process had said of it at the last write that counted it."""
        for _ in range(PODS):
            self._start(len(self.running))
        for number in range(PODS):
            self.watch(number)

    def _start(self, pod: int) -> None:
        name = f"process-{self.started:04}"
        self.started += 1
        self.running[pod : pod + 1] = [(name, {})]
        self.truth[name] = self.running[pod][1]

    def count(self, pod: int, more: dict[str, int]) -> None:
        mine = self.running[pod][1]
        mine.update({key: mine.get(key, 0) + number for key, number in more.items()})

    @rule(pod=st.integers(0, PODS - 1), more=amounts, leader=st.integers(0, 1), does=turns)
    def count_and_write(self, pod: int, more: dict[str, int], leader: int, does: "Turn") -> None:
        """A pod counts and perhaps restarts, then a leader writes, perhaps by what it knew before."""
        self.count(pod, more)
        if does.polls:
            self.poll(leader, does.silent)
        if does.watches:
            self.watch(leader)
        self.write(leader, does.outcome)
        if does.restarts and self.started < FOLDED_MAX:
            self._start(pod)

    def poll(self, leader: int, silent: set[int]) -> None:
        self.leaders[leader].states = {
            f"pod-{pod}": "no answer within 1 s" if pod in silent else self._state(pod) for pod in range(PODS)
        }

    def _state(self, pod: int) -> ReplicaState:
        name, mine = self.running[pod]
        shadow = counts(self.generation, **mine)
        number = str(self.generation)
        state = PolicyState(uid="u", generation=number, serving=number, reason="Compiled", shadow=shadow)
        return ReplicaState(process=name, policies={"p": state})

    def watch(self, leader: int) -> None:
        metadata = {"name": "p", "uid": "u", "generation": self.generation}
        self.leaders[leader].version = self.version
        self.leaders[leader].policy = {"metadata": metadata, "spec": {"mode": "Shadow"}, "status": self.status}

    def write(self, leader: int, outcome: str) -> None:
        one = self.leaders[leader]
        shadow = shadow_status(one.policy, one.states, NOW)
        if outcome == "not sent" or one.version != self.version:
            return
        self.version += 1
        self.status = {} if shadow is None else {"shadow": msgspec.json.decode(msgspec.json.encode(shadow))}
        if shadow is not None and shadow["generation"] == self.generation:
            self._note_told(one.states, {each["process"] for each in shadow["replicas"]})
        if outcome == "answered":
            self.watch(leader)

    def _note_told(self, states: ReplicaStates, counted: set[str]) -> None:
        for state in states.values():
            if isinstance(state, ReplicaState) and state.process in counted:
                said = state.policies["p"].shadow
                assert said is not None
                if said.generation == str(self.generation):
                    numbers = {key: getattr(said, key) for key in SUMS} | {one.name: one.pods for one in said.rules}
                    before = self.told.get(state.process, {})
                    self.told[state.process] = {key: max(number, before.get(key, 0)) for key, number in numbers.items()}

    @precondition(lambda self: self.generation < 3)
    @rule(happens=st.integers(0, 9).map(lambda one: not one))
    def edit(self, happens: bool) -> None:
        if happens:
            self._edit()

    def _edit(self) -> None:
        self.generation += 1
        self.version += 1
        self.running = [(name, {}) for name, _ in self.running]
        self.truth = dict(self.running)
        self.told = {}

    @invariant()
    def the_sums_are_what_was_told(self) -> None:
        shadow = self.status.get("shadow")
        if shadow is None or shadow["generation"] != self.generation:
            return
        for key, number in sums(shadow).items():
            assert number == sum(one.get(key, 0) for one in self.told.values()), key
            assert number <= sum(one.get(key, 0) for one in self.truth.values()), key

    def teardown(self) -> None:
        """When all answer and one leader is left, what the living processes have counted is there."""
        try:
            self.settle()
        finally:
            self._little_room.stop()

    def settle(self) -> None:
        self.watch(0)
        self.poll(0, set())
        self.write(0, "answered")
        self.the_sums_are_what_was_told()
        shadow = self.status["shadow"]
        known = {one["process"] for one in shadow["replicas"]} | {*shadow.get("earlier", {}).get("processes", ())}
        assert {name for name, _ in self.running} <= known, "there was room, as the others had ended"


TestManyLeaders = ManyLeaders.TestCase
TestManyLeaders.settings = settings(stateful_step_count=60)


@given(st.lists(st.tuples(st.sampled_from("abc"), amounts), max_size=6), st.randoms())
def test_reports_in_any_order_and_twice_are_the_same(reports: list[tuple[str, dict[str, int]]], shuffled: Any) -> None:
    said = [(process, counts(**numbers)) for process, numbers in reports]
    again = [*said, *said]
    shuffled.shuffle(again)
    one, other = merged(None, said, None, NOW), merged(None, again, None, NOW)
    assert (one is None) == (other is None) == (not said)
    if one is not None and other is not None:
        assert one.sums == other.sums
        assert merged(one, said, None, NOW) == one


def test_another_generation_starts_at_zero_and_an_older_one_is_not_counted() -> None:
    first = merged(None, [("a", counts(1, pods=5)), ("b", counts(1, pods=5))], {"a", "b"}, NOW)
    later = "2026-01-02T00:00:00Z"
    second = merged(first, [("a", counts(2, pods=1)), ("b", counts(1, pods=9))], {"a", "b"}, later)
    assert second is not None
    assert (second.generation, second.since, second.sums[ALL, "pods"]) == (2, later, 1)
    assert merged(second, [("b", counts(1, pods=9))], {"b"}, later) == second


def test_the_oldest_process_that_has_ended_is_folded_first_and_counts_once_when_it_is_seen_again() -> None:
    record: ShadowRecord | None = None
    for at in range(PROCESSES_MAX + 2):
        record = merged(record, [(f"p{at}", counts(pods=1))], {"p1", f"p{at}"}, NOW)
    assert record is not None
    assert record.folded == ("p0", "p2"), "p1 lives"
    assert next(iter(record.processes)) == "p1"
    seen = merged(record, [("p0", counts(pods=7))], {"p0"}, NOW)
    assert seen == record
    assert record.sums[ALL, "pods"] == PROCESSES_MAX + 2


@pytest.mark.parametrize("living", [None, "all"])
def test_without_room_for_another_process_it_is_not_counted_rather_than_one_of_the_others_forgotten(
    living: str | None,
) -> None:
    names = [f"p{at}" for at in range(PROCESSES_MAX + 1)]
    record = merged(None, [(one, counts(pods=1)) for one in names], None if living is None else names, NOW)
    assert record is not None
    assert (record.sums[ALL, "pods"], record.folded) == (PROCESSES_MAX, ())


def test_no_more_rules_are_counted_than_there_is_room_for() -> None:
    rules = tuple(ShadowRuleCounts(kind="Score", name=f"s{at}", pods=at) for at in range(RULES_MAX + 9))
    record = merged(None, [("a", replace_rules(counts(), rules))], {"a"}, NOW)
    assert record is not None
    assert [name for _, name in record.rules] == [f"s{at}" for at in range(RULES_MAX)]
    small = merged(record, [], {"a"}, NOW, lambda one: len(one.rules) <= 3)
    assert small is not None
    assert (len(small.rules), small.sums[ALL, "pods"]) == (3, record.sums[ALL, "pods"])


def replace_rules(one: ShadowCounts, rules: tuple[ShadowRuleCounts, ...]) -> ShadowCounts:
    return msgspec.structs.replace(one, rules=rules)


def test_what_does_not_fit_is_folded_before_a_rule_is_left_out() -> None:
    record: ShadowRecord | None = None
    for at in range(4):
        record = merged(record, [(f"p{at}", counts(pods=1, f=1))], {f"p{at}"}, NOW)
    small = merged(record, [], {"p3"}, NOW, lambda one: len(one.processes) <= 1)
    assert record is not None
    assert small is not None
    assert ([*small.processes], small.folded) == (["p3"], ("p0", "p1", "p2"))
    assert (small.sums, small.rules) == (record.sums, record.rules)


def test_a_report_without_a_process_or_a_generation_is_not_counted() -> None:
    assert merged(None, [("", counts(pods=1)), ("a", replace_generation(""))], None, NOW) is None
    assert counts_of(counts(pods=3))[ALL, "pods"] == 3
    assert decoded(None) is None


def replace_generation(generation: str) -> ShadowCounts:
    return msgspec.structs.replace(counts(pods=1), generation=generation)
