"""Bind calls: decide, hold members of groups, grant devices where the pod asks for them, and post the Binding.

Success is reported only after the API server has confirmed the Binding. A scheduler that believes in a binding that
does not exist leaves the pod pending for ever; one that sees a failure tries again, and then learns the outcome.
"""

from typing import Any, Final, Protocol

from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.api_calls import BindingCalls, Failed, Missing, Posted
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.poster import LEAST_S, Poster
from fairlead.webhook.extender import bind, requests
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import CallClock, Caller, Considered, IncomingCall, VerbReply
from fairlead.webhook.extender.requests import BindArgs, MalformedError
from fairlead.webhook.extender.state import ServingState

_FOR_THE_BINDING: Final = 0.6
"""Share of the time left for posting the Binding; the rest is for finding out the outcome."""
NO_MEMBER: Final = "by the policies of the replica that holds groups, the pod is in none"


class MemberBinds(Protocol):
    """Handler of the binds of members of groups."""

    async def bind(
        self, decision: BindDecision, poster: Poster, call: IncomingCall, when: CallClock, /
    ) -> VerbReply | None:
        """Answer the call of a member; None if its group has started, so that it is bound as any other pod."""


class NoHolder:
    """Handler of the binds of members in a process that holds none."""

    async def bind(
        self, decision: BindDecision, _poster: Poster, _call: IncomingCall, _when: CallClock, /
    ) -> VerbReply:
        """Refuse."""
        return bind.refuse(decision.request.uid, "this process holds no groups")


class Binder:
    """Handler of bind calls."""

    def __init__(self, api: BindingCalls, granter: Granter | None = None) -> None:
        """`granter` binds pods that request devices; without one they are refused."""
        self._api, self._granter = api, granter
        self.groups: MemberBinds = NoHolder()
        """Handler of the binds of members of groups."""

    async def bind(self, call: IncomingCall, state: ServingState, when: CallClock) -> VerbReply:
        """Answer a bind call."""
        caller = call.caller
        try:
            request = requests.decode_bind_args(call.body)
        except MalformedError as error:
            return bind.refuse("", str(error))
        poster = Poster(self._api, call.is_abandoned)
        if (pod := state.unplaced(request)) is not None:
            decided = bind.decide_bind(request, pod, state, caller, when)
        else:
            decided = await self._read_and_decide(request, state, caller, when)
        reply = decided if isinstance(decided, VerbReply) else await self._carry_out(decided, poster, call, when)
        node = (request.node,)
        grant = None if reply.considered is None else reply.considered.grant
        reply.considered = Considered(request, node, node if reply.outcome.result == "passed" else (), grant=grant)
        return reply

    async def _carry_out(
        self, decision: BindDecision, poster: Poster, call: IncomingCall, when: CallClock
    ) -> VerbReply:
        if decision.membership is not None:
            reply = await self.groups.bind(decision, poster, call, when)
            if reply is not None:
                return reply
        elif call.is_passed_on:  # the other replica has newer policies, or older ones
            return bind.refuse(decision.request.uid, NO_MEMBER)
        if decision.devices is None and not decision.domains:
            return await self._post(decision, poster, when)
        if self._granter is None:
            return bind.refuse(decision.request.uid, "this process grants no devices, and keeps no domains")
        return await self._granter.bind(decision, poster, when)

    async def _read_and_decide(
        self, request: BindArgs, state: ServingState, caller: Caller, when: CallClock
    ) -> BindDecision | VerbReply:
        """Decide about a pod that has a node already, as a call may be repeated, or that the mirror does not know."""
        began = when.clock()
        pod = await self._read(request, when)
        if isinstance(pod, VerbReply):
            return pod
        if (refusal := bind.refusal_reason(request, pod, caller)) is not None:
            return refusal
        if (settled := _settled(request, pod)) is not None:
            return settled
        # Reading the pod took time, too, for which no policy is to blame.
        late = when.clock() > began + (when.deadline_ns - began) // 2
        return bind.decide_bind(
            request, pod, state, caller, when._replace(had_enough_time=when.had_enough_time and not late)
        )

    async def _post(self, decision: BindDecision, poster: Poster, when: CallClock) -> VerbReply:
        """Post the Binding of a pod without devices, and find out the outcome."""
        request = decision.request
        outcome = await poster.post(decision.binding, lambda: _left_s(when) * _FOR_THE_BINDING)
        if isinstance(outcome, Posted):
            return decision.bound
        if isinstance(outcome, Missing | Failed):
            return _refused(request, outcome)
        # After a conflict or no reply, an earlier call may have bound the pod.
        pod = await self._read(request, when)
        if isinstance(pod, VerbReply):
            return bind.refuse(request.uid, f"{outcome.why}; it is unknown whether the pod is bound")
        return _settled(request, pod) or bind.refuse(request.uid, outcome.why)

    async def _read(self, request: BindArgs, when: CallClock) -> Any | VerbReply:
        left = _left_s(when)
        if left < LEAST_S:
            return bind.refuse(request.uid, "no time is left to read the pod before the scheduler gives up")
        body = await self._api.read_body(request.namespace, request.name, left)
        if isinstance(body, Missing | Failed):
            return _refused(request, body)
        try:
            return requests.decode_pod(body)
        except MalformedError as error:
            return bind.refuse(request.uid, str(error))


def _refused(request: BindArgs, outcome: Missing | Failed) -> VerbReply:
    return bind.refuse(request.uid, bind.POD_GONE if isinstance(outcome, Missing) else outcome.why)


def _settled(request: BindArgs, pod: Any) -> VerbReply | None:
    """Return the reply if the pod is bound, or another pod has its name; None if it is still to be bound."""
    if pod.metadata.uid != request.uid:
        return bind.refuse(request.uid, bind.NAME_TAKEN)
    node = pod.spec.nodeName
    if not node:
        return None
    if node == request.node:
        return BindDecision(request, {}).bound
    return bind.refuse(request.uid, bind.bound_elsewhere(node))


def _left_s(when: CallClock) -> float:
    return (when.deadline_ns - when.clock()) / SECOND_NS
