"""Binds that grant devices or keep a domain, from what policies have decided to the reply."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from fairlead.grants.commit import GrantRequest, Refused
from fairlead.grants.device_usage import Ask, DeviceUsage
from fairlead.grants.entry import Grant, LedgerEntry
from fairlead.grants.entry_state import PodState
from fairlead.mirror.mirror import Mirror
from fairlead.policy.evaluate.requested_devices import RequestedDevices, choose_devices
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.devices.layout import size_of
from fairlead.strategies.devices.record import gpushare_annotations
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.api_calls import LedgerCalls
from fairlead.webhook.binding.bind_steps import BindResult, BindSteps, Bound, Budget, NotBound, PodBind, PodDevices
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.mirror_views import UNKNOWN_NODE, MirrorViews
from fairlead.webhook.binding.pods_with_grants import ASSUMED_AT, metadata_hash
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender.bind import BindDecision, refuse
from fairlead.webhook.extender.call import CallClock, Considered, VerbReply


class Granter:
    """Handler of binds in two steps, as policies have decided them."""

    def __init__(
        self, mirror: Mirror, server: LedgerCalls, ledgers: LedgerWriter[GrantRequest], views: MirrorViews
    ) -> None:
        self._mirror = mirror
        self.steps: Final = BindSteps(ledgers, server, views)
        self.on_bind: Callable[[bool], None] = lambda _: None
        """Called with the outcome of each bind of a pod that requests devices."""

    async def bind(self, decision: BindDecision, poster: Poster, when: CallClock) -> VerbReply:
        """Grant the devices, post the Binding, and return the reply."""
        budget = Budget.until(when.deadline_ns, when.clock)
        result = await self.steps.bind(self.pod_bind(decision, poster), budget)
        return self.reply(decision, result, when.now)

    def pod_bind(self, decision: BindDecision, poster: Poster) -> PodBind:
        """Return what the steps of a bind need to know of it; the pod may request devices or not."""
        request = decision.request
        requested = decision.devices or RequestedDevices(PodView(decision.pod, None), ())
        devices = _RequestedGrant(self._mirror, decision, requested)
        version = str(decision.pod.metadata.resourceVersion)
        pod = f"{request.namespace}/{request.name}"
        return PodBind(request.uid, pod, request.node, devices, poster, version, decision.domains)

    def reply(self, decision: BindDecision, result: BindResult, now: int) -> VerbReply:
        """Return the reply to a call that came at this time of day."""
        if decision.devices is not None:
            self.on_bind(isinstance(result, Bound))
        request = decision.request
        if isinstance(result, Bound):
            reply = decision.bound
            reply.considered = Considered(request, grant=None if result.entry is None else result.entry.grant)
            return reply
        return refuse(request.uid, _unlike_before(result, now))


def _unlike_before(result: NotBound, now: int) -> str:
    """Return why a pod was not bound, in other words at each try if an entry or a Binding may stand for it.

    kube-scheduler changes the status of the pod only if the words differ, and the change is what ends the entry: else a
    pod whose Binding is denied again and again would keep devices of each node that it has tried. It is also what a
    Binding that is late is refused for.
    """
    if not result.may_stand:
        return result.why
    at = datetime.fromtimestamp(now / SECOND_NS, UTC)
    return f"{result.why} (tried at {at:%H:%M:%S.%f} UTC)"


class _RequestedGrant(PodDevices):
    """Devices that policies grant the pod of one bind; none if it requests none."""

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
        return state.metadata_hash is None or state.metadata_hash == metadata_hash(self._decision.pod)

    def choose(self, _usage: DeviceUsage, entries: Mapping[str, LedgerEntry], /) -> Grant | Refused:
        view = self._mirror.nodes.view_of(self._node)
        if view is None:
            return Refused(UNKNOWN_NODE)
        unreadable = [one for one in view.granted if one.grants is None]
        granted = [self._mirror.devices.in_force(uid, one) for uid, one in entries.items()]
        view = view.with_devices(view.devices._replace(granted=(*unreadable, *granted)))
        return choose_devices(self._requested, view)

    def annotations(self, entry: LedgerEntry | None, /) -> Mapping[str, str]:
        """Return what policies write, and what the gpushare plugin reads."""
        annotations = {**self._decision.annotations}
        if entry is None:
            return annotations
        for share in (one.share.entry for one in self._requested.shares):
            if share.record == "Gpushare" and (devices := entry.grant.get(share.name)):
                view = self._mirror.nodes.view_of(self._node)
                size = 0 if view is None else size_of(devices[0].id, share, view)
                annotations |= gpushare_annotations(devices[0], share, size, ASSUMED_AT + entry.order)
        return annotations
