"""Bind with grants: the entry first, then the Binding that names the entry's version of the pod.

Whatever happens after the entry was written, the entry stays until it is over: a Binding whose outcome is not known may
arrive later, and then finds its devices reserved.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from fairlead.grants.commit import Accepted, DeviceRequest, GrantRequest, StalePod
from fairlead.grants.entry import LedgerEntry, copies
from fairlead.grants.entry_state import Gone, PodState
from fairlead.webhook.binding.api_calls import Conflicting, Failed, LedgerCalls, Missing, Posted, Views
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender.bind import NAME_TAKEN, POD_GONE, binding_of, bound_elsewhere

TRIES: Final = 4
"""The first one, and three after a change of the pod."""
CHANGED: Final = "labels or annotations of the pod have changed since it was filtered"


class Bound(Struct, frozen=True):
    """Result that the pod is on the node."""

    entry: LedgerEntry | None
    """Its grant; None if the Binding was an earlier one, and the ledger has the grant."""


class NotBound(Struct, frozen=True):
    """Result that is an error for the scheduler. The Binding may arrive nevertheless."""

    why: str
    entry_may_stand: bool = False
    """Whether an entry may stand in the ledger for this version of the pod."""


BindResult: TypeAlias = Bound | NotBound


class PodDevices(DeviceRequest, Protocol):
    """Devices for the pod of one bind: what policies want of them, and what the Binding tells of them."""

    def is_for(self, state: PodState, /) -> bool:
        """Return whether the pod is, at this version, the one that policies have decided about."""

    def annotations(self, entry: LedgerEntry, /) -> Mapping[str, str]:
        """Return what the Binding bears beside the copies of the grant."""


class GrantedBind(Struct, frozen=True, eq=False):
    """Call of a scheduler for a pod that requests devices."""

    uid: str
    pod: str
    node: str
    devices: PodDevices
    poster: Poster


class Budget:
    """Time of a call: the last quarter is kept for the Binding, which is what the ledger is written for."""

    def __init__(self, clock: Callable[[], float], total_s: float) -> None:
        self._clock, self._binding_s = clock, total_s / 4
        self._ends = clock() + total_s

    def left_s(self) -> float:
        """Return the seconds that are left of the call."""
        return self._ends - self._clock()

    def commit_left_s(self) -> float:
        """Return the seconds that are left to write the ledger."""
        return self.left_s() - self._binding_s


class _Change(Struct, frozen=True):
    """Result that has to be tried again, because the pod has changed."""


async def bind(
    call: GrantedBind, ledgers: LedgerWriter, server: LedgerCalls, views: Views, budget: Budget
) -> BindResult:
    """Bind a pod to a node with a grant of its devices."""
    shown = views.pod(call.pod)
    state = shown if shown is not None and shown.uid == call.uid else None
    for _ in range(TRIES):
        if state is None:
            found = await server.read_pod(call.pod, budget.left_s())
            if isinstance(found, Failed):
                return NotBound(found.why)
            if isinstance(found, Gone) or found.uid != call.uid:
                return NotBound(NAME_TAKEN if isinstance(found, PodState) else POD_GONE)
            state = found
        if state.node:
            return Bound(None) if state.node == call.node else NotBound(bound_elsewhere(state.node))
        if state.ended:
            return NotBound("the pod has ended")
        result = await _attempt(call, state, ledgers, budget)
        if not isinstance(result, _Change):
            return result
        state = None
    return NotBound("the pod was changed again and again", entry_may_stand=True)


async def _attempt(call: GrantedBind, state: PodState, ledgers: LedgerWriter, budget: Budget) -> BindResult | _Change:
    if not call.devices.is_for(state):
        return NotBound(CHANGED)
    request = GrantRequest(state.uid, state.pod, state.rv, call.devices)
    answer = await ledgers.commit(call.node, request, budget.commit_left_s)
    if isinstance(answer, StalePod):
        return _Change()
    if not isinstance(answer, Accepted):
        return NotBound(answer.why, entry_may_stand=isinstance(answer, Failed))
    outcome = await call.poster.post(granted_binding(call, answer.entry), budget.left_s)
    if isinstance(outcome, Posted):
        return Bound(answer.entry)
    if isinstance(outcome, Conflicting):
        return _Change()
    if isinstance(outcome, Missing):
        return NotBound(POD_GONE)
    return NotBound(outcome.why, entry_may_stand=True)


def granted_binding(call: GrantedBind, entry: LedgerEntry) -> dict[str, Any]:
    """Return the Binding: it bears the UID, the version and the grant of the entry, and nothing else does."""
    annotations = {**call.devices.annotations(entry), **copies(entry.grant)}
    return binding_of(call.pod, call.uid, call.node, annotations, entry.rv)
