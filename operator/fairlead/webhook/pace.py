"""Policies that are too slow: one that misses the deadline twice in a minute is switched to its failure policy.

On this replica only, until its next generation or for five minutes. What it does before a pod has a node (filter and
preempt) and what it does after (scores) are switched apart: a scheduler goes on without scores whatever is wrong with
them, so that they have no failure policy, and nobody refuses a pod because a score is slow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from fairlead.policy.compiled import CompiledPolicy

REASON: Final = "TooSlow"
_SECOND: Final = 1_000_000_000
WINDOW: Final = 60 * _SECOND
PAUSE: Final = 300 * _SECOND

Part = Literal["gate", "scores"]


class Version(NamedTuple):
    """A policy as it is written; another one of that name, or another generation, starts afresh."""

    name: str
    uid: str
    generation: str


def version(policy: CompiledPolicy) -> Version:
    """Which one it is."""
    return Version(policy.name, policy.uid, policy.generation)


@dataclass(slots=True, eq=False)
class Pace:
    """Who missed deadlines. Moments are nanoseconds of a clock that never goes back."""

    _missed: dict[tuple[Version, Part], int] = field(default_factory=dict)  # when last
    _until: dict[tuple[Version, Part], int] = field(default_factory=dict)

    def missed(self, policy: CompiledPolicy, part: Part, at: int) -> bool:
        """A policy was too slow; whether it is switched now."""
        self._missed = {key: when for key, when in self._missed.items() if at - when < WINDOW}
        key = (version(policy), part)
        if key in self._missed:
            self._until[key] = at + PAUSE
            return True
        self._missed[key] = at
        return False

    def is_slow(self, policy: CompiledPolicy, part: Part, at: int) -> bool:
        """Whether the policy is switched."""
        return bool(self._until) and self._until.get((version(policy), part), at) > at

    def slow(self, at: int) -> Mapping[tuple[Version, Part], int]:
        """Which are, and until when, for the status; what has passed is forgotten."""
        self._until = {key: until for key, until in self._until.items() if until > at}
        return self._until
