"""A replica that holds calls, or passes them on: the real code from the bind call on, but for the network."""

import asyncio
from asyncio import events
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, cast

import msgspec

from fairlead.groups.group import Group, Membership
from fairlead.webhook.binding.api_calls import Failed, Missing, Posted, WriteFailure
from fairlead.webhook.binding.bind_steps import PodBind
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender import bind
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import CallClock, IncomingCall, VerbReply
from fairlead.webhook.extender.requests import BindArgs
from fairlead.webhook.holding import passed_calls
from fairlead.webhook.holding.group_holding import GroupHolding
from fairlead.webhook.holding.passed_calls import PassingOn
from support.grants.replica import Calls, PickedDevices, Replica, Sent
from support.grants.step_loop import StepLoop
from support.groups.members import SCHEDULER, MemberServer, MemberState, as_mirror_has_it, has_entry

HOLD_S: Final = 30
CALL_NS: Final = 35 * 10**9
_ANSWER_NS: Final = 8 * 10**9
OnPost = Callable[["ServedCall", Mapping[str, Any]], None]


class SchedulersCall:
    """A bind call as its scheduler sees it."""

    def __init__(self, number: int, pod: MemberState, node: str, address: str) -> None:
        self.number, self.pod, self.node, self.address = number, pod, node, address
        self.has_hung_up = False
        self.is_over = False
        """Whether its scheduler has an answer, or has given up. Unless it is bound, room is kept for it no more."""
        self.was_patched = False
        """Whether the scheduler has written down that it failed."""


class ServedCall:
    """A bind call at a replica, which the scheduler has sent or another replica has passed on."""

    def __init__(self, replica: "HoldingReplica", call: SchedulersCall, hop: "Hop | None") -> None:
        self.replica, self.call, self.hop = replica, call, hop
        self.found_room = not call.pod.request or has_entry(replica.members.ledgers.get(call.node), call.pod.uid)
        """Whether it asks for no devices, or was promised them while it was here."""
        self.may_start = False
        """Whether its Binding may be posted, as its group was seen complete or started."""
        self.is_single = False
        """Whether it is bound as any other pod, because its group has started."""
        others = [one.since for one in replica.served if one.is_open and one.call.pod.group == call.pod.group]
        self.since: int = min([replica.members.moment, *others])
        self.task: asyncio.Task[VerbReply] = replica.loop.create_task(replica.answer(self))

    @property
    def is_open(self) -> bool:
        return not self.task.done() and not self.replica.loop.dead

    def is_abandoned(self) -> bool:
        """Return what the replica knows of the caller."""
        return self.call.has_hung_up if self.hop is None else self.hop.has_hung_up


class Hop:
    """A call on its way from one replica to another."""

    def __init__(self, origin: "HoldingReplica", where: str, call: SchedulersCall, body: bytes) -> None:
        self.origin, self.where, self.call, self.body = origin, where, call, body
        self.future: asyncio.Future[tuple[int, bytes]] = origin.loop.create_future()
        self.served: ServedCall | None = None
        self.has_hung_up = False

    @property
    def is_left(self) -> bool:
        """Return whether nobody waits for its answer."""
        return self.future.done() or self.origin.loop.dead


