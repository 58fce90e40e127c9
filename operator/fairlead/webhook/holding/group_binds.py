"""Binds of members: singly if their group has started, else held here, or by the replica that holds."""

from collections.abc import Callable
from typing import Final

import msgspec

from fairlead.groups.group import Group
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.api_calls import BindingCalls, Failed, Missing
from fairlead.webhook.binding.bind_steps import Budget
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender import bind, requests
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import CallClock, IncomingCall, VerbReply
from fairlead.webhook.extender.requests import MalformedError
from fairlead.webhook.holding.group_watch import GroupWatch
from fairlead.webhook.holding.held_binds import HeldBinds
from fairlead.webhook.holding.passed_calls import PassedCall, PassingOn

READ_S: Final = 2.0
NOT_HERE: Final = "this replica holds no groups"


class GroupBinds:
    """Handler of the binds of members."""

    def __init__(
        self,
        watch: GroupWatch,
        granter: Granter,
        api: BindingCalls,
        held: Callable[[str], HeldBinds | None],
        pass_on: PassingOn | None = None,
    ) -> None:
        """`held` returns what holds the calls of a scheduler; None if this process does not.

        `pass_on` is None in a process that has no others beside it.
        """
        self._watch, self._granter, self._api, self._held, self.pass_on = watch, granter, api, held, pass_on

    async def bind(
        self, decision: BindDecision, poster: Poster, call: IncomingCall, when: CallClock
    ) -> VerbReply | None:
        """Answer the call of a member; None if its group has started, so that it is bound as any other pod."""
        membership = decision.membership
        if membership is None:
            return None
        group, request = membership.group, decision.request
        if self._watch.index.is_placed(group):
            started = await self.has_started(group, _left_s(when))
            if started is None:
                return bind.refuse(request.uid, "it cannot be told whether the group of the pod has started")
            if started:
                return None
        held = self._held(group.scheduler)
        if held is not None:
            pod = self._granter.pod_bind(decision, poster)
            result = await held.bind(pod, membership, call.address, Budget.until(when.held_until_ns, when.clock))
            return self._granter.reply(decision, result, when.now)
        if self.pass_on is None or call.is_passed_on:
            return bind.refuse(request.uid, NOT_HERE)
        passed = PassedCall(group.scheduler, call.address, msgspec.Raw(call.body))
        left_s = (when.held_until_ns - when.clock()) / SECOND_NS
        return await self.pass_on.bind(request.uid, passed, left_s, call.is_abandoned)

    async def has_started(self, group: Group, within_s: float) -> bool | None:
        """Return whether a read shows a placed pod of a group that lives; None if the read fails."""
        key = self._watch.index.placed_pod(group)
        if key is None:
            return False
        body = await self._api.read_body(*key, min(READ_S, within_s))
        if isinstance(body, Missing):
            return False
        if isinstance(body, Failed):
            return None
        try:
            return self._watch.is_placed_in(group, requests.decode_pod(body))
        except MalformedError:
            return None


def _left_s(when: CallClock) -> float:
    return (when.deadline_ns - when.clock()) / SECOND_NS
