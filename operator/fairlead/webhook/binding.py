"""bind: posts the Binding, and says that a pod is bound only when the API server has said so.

What is not confirmed is not acknowledged: a scheduler that believes in a binding that never came leaves the pod pending
for ever, while one that is told of a failure tries again, and is then told how it is.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from fairlead.cluster.errors import ClusterError, ConflictError, NotFoundError, RequestError, UnreachableError
from fairlead.webhook import placing, protocol
from fairlead.webhook.placing import Placing
from fairlead.webhook.protocol import BindArgs, MalformedError
from fairlead.webhook.world import Answer, Caller, Moment, World

_SECOND: Final = 1e9
_LEAST_S: Final = 0.02
"""For less, nobody is asked."""
_FOR_THE_BINDING: Final = 0.6
"""Of the time that there is; the rest is for asking how it ended."""


class Api(Protocol):
    """What is asked of the API server. Each raises ClusterError, at the latest after that time."""

    async def bind(self, namespace: str, name: str, binding: bytes, within_s: float) -> None:
        """Post a Binding, once."""

    async def pod(self, namespace: str, name: str, within_s: float) -> bytes:
        """The pod as it is now."""


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds pods to nodes."""

    api: Api

    async def bind(self, body: bytes, world: World, caller: Caller, when: Moment) -> Answer:
        """From the request to its answer."""
        begun = when.clock()
        found = placing.bind(body, world, caller, when)
        if isinstance(found, BindArgs):
            there = await self._pod(found, when)
            if isinstance(there, Answer):
                return there
            if (stranger := placing.of_others(found, there, caller)) is not None:
                return stranger
            if (settled := _settled(found, there)) is not None:
                return settled
            # Who was asked for the pod took of the time, too: no policy is to blame for that.
            late = when.clock() > begun + (when.deadline - begun) // 2
            found = placing.place(found, there, world, caller, when._replace(fair=when.fair and not late))
        return await self._post(found, when) if isinstance(found, Placing) else found

    async def _post(self, what: Placing, when: Moment) -> Answer:
        asked, left = what.asked, _left_s(when) * _FOR_THE_BINDING
        if left < _LEAST_S:
            return placing.refused(asked.uid, "no time is left to bind the pod before the scheduler gives up")
        try:
            await self.api.bind(asked.namespace, asked.name, msgspec.json.encode(what.binding), left)
        except ClusterError as error:
            return await self._how_it_ended(what, error, when) if _is_open(error) else _refused(asked, error)
        return what.bound

    async def _how_it_ended(self, what: Placing, error: ClusterError, when: Moment) -> Answer:
        """A conflict may be the trace of an earlier call that came through; so may silence."""
        there = await self._pod(what.asked, when)
        if isinstance(there, Answer):
            return placing.refused(what.asked.uid, f"{error}; and whether the pod is bound cannot be told")
        return _settled(what.asked, there) or placing.refused(what.asked.uid, str(error))

    async def _pod(self, asked: BindArgs, when: Moment) -> Any | Answer:
        left = _left_s(when)
        if left < _LEAST_S:
            return placing.refused(asked.uid, "no time is left to look at the pod before the scheduler gives up")
        try:
            return protocol.pod(await self.api.pod(asked.namespace, asked.name, left))
        except (ClusterError, MalformedError) as error:
            return _refused(asked, error)


def _is_open(error: ClusterError) -> bool:
    """Whether the pod may be bound all the same, by this call or by an earlier one."""
    if isinstance(error, UnreachableError):
        return not error.not_sent
    return isinstance(error, ConflictError) or (isinstance(error, RequestError) and error.status >= 500)


def _refused(asked: BindArgs, error: ClusterError | MalformedError) -> Answer:
    gone = isinstance(error, NotFoundError)
    return placing.refused(asked.uid, "there is no such pod any more" if gone else str(error))


def _settled(asked: BindArgs, pod: Any) -> Answer | None:
    """The answer where nothing is left to be done."""
    if pod.metadata.uid != asked.uid:
        return placing.refused(asked.uid, "another pod has that name now")
    node = pod.spec.nodeName
    if not node:
        return None
    if node == asked.node:
        return Placing(asked, {}).bound
    return placing.refused(asked.uid, f"the pod is bound to the node {node} already")


def _left_s(when: Moment) -> float:
    return (when.deadline - when.clock()) / _SECOND
