"""Watch of groups: what the mirror hears of pods and nodes goes to the index of groups, and then to the holders."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.groups.group import Group, Membership
from fairlead.groups.members import GroupChange, GroupIndex
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.mirror.pod_watcher import PodWatcher
from fairlead.mirror.resource_requests import ENDED
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.group_membership import PlacedGroups, membership_of
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS

if TYPE_CHECKING:
    from fairlead.webhook.holding.held_binds import HeldBinds

_AT_ONCE: Final = 500
"""Pods that are looked at before calls are answered again."""
_GATHER_S: Final = 0.1
"""Time to gather namespaces that change together."""


class GroupWatch(PodWatcher):
    """Groups of all pods of the mirror, by the policies that serve."""

    def __init__(self, mirror: Mirror, now: Callable[[], int], on_placed: Callable[[Group], None]) -> None:
        """`on_placed` is called with a group of which calls are held, when a placed pod of it is heard of."""
        self.index: Final = GroupIndex()
        self.held: Mapping[str, HeldBinds] = {}
        """Held calls by scheduler; none where this process does not hold."""
        self._mirror, self._now, self._on_placed = mirror, now, on_placed
        self._policies: PolicySet = policy_set(())
        self._placed = PlacedGroups(())
        self._changed = set[str]()
        """Namespaces whose pods are to be looked at."""
        self._looking: asyncio.Future[None] | None = None

    @property
    def schedulers(self) -> Iterable[str]:
        """Return the schedulers that have groups."""
        return self._placed.schedulers

    async def use(self, policies: Sequence[CompiledPolicy]) -> None:
        """Take the groups of these policies from now on; return once each pod was looked at."""
        before, self._placed = self._placed, PlacedGroups(policies)
        self._policies = policy_set(one for one in policies if one.gangs)
        watchers = self._mirror.watchers
        if self._placed and self not in watchers:
            watchers.append(self)
        if self._placed.meaning != before.meaning:
            await self._look_at_all(lambda _: True)
        if not self._placed and self in watchers:
            watchers.remove(self)

    async def _look_at_all(self, is_meant: Callable[[str], bool]) -> None:
        """Look at the pods of these namespaces, in pieces."""
        placed, unplaced = self._mirror.placed_sink.objects, self._mirror.unplaced_sink.objects
        for number, key in enumerate([*placed], 1):
            if is_meant(key[0]) and (entry := placed.get(key)) is not None:
                self.put_placed(key, entry)
            if not number % _AT_ONCE:
                await asyncio.sleep(0)
        for number, key in enumerate([*unplaced], 1):
            if is_meant(key[0]) and (pod := unplaced.get(key)) is not None:
                self._put(pod)
            if not number % _AT_ONCE:
                await asyncio.sleep(0)

    def namespace_changed(self, name: str) -> None:
        """Hear of a namespace: its labels may decide which policies apply to its pods."""
        if not self._placed.reads_namespaces:
            return
        self._changed.add(name)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look_at_changed())

    async def _look_at_changed(self) -> None:
        while self._changed:
            await asyncio.sleep(_GATHER_S)
            changed, self._changed = self._changed, set()
            await self._look_at_all(changed.__contains__)

    def membership(self, pod: Any) -> Membership | None:
        """Return the membership of an unplaced pod that may be placed; None also if it cannot be decided."""
        if pod.metadata.deletionTimestamp is not None or pod.spec.schedulingGates:
            return None
        view = PodView(pod, self._mirror.namespace(str(pod.metadata.namespace)))
        matched = self._policies.matching(view, str(pod.spec.schedulerName), self._now())
        found = membership_of(view, matched) if matched else None
        return found if isinstance(found, Membership) else None

    def is_placed_in(self, group: Group, pod: Any) -> bool:
        """Return whether a pod, as it was read, has a node, lives, and is in a group."""
        lives = (
            bool(pod.spec.nodeName) and str(pod.status.phase) not in ENDED and pod.metadata.deletionTimestamp is None
        )
        return lives and group in self._placed.of(pod, self._mirror.namespace(group.namespace))

    def put_unplaced(self, pod: Any, before: Any | None) -> None:
        """Hear of an unplaced pod."""
        uid = str(pod.metadata.uid)
        if before is not None and str(before.metadata.uid) != uid:
            self.remove_unplaced(before)
            before = None
        if pod.metadata.deletionTimestamp is not None:
            self.remove_unplaced(pod)
            return
        membership = self._put(pod)
        held = self.held.get(str(pod.spec.schedulerName))
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
        if (held := self.held.get(str(pod.spec.schedulerName))) is not None:
            held.pod_deleted(uid)

    def put_placed(self, key: Key, entry: PodEntry) -> None:
        """Hear of a placed pod."""
        pod = entry.pod
        groups = () if pod.deleting else self._placed.of(pod, self._mirror.namespace(key[0]))
        changes = self.index.put_placed(key, groups)
        self._tell(changes)
        for one in changes:
            if one.placed and self._has_calls_of(one.group):
                self._on_placed(one.group)

    def remove_placed(self, key: Key) -> None:
        """Hear that a placed pod is gone, or has ended."""
        self._tell(self.index.remove_placed(key))
        self.node_joined()

    def node_joined(self) -> None:
        """Hear of a new node: room, as that of a pod that went."""
        for held in self.held.values():
            held.room_came()

    def _put(self, pod: Any) -> Membership | None:
        """Index an unplaced pod, and return its membership."""
        uid, membership = str(pod.metadata.uid), self.membership(pod)
        created = int(pod.metadata.creationTimestamp or 0) // SECOND_NS
        self._tell(self.index.put_known(uid, membership, int(pod.spec.priority or 0), created))
        if (held := self.held.get(str(pod.spec.schedulerName))) is not None:
            held.regrouped(uid, membership)
        return membership

    def _tell(self, changes: Iterable[GroupChange]) -> None:
        for one in changes:
            if (held := self.held.get(one.group.scheduler)) is not None:
                held.members_changed(one)

    def _has_calls_of(self, group: Group) -> bool:
        held = self.held.get(group.scheduler)
        return held is not None and held.has_calls_of(group)


def _unschedulable(pod: Any) -> str:
    """Return the message with which the scheduler says that a pod found no node; "" if it does not say so."""
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable":
            return str(one.message)
    return ""
