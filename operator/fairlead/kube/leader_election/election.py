"""What a replica does next about the Lease: a function of what it has seen, and of its own clock. Pure.

Nobody compares times of different machines. A leader acts until `act_s` after it *asked for* the last renewal that was
confirmed; another replica takes the Lease `lease_s` after it *saw* it change for the last time. The first begins
before the second and is shorter, so that two never act at once while no clock runs half as fast again as another. Each
write names the version that it replaces: of two that take the Lease one is refused.
"""

from dataclasses import dataclass, replace
from typing import Final

_NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """How long what lasts, in seconds."""

    lease_s: float = 15.0
    """Others leave a Lease alone that has changed within this time."""
    act_s: float = 10.0
    """A leader whose renewals fail goes on for so long."""
    retry_s: float = 2.0
    """Between one request and the next."""
    absent_s: float | None = None
    """A Lease that is not there is left alone for so long: its holder makes it again. None: as one that is there."""

    @property
    def request_s(self) -> float:
        """What a request may take: one that hangs leaves time for two others."""
        return self.act_s / 3


@dataclass(frozen=True, slots=True)
class Record:
    """The Lease, as the API server has it."""

    version: str
    holder: str
    """Empty: it was released."""
    lease_s: float
    transitions: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Read:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Take the Lease, or renew it."""

    version: str
    """What it replaces; empty: there is none yet."""
    transitions: int
    taking: bool


@dataclass(frozen=True, slots=True)
class Resign:
    """It could not be renewed in time, or another has it: stop what only a leader may do."""


@dataclass(frozen=True, slots=True)
class Release:
    """Everything has stopped in good order: let another have it at once."""

    version: str
    transitions: int


@dataclass(frozen=True, slots=True)
class Done:
    """There is nothing more to do."""


Step = Wait | Read | Write | Resign | Release | Done


@dataclass(frozen=True, slots=True)
class Election:
    """What one replica knows."""

    me: str
    timings: LeaseTimings = LeaseTimings()
    until: float | None = None
    """It leads, and acts until then; None: it is a candidate."""
    record: Record | None = None
    """As last seen; None: there was none."""
    fresh: bool = False
    """Whether `record` may be written over; if not, it has to be looked at first."""
    free_at: float = _NEVER
    """When `record` may be taken, if it is not seen to change before."""
    at: float = _NEVER
    """When the next request is due."""

    def next(self, now: float, *, ended: bool, stopping: bool) -> Step:
        """The next step. `ended`: nothing goes on of what was begun as a leader; `stopping`: we are to leave."""
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
        """A look, or what it comes to: the Lease as it is; None: there is none."""
        free_at = self.free_at
        if record is None:
            # It was deleted, perhaps just before we came, or after somebody took it whom we did not see take it.
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
        """A write was confirmed that was begun at `sent`: what came before that does not count."""
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
        """A request was refused, or came to nothing that is known: the Lease may be another by now."""
        return replace(self, fresh=False, at=now + self.timings.retry_s)

    def resigned(self, now: float) -> "Election":
        """A candidate like the others again."""
        return replace(self.failed(now), until=None)

    def _write(self) -> Write:
        if self.record is None:
            return Write("", 0, taking=self.until is None)
        changes_hands = self.record.holder != self.me
        return Write(self.record.version, self.record.transitions + changes_hands, taking=self.until is None)

    def _is_written_over(self, record: Record) -> bool:
        """Whether it is ours, from before a restart or by a write whose answer was lost: then nobody else has it.

        One that we made proves nothing: that may have come late, after another had made one that was deleted.
        """
        seen = self.record
        if record.holder != self.me:
            return False
        if seen is None:
            return self.free_at == _NEVER  # we have asked for nothing yet
        return record.transitions == seen.transitions + (seen.holder != self.me)

    def _stays_away(self) -> float:
        if self.timings.absent_s is not None:
            return self.timings.absent_s
        return max(self.timings.lease_s, self.record.lease_s if self.record is not None else 0.0)

    def _lasts(self, record: Record) -> float:
        """Its holder may be of another version, with other terms."""
        return record.lease_s if record.lease_s > 0 else self.timings.lease_s
