"""Memory, files and connections of processes while they live: pure.

A process that was killed or rolled is compared with itself: at the end of its life, and when it was ten minutes old.
A replica that becomes the leader does more from then on: that is another role, and a life of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

FOLLOWER: Final = "operator"
LEADER: Final = "operator that leads"
_ENOUGH: Final = 1.5
"""A life is judged if it was that much longer than the time after which it is looked at first."""
_PART: Final = 0.2
"""Of that time: so long are the two stretches that are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """One process at one moment."""

    at_s: float
    """Since the soak began."""
    role: str
    """Such as `operator`: one of several that are to do the same."""
    pod: str
    pid: int
    rss: int
    """Bytes."""
    files: int
    """Open file descriptors that are no sockets."""
    sockets: int


@dataclass(frozen=True, slots=True)
class Life:
    """All samples of one process, in order."""

    samples: Sequence[ProcessSample]

    @property
    def role(self) -> str:
        """Role of the process."""
        return self.samples[0].role

    @property
    def name(self) -> str:
        """Name, for people."""
        return f"{self.role} {self.samples[0].pod}, process {self.samples[0].pid}"

    @property
    def process(self) -> tuple[str, int]:
        """The process: its pod, and its number there."""
        return self.samples[0].pod, self.samples[0].pid

    @property
    def begun_s(self) -> float:
        """Time of the first sample."""
        return self.samples[0].at_s

    @property
    def ended_s(self) -> float:
        """Time of the last sample."""
        return self.samples[-1].at_s

    def is_long(self, settled_s: float) -> bool:
        """Return whether it lived long enough to be judged, if it is compared with itself at that age."""
        return self.ended_s - self.begun_s >= _ENOUGH * settled_s

    def early(self, settled_s: float) -> Sequence[ProcessSample]:
        """Return the samples from that age on, for a while."""
        since = self.begun_s + settled_s
        until = since + _PART * settled_s
        return [one for one in self.samples if since <= one.at_s <= until]

    def late(self, settled_s: float) -> Sequence[ProcessSample]:
        """Return the last samples, of a while as long."""
        since = self.ended_s - _PART * settled_s
        return [one for one in self.samples if one.at_s >= since]


def lives(samples: Iterable[ProcessSample]) -> list[Life]:
    """Return the lives of all processes in each of their roles, in the order in which they began."""
    by_role: dict[tuple[str, int, str], list[ProcessSample]] = {}
    for one in samples:
        by_role.setdefault((one.pod, one.pid, one.role), []).append(one)
    return [Life(each) for each in by_role.values()]


def typical(values: Iterable[int]) -> float:
    """Return the median."""
    return float(median(values))
