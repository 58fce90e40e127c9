"""Watch of groups: what the mirror hears of pods and nodes goes to the index of groups, and then to the holders."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.groups.group import Group, Membership
from fairlead.groups.members import GroupChange, GroupIndex
from fairlead.logs import FaultError
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.mirror.pod_watcher import PodWatcher
from fairlead.mirror.resource_limits import usage_of
from fairlead.mirror.resource_requests import ENDED
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.group_membership import PlacedGroups, membership_of
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS

if TYPE_CHECKING:
    from fairlead.webhook.holding.held_binds import HeldBinds

LOG: Final = logging.getLogger(__name__)
_PLACED_AT_ONCE: Final = 500
"""Placed pods that are looked at before calls are answered again: pods that are alike take a microsecond each."""
_UNPLACED_AT_ONCE: Final = 20
"""The same of unplaced pods, for each of which rules are evaluated."""
_GATHER_S: Final = 0.1
"""Time to gather namespaces that change together."""


class GroupWatch(PodWatcher):
    """Groups of all pods of the mirror, by the policies that serve."""

    def __init__(self, mirror: Mirror, now: Callable[[], int], on_placed: Callable[[Group], None]) -> None:
        """`on_placed` is called with a group of which calls are held, and placed pods by the mirror, at news of those.

        `now` is the time of day in nanoseconds.
        """
        self.index: Final = GroupIndex()
        self.held_binds: Mapping[str, HeldBinds] = {}
        """Held calls by scheduler; none where this process does not hold."""
        self._mirror, self._now, self._on_placed = mirror, now, on_placed
        self._policies: PolicySet = policy_set(())
        self._placed = PlacedGroups(())
        self._all_are_due = False
        """Whether each pod is to be looked at, because the policies mean other groups."""
        self._changed: dict[str, bool] = {}
        """Namespaces whose unplaced pods are to be looked at, and whether their placed ones are, too."""
        self._looking: asyncio.Task[None] | None = None

    @property
    def schedulers(self) -> Iterable[str]:
        """Return the schedulers that have groups."""
        return self._placed.schedulers

    def use(self, policies: Sequence[CompiledPolicy]) -> None:
        """Take the groups of these policies from now on; `wait_until_looked` returns once each pod is in its group."""
        before, self._placed = self._placed, PlacedGroups(policies)
        self._policies = policy_set(one for one in policies if one.gangs)
        if self._placed:
            self._mirror.watchers.add(self)
        if self._placed.meaning != before.meaning:
            self._all_are_due = True
            self._look_soon()

    async def wait_until_looked(self) -> None:
        """Return once no pod is left to be looked at. The looking goes on if this is cancelled."""
        while self._looking is not None and not self._looking.done():
            await asyncio.wait({self._looking})

    def membership(self, pod: Any) -> Membership | None:
        """Return the membership of an unplaced pod that may be placed; None also if it cannot be decided."""
        if pod.metadata.deletionTimestamp is not None or pod.spec.schedulingGates:
            return None
        view = PodView(pod, self._mirror.namespace(str(pod.metadata.namespace)))
        matched = self._policies.matching(view, str(pod.spec.schedulerName), self._now())
        if not matched:
            return None
        try:  # sizes may depend on what it requests
            view.set_requests(self._mirror.request_of(pod), usage_of, self._mirror.granted_uid(pod))
        except ValueError:
            return None
        found = membership_of(view, matched)
        return found if isinstance(found, Membership) else None

    def is_placed_in(self, group: Group, pod: Any) -> bool:
        """Return whether a pod, as it was read, has a node, lives, and is in a group."""
        lives = (
            bool(pod.spec.nodeName) and str(pod.status.phase) not in ENDED and pod.metadata.deletionTimestamp is None
        )
        return lives and group in self._placed.of(pod, self._mirror.namespace(group.namespace))

    def namespace_changed(self, namespace: Any, before: Any | None) -> None:
        """Hear of a namespace: which policies apply to its pods, and what those say, may depend on it."""
        is_other = before is None or before.metadata.labels != namespace.metadata.labels
        name = str(namespace.metadata.name)
        self._changed[name] = self._changed.get(name, False) or (is_other and self._placed.reads_namespaces)
        self._look_soon()

    def put_unplaced(self, pod: Any, before: Any | None) -> None:
        """Hear of an unplaced pod."""
        uid = str(pod.metadata.uid)
        if before is not None and str(before.metadata.uid) != uid:
            self.remove_unplaced(before)
            before = None
        if pod.metadata.deletionTimestamp is not None:
            self.remove_unplaced(pod)
            return
        membership = self._put_unplaced(pod)
        held = self.held_binds.get(str(pod.spec.schedulerName))
        if held is None or membership is None:
            return
        held.pod_changed(uid, str(pod.metadata.resourceVersion))
        message = _unschedulable(pod)
        if message and before is not None and message != _unschedulable(before):
            held.unschedulable(uid, membership.group, message)

    def remove_unplaced(self, pod: Any) -> None:
        """Hear that an unplaced pod is gone, or has a node."""
        uid = str(pod.metadata.uid)
        self._tell(self.index.remove(uid))
        if (held := self.held_binds.get(str(pod.spec.schedulerName))) is not None:
            held.pod_deleted(uid)

    def put_placed(self, key: Key, entry: PodEntry) -> None:
        """Hear of a placed pod."""
        pod = entry.pod
        groups = () if pod.deleting else self._placed.of(pod, self._mirror.namespace(key[0]))
        self._tell_of_placed(self.index.put_placed(key, groups))

    def remove_placed(self, key: Key) -> None:
        """Hear that a placed pod is gone, or has ended."""
        self._tell_of_placed(self.index.remove_placed(key))
        self.node_joined()

    def node_joined(self) -> None:
        """Hear of a new node: room, as that of a pod that went."""
        for held in self.held_binds.values():
            held.room_came()

    def _put_unplaced(self, pod: Any) -> Membership | None:
        """Index an unplaced pod, and return its membership."""
        uid, membership = str(pod.metadata.uid), self.membership(pod)
        created = int(pod.metadata.creationTimestamp or 0) // SECOND_NS
        self._tell(self.index.put_known(uid, membership, int(pod.spec.priority or 0), created))
        if (held := self.held_binds.get(str(pod.spec.schedulerName))) is not None:
            held.regrouped(uid, membership)
        return membership

    def _tell(self, changes: Iterable[GroupChange]) -> None:
        for one in changes:
            if (held := self.held_binds.get(one.group.scheduler)) is not None:
                held.members_changed(one)

    def _tell_of_placed(self, changes: Iterable[GroupChange]) -> None:
        """Tell of placed pods that came or went. The one that was read may be the one that went, while others live."""
        if not self.held_binds:
            return
        self._tell(changes)
        for one in changes:
            if self.index.is_placed(one.group) and self._has_calls_of(one.group):
                self._on_placed(one.group)

    def _has_calls_of(self, group: Group) -> bool:
        held = self.held_binds.get(group.scheduler)
        return held is not None and held.has_calls_of(group)

    def _look_soon(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        """Look at pods whose groups may be others now."""
        while self._all_are_due or self._changed:
            if not self._all_are_due:
                await asyncio.sleep(_GATHER_S)
            looks_at_all, self._all_are_due = self._all_are_due, False
            changed, self._changed = self._changed, {}
            await self._look_at_placed(None if looks_at_all else {name for name, one in changed.items() if one})
            await self._look_at_unplaced(None if looks_at_all else changed.keys())
        if not self._placed:
            self._mirror.watchers.discard(self)

    async def _look_at_placed(self, namespaces: Collection[str] | None) -> None:
        """Look at the placed pods of these namespaces, in pieces; None stands for all."""
        if namespaces is not None and not namespaces:
            return
        pods = self._mirror.placed_sink.objects
        due = [key for key in pods if namespaces is None or key[0] in namespaces]
        for number, key in enumerate(due, 1):
            if (entry := pods.get(key)) is not None:
                try:
                    self.put_placed(key, entry)
                except Exception as error:  # one pod must not keep the others from their groups
                    LOG.exception("groups.fault", exc_info=FaultError(error))
            if not number % _PLACED_AT_ONCE:
                await asyncio.sleep(0)

    async def _look_at_unplaced(self, namespaces: Collection[str] | None) -> None:
        """Look at the unplaced pods of these namespaces, in pieces; None stands for all."""
        pods = self._mirror.unplaced_sink.objects
        due = [key for key in pods if namespaces is None or key[0] in namespaces]
        for number, key in enumerate(due, 1):
            if (pod := pods.get(key)) is not None:
                try:
                    self._put_unplaced(pod)
                except Exception as error:
                    LOG.exception("groups.fault", exc_info=FaultError(error))
            if not number % _UNPLACED_AT_ONCE:
                await asyncio.sleep(0)


def _unschedulable(pod: Any) -> str:
    """Return the message with which the scheduler says that a pod found no node; "" if it does not say so."""
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable":
            return str(one.message)
    return ""
