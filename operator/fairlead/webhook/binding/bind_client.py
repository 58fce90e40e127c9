"""bind: posts the Binding, and reports success only after the API server has confirmed it.

A scheduler that believes in a binding that does not exist leaves the pod pending for ever; one that sees
a failure tries again, and then learns the outcome.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import msgspec

from fairlead.kube.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RequestError,
    UnreachableError,
)
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS
from fairlead.webhook.extender import bind, requests
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import CallClock, Caller, Considered, VerbReply
from fairlead.webhook.extender.requests import BindArgs, MalformedError
from fairlead.webhook.extender.state import ServingState

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
_SECOND: Final = 1e9
_LEAST_S: Final = 0.02
"""With less time left, no request is sent."""
_FOR_THE_BINDING: Final = 0.6
"""Share of the time left for posting the Binding; the rest is for finding out the outcome."""


IsAbandoned = Callable[[], bool]
"""Returns whether the caller has closed the connection."""
Grant = Callable[[BindDecision, IsAbandoned, CallClock], Awaitable[VerbReply]]


async def _granting_nothing(decision: BindDecision, _is_abandoned: IsAbandoned, _when: CallClock) -> VerbReply:
    return bind.refused(decision.request.uid, "this process grants no devices")


class BindingApi(Protocol):
    """Requests to the API server. Each raises ClusterError, within that time at the latest."""

    async def bind(self, namespace: str, name: str, binding: bytes, within_s: float) -> None:
        """Post a Binding, without retries."""

    async def pod(self, namespace: str, name: str, within_s: float) -> bytes:
        """Return the current pod."""


@dataclass(frozen=True, slots=True)
class Binder:
    """Handler of bind calls."""

    api: BindingApi
    grant: Grant = _granting_nothing
    """Binds a pod that asks for devices."""

    async def bind(
        self,
        body: bytes,
        state: ServingState,
        caller: Caller,
        when: CallClock,
        is_abandoned: IsAbandoned = lambda: False,
    ) -> VerbReply:
        """Answer a bind call."""
        began = when.clock()
        found = bind.decide_bind(body, state, caller, when)
        if isinstance(found, VerbReply):
            return found
        request = found.request if isinstance(found, BindDecision) else found
        reply = await self._bind(found, state, caller, when, is_abandoned, began)
        node = (request.node,)
        grant = None if reply.considered is None else reply.considered.grant
        reply.considered = Considered(request, node, node if reply.outcome.result == "passed" else (), grant=grant)
        return reply

    async def _bind(
        self,
        found: BindDecision | BindArgs,
        state: ServingState,
        caller: Caller,
        when: CallClock,
        is_abandoned: IsAbandoned,
        began: int,
    ) -> VerbReply:
        if isinstance(found, BindArgs):
            pod = await self._pod(found, when)
            if isinstance(pod, VerbReply):
                return pod
            if (refusal := bind.refusal_reason(found, pod, caller)) is not None:
                return refusal
            if (settled := _settled(found, pod)) is not None:
                return settled
            # Reading the pod took time, too, for which no policy is to blame.
            late = when.clock() > began + (when.deadline_ns - began) // 2
            answer = bind.decide_bind_for(
                found, pod, state, caller, when._replace(had_enough_time=when.had_enough_time and not late)
            )
            if isinstance(answer, VerbReply):
                return answer
            found = answer
        return await (self._post(found, when) if found.grants is None else self.grant(found, is_abandoned, when))

    async def _post(self, decision: BindDecision, when: CallClock) -> VerbReply:
        request, left = decision.request, _left_s(when) * _FOR_THE_BINDING
        if left < _LEAST_S:
            return bind.refused(request.uid, "no time is left to bind the pod before the scheduler gives up")
        try:
            await self.api.bind(request.namespace, request.name, msgspec.json.encode(decision.binding), left)
        except ClusterError as error:
            return await self._outcome(decision, error, when) if _is_open(error) else _refused(request, error)
        return decision.bound

    async def _outcome(self, decision: BindDecision, error: ClusterError, when: CallClock) -> VerbReply:
        """Find out the outcome: after a conflict or no reply, an earlier call may have bound the pod."""
        pod = await self._pod(decision.request, when)
        if isinstance(pod, VerbReply):
            return bind.refused(decision.request.uid, f"{error}; it is unknown whether the pod is bound")
        return _settled(decision.request, pod) or bind.refused(decision.request.uid, str(error))

    async def _pod(self, request: BindArgs, when: CallClock) -> Any | VerbReply:
        left = _left_s(when)
        if left < _LEAST_S:
            return bind.refused(request.uid, "no time is left to read the pod before the scheduler gives up")
        try:
            return requests.decode_pod(await self.api.pod(request.namespace, request.name, left))
        except (ClusterError, MalformedError) as error:
            return _refused(request, error)


def _is_open(error: ClusterError) -> bool:
    """Return whether the pod may be bound despite the error, by this call or an earlier one."""
    if isinstance(error, UnreachableError):
        return not error.not_sent
    return isinstance(error, ConflictError) or (isinstance(error, RequestError) and error.status >= 500)


def _refused(request: BindArgs, error: ClusterError | MalformedError) -> VerbReply:
    gone = isinstance(error, NotFoundError)
    return bind.refused(request.uid, "the pod no longer exists" if gone else str(error))


def _settled(request: BindArgs, pod: Any) -> VerbReply | None:
    """Return the reply if the pod is bound, or another pod has its name; None if it is still to be bound."""
    if pod.metadata.uid != request.uid:
        return bind.refused(request.uid, "another pod has that name now")
    node = pod.spec.nodeName
    if not node:
        return None
    if node == request.node:
        return BindDecision(request, {}).bound
    return bind.refused(request.uid, f"the pod is already bound to node {node}")


def _left_s(when: CallClock) -> float:
    return (when.deadline_ns - when.clock()) / _SECOND


@dataclass(slots=True, eq=False)
class BindingClient:
    """Client for pods and their Bindings."""

    client: Client
    _missing: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """The missing permission that makes every bind call fail; "" if none is missing."""
        return next(iter(self._missing.values()), "")

    async def bind(self, namespace: str, name: str, binding: bytes, within_s: float) -> None:
        """Post a Binding, without retries."""
        await self._recorded(
            "create", self.client.post(PODS.named(namespace, name, "binding"), binding, within_s=within_s)
        )

    async def pod(self, namespace: str, name: str, within_s: float) -> bytes:
        """Return the current pod."""
        return await self._recorded("get", self.client.read(PODS.named(namespace, name), within_s=within_s))

    async def _recorded(self, verb: str, request: Awaitable[T]) -> T:
        """Await a request, and record a missing RBAC permission; quotas and admission reject one pod, not all."""
        try:
            answer = await request
        except ForbiddenError as error:
            if error.is_of_rbac and verb not in self._missing:
                self._missing[verb] = str(error)
                LOG.warning("permission.missing", extra={"consequence": "pods are not bound", "error": str(error)})
            raise
        self._missing.pop(verb, None)
        return answer
