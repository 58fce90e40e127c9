"""Times of all that happens during a soak: pure.

In an hour and more a policy is edited each minute, the leader is killed each ten minutes, and ten minutes are what is
compared. In less than an hour all of that is shorter in proportion, so that each thing still happens as often as in an
hour. The authority is rotated twice and the API server restarted twice, however long it lasts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HOUR_S: Final = 3600.0
_EDIT_S: Final = 60.0
_KILL_S: Final = 600.0
_SAMPLE_S: Final = 10.0
_SAMPLE_LEAST_S: Final = 2.0
_ROTATED_AT: Final = (0.19, 0.66)
_RESTARTED_AT: Final = (0.24, 0.72)
"""Parts of the whole: neither in the first ten minutes of an hour nor in the last, which are compared.

They are close to each other: schedulers roll when the authority is rotated, and start anew when they cannot renew their
Lease. Between and after that they live long enough to be judged.
"""


class Disturbance(StrEnum):
    """Kinds of disturbances."""

    EDIT = "edit of a policy"
    KILL = "leader killed"
    ROTATE = "rotation of the authority"
    RESTART = "restart of the API server"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One, for a soak of so many seconds."""

    lasts_s: float
    window_s: float
    """Begin and end of what is compared: ten minutes, in an hour and more."""
    sample_s: float
    steps: tuple[tuple[float, Disturbance], ...]
    """Seconds since the begin, in order."""

    def count(self, step: Disturbance) -> int:
        """Return how often something happens."""
        return sum(what == step for _, what in self.steps)


def schedule(lasts_s: float) -> Schedule:
    """Plan a soak."""
    scale = min(1.0, lasts_s / HOUR_S)
    window_s = _KILL_S * scale
    last = lasts_s - window_s
    steps = [
        *_each(_EDIT_S * scale, until=lasts_s - _EDIT_S * scale, step=Disturbance.EDIT),
        *_each(window_s, until=last, step=Disturbance.KILL),
        *((part * lasts_s, Disturbance.ROTATE) for part in _ROTATED_AT),
        *((part * lasts_s, Disturbance.RESTART) for part in _RESTARTED_AT),
    ]
    return Schedule(lasts_s, window_s, max(_SAMPLE_LEAST_S, _SAMPLE_S * scale), tuple(sorted(steps)))


def _each(every_s: float, *, until: float, step: Disturbance) -> Iterator[tuple[float, Disturbance]]:
    for number in range(1, int(until / every_s + 1e-9) + 1):
        yield number * every_s, step
