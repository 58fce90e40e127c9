"""Binds that grant devices: the entry first, then the Binding that names the entry's version of the pod.

Whatever happens after the entry was written, the entry stays until it is over: a Binding whose outcome is not known may
arrive later, and then finds its devices reserved.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from fairlead.grants.commit import Accepted, DeviceRequest, GrantRequest, Refused, StalePod
from fairlead.grants.device_usage import Ask, DeviceUsage
from fairlead.grants.entry import Grant, LedgerEntry, copies
from fairlead.grants.entry_state import Gone, PodState
from fairlead.mirror.mirror import Mirror
from fairlead.policy.evaluate.requested_devices import RequestedDevices, choose_devices
from fairlead.strategies.devices.layout import size_of
from fairlead.strategies.devices.record import gpushare_annotations
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.api_calls import Conflicting, Failed, LedgerCalls, Missing, Posted, Views
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.mirror_views import UNKNOWN_NODE, MirrorViews
from fairlead.webhook.binding.pods_with_grants import ASSUMED_AT, metadata_hash
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender.bind import (
    NAME_TAKEN,
    POD_GONE,
    BindDecision,
    binding_of,
    bound_elsewhere,
    refuse,
)
from fairlead.webhook.extender.call import CallClock, Considered, VerbReply

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
    """True if an entry may stand in the ledger for this version of the pod."""


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


class Granter:
    """Handler of binds whose pods request devices."""

    def __init__(self, mirror: Mirror, server: LedgerCalls, ledgers: LedgerWriter, views: MirrorViews) -> None:
        self._mirror, self._server, self._ledgers, self._views = mirror, server, ledgers, views
        self.on_bind: Callable[[bool], None] = lambda _: None

    async def bind(
        self, decision: BindDecision, requested: RequestedDevices, poster: Poster, when: CallClock
    ) -> VerbReply:
        """Grant the devices, post the Binding, and return the reply."""
        request = decision.request
        devices = _RequestedGrant(self._mirror, decision, requested)
        call = GrantedBind(request.uid, f"{request.namespace}/{request.name}", request.node, devices, poster)
        left_s = (when.deadline_ns - when.clock()) / SECOND_NS
        budget = Budget(lambda: when.clock() / SECOND_NS, left_s)
        result = await bind(call, self._ledgers, self._server, self._views, budget)
        self.on_bind(isinstance(result, Bound))
        if isinstance(result, Bound):
            reply = decision.bound
            reply.considered = Considered(request, grant=None if result.entry is None else result.entry.grant)
            return reply
        return refuse(request.uid, _unlike_before(result, when.now))


def _unlike_before(result: NotBound, now: int) -> str:
    """Return why a pod was not bound, in other words at each try if an entry may stand for it.

    kube-scheduler changes the status of the pod only if the words differ, and the change is what ends the entry: else a
    pod whose Binding is denied again and again would keep devices of each node that it has tried.
    """
    if not result.entry_may_stand:
        return result.why
    at = datetime.fromtimestamp(now / SECOND_NS, UTC)
    return f"{result.why} (tried at {at:%H:%M:%S.%f} UTC)"


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
        if not call.devices.is_for(state):
            return NotBound(CHANGED)
        request = GrantRequest(state.uid, state.pod, state.rv, call.devices)
        answer = await ledgers.commit(call.node, request, budget.commit_left_s)
        if isinstance(answer, Accepted):
            outcome = await call.poster.post(granted_binding(call, answer.entry), budget.left_s)
            if isinstance(outcome, Posted):
                return Bound(answer.entry)
            if isinstance(outcome, Missing):
                return NotBound(POD_GONE)
            if not isinstance(outcome, Conflicting):
                return NotBound(outcome.why, entry_may_stand=True)
        elif not isinstance(answer, StalePod):
            return NotBound(answer.why, entry_may_stand=isinstance(answer, Failed))
        state = None  # it has changed
    return NotBound("the pod was changed again and again", entry_may_stand=True)


def granted_binding(call: GrantedBind, entry: LedgerEntry) -> dict[str, Any]:
    """Return the Binding: it bears the UID, the version and the grant of the entry, and nothing else does."""
    annotations = {**call.devices.annotations(entry), **copies(entry.grant)}
    return binding_of(call.pod, call.uid, call.node, annotations, entry.rv)


class _RequestedGrant(PodDevices):
    """Devices that policies grant the pod of one bind."""

    def __init__(self, mirror: Mirror, decision: BindDecision, requested: RequestedDevices) -> None:
        self._mirror, self._decision, self._requested = mirror, decision, requested
        self._node = decision.request.node

    @property
    def by(self) -> str:
        return self._requested.policies

    @property
    def ask(self) -> Ask:
        return self._requested.ask

    def is_for(self, state: PodState, /) -> bool:
        return state.metadata_hash is None or state.metadata_hash == metadata_hash(self._requested.pod.pod)

    def choose(self, _usage: DeviceUsage, entries: Mapping[str, LedgerEntry], /) -> Grant | Refused:
        view = self._mirror.nodes.view_of(self._node)
        if view is None:
            return Refused(UNKNOWN_NODE)
        unreadable = [one for one in view.granted if one.grants is None]
        granted = [self._mirror.devices.in_force(uid, one) for uid, one in entries.items()]
        view = view.with_devices(view.devices._replace(granted=(*unreadable, *granted)))
        return choose_devices(self._requested, view)

    def annotations(self, entry: LedgerEntry, /) -> Mapping[str, str]:
        """Return what policies write, and what the gpushare plugin reads."""
        annotations = {**self._decision.annotations}
        for share in (one.share.entry for one in self._requested.shares):
            if share.record == "Gpushare" and (devices := entry.grant.get(share.name)):
                view = self._mirror.nodes.view_of(self._node)
                size = 0 if view is None else size_of(devices[0].id, share, view)
                annotations |= gpushare_annotations(devices[0], share, size, ASSUMED_AT + entry.order)
        return annotations
