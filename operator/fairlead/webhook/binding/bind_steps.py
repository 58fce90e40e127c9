"""Binds in two steps: what is promised is committed first, then a Binding is posted that names the version of the pod.

Promised are devices of the node, and that it is in the domain of the pod's group. Between the steps may be minutes. A
pod that is promised nothing may take them as well: then only its version is noted. Whatever happens after an entry was
written, the entry stays until it is over: a Binding whose outcome is not known may arrive later, and then finds its
devices reserved, and its group in this domain.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from fairlead.grants.commit import Accepted, DeviceRequest, GrantRequest, Refused, StalePod
from fairlead.grants.entry import LedgerEntry, copies
from fairlead.grants.entry_state import Gone, PodState
from fairlead.grants.group_domain import DomainRequest, RequiredDomain
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.api_calls import (
    Conflicting,
    Failed,
    LedgerCalls,
    Missing,
    PodViews,
    Posted,
    TimeLeft,
    Uncertain,
)
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender.bind import NAME_TAKEN, POD_GONE, binding_of, bound_elsewhere

TRIES: Final = 4
"""The first one, and three after a change of the pod."""
NO_DOMAINS: Final = "this process keeps no domains of groups"
CHANGED: Final = "labels or annotations of the pod have changed since it was filtered"


class Committed(Struct, frozen=True):
    """Version of a pod at which it may be bound, with the entry that reserves its devices there."""

    rv: str
    entry: LedgerEntry | None = None
    """None if it requests no devices."""
    has_domain: bool = False
    """Whether an entry keeps the domain of its group."""

    @property
    def has_entries(self) -> bool:
        """Return whether anything was promised."""
        return self.entry is not None or self.has_domain


class Bound(Struct, frozen=True):
    """Result that the pod is on the node."""

    entry: LedgerEntry | None
    """Its grant; None if it requests no devices, or if the Binding was an earlier one, and the ledger has the grant."""


class NotBound(Struct, frozen=True):
    """Result that is an error for the scheduler. The Binding may arrive nevertheless."""

    why: str
    may_stand: bool = False
    """True if for this version of the pod an entry may stand in the ledger, or a Binding may be on its way."""


BindResult: TypeAlias = Bound | NotBound
_CHANGED_AGAIN: Final = NotBound("the pod was changed again and again", may_stand=True)


class PodDevices(DeviceRequest, Protocol):
    """Devices for the pod of one bind: what policies want of them, and what the Binding tells of them.

    A pod that requests none has an empty `ask`, and is not looked up in a ledger.
    """

    def is_for(self, state: PodState, /) -> bool:
        """Return whether the pod is, at this version, the one that policies have decided about."""

    def annotations(self, entry: LedgerEntry | None, /) -> Mapping[str, str]:
        """Return what the Binding bears beside the copies of the grant."""


class PodBind(Struct, frozen=True, eq=False):
    """Call of a scheduler for a pod that is bound in two steps."""

    uid: str
    pod: str
    node: str
    devices: PodDevices
    poster: Poster
    decided_at: str = ""
    """Version of the pod that policies have decided about: only views that show it are believed. Empty: all are."""
    domains: Sequence[RequiredDomain] = ()
    """At most one of each group."""

    @property
    def wants_entries(self) -> bool:
        """Return whether anything is to be promised."""
        return bool(self.devices.ask or self.domains)


class Budget:
    """Time of a call: the last quarter is kept for the Binding, which is what the ledger is written for."""

    def __init__(self, clock: Callable[[], float], total_s: float) -> None:
        self._clock, self._binding_s = clock, total_s / 4
        self._ends = clock() + total_s

    @classmethod
    def until(cls, deadline_ns: int, clock_ns: Callable[[], int]) -> "Budget":
        """Return what is left from now until a deadline."""
        return cls(lambda: clock_ns() / SECOND_NS, (deadline_ns - clock_ns()) / SECOND_NS)

    def left_s(self) -> float:
        """Return the seconds that are left of the call."""
        return self._ends - self._clock()

    def commit_left_s(self) -> float:
        """Return the seconds that are left to write the ledger."""
        return self.left_s() - self._binding_s


class BindSteps:
    """Steps of binds: commit a version of the pod, and post its Binding; both once more if the pod has changed."""

    def __init__(self, ledgers: LedgerWriter[GrantRequest], server: LedgerCalls, views: PodViews) -> None:
        self._ledgers, self._server, self._views = ledgers, server, views
        self.domains: LedgerWriter[DomainRequest] | None = None
        """Writer of the ledgers of groups, in a process that keeps their domains."""

    async def bind(self, call: PodBind, budget: Budget, committed: Committed | None = None) -> BindResult:
        """Take both steps; only the second one for what was committed before, unless the pod has changed."""
        state = self._shown(call)
        for _ in range(TRIES):
            made = committed if committed is not None else await self._try_to_commit(call, state, budget)
            result = await self.post(call, made, budget.left_s) if isinstance(made, Committed) else made
            if not isinstance(result, StalePod):
                return result
            state = committed = None
        return _CHANGED_AGAIN

    async def commit(self, call: PodBind, budget: Budget) -> Committed | BindResult:
        """Take the first step, or return why the second one is not to be taken."""
        state = self._shown(call)
        for _ in range(TRIES):
            made = await self._try_to_commit(call, state, budget)
            if not isinstance(made, StalePod):
                return made
            state = None
        return _CHANGED_AGAIN

    @staticmethod
    async def post(call: PodBind, committed: Committed, left_s: TimeLeft) -> BindResult | StalePod:
        """Take the second step, once; StalePod if the pod is to be read, and committed at another version."""
        outcome = await call.poster.post(committed_binding(call, committed), left_s)
        if isinstance(outcome, Posted):
            return Bound(committed.entry)
        if isinstance(outcome, Missing):
            return NotBound(POD_GONE)
        if isinstance(outcome, Conflicting):
            return StalePod()
        return NotBound(outcome.why, may_stand=committed.has_entries or isinstance(outcome, Uncertain))

    def _shown(self, call: PodBind) -> PodState | None:
        """Return the pod as views show it; None if it has to be read."""
        shown = self._views.pod(call.pod)
        if shown is None or shown.uid != call.uid:
            return None
        return shown if call.decided_at in ("", shown.rv) or shown.node else None

    async def _try_to_commit(
        self, call: PodBind, state: PodState | None, budget: Budget
    ) -> Committed | BindResult | StalePod:
        """Take the first step once, with the pod as it is read unless a state is given."""
        if state is None:
            found = await self._server.read_pod(call.pod, budget.left_s())
            if isinstance(found, Failed):
                return NotBound(found.why)
            if isinstance(found, Gone) or found.uid != call.uid:
                return NotBound(NAME_TAKEN if isinstance(found, PodState) else POD_GONE)
            state = found
        if state.node:
            return Bound(None) if state.node == call.node else NotBound(bound_elsewhere(state.node))
        if state.ended:
            return NotBound("the pod has ended")
        if not call.devices.is_for(state):
            return NotBound(CHANGED)
        return await self._promise(call, state, budget)

    async def _promise(self, call: PodBind, state: PodState, budget: Budget) -> Committed | NotBound | StalePod:
        """Have entries written for this version of the pod: devices first, so that none pins a domain without them."""
        made = Committed(state.rv)
        if call.devices.ask:
            request = GrantRequest(state.uid, state.pod, state.rv, call.devices)
            answer = await self._ledgers.commit(call.node, request, budget.commit_left_s)
            if not isinstance(answer, Accepted):
                return _not_promised(answer, made)
            made = Committed(state.rv, answer.entry)
        for one in call.domains:
            if self.domains is None:
                return NotBound(NO_DOMAINS, may_stand=made.has_entries)
            wanted = DomainRequest(state.uid, state.pod, state.rv, one.by, one.domain)
            answer = await self.domains.commit(one.group, wanted, budget.commit_left_s)
            if not isinstance(answer, Accepted):
                # An entry of this version may stand for a domain that the scheduler has left meanwhile.
                return _not_promised(answer, Committed(state.rv, made.entry, has_domain=True))
            made = Committed(state.rv, made.entry, has_domain=True)
        return made


def _not_promised(answer: Refused | StalePod | Failed, before: Committed) -> NotBound | StalePod:
    """Return why there is no entry; those that were written before stand until the pod changes."""
    if isinstance(answer, StalePod):
        return answer
    return NotBound(answer.why, may_stand=before.has_entries or isinstance(answer, Failed))


def committed_binding(call: PodBind, committed: Committed) -> dict[str, Any]:
    """Return the Binding: it bears the UID, the version and the grant that were committed, and nothing else does."""
    entry = committed.entry
    annotations = {**call.devices.annotations(entry), **({} if entry is None else copies(entry.grant))}
    return binding_of(call.pod, call.uid, call.node, annotations, committed.rv)
