"""What a leader publishes, and when it does not."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.learned import learner, published
from fairlead.learned.content import PAIRS, PODS, encode_demands
from fairlead.learned.learner import DemandLearner, PairLearner, StateWrite
from fairlead.learned.pair import Observation, key_of
from fairlead.learned.pairs import Meaning, shard_of
from fairlead.learned.published import LearnedState, LearningRule, decode, names_of

NOW = 1_764_000_000
RULE = LearningRule("policy", "uid-1", "rule", "meaning", 3)
NUMBER = shard_of(("web", "node"))


def outcome(name: str, at: int = NOW, reward: float = 0.0) -> Observation:
    return Observation("web", "ns", "node", at, key_of(name), reward)


def learning(*, listed: bool = True) -> PairLearner:
    made = PairLearner(RULE, Meaning(3600))
    made.versions.is_listed = listed
    return made


def stored(write: StateWrite, rv: str) -> LearnedState:
    metadata = {**write.config_map["metadata"], "resourceVersion": rv}
    found = decode({**write.config_map, "metadata": metadata})
    assert found is not None
    return found


def config_map(data: dict[str, str], rv: str = "5", **fields: Any) -> LearnedState:
    body = published.config_map(replace(RULE, **fields), names_of(RULE, NUMBER)[0], data)
    found = decode({**body, "metadata": {**body["metadata"], "resourceVersion": rv}})
    assert found is not None
    return found


def only(writes: list[StateWrite]) -> StateWrite:
    (found,) = writes
    return found


def test_an_outcome_is_pending_until_its_write_is_accepted() -> None:
    made = learning()
    made.observe(outcome("a"))
    first = only(made.writes(NOW))
    assert first.before is None
    made.observe(outcome("b"))
    made.accepted(first, stored(first, "5"))
    assert made.pending == 1
    second = only(made.writes(NOW))
    assert second.before is not None
    assert second.before.rv == "5"
    made.accepted(second, stored(second, "6"))
    assert (made.pending, made.writes(NOW)) == (0, [])
    assert made.pairs(NUMBER)["web", "node"].weight == 2


def test_a_refused_write_is_made_again_once_the_newer_state_is_known() -> None:
    made, other = learning(), learning()
    for each in (made, other):
        each.observe(outcome("a"))
    other.observe(outcome("b"))
    refused, accepted = only(made.writes(NOW)), only(other.writes(NOW))
    made.versions.refuse(refused.number)
    assert made.writes(NOW) == []
    assert made.versions.to_read == {NUMBER}
    made.versions.show(stored(accepted, "9"))
    assert made.writes(NOW) == []
    assert (made.pending, made.pairs(NUMBER)["web", "node"].weight, made.late) == (0, 2, 0)


def test_an_older_version_tells_nothing() -> None:
    made = learning()
    made.observe(outcome("a"))
    first = only(made.writes(NOW))
    made.accepted(first, stored(first, "10"))
    made.versions.show(config_map({PAIRS: '{"v":1,"types":[],"pairs":[]}'}, rv="9"))
    made.versions.remove(NUMBER, "9")
    assert made.pairs(NUMBER)
    made.versions.remove(NUMBER, "11")
    assert not made.pairs(NUMBER)


def test_nothing_is_published_before_the_config_maps_are_listed() -> None:
    made = learning(listed=False)
    made.observe(outcome("a"))
    assert made.writes(NOW) == []
    made.versions.is_listed = True
    assert made.writes(NOW)


def test_nothing_is_published_in_the_middle_of_a_list() -> None:
    made = learning()
    made.begin_list()
    made.observe(outcome("a"))
    assert made.writes(NOW) == []
    made.end_list()
    assert made.writes(NOW)


NEWER = {PAIRS: '{"v":2}'}
NONSENSE = {PAIRS: "?"}
NOTHING = {PAIRS: '{"v":1,"types":[],"pairs":[]}'}


@pytest.mark.parametrize(
    ("shown", "is_written"),
    [
        (config_map(NOTHING), True),
        (config_map(NOTHING, generation=2), True),
        (config_map(NOTHING, generation=4), False),
        (config_map(NOTHING, generation=4, uid="of a policy before"), True),
        (config_map(NOTHING, meaning="before", generation=2), True),
        (config_map(NOTHING, meaning="after", generation=4), False),
        (config_map(NEWER), False),
        (config_map(NONSENSE), False),
        (config_map(NONSENSE, meaning="before"), False),
    ],
)
def test_what_is_written_over(*, shown: LearnedState, is_written: bool) -> None:
    made = learning()
    made.versions.show(shown)
    made.observe(outcome("a"))
    assert bool(made.writes(NOW)) == is_written
    assert (made.pending, made.late) == ((0, 1) if shown.document.fault else (1, 0))


def test_state_of_another_meaning_is_replaced_without_an_outcome() -> None:
    made = learning()
    made.versions.show(
        config_map({PAIRS: '{"v":1,"types":[["a","b"]],"pairs":[["n",0,0,1,9,[0,""],[]]]}'}, meaning="x")
    )
    write = only(made.writes(NOW))
    assert (write.written.pairs, write.config_map["metadata"]["annotations"]["fairlead.dev/meaning"]) == ({}, "meaning")
    made.accepted(write, stored(write, "6"))
    assert made.writes(NOW) == []


def test_a_name_that_another_rule_has() -> None:
    made, others = learning(), replace(RULE, policy="policy-rule", name="x")
    plain, longer = names_of(RULE, NUMBER)
    body = published.config_map(others, plain, NOTHING)
    taken = decode({**body, "metadata": {**body["metadata"], "resourceVersion": "5"}})
    assert taken is not None
    made.versions.show(taken)
    made.observe(outcome("a"))
    write = only(made.writes(NOW))
    assert (write.before, write.config_map["metadata"]["name"]) == (None, longer)


def test_names_that_are_all_taken_are_left_alone() -> None:
    made = learning()
    plain, longer = names_of(RULE, NUMBER)
    made.observe(outcome("a"))
    for name, is_written in ((plain, True), (longer, False)):
        made.versions.show_taken(name)
        assert bool(made.writes(NOW)) == is_written


def test_what_loses_its_place_at_once_is_not_written_again_and_again() -> None:
    made = PairLearner(RULE, Meaning(3600, prior=1.0, pairs=1))
    made.versions.is_listed = True
    made.observe(outcome("failed"))
    first = only(made.writes(NOW))
    made.accepted(first, stored(first, "5"))
    for name in ("a", "b"):
        made.observe(replace(outcome(name, reward=1.0), node=name))
        assert (made.writes(NOW), made.pending) == ([], 0)


def test_a_list_may_begin_again_and_ends_once() -> None:
    made = learning()
    made.observe(outcome("a"))
    made.begin_list()
    made.begin_list()
    assert made.writes(NOW) == []
    made.end_list()
    assert made.writes(NOW)


def test_a_read_after_a_refused_write_counts_whatever_its_version_is() -> None:
    made = learning()
    made.versions.show(config_map(NOTHING, rv="100"))
    made.versions.refuse(NUMBER)
    made.versions.was_read(NUMBER, config_map(NOTHING, rv="7"))
    assert made.versions.known[NUMBER].rv == "7"
    made.versions.was_read(NUMBER, None)
    assert NUMBER not in made.versions.known


@pytest.mark.parametrize("asked", [2.0**40, 1e300, -1.0, float("inf"), float("nan")])
def test_whatever_a_pod_asks_for_can_be_read_again(asked: float) -> None:
    made = DemandLearner(RULE, 2)
    made.versions.is_listed = True
    made.observe((NOW, "a"), (asked, 1.0))
    written = stored(only(made.writes(NOW)), "5")
    assert written.document.fault == ""
    assert written.document.value == {(NOW, "a"): (asked if asked == 2.0**40 else 1e30 if asked == 1e300 else 0.0, 1.0)}


def test_what_is_late_is_said_once() -> None:
    made = learning()
    for name, at in (("a", NOW - 3000), ("b", NOW)):
        made.observe(outcome(name, at))
    first = only(made.writes(NOW))
    made.accepted(first, stored(first, "5"))
    made.observe(outcome("late", NOW - 3500))
    made.observe(replace(outcome("listed", NOW - 3500), listed=True))
    assert (made.writes(NOW), made.pending, made.late) == ([], 0, 1)


def test_each_write_tells_how_many_outcomes_were_late_until_then() -> None:
    made = learning()
    told: list[tuple[int | None, int]] = []

    def write(*outcomes: Observation, is_accepted: bool = True) -> None:
        for one in outcomes:
            made.observe(one)
        for each in made.writes(NOW):
            state = stored(each, str(len(told) + 5))
            told.append((state.publication.at, state.publication.late))
            if is_accepted:
                made.accepted(each, state)

    write(outcome("a", NOW - 3000), outcome("b", NOW))
    write(outcome("late", NOW - 3500))
    write(outcome("later", NOW - 3400), outcome("c", NOW), is_accepted=False)
    write(outcome("d", NOW))
    write(outcome("e", NOW))
    assert told == [(NOW, 0), (NOW, 2), (NOW, 2), (NOW, 2)]


def test_pending_outcomes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "PENDING_MAX", 3)
    made = learning(listed=False)
    for at in range(5):
        made.observe(replace(outcome(str(at)), type=f"type-{at}"))
        made.observe(replace(outcome(str(0)), type="type-0"))
    made.observe(replace(outcome("listed"), listed=True))
    assert (made.pending, made.late) == (3, 2)
    assert sum(map(len, made._pending.values())) == 3


def test_pods_are_published_once() -> None:
    made = DemandLearner(RULE, 2)
    made.versions.is_listed = True
    for at in range(5):
        made.observe((NOW + at, str(at)), (1.0,))
    write = only(made.writes(NOW))
    assert [*write.written.demands] == [(NOW + 4, "4"), (NOW + 3, "3")]
    made.accepted(write, stored(write, "5"))
    made.observe((NOW, "older"), (1.0,))
    assert (made.writes(NOW), made.pending) == ([], 0)


def test_pods_that_do_not_fit_are_not_written_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "encode_demands", small(encode_demands))
    made = DemandLearner(RULE, 4000)
    made.versions.is_listed = True
    for at in range(100):
        made.observe((NOW + at, str(at)), (1.0,))
    write = only(made.writes(NOW))
    assert len(write.written.data[PODS]) <= 1000
    made.accepted(write, stored(write, "5"))
    made.observe((NOW, "0"), (1.0,))
    assert (made.writes(NOW), made.pending) == ([], 0)


def small(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda demands, samples: real(demands, samples, 1000)


def test_waiting_pods_are_bounded() -> None:
    made = DemandLearner(RULE, 10)
    for at in range(1000):
        made.observe((NOW + at, str(at)), (1.0,))
    assert made.pending <= 20
