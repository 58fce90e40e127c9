"""Judgement of a soak: pure. Each finding is what was measured, its bound, and whether it keeps to it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from support.soak.processes import LEADER, Life, typical

MEMORY_MAX: Final = 1.05
"""Resident memory at the end, as a part of that after ten minutes."""
P99_MAX: Final = 1.1
"""Slowest of a hundred calls of filter in the last ten minutes, as a part of the first ten."""
KEPT_PODS: Final = 10_000
"""Pods that a replica keeps records of: its memory grows until it has seen as many, and no further."""
PASSING: Final = ("events", "masterleases")
"""Objects that their own age ends."""
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    what: str
    first: float
    last: float
    limit: str
    """The bound, for people."""
    is_kept: bool
    unit: str = ""

    @property
    def ratio(self) -> float:
        """Last as a part of first."""
        return self.last / self.first if self.first else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that was seen."""

    settled_s: float
    """Age at which a process is looked at first."""
    leads_s: float
    """Time since it began to lead at which the leader is looked at first: it is killed soon."""
    full_s: float
    """Age at which a replica has seen as many pods as it keeps records of."""
    roles: Sequence[str]
    """Of each, at least one process must have lived long enough."""
    lives: Sequence[Life]
    p99_first_ms: float
    p99_last_ms: float
    keys_before: Mapping[str, int]
    """Objects in etcd, by kind, before the first pod came."""
    keys_after: Mapping[str, int]
    """The same after the last pod has gone."""
    living: Mapping[str, int]
    """Objects of these that belong to something that lives, and were not there before."""
    grants: int
    """Entries of the longest ledger, after the last pod has gone: the next grant on a node removes what is over."""
    grants_max: int
    """Pods that fit on the devices of a node at a time."""
    pods: Mapping[str, int]
    """Number of pods with which something is wrong, by what it is."""
    late: Sequence[str] = ()
    """What was waited for in vain after the end."""
    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """How often each thing was to happen, and how often it has."""

    def settled_of(self, life: Life) -> float:
        """Return the age at which a process is looked at first in its role."""
        return self.leads_s if life.role == LEADER else self.settled_s


def judge(seen: Observed) -> list[Finding]:
    """Return all findings."""
    return [*_of_processes(seen), *_of_calls(seen), *_of_etcd(seen), *_of_pods(seen), *_of_steps(seen)]


def _of_processes(seen: Observed) -> Iterator[Finding]:
    # On a busy machine the first window of a short run may pass without a look at a process.
    judged = [one for one in seen.lives if one.is_long(seen.settled_of(one)) and one.early(seen.settled_of(one))]
    for life in judged:
        settled_s = seen.settled_of(life)
        late = life.late(settled_s)
        yield _memory(life, settled_s, settled_s if life.role == LEADER else max(settled_s, seen.full_s))
        if life.role == LEADER:
            yield from (_step(one, life, seen) for one in judged if one.process == life.process and one is not life)
        # A replica that the leading scheduler calls opens what another one had before.
        early = [sample for one in judged if one.role == life.role for sample in one.early(settled_s)]
        yield _no_growth(f"{life.name}: files", [one.files for one in early], [one.files for one in late])
        yield _no_growth(f"{life.name}: connections", [one.sockets for one in early], [one.sockets for one in late])
    for role in seen.roles:
        count = sum(one.role == role for one in judged)
        yield Finding(f"{role}: processes that lived long enough", math.nan, count, ">= 1", count >= 1)


def _memory(life: Life, settled_s: float, full_s: float) -> Finding:
    """Compare its memory with that of when it was full; a life that was too short for that is only told of."""
    is_judged = life.is_long(full_s) and bool(life.early(full_s))
    first, last = (
        typical(one.rss for one in part)
        for part in (life.early(full_s if is_judged else settled_s), life.late(settled_s))
    )
    limit = f"<= {MEMORY_MAX:g} times" if is_judged else "told only: not full for long"
    is_kept = not is_judged or last <= MEMORY_MAX * first
    return Finding(f"{life.name}: resident", first / _MIB, last / _MIB, limit, is_kept, "MiB")


def _step(follower: Life, leader: Life, seen: Observed) -> Finding:
    """Compare the memory of a leader with its own before it led."""
    first = typical(one.rss for one in follower.late(seen.settled_s))
    last = typical(one.rss for one in leader.early(seen.leads_s))
    limit, is_kept = f"<= {MEMORY_MAX:g} times", last <= MEMORY_MAX * first
    return Finding(f"{leader.name}: resident, and before it led", first / _MIB, last / _MIB, limit, is_kept, "MiB")


def _no_growth(what: str, early: Sequence[int], late: Sequence[int]) -> Finding:
    """Compare the fewest of the end with the most of its role before: what is lost for good is there all the time."""
    first, last = max(early), min(late)
    return Finding(what, first, last, "no more", last <= first)


def _of_calls(seen: Observed) -> Iterator[Finding]:
    is_kept = seen.p99_last_ms <= P99_MAX * seen.p99_first_ms  # of no calls at all, nothing is kept to
    yield Finding("filter, p99", seen.p99_first_ms, seen.p99_last_ms, f"<= {P99_MAX:g} times", is_kept, "ms")


def _of_etcd(seen: Observed) -> Iterator[Finding]:
    for kind in sorted(seen.keys_before.keys() | seen.keys_after.keys()):
        before, after = seen.keys_before.get(kind, 0), seen.keys_after.get(kind, 0)
        most = before + seen.living.get(kind, 0)
        if kind in PASSING:
            yield Finding(f"etcd: {kind}", before, after, "-", is_kept=True)
        elif after != before:
            yield Finding(f"etcd: {kind}", before, after, f"<= {most}", after <= most)
    first, last = (sum(count for kind, count in keys.items() if kind not in PASSING) for keys in _keys(seen))
    most = first + sum(seen.living.values())
    yield Finding("etcd: all that do not pass", first, last, f"<= {most}, with those of the living", last <= most)
    limit = f"<= {seen.grants_max}, what fits on a node"
    yield Finding("entries of the longest ledger", math.nan, seen.grants, limit, seen.grants <= seen.grants_max)


def _keys(seen: Observed) -> tuple[Mapping[str, int], Mapping[str, int]]:
    return seen.keys_before, seen.keys_after


def _of_pods(seen: Observed) -> Iterator[Finding]:
    for what, count in seen.pods.items():
        yield _none(f"pods {what}", count)


def _of_steps(seen: Observed) -> Iterator[Finding]:
    for what, (planned, done) in seen.steps.items():
        yield Finding(f"{what}: as planned, and done", planned, done, f"{planned}", done == planned)
    yield from (_none(what, 1) for what in seen.late)


def _none(what: str, count: int) -> Finding:
    return Finding(what, math.nan, count, "0", count == 0)
