"""Leader election: what a replica does next about the Lease, as a function of what it saw and of its own clock. Pure.

Times of different machines are never compared. A leader acts until `act_s` after it *sent* the last renewal that was
confirmed; another replica takes the Lease `lease_s` after it *saw* it change for the last time. The first period starts
earlier and is shorter, so two replicas never act at once unless one clock runs half as fast again as the other. Each
write names the version that it replaces: if two replicas take the Lease, one is rejected.
"""

from dataclasses import dataclass, replace
from typing import Final

_NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """Durations of the election, in seconds."""

    lease_s: float = 15.0
    """How long other replicas leave a Lease alone after its last change."""
    act_s: float = 10.0
    """How long a leader continues if renewals fail."""
    retry_s: float = 2.0
    """Time between two requests."""
    absent_s: float | None = None
    """How long a deleted Lease is left alone: its holder creates it again. None: as long as an existing one."""

    @property
    def request_s(self) -> float:
        """Return the timeout of a request: one that hangs leaves time for two others."""
        return self.act_s / 3


@dataclass(frozen=True, slots=True)
class Record:
    """State of the Lease in the API server."""

    version: str
    holder: str
    """Identity of the holder; "" if the Lease was released."""
    lease_s: float
    transitions: int = 0
    address: str = ""
    """Address at which other replicas call the holder; "" if it named none."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Step: do nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Read:
    """Step: read the Lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Step: take the Lease, or renew it."""

    version: str
    """The version it replaces; "" to create the Lease."""
    transitions: int
    taking: bool


@dataclass(frozen=True, slots=True)
class Resign:
    """Step: stop leading, because the Lease was not renewed in time or has another holder."""


@dataclass(frozen=True, slots=True)
class Release:
    """Step: release the Lease, after the leader's work has stopped, so that another replica can take it at once."""

    version: str
    transitions: int


@dataclass(frozen=True, slots=True)
class Done:
    """Step: end the election."""


ElectionStep = Wait | Read | Write | Resign | Release | Done


@dataclass(frozen=True, slots=True)
class Election:
    """State of the election in one replica."""

    me: str
    timings: LeaseTimings = LeaseTimings()
    until: float | None = None
    """Until when this replica leads; None while it is a candidate."""
    record: Record | None = None
    """The Lease as last seen; None if there was none."""
    fresh: bool = False
    """Whether `record` is current and may be replaced; if not, the Lease has to be read first."""
    free_at: float = _NEVER
    """When the Lease may be taken, unless it changes before."""
    at: float = _NEVER
    """When the next request is due."""

    def next(self, now: float, *, ended: bool, stopping: bool) -> ElectionStep:
        """Return the next step. `ended`: no work of a leader is running; `stopping`: the replica is shutting down."""
        if self.until is not None:
            if now >= self.until:
                return Resign()
            if stopping and ended:
                return Release(self.record.version, self.record.transitions) if self.record and self.fresh else Done()
            if now < self.at:
                return Wait(min(self.at, self.until) - now)
            return self._write() if self.fresh else Read()
        if stopping:
            return Done()
        if self.fresh and ended and now >= self.free_at:
            return self._write()
        if now >= self.at:
            return Read()
        soonest = min(self.at, self.free_at) if self.fresh and ended else self.at
        return Wait(soonest - now)

    def after_read(self, record: Record | None, now: float) -> "Election":
        """Return the state after the Lease was read; None if it does not exist."""
        free_at = self.free_at
        if record is None:
            # It was deleted, perhaps just before this replica started, or after a holder took it unseen.
            if self.record is not None or free_at == _NEVER:
                free_at = now + self._stays_away()
        elif self.record is None or record.version != self.record.version:
            free = not record.holder or self._is_written_over(record)
            free_at = _NEVER if free else now + self._lasts(record)
        leads = self.until is not None
        lost = leads and record is not None and record.holder != self.me
        return replace(
            self,
            until=now if lost else self.until,
            record=record,
            fresh=True,
            free_at=free_at,
            at=now if leads else now + self.timings.retry_s,
        )

    def after_write(self, record: Record, sent: float, now: float) -> "Election":
        """Return the state after a write was confirmed that was sent at `sent`."""
        until = sent + self.timings.act_s
        leads = self.until is not None or now < until
        return replace(
            self,
            until=until if leads else None,
            record=record,
            fresh=True,
            free_at=_NEVER,
            at=sent + self.timings.retry_s,
        )

    def failed(self, now: float) -> "Election":
        """Return the state after a request failed: the Lease may have changed."""
        return replace(self, fresh=False, at=now + self.timings.retry_s)

    def resigned(self, now: float) -> "Election":
        """Return the state after leading has stopped: a candidate again."""
        return replace(self.failed(now), until=None)

    def _write(self) -> Write:
        if self.record is None:
            return Write("", 0, taking=self.until is None)
        changes_hands = self.record.holder != self.me
        return Write(self.record.version, self.record.transitions + changes_hands, taking=self.until is None)

    def _is_written_over(self, record: Record) -> bool:
        """Return whether the Lease is ours, from before a restart or by a write whose reply was lost.

        A Lease that we created proves nothing: that request may have arrived late, after another replica's Lease was
        deleted.
        """
        seen = self.record
        if record.holder != self.me:
            return False
        if seen is None:
            return self.free_at == _NEVER  # this replica has sent no request yet
        return record.transitions == seen.transitions + (seen.holder != self.me)

    def _stays_away(self) -> float:
        if self.timings.absent_s is not None:
            return self.timings.absent_s
        return max(self.timings.lease_s, self.record.lease_s if self.record is not None else 0.0)

    def _lasts(self, record: Record) -> float:
        """Return how long the Lease is valid; its holder may use other timings."""
        return record.lease_s if record.lease_s > 0 else self.timings.lease_s
