"""A store of ConfigMaps, with the outcomes that each version really has: the promise is held against it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.learned.demands import Demands
from fairlead.learned.learner import StateWrite
from fairlead.learned.pair import Mark, Observation, OutcomeSums
from fairlead.learned.pairs import Key
from fairlead.learned.published import LearnedState, decode
from support.interleavings import PromiseBrokenError

_CLOSE: Final = 1e-9
_PERIOD_S: Final = 900


@dataclass
class Truth:
    """All outcomes of a pair that a version has, by a second way of counting that forgets nothing."""

    counted: dict[str, Observation] = field(default_factory=dict)
    left_out: tuple[int, str] = (0, "")
    """Newest outcome of which it could no longer be told that it was counted."""

    def with_outcomes(self, outcomes: Iterable[Observation], ids: int) -> "Truth":
        """Return the truth with more outcomes, without those that come too late."""
        counted = dict(self.counted)
        for one in outcomes:
            if one.mark > self.left_out:
                counted.setdefault(one.id, one)
        marks = sorted(one.mark for one in counted.values())
        left_out = self.left_out
        for place, mark in enumerate(marks):
            if len(marks) - place > ids or mark[0] <= marks[-1][0] - _PERIOD_S:
                left_out = max(left_out, mark)
        return Truth(counted, left_out)

    def check(self, key: Key, pair: OutcomeSums, half_life_s: int) -> None:
        """Compare a published pair with the formula over all that it has."""
        newest = max(one.at for one in self.counted.values())
        weights = {one.id: 2 ** (-(newest - one.at) / half_life_s) for one in self.counted.values()}
        rewards = math.fsum(one.reward * weights[one.id] for one in self.counted.values())
        expected = rewards, math.fsum(weights.values()), newest
        found = pair.rewards, pair.weight, pair.at
        if any(abs(one - other) > _CLOSE for one, other in zip(found, expected, strict=True)):
            raise PromiseBrokenError(f"{key} is published as {found}, and {len(self.counted)} outcomes are {expected}")


Truths = Mapping[Key, Truth]


@dataclass
class Version:
    """Version of a ConfigMap; `shown` is None once it is deleted."""

    rv: int
    shown: LearnedState | None
    truths: Truths = field(default_factory=dict)
    pods: Demands = field(default_factory=dict)


@dataclass
class SentWrite:
    """Write that is on its way."""

    leader: Any
    write: StateWrite
    outcomes: Mapping[Key, Sequence[Observation]]
    pods: Demands
    base: Version | None
    """Version that its writer knew."""
    given_up: bool = False


class Store:
    """ConfigMaps of one rule, with all their versions."""

    def __init__(self, ids: int) -> None:
        self.ids, self.rv = ids, 10
        self.versions: dict[int, list[Version]] = {}
        self.promised: dict[int, list[Observation | tuple[int, str]]] = {}
        """Observations that accepted writes had, by the number of their ConfigMap."""
        self.left_out: dict[Key, Mark] = {}
        """Newest outcome that a ConfigMap of a pair had left out when it was deleted by hand: who had seen it by then
        has dropped older outcomes as late."""

    def newest(self, number: int) -> Version | None:
        """Return what there is; None if there is nothing."""
        found = self.versions.get(number)
        return found[-1] if found and found[-1].shown is not None else None

    def carry_out(self, sent: SentWrite) -> Version | None:
        """Carry out a write; None if it is refused."""
        write, before = sent.write, self.newest(sent.write.number)
        if self.is_refused(before, write):
            return None
        self.rv += 1
        metadata = {**write.config_map["metadata"], "resourceVersion": str(self.rv)}
        shown = decode({**write.config_map, "metadata": metadata})
        assert shown is not None
        base = sent.base if sent.base is not None and _is_of(sent.base, shown) else None
        truths = dict(base.truths) if base is not None else {}
        for key, outcomes in sent.outcomes.items():
            truths[key] = truths.get(key, Truth()).with_outcomes(outcomes, self.ids)
        pods = {**sent.pods, **(base.pods if base is not None else {})}
        version = Version(self.rv, shown, {key: one for key, one in truths.items() if one.counted}, pods)
        self.versions.setdefault(write.number, []).append(version)
        if before is not None and not _is_of(before, shown):
            self.promised.pop(write.number, None)
        promised = self.promised.setdefault(write.number, [])
        promised += [one for outcomes in sent.outcomes.values() for one in outcomes]
        promised += sent.pods
        return version

    def is_refused(self, before: Version | None, write: StateWrite) -> bool:
        """Tell whether a write is of another version than there is; one of a deleted ConfigMap creates it."""
        if before is None or before.shown is None:
            return False
        return write.before is None or write.before.rv != before.shown.rv

    def delete(self, number: int) -> None:
        """Delete a ConfigMap by hand."""
        newest = self.newest(number)
        if newest is not None:
            for key, truth in newest.truths.items():
                self.left_out[key] = max(truth.left_out, self.left_out.get(key, truth.left_out))
            self.rv += 1
            self.versions[number].append(Version(self.rv, None))
            self.promised.pop(number, None)


def _is_of(version: Version, shown: LearnedState) -> bool:
    return version.shown is not None and version.shown.rule.identity == shown.rule.identity
