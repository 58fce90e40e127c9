"""Bind with grants: the entry first, then the Binding that names the entry's version of the pod.

Whatever happens after the entry was written, the entry stays until it is over: a Binding whose outcome is not known may
arrive later, and then finds its devices reserved.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from fairlead.grants.adoption import COPY
from fairlead.grants.commit import Accepted, DeviceRequest, GrantRequest, Refused, StalePod
from fairlead.grants.entry import Entry, encode_copy
from fairlead.grants.entry_state import Gone, PodState
from fairlead.webhook.binding.api_calls import Conflicting, Failed, Missing, Posted, Server, Views
from fairlead.webhook.binding.ledger_writer import LedgerWriter

TRIES: Final = 4
"""The first one, and three after a change of the pod."""


class Bound(Struct, frozen=True):
    """Result that the pod is on the node."""

    entry: Entry | None
    """Its grant; None if the Binding was an earlier one, and the ledger has the grant."""


class NotBound(Struct, frozen=True):
    """Result that is an error for the scheduler. The Binding may arrive nevertheless."""

    why: str
    entry_may_stand: bool = False
    """Whether an entry may stand in the ledger for this version of the pod."""


BindResult: TypeAlias = Bound | NotBound


class GrantedBind(Struct, frozen=True, eq=False):
    """Call of a scheduler for a pod that asks for devices."""

    uid: str
    pod: str
    node: str
    wish: Callable[[PodState], DeviceRequest | Refused]
    """Returns what the pod asks for, at one of its versions."""
    annotations: Callable[[Entry], Mapping[str, str]]
    """Returns what else the Binding bears."""
    is_abandoned: Callable[[], bool]
    """Returns whether the caller has gone, and takes the pod for unplaced."""


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


async def bind(call: GrantedBind, ledgers: LedgerWriter, server: Server, views: Views, budget: Budget) -> BindResult:
    """Bind a pod to a node with a grant of its devices."""
    shown = views.pod(call.pod)
    state = shown if shown is not None and shown.uid == call.uid else None
    for _ in range(TRIES):
        if state is None:
            found = await server.read_pod(call.pod, budget.left_s())
            if isinstance(found, Failed):
                return NotBound(found.why)
            if isinstance(found, Gone) or found.uid != call.uid:
                return NotBound("the pod is gone")
            state = found
        if state.node:
            return Bound(None) if state.node == call.node else NotBound(f"the pod is on node {state.node}")
        if state.ended:
            return NotBound("the pod has ended")
        result = await _attempt(call, state, ledgers, server, budget)
        if not isinstance(result, _Change):
            return result
        state = None
    return NotBound("the pod was changed again and again", entry_may_stand=True)


async def _attempt(
    call: GrantedBind, state: PodState, ledgers: LedgerWriter, server: Server, budget: Budget
) -> BindResult | _Change:
    wish = call.wish(state)
    if isinstance(wish, Refused):
        return NotBound(wish.why)
    request = GrantRequest(state.uid, state.pod, state.rv, wish)
    answer = await ledgers.commit(call.node, request, budget.commit_left_s)
    if isinstance(answer, StalePod):
        return _Change()
    if not isinstance(answer, Accepted):
        return NotBound(answer.why, entry_may_stand=isinstance(answer, Failed))
    if call.is_abandoned():
        return NotBound("the caller has hung up", entry_may_stand=True)
    outcome = await server.post_binding(binding_of(call, answer.entry), budget.left_s())
    if isinstance(outcome, Posted):
        return Bound(answer.entry)
    if isinstance(outcome, Conflicting):
        return _Change()
    if isinstance(outcome, Missing):
        return NotBound("the pod is gone")
    return NotBound(outcome.why, entry_may_stand=True)


def binding_of(call: GrantedBind, entry: Entry) -> dict[str, Any]:
    """Return the Binding: it bears the UID, the version and the grant of the entry, and nothing else does."""
    namespace, _, name = call.pod.partition("/")
    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": call.uid,
        "resourceVersion": entry.rv,
        "annotations": {**call.annotations(entry), **copies(entry)},
    }
    target = {"apiVersion": "v1", "kind": "Node", "name": call.node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def copies(entry: Entry) -> dict[str, str]:
    """Return the annotations that copy a grant: all of it, and the ids of each kind of device for a container."""
    ids = {f"{COPY}.{name}": ",".join(one.id for one in devices) for name, devices in entry.grant.items()}
    return {COPY: encode_copy(entry.grant), **ids}
