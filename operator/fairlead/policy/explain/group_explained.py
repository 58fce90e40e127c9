"""Group of a pod as filter sees it: the entry that gives it, its members, and what filter says to the pod."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal

import msgspec

from fairlead.groups.group import Group, Membership, UndecidedGroup, group_hash
from fairlead.groups.group_state import GroupState, state_of
from fairlead.groups.members import GroupIndex, PlacedKey
from fairlead.groups.turns import NO_TURNS, Turns, rejection
from fairlead.policy.compile.model import FILTER_PREFIX, CompiledPolicy, GangRule
from fairlead.policy.evaluate.group_membership import UNDECIDED, GangValues, PlacedGroups, gang_values, membership_of
from fairlead.policy.evaluate.matching import Matched, PolicySet
from fairlead.policy.explain.explainer import steps_of
from fairlead.policy.explain.explanation import Step
from fairlead.policy.views.placed_pod import PlacedPod
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS

GroupVerdict = Literal["Passes", "Rejects", "Undecided", "NotKnown"]
PODS_UNREAD: Final = "the pods of the cluster may not be read"
POLICY_UNREAD: Final = "the policy is not evaluated"


class GroupExplained(msgspec.Struct, frozen=True, kw_only=True):
    """Group of a pod, as far as it is known; programs read it as it is."""

    policy: str
    entry: str
    """Name of the entry of `binding.gang`."""
    value: str
    """Value of the group; "" if it cannot be told."""
    size: int | None = None
    """Largest size that a known member says, or this pod."""
    known: int | None = None
    """Number of known members, this pod among them."""
    started: bool | None = None
    """Whether a placed pod of it lives, beside this one."""
    state: GroupState | None = None
    held_members: int | None = msgspec.field(default=None, name="held")
    """Number of members whose bind calls are held, while it has the turn."""
    attempt: int | None = None
    """Number of its attempt, or while it rests of the one that failed."""
    verdict: GroupVerdict
    reason: str = ""
    """Reason for which filter rejects the pod on every node."""
    why: str = ""
    """Why the group cannot be decided, or is not known, with values of the pod."""

    @property
    def rule(self) -> str:
        """Name of the filter that rejects members."""
        return f"{FILTER_PREFIX}{self.entry}"

    @property
    def evicts_nothing(self) -> bool:
        """Return whether the pod evicts no pods, because its group has not started."""
        return self.verdict == "Undecided" or self.started is False


class GroupsOfPods:
    """Groups of the pods of a cluster at one time, by the policies of one set."""

    def __init__(self, policies: PolicySet, now: int) -> None:
        self.index: Final = GroupIndex()
        self.turns: Final = dict[str, Turns]()
        """What is published of the turns of each scheduler."""
        self.are_known = True
        """Whether all pods of the cluster were read."""
        self._policies: Final = policies
        self._now: Final = now
        self._placed: Final = PlacedGroups(policies.policies)
        self._of_placed: Final = dict[PlacedKey, tuple[Group, ...]]()

    def __bool__(self) -> bool:
        return bool(self._placed)

    def put_placed(self, pod: PlacedPod, namespace: Any | None) -> None:
        """Add a pod that is on a node."""
        if not pod.deleting and (groups := self._placed.of(pod, namespace)):
            key = pod.namespace, pod.name
            self._of_placed[key] = groups
            self.index.put_placed(key, groups)

    def put_unplaced(self, pod: PodView, scheduler: str) -> None:
        """Add a pod without a node."""
        if _may_be_placed(pod):
            found = membership_of(pod, self._policies.matching(pod, scheduler, self._now))
            self.index.put_known(_identity(pod), found if isinstance(found, Membership) else None)

    def start(self, group: Group) -> None:
        """Let a group have started without a pod that shows it."""
        self.index.put_placed((group.namespace, f"{group.scheduler}/{group.value}"), (group,))

    def explain(
        self, pod: PodView, matched: Sequence[Matched], unread: Iterable[CompiledPolicy] = ()
    ) -> GroupExplained | None:
        """Return the group of a pod, as if the pod had no node; None if it is in none.

        `unread` are policies that may apply to the pod and are not evaluated.
        """
        if pod.pod.spec.schedulingGroup:
            return None
        if policy := next((one for one in unread if one.gangs), None):
            entry = policy.gangs[0].name
            return GroupExplained(policy=policy.name, entry=entry, value="", verdict="NotKnown", why=POLICY_UNREAD)
        found = membership_of(pod, matched) if self else None
        if isinstance(found, UndecidedGroup):
            return _undecided(found, pod, matched)
        return None if found is None else self._of_member(found, pod)

    def _of_member(self, membership: Membership, pod: PodView) -> GroupExplained:
        group, policy, entry = membership.group, membership.policy, membership.gang
        if not self.are_known:
            size = membership.size
            return GroupExplained(
                policy=policy, entry=entry, value=group.value, size=size, verdict="NotKnown", why=PODS_UNREAD
            )
        turns, now_s = self.turns.get(group.scheduler, NO_TURNS), self._now / SECOND_NS
        with self._without_placement((pod.namespace, pod.name)):
            uid, index = _identity(pod), self.index
            reason = rejection(uid, membership, index, turns, now_s) or ""
            is_new = index.group_of(uid) != group and _may_be_placed(pod)
            started, known = index.is_placed(group), index.known(group) + is_new
            state = state_of(group, turns, now_s, is_placed=started)
            turn = turns.turn if state == "Turn" else None
            rest = turns.rests.get(group_hash(group)) if state == "Resting" else None
            return GroupExplained(
                policy=policy,
                entry=entry,
                value=group.value,
                size=max(index.size(group), membership.size),
                known=known,
                started=started,
                state=state,
                held_members=None if turn is None else turn.held_members,
                attempt=next((one.attempt for one in (turn, rest) if one is not None), None),
                verdict="Rejects" if reason else "Passes",
                reason=reason,
            )

    @contextmanager
    def _without_placement(self, key: PlacedKey) -> Iterator[None]:
        """Leave out a pod while it is looked at as if it had no node."""
        groups = self._of_placed.get(key, ())
        self.index.remove_placed(key)
        try:
            yield
        finally:
            self.index.put_placed(key, groups)


def group_steps(group: GroupExplained, pod: PodView, matched: Sequence[Matched], now: int) -> list[Step]:
    """Return what the entry of a pod's group computed for it."""
    rule = _rule_of(group.policy, group.entry, matched)
    return [] if rule is None else [*steps_of(rule.group, pod, None, now), *steps_of(rule.size, pod, None, now)]


def _may_be_placed(pod: PodView) -> bool:
    return pod.pod.metadata.deletionTimestamp is None and not pod.pod.spec.schedulingGates


def _identity(pod: PodView) -> str:
    """Return the UID; pods that people wrote have none."""
    return pod.uid or f"{pod.namespace}/{pod.name}"


def _rule_of(policy: str, entry: str, matched: Sequence[Matched]) -> GangRule | None:
    rules = (rule for each in matched if each.policy.name == policy for rule in each.policy.gangs)
    return next((rule for rule in rules if rule.name == entry), None)


def _undecided(undecided: UndecidedGroup, pod: PodView, matched: Sequence[Matched]) -> GroupExplained:
    rule, values, why = _rule_of(undecided.policy, undecided.gang, matched), GangValues(), undecided.why
    is_sure = all(each.undecided is None for each in matched if each.policy.name == undecided.policy)
    if rule is not None and is_sure and (error := (values := gang_values(rule, pod)).error) is not None:
        why = f"{error}{f' ({error.detail})' if error.detail else ''}"
    return GroupExplained(
        policy=undecided.policy,
        entry=undecided.gang,
        value=values.value,
        size=values.size,
        verdict="Undecided",
        reason=UNDECIDED,
        why=why,
    )
