"""bind: posts the Binding, and says that a pod is bound only when the API server has said so.

What is not confirmed is not acknowledged: a scheduler that believes in a binding that never came leaves the pod pending
for ever, while one that is told of a failure tries again, and is then told how it is.
"""

import logging
from collections.abc import Awaitable
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
from fairlead.webhook.extender.call import CallClock, Caller, VerbReply
from fairlead.webhook.extender.requests import BindArgs, MalformedError
from fairlead.webhook.extender.state import ServingState

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
_SECOND: Final = 1e9
_LEAST_S: Final = 0.02
"""For less, nobody is asked."""
_FOR_THE_BINDING: Final = 0.6
"""Of the time that there is; the rest is for asking how it ended."""


class BindingApi(Protocol):
    """What is asked of the API server. Each raises ClusterError, at the latest after that time."""

    async def bind(self, namespace: str, name: str, binding: bytes, within_s: float) -> None:
        """Post a Binding, once."""

    async def pod(self, namespace: str, name: str, within_s: float) -> bytes:
        """The pod as it is now."""


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds pods to nodes."""

    api: BindingApi

    async def bind(self, body: bytes, world: ServingState, caller: Caller, when: CallClock) -> VerbReply:
        """From the request to its answer."""
        begun = when.clock()
        found = bind.decide_bind(body, world, caller, when)
        if isinstance(found, BindArgs):
            there = await self._pod(found, when)
            if isinstance(there, VerbReply):
                return there
            if (stranger := bind.refusal_reason(found, there, caller)) is not None:
                return stranger
            if (settled := _settled(found, there)) is not None:
                return settled
            # Who was asked for the pod took of the time, too: no policy is to blame for that.
            late = when.clock() > begun + (when.deadline - begun) // 2
            found = bind.decide_bind_for(
                found, there, world, caller, when._replace(had_enough_time=when.had_enough_time and not late)
            )
        return await self._post(found, when) if isinstance(found, BindDecision) else found

    async def _post(self, what: BindDecision, when: CallClock) -> VerbReply:
        asked, left = what.asked, _left_s(when) * _FOR_THE_BINDING
        if left < _LEAST_S:
            return bind.refused(asked.uid, "no time is left to bind the pod before the scheduler gives up")
        try:
            await self.api.bind(asked.namespace, asked.name, msgspec.json.encode(what.binding), left)
        except ClusterError as error:
            return await self._how_it_ended(what, error, when) if _is_open(error) else _refused(asked, error)
        return what.bound

    async def _how_it_ended(self, what: BindDecision, error: ClusterError, when: CallClock) -> VerbReply:
        """A conflict may be the trace of an earlier call that came through; so may silence."""
        there = await self._pod(what.asked, when)
        if isinstance(there, VerbReply):
            return bind.refused(what.asked.uid, f"{error}; and whether the pod is bound cannot be told")
        return _settled(what.asked, there) or bind.refused(what.asked.uid, str(error))

    async def _pod(self, asked: BindArgs, when: CallClock) -> Any | VerbReply:
        left = _left_s(when)
        if left < _LEAST_S:
            return bind.refused(asked.uid, "no time is left to look at the pod before the scheduler gives up")
        try:
            return requests.decode_pod(await self.api.pod(asked.namespace, asked.name, left))
        except (ClusterError, MalformedError) as error:
            return _refused(asked, error)


def _is_open(error: ClusterError) -> bool:
    """Whether the pod may be bound all the same, by this call or by an earlier one."""
    if isinstance(error, UnreachableError):
        return not error.not_sent
    return isinstance(error, ConflictError) or (isinstance(error, RequestError) and error.status >= 500)


def _refused(asked: BindArgs, error: ClusterError | MalformedError) -> VerbReply:
    gone = isinstance(error, NotFoundError)
    return bind.refused(asked.uid, "there is no such pod any more" if gone else str(error))


def _settled(asked: BindArgs, pod: Any) -> VerbReply | None:
    """The answer where nothing is left to be done."""
    if pod.metadata.uid != asked.uid:
        return bind.refused(asked.uid, "another pod has that name now")
    node = pod.spec.nodeName
    if not node:
        return None
    if node == asked.node:
        return BindDecision(asked, {}).bound
    return bind.refused(asked.uid, f"the pod is bound to the node {node} already")


def _left_s(when: CallClock) -> float:
    return (when.deadline - when.clock()) / _SECOND


@dataclass(slots=True, eq=False)
class BindingClient:
    """Pods that are bound to nodes."""

    client: Client
    _lacks: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """The right without which none is bound; empty where it is not that."""
        return next(iter(self._lacks.values()), "")

    async def bind(self, namespace: str, name: str, binding: bytes, within_s: float) -> None:
        """Post a Binding, once."""
        await self._told("create", self.client.post(PODS.named(namespace, name, "binding"), binding, within_s=within_s))

    async def pod(self, namespace: str, name: str, within_s: float) -> bytes:
        """The pod as it is now."""
        return await self._told("get", self.client.read(PODS.named(namespace, name), within_s=within_s))

    async def _told(self, verb: str, asked: Awaitable[T]) -> T:
        """Others than RBAC, such as quotas and admission, refuse one pod and not all."""
        try:
            answer = await asked
        except ForbiddenError as error:
            if error.is_of_rbac and verb not in self._lacks:
                self._lacks[verb] = str(error)
                LOG.warning("bind.failed", extra={"error": str(error)})
            raise
        self._lacks.pop(verb, None)
        return answer
