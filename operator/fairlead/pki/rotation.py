"""Rotation of the authority: the next actions, as a function of the Secrets and of who completed which step. Pure.

The authority is replaced without a failed call, because no certificate is used before the other side trusts it:

    introduce   replicas trust callers of both authorities; schedulers roll, and trust replicas of both
    switch      the new authority signs; replicas and schedulers' Secrets get new certificates
    narrow      schedulers roll, and trust the new one only: pods that started since then use a new certificate
    forget      replicas trust the new one only

An authority of a clock that was ahead, so that it is not valid yet, is replaced at once: nothing trusts what it signs.

Each step starts when all have completed the one before. A scheduler that never does (a ConfigOnly one that is not
restarted) is named, and waited for until the old authority is about to expire: after that waiting does not help.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fairlead.api.names import GROUP
from fairlead.pki import parsing
from fairlead.pki.authority import LEAF_LIFE, LIFE, Authority, Phase, renewal_reason
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import Pair, belong_together

ROTATE: Final = f"{GROUP}/rotate"
"""Annotation on the authority's Secret, with any value: rotate the authority. It is removed at the start."""
ROTATED_AT: Final = 0.8
"""Part of the authority's lifetime after which it is rotated."""
LATEST: Final[timedelta] = LEAF_LIFE
"""Time before the end of the old authority at which nothing is waited for: its certificates get too short-lived."""

_NOT_VALID_YET: Final = "the authority is not valid yet: the clock was ahead"


@dataclass(frozen=True, slots=True)
class SchedulerTrust:
    """Certificate and trusted authorities of one scheduler."""

    leaf: parsing.CertificateInfo | None = None
    """The certificate in its Secret."""
    bundle: str = ""
    """Digest of the authorities in its Secret."""
    started_with_ca: str = ""
    """Digest of the authorities that all of its pods were started with; empty if they differ or are unknown."""

    @property
    def is_ours(self) -> bool:
        """True if one of our authorities signed its certificate."""
        return self.leaf is not None and bool(self.leaf.issuer)

    @classmethod
    def read(cls, data: Mapping[str, bytes] | None, authority: Authority, rolled: str) -> "SchedulerTrust":
        """Read the data of its Secret; unreadable data counts as none."""
        try:
            held = data or {}
            if not belong_together(Pair(held["tls.crt"], held["tls.key"])):
                return cls(started_with_ca=rolled)
            return cls(
                parsing.read_certificate(held["tls.crt"], [authority.client_ca_bundle]),
                parsing.digest(held["ca.crt"]),
                rolled,
            )
        except (KeyError, ValueError):
            return cls(started_with_ca=rolled)


@dataclass(frozen=True, slots=True)
class ReplicaTrust:
    """Trusted authorities and certificate of one replica."""

    trusts: str
    """Digest of the authorities by which it verifies callers."""
    issuer: str
    """Key of the authority that signed its certificate."""


@dataclass(frozen=True, slots=True)
class Advance:
    """Action: move the authority to the next phase; `why` is for logs."""

    phase: Phase
    why: str


@dataclass(frozen=True, slots=True)
class Issue:
    """Action: issue a scheduler's certificate."""

    scheduler: str
    why: str


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Action: wait until these have completed the current step."""

    phase: Phase
    replicas: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()

    def __str__(self) -> str:
        late = [f"{kind} {', '.join(names)}" for kind, names in self._kinds() if names]
        return f"the rotation of the authority ({self.phase}) waits for {' and '.join(late) or 'any replica to answer'}"

    def _kinds(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("replicas", self.replicas), ("schedulers", self.schedulers)


Action = Advance | Issue | WaitFor


def plan(
    authority: Authority,
    schedulers: Mapping[str, SchedulerTrust],
    replicas: Mapping[str, ReplicaTrust | None],
    now: datetime,
    *,
    requested: bool = False,
) -> tuple[Action, ...]:
    """Return the next actions, in order. `replicas` has all pods of the operator; one that does not answer is None."""
    waits: WaitFor | None = None
    if authority.next is not None and now < parsing.read_certificate(authority.next.certificate).begins:
        return (Advance(Phase.INTRODUCED, "the next authority is not valid yet: the clock was ahead"),)
    if now < parsing.read_certificate(authority.signing.certificate).begins:
        return (Advance(Phase.INTRODUCED if authority.next is None else Phase.SWITCHED, _NOT_VALID_YET),)
    if authority.phase is Phase.STABLE:
        if why := _why_rotate(authority, now, requested=requested):
            return (Advance(Phase.INTRODUCED, why),)
    else:
        after = _AFTER[authority.phase]
        waits = _waits(authority, schedulers, replicas)
        if waits is None:
            return (Advance(after, f"all have completed the step {authority.phase}"),)
        if now >= parsing.read_certificate(authority.leaving).ends - LATEST:
            return (Advance(after, f"the old authority expires; {waits}"),)
    return (*_issues(authority, schedulers, now), *([waits] if waits else []))


_AFTER: Final = {
    Phase.INTRODUCED: Phase.SWITCHED,
    Phase.SWITCHED: Phase.NARROWED,
    Phase.NARROWED: Phase.STABLE,
}


def _why_rotate(authority: Authority, now: datetime, *, requested: bool) -> str:
    ends = parsing.read_certificate(authority.signing.certificate).ends
    if requested:
        return f"the annotation {ROTATE} requests it"
    return f"the authority expires on {ends:%Y-%m-%d}" if now >= ends - LIFE * (1 - ROTATED_AT) else ""


def _issues(authority: Authority, schedulers: Mapping[str, SchedulerTrust], now: datetime) -> Iterator[Issue]:
    known = parsing.digest(authority.server_ca_bundle)
    for name, one in sorted(schedulers.items()):
        why = renewal_reason(one.leaf, authority, scheduler_identity(name), frozenset(), now)
        if not why and one.bundle != known:
            why = "the trusted authorities changed"
        if why:
            yield Issue(name, why)


def _waits(
    authority: Authority, schedulers: Mapping[str, SchedulerTrust], replicas: Mapping[str, ReplicaTrust | None]
) -> WaitFor | None:
    trusted, known = parsing.digest(authority.client_ca_bundle), parsing.digest(authority.server_ca_bundle)
    signing = parsing.read_certificate(authority.signing.certificate).key
    phase = authority.phase

    def has_taken(replica: ReplicaTrust | None) -> bool:
        return (
            replica is not None
            and replica.trusts == trusted
            and (phase is Phase.INTRODUCED or replica.issuer == signing)
        )

    def has_rolled(scheduler: SchedulerTrust) -> bool:
        shows = scheduler.leaf is not None and scheduler.leaf.issuer == signing
        return (phase is Phase.SWITCHED or scheduler.started_with_ca == known) and (phase is Phase.INTRODUCED or shows)

    late = tuple(sorted(name for name, one in replicas.items() if not has_taken(one)))
    behind = tuple(sorted(name for name, one in schedulers.items() if not has_rolled(one)))
    return WaitFor(phase, late, behind) if late or behind or not replicas else None