class PausingLoop(StepLoop):
    """A loop whose process may be stopped for a while."""

    paused = False

    def __init__(self) -> None:
        super().__init__()
        self._running: list[Coroutine[Any, Any, Any]] = []

    def create_task(self, coro: Coroutine[Any, Any, Any], **named: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        self._running.append(coro)
        return super().create_task(coro, **named)

    def end(self) -> None:
        """End for good. What is left of its tasks runs now, while it is known which loop they belong to."""
        self.stop_dead()
        events._set_running_loop(self)
        try:
            for one in self._running:
                one.close()
        finally:
            events._set_running_loop(None)

    def run_ready(self) -> None:
        if not self.paused:
            super().run_ready()


class _PassingOn(PassingOn):
    """The real one, with a network that the explorer moves."""

    def __init__(self, replica: "HoldingReplica") -> None:
        super().__init__(lambda: replica.holder, cast("Any", None), "fairlead", lambda _: None)
        self._replica = replica

    async def _ask(self, where: str, body: bytes, within_s: float) -> tuple[int, bytes]:
        number = msgspec.json.decode(passed_calls.decode(body).arguments)
        call = next(one.call for one in self._replica.served if one.call.number == number)
        hop = Hop(self._replica, where, call, body)
        self._replica.hops.append(hop)
        return await hop.future


class _Granter(Granter):
    def __init__(self, replica: "HoldingReplica") -> None:
        super().__init__(cast("Any", None), replica.calls, replica.ledgers, cast("Any", replica.views))
        self._replica = replica

    def pod_bind(self, decision: BindDecision, poster: Poster) -> PodBind:
        state: MemberState = decision.pod.state
        return PodBind(
            state.uid, state.pod, decision.request.node, PickedDevices(self._replica, state), poster, state.rv
        )


class _MemberCalls(Calls):
    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes | Missing | Failed:
        return await self._call("read_body", namespace, name)  # type: ignore[no-any-return]


class _CheckedCalls:
    """Calls for one Binding, which is checked when it is posted."""

    def __init__(self, served: ServedCall) -> None:
        self._served = served

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted | WriteFailure:
        replica = self._served.replica
        replica.on_post(self._served, binding)
        return await replica.calls.post_binding(binding, timeout_s)


class _Policies:
    """Groups by the label `group`, in place of policies."""

    schedulers: Final = (SCHEDULER,)
    meaning: Final = ()

    def matching(self, view: Any, _scheduler: str, _now: int) -> Sequence[Any]:
        rule = SimpleNamespace(name="g", group=_Read("group"), size=_Read("size"), hold_s=HOLD_S)
        policy = SimpleNamespace(name="p", gangs=(rule,), scheduler_name=SCHEDULER)
        return (SimpleNamespace(policy=policy, undecided=None, switched=False),)

    def of(self, pod: Any, _namespace: Any) -> tuple[Group, ...]:
        value = pod.metadata.labels["group"]
        return (group_of(value),) if value else ()


class _Read:
    def __init__(self, what: str) -> None:
        self._what = what

    def for_pod(self, view: Any) -> Callable[[Any, int], Any]:
        return lambda _node, _now: getattr(view.pod, self._what)


class HoldingReplica(Replica):
    """One replica, from its start to its crash; it may believe to lead."""

    loop: PausingLoop

    def __init__(self, name: str, server: MemberServer, sent: list[Sent], hops: list[Hop], on_post: OnPost) -> None:
        super().__init__(name, server, sent, 0, 0)
        self.loop = PausingLoop()  # type: ignore[abstract]
        self.calls = _MemberCalls(self, sent)
        self.ledgers = type(self.ledgers)(self.calls, self.views, 1)
        self.members, self.hops, self.on_post = server, hops, on_post
        self.leads = False
        self.holder = ""
        """Replica that it passes calls on to."""
        self.now = 1_000 * 10**9
        self.served: list[ServedCall] = []
        self.granter = _Granter(self)
        mirror = SimpleNamespace(
            namespace=lambda _: None, request_of=lambda _: {}, granted_uid=lambda _: "", watchers=set()
        )
        grants = SimpleNamespace(granter=self.granter, bindings=self.calls)
        self.holding = GroupHolding(
            cast("Any", None), cast("Any", mirror), None, self.time, self.time, cast("Any", grants)
        )
        self.holding.binds.pass_on = _PassingOn(self)
        for attribute in ("_placed", "_policies"):
            setattr(self.holding.watch, attribute, _Policies())
        self.lead = self.loop.create_task(self.holding.lead(lambda: self.leads))
        self.loop.run_ready()

    def time(self) -> int:
        return self.now

    def tasks(self) -> list[asyncio.Task[Any]]:
        return [*(one.task for one in self.served), self.lead]

    def serve(self, call: SchedulersCall, hop: Hop | None = None) -> ServedCall:
        """Let a call arrive."""
        served = ServedCall(self, call, hop)
        self.served.append(served)
        if hop is not None:
            hop.served = served
        self.loop.run_ready()
        return served

    async def answer(self, served: ServedCall) -> VerbReply:
        """Answer a bind call, as `Binder` does it."""
        call, seen = served.call, self.views.pod(served.call.pod.pod)
        state = cast(
            "MemberState", seen if seen is not None and seen.uid == call.pod.uid and not seen.node else call.pod
        )
        namespace, _, name = state.pod.partition("/")
        pod = as_mirror_has_it(state)
        pod.state = state
        member = Membership(group_of(state.group), state.size, HOLD_S, "p", "g") if state.group else None
        decision = BindDecision(BindArgs(name, namespace, state.uid, call.node), {}, pod=pod, membership=member)
        poster = Poster(cast("Any", _CheckedCalls(served)), served.is_abandoned)
        when = CallClock(self.now, self.time, self.now + _ANSWER_NS, hold_deadline_ns=self.now + CALL_NS)
        body = (
            msgspec.json.encode(call.number) if served.hop is None else passed_calls.decode(served.hop.body).arguments
        )
        address = call.address if served.hop is None else passed_calls.decode(served.hop.body).address
        incoming = IncomingCall(
            "s", cast("Any", None), bytes(body), self.now, served.is_abandoned, address, served.hop is not None
        )
        reply = await self.holding.binds.bind(decision, poster, incoming, when)
        if reply is not None:
            return reply
        served.is_single = True
        if state.request:
            return await self.granter.bind(decision, poster, when)
        outcome = await poster.post(decision.binding, lambda: 1.0)
        return decision.bound if isinstance(outcome, Posted) else bind.refuse(state.uid, str(outcome))

    def see(self, steps: int) -> None:
        """See changes of pods, and tell the groups of them."""
        if self.loop.paused:
            return
        for _ in range(steps):
            at, history = self.views.pods_at, self.server.pod_history
            if at >= len(history) - 1:
                break
            before, after = history[at], history[at + 1]
            self.views.advance_pods(1)
            for pod in before.keys() | after.keys():
                if before.get(pod) is not after.get(pod):
                    self._tell(cast("Any", before.get(pod)), cast("Any", after.get(pod)))
            self.loop.run_ready()

    def _tell(self, before: MemberState | None, after: MemberState | None) -> None:
        events._set_running_loop(self.loop)
        try:
            self._tell_watch(before, after)
        finally:
            events._set_running_loop(None)

    def _tell_watch(self, before: MemberState | None, after: MemberState | None) -> None:
        watch = self.holding.watch
        if before is not None and not before.node and (after is None or after.node):
            watch.remove_unplaced(as_mirror_has_it(before))
        if before is not None and before.node and not before.ended and (after is None or after.ended):
            watch.remove_placed(_key(before))
        if after is None or after.ended:
            return
        shown = as_mirror_has_it(after)
        if after.node:
            watch.put_placed(_key(after), cast("Any", SimpleNamespace(pod=shown, key=_key(after))))
        else:
            earlier = None if before is None or before.node else as_mirror_has_it(before)
            watch.put_unplaced(shown, earlier)


def group_of(value: str) -> Group:
    """Return the group of a value."""
    return Group(SCHEDULER, "ns", value)


def _key(state: MemberState) -> tuple[str, str]:
    namespace, _, name = state.pod.partition("/")
    return namespace, name
