"""What to do next about certificates: a function of what is in the Secrets, and of who has taken what by now. Pure.

The authority is replaced without a failed call, because nobody is shown what he does not trust yet:

    introduce   replicas trust callers of both; schedulers roll, and trust replicas of both
    switch      the new one signs; replicas and schedulers' Secrets get new certificates
    narrow      schedulers roll, and know the new one only: whoever has started since then shows a new certificate
    forget      replicas trust the new one only

Each step but the last begins when all have taken the one before. One who never does (a scheduler of others that nobody
restarts) is named, and waited for until the old authority is about to expire: then waiting saves nobody.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fairlead.api.names import GROUP
from fairlead.pki import parsing
from fairlead.pki.authority import LEAF_LIFE, LIFE, Authority, Phase
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import Pair, belong_together
from fairlead.pki.leaf import renewal_reason

ROTATE: Final = f"{GROUP}/rotate"
"""An annotation on the authority's Secret, with any value: replace the authority. It goes when that has begun."""
ROTATED_AT: Final = 0.8
"""Of the authority's life."""
LATEST: Final[timedelta] = LEAF_LIFE
"""Before its end: certificates that it signs from then on live for less than they should."""


@dataclass(frozen=True, slots=True)
class SchedulerTrust:
    """What is known of one."""

    leaf: parsing.CertificateInfo | None = None
    """The certificate in its Secret."""
    bundle: str = ""
    """Which authorities are in its Secret: a digest."""
    started_with_ca: str = ""
    """Which authorities all of its pods were started with; empty: they differ, or nobody knows."""

    @property
    def is_ours(self) -> bool:
        """Whether one of our authorities has signed what its Secret holds."""
        return self.leaf is not None and bool(self.leaf.issuer)

    @classmethod
    def read(cls, data: Mapping[str, bytes] | None, authority: Authority, rolled: str) -> "SchedulerTrust":
        """From its Secret, which somebody may have spoilt: then it is as good as none."""
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
    """What one has answered."""

    trusts: str
    """Which authorities of callers: a digest."""
    issuer: str
    """The key of the authority that has signed what it shows."""


@dataclass(frozen=True, slots=True)
class Advance:
    """The authority has to be the next phase; `why` is for people."""

    phase: Phase
    why: str


@dataclass(frozen=True, slots=True)
class Issue:
    """Write a scheduler's Secret."""

    scheduler: str
    why: str


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Nothing is done until these have taken the last step."""

    phase: Phase
    replicas: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()

    def __str__(self) -> str:
        who = [f"{kind} {', '.join(names)}" for kind, names in self._kinds() if names]
        return f"the rotation of the authority ({self.phase}) waits for {' and '.join(who) or 'any replica to answer'}"

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
    """In this order. `replicas` are all pods of the operator, None for one that does not answer."""
    waits: WaitFor | None = None
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

    def has_taken(one: ReplicaTrust | None) -> bool:
        return one is not None and one.trusts == trusted and (phase is Phase.INTRODUCED or one.issuer == signing)

    def has_rolled(one: SchedulerTrust) -> bool:
        shows = one.leaf is not None and one.leaf.issuer == signing
        return (phase is Phase.SWITCHED or one.started_with_ca == known) and (phase is Phase.INTRODUCED or shows)

    late = tuple(sorted(name for name, one in replicas.items() if not has_taken(one)))
    behind = tuple(sorted(name for name, one in schedulers.items() if not has_rolled(one)))
    return WaitFor(phase, late, behind) if late or behind or not replicas else None
