"""Mutations of the core, each of which breaks one of the rules that the promise stands on. The explorer finds them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

import pytest
from msgspec.structs import replace

from fairlead.learned import content, demands, pair, pairs
from fairlead.learned.demands import Demands
from fairlead.learned.learner import PairLearner, StateWrite
from fairlead.learned.pair import NO_MARKS, CountedOutcomes, Observation, OutcomeSums, count, written
from support.learned.store import Store

Mutate = Callable[[pytest.MonkeyPatch], None]


def no_resource_version(patch: pytest.MonkeyPatch) -> None:
    """Write a ConfigMap without a word of the version that was read."""
    patch.setattr(Store, "is_refused", lambda *_: False)


def ids_by_time(patch: pytest.MonkeyPatch) -> None:
    """Take two outcomes of one time for the same."""

    def by_time(found: OutcomeSums, outcomes: Iterable[Observation], half_life_s: int, now: int) -> CountedOutcomes:
        return count(found, [replace(one, id=str(one.at)) for one in outcomes], half_life_s, now)

    patch.setattr(pairs, "count", by_time)


def ids_not_published(patch: pytest.MonkeyPatch) -> None:
    """Publish sums without what is in them."""
    patch.setattr(content, "written", lambda found, *_: replace(written(found), marks_text=NO_MARKS, left_out=(0, "")))


def left_out_and_not_remembered(patch: pytest.MonkeyPatch) -> None:
    """Leave ids out as if they had never been there."""
    patch.setattr(content, "written", lambda found, *given: replace(written(found, *given), left_out=found.left_out))


def left_out_between_two_writes(patch: pytest.MonkeyPatch) -> None:
    """Leave ids out at each count, so that a list in the order of names cuts off its own outcomes."""

    def one_by_one(found: OutcomeSums, outcomes: Iterable[Observation], half_life_s: int, now: int) -> CountedOutcomes:
        counted = late = 0
        for one in sorted(outcomes, key=lambda each: each.id):
            found, more, too_late = count(found, [one], half_life_s, now)
            found, counted, late = written(found, vars(content)["IDS_MAX"]), counted + more, late + too_late
        return CountedOutcomes(found, counted, late)

    patch.setattr(pairs, "count", one_by_one)


def dropped_before_accepted(patch: pytest.MonkeyPatch) -> None:
    """Forget observations once a write with them is sent."""
    real = PairLearner.writes

    def hasty(self: PairLearner, now: int) -> list[StateWrite]:
        found = real(self, now)
        for one in found:
            self._settle(one.number, one.has, 0)
        return found

    patch.setattr(PairLearner, "writes", hasty)


def late_with_the_weight_of_now(patch: pytest.MonkeyPatch) -> None:
    """Count an outcome that is heard late as if it had just happened."""
    real = pair._added

    def anew(found: OutcomeSums, one: Observation, half_life_s: int) -> OutcomeSums:
        return real(found, replace(one, at=max(found.at, one.at)), half_life_s)

    patch.setattr(pair, "_added", anew)


def sums_of_two_times_added(patch: pytest.MonkeyPatch) -> None:
    """Add an outcome to sums that are as of an earlier time."""

    def added(found: OutcomeSums, one: Observation, half_life_s: int) -> OutcomeSums:
        at = max(found.at, one.at)
        weight = 2 ** (-(at - one.at) / half_life_s)
        return replace(found, rewards=found.rewards + one.reward * weight, weight=found.weight + weight, at=at)

    patch.setattr(pair, "_added", added)


def newest_by_arrival(patch: pytest.MonkeyPatch) -> None:
    """Keep the pods that were heard last."""

    def last(found: Demands, samples: int) -> Demands:
        return dict(islice(found.items(), max(0, len(found) - samples), None))

    patch.setattr(demands, "newest", last)
    patch.setattr(content, "newest", last)


def published_in_the_middle_of_a_list(patch: pytest.MonkeyPatch) -> None:
    """Publish while a list is counted."""
    patch.setattr(PairLearner, "begin_list", lambda _self: None)
    patch.setattr(PairLearner, "end_list", lambda _self: None)


MUTATIONS: Final[Sequence[Mutate]] = (
    no_resource_version,
    ids_by_time,
    ids_not_published,
    left_out_and_not_remembered,
    left_out_between_two_writes,
    dropped_before_accepted,
    late_with_the_weight_of_now,
    sums_of_two_times_added,
    newest_by_arrival,
    published_in_the_middle_of_a_list,
)
