"""Binds of members: singly if their group has started, else held here, or by the replica that holds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from fairlead.groups.group import Group, Membership
from fairlead.mirror.pod_entry import Key
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.api_calls import BindingCalls, Failed, Missing, TimeLeft
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.poster import LEAST_S, Poster
from fairlead.webhook.extender import bind, requests
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import CallClock, IncomingCall, VerbReply
from fairlead.webhook.extender.requests import MalformedError
from fairlead.webhook.holding.group_watch import GroupWatch
from fairlead.webhook.holding.held_binds import HeldBinds
from fairlead.webhook.holding.passed_calls import PassedCall, PassingOn

READ_S: Final = 2.0
READS: Final = 3
"""Placed pods of a group that are read at most: the first may have gone while others live."""
NOT_HERE: Final = "this replica holds no groups"
UNTOLD: Final = "it cannot be told whether the group of the pod has started"


class GroupBinds:
    """Handler of the binds of members."""

    def __init__(
        self,
        watch: GroupWatch,
        granter: Granter,
        api: BindingCalls,
        held_binds: Callable[[str], HeldBinds | None],
        pass_on: PassingOn | None = None,
    ) -> None:
        """`held_binds` returns what holds the calls of a scheduler; None if this process does not.

        `pass_on` is None in a process that has no others beside it.
        """
        self._watch, self._granter, self._api, self._held_binds = watch, granter, api, held_binds
        self.pass_on = pass_on

    async def bind(
        self, decision: BindDecision, poster: Poster, call: IncomingCall, when: CallClock
    ) -> VerbReply | None:
        """Answer the call of a member; None if its group has started, so that it is bound as any other pod."""
        if (membership := decision.membership) is None:
            return None
        if self._watch.index.is_placed(membership.group):
            has_started = await self.has_started(membership.group, lambda: _seconds(when.deadline_ns - when.clock()))
            if has_started is None:
                return bind.refuse(decision.request.uid, UNTOLD)
            if has_started:
                return None
        reply = await self._hold_or_pass_on(decision, membership, poster, call, when)
        reply.outcome = replace(reply.outcome, is_held=True)
        return reply

    async def _hold_or_pass_on(
        self, decision: BindDecision, membership: Membership, poster: Poster, call: IncomingCall, when: CallClock
    ) -> VerbReply:
        group, request = membership.group, decision.request
        if (held := self._held_binds(group.scheduler)) is not None:
            pod = self._granter.pod_bind(decision, poster)
            result = await held.bind(pod, membership, call.address, when.held_until_ns)
            return self._granter.reply(decision, result, when.now)
        if self.pass_on is None or call.is_passed_on:
            return bind.refuse(request.uid, NOT_HERE)
        passed = PassedCall(group.scheduler, call.address, msgspec.Raw(call.body))
        left_s = _seconds(when.held_until_ns - when.clock())
        return await self.pass_on.bind(request.uid, passed, left_s, call.is_abandoned)

    async def has_started(self, group: Group, left_s: TimeLeft) -> bool | None:
        """Return whether a read shows a placed pod of a group that lives; None if a read fails.

        The pod is read that the mirror has heard of last, and another one if it has heard of that meanwhile.
        """
        read = set[Key]()
        while len(read) < READS and (key := self._watch.index.placed_pod(group)) is not None and key not in read:
            read.add(key)
            within_s = min(READ_S, left_s())
            if within_s < LEAST_S:
                return None
            body = await self._api.read_body(*key, within_s)
            if isinstance(body, Failed):
                return None
            try:
                if not isinstance(body, Missing) and self._watch.is_placed_in(group, requests.decode_pod(body)):
                    return True
            except MalformedError:
                return None
        return False


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / SECOND_NS
