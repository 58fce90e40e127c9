"""Overview of groups: the state of each, what it waits for, and its members.

The pods say what a replica knows that has seen the same ones. Turns and rests are those that holders have published.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.grants.entry import Domain
from fairlead.groups.group import Group, Membership, UndecidedGroup, group_hash
from fairlead.groups.group_state import GroupState, state_of
from fairlead.groups.turns import NO_TURNS, PublishedTurn, Turns
from fairlead.policy.evaluate.group_membership import PlacedGroups, membership_of
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.views.placed_pod import placed_at
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS

_GATED: Final = "SchedulingGated"
_CLOCK: Final = len("2027-01-15T")


class MemberState(Enum):
    """State of a pod of a group."""

    PLACED = "Placed"
    """It has a node and lives: its group has started."""
    KNOWN = "Known"
    """It waits for a node, and counts."""
    GATED = "Gated"
    """It has scheduling gates, so that it does not count."""
    DELETING = "Deleting"
    """It is being deleted, so that it does not count."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Pod of a group."""

    name: str
    state: MemberState
    size: int = 0
    """Size of the group, as this pod says; 0 if that is not known."""
    node: str = ""
    since: int | None = None
    """Moment at which it was placed, or else created."""
    refusal: str = ""
    """Text with which its scheduler has said last that it found no node, or could not bind it."""
    gates: Sequence[str] = ()
    uid: str = ""
    held_on: str = ""
    """Node at which its bind call is held, or its Binding is being posted; "" without."""


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Group, as far as it can be seen."""

    group: Group
    state: GroupState
    members: Sequence[GroupMember]
    size: int
    """Members that must find room together; 0 if that is not known, as of pods that all have started."""
    since: int | None
    """Moment at which its turn began, the first of its pods was placed, or else the oldest that waits was created."""
    until: int | None = None
    """Moment at which its turn ends at the latest, or its rest; None without."""
    held_members: int = 0
    """Members that are held; 0 without the turn."""
    attempt: int = 0
    """Number of its attempt, or while it rests of the one that failed; else 0."""
    waits_for: str = ""
    """What it waits for, in words; "" if it has started."""
    domain: Domain | None = None
    """Domain that its members share, if a policy requires that; None while no member is placed, or about to be."""

    def count(self, state: MemberState) -> int:
        """Return the number of members in a state."""
        return sum(one.state is state for one in self.members)

    @property
    def known(self) -> int:
        """Return the number of members that wait for a node and count."""
        return self.count(MemberState.KNOWN)

    @property
    def name(self) -> str:
        """Return namespace and value."""
        return _name(self.group)


class UndecidedPod(NamedTuple):
    """Unplaced pod of which it cannot be told which group it is in: it is refused on every node."""

    namespace: str
    name: str
    why: str


class GroupOverview(NamedTuple):
    """Groups, and the pods of which they cannot be told."""

    groups: Sequence[GroupSummary]
    """By their schedulers and states, and then by their names."""
    undecided: Sequence[UndecidedPod]


def group_overview(pods: Iterable[PodView], policies: PolicySet, turns: Mapping[str, Turns], now: int) -> GroupOverview:
    """Return the groups of pods that have not ended. `turns` are those that are published, by scheduler."""
    sorted_pods = _SortedPods(policies, now)
    for pod in pods:
        sorted_pods.put(pod)
    names = {(one.scheduler, group_hash(one)): _name(one) for one in sorted_pods.members}
    groups = [
        _summary(group, members, turns.get(group.scheduler), names, now)
        for group, members in sorted_pods.members.items()
        if any(one.state is not MemberState.DELETING for one in members)
    ]
    groups.sort(key=lambda one: (one.group.scheduler, _ORDER.index(one.state), one.group.namespace, one.group.value))
    return GroupOverview(groups, sorted(sorted_pods.undecided))


_ORDER: Final[Sequence[GroupState]] = ("Turn", "Resting", "Waiting", "Started")


class _SortedPods:
    """Pods by their groups."""

    def __init__(self, policies: PolicySet, now: int) -> None:
        self._policies, self._now = policies, now
        self._placed = PlacedGroups(policies.policies)
        self.members: Final = defaultdict[Group, list[GroupMember]](list)
        self.undecided: Final = list[UndecidedPod]()

    def put(self, pod: PodView) -> None:
        scheduler = str(pod.pod.spec.schedulerName) or CLUSTERS_OWN_SCHEDULER
        matched = self._policies.matching(pod, scheduler, self._now)
        membership = membership_of(pod, matched) if matched else None
        if pod.pod.spec.nodeName:
            # Replicas do not see which scheduler has placed it, so that it may be in a group of each.
            for group in self._placed.of(pod.pod, pod.namespaceObject if pod.knows_namespace else None):
                own = membership if isinstance(membership, Membership) and membership.group == group else None
                self.members[group].append(_member(pod, 0 if own is None else own.size))
        elif isinstance(membership, UndecidedGroup):
            if pod.pod.metadata.deletionTimestamp is None:
                self.undecided.append(UndecidedPod(pod.namespace, pod.name, membership.why))
        elif membership is not None:
            self.members[membership.group].append(_member(pod, membership.size))


def _member(view: PodView, size: int) -> GroupMember:
    pod = view.pod
    node, gates = str(pod.spec.nodeName), [str(one.name) for one in pod.spec.schedulingGates]
    if pod.metadata.deletionTimestamp is not None:
        state = MemberState.DELETING
    elif node:
        state = MemberState.PLACED
    else:
        state = MemberState.GATED if gates else MemberState.KNOWN
    since = placed_at(pod) if node else pod.metadata.creationTimestamp
    return GroupMember(view.name, state, size, node, since, "" if node else _refusal(pod), gates, str(pod.metadata.uid))


def _refusal(pod: Any) -> str:
    """Return the text with which the scheduler has refused a pod; "" if it has not."""
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False" and one.reason != _GATED:
            return str(one.message)
    return ""


def _summary(
    group: Group,
    members: Sequence[GroupMember],
    turns: Turns | None,
    names: Mapping[tuple[str, str], str],
    now: int,
) -> GroupSummary:
    by_state = {state: [one for one in members if one.state is state] for state in MemberState}
    known, placed, gated = (by_state[one] for one in (MemberState.KNOWN, MemberState.PLACED, MemberState.GATED))
    sizes = (max((one.size for one in each), default=0) for each in (known, placed, gated))
    size, first = next(filter(None, sizes), 0), _first(placed or [*known, *gated])
    published, now_s = turns or NO_TURNS, now / SECOND_NS
    state = state_of(group, published, now_s, is_placed=bool(placed))
    turn, rest = published.turn, published.rests.get(group_hash(group))
    if state == "Turn" and turn is not None:
        members = [replace(one, held_on=turn.nodes.get(one.uid, "")) for one in members]
    summary = partial(GroupSummary, group, state, sorted(members, key=lambda one: one.name))
    if state == "Started":
        return summary(size, first)
    if state == "Turn" and turn is not None:
        waits_for = f"{_room_or_bindings(turn)} (attempt {turn.attempt})"
        return summary(turn.size, _ns(turn.since), _ns(turn.until), turn.held_members, turn.attempt, waits_for)
    missing = f"{_more(size - len(known))}{_not_counted(len(gated))}" if len(known) < size else ""
    if state == "Resting" and rest is not None:
        until = _ns(rest.until)
        waits_for = f"its rest until {_time(until)} (attempt {rest.attempt})"
        also = f", and {missing}" if missing else ""
        return summary(size, first, until, attempt=rest.attempt, waits_for=waits_for + also)
    return summary(size, first, waits_for=missing or _turn_of_others(group, turns, names, now_s))


def _room_or_bindings(turn: PublishedTurn) -> str:
    left = turn.size - turn.held_members
    return f"{_more(left)} to find room, until {_time(_ns(turn.until))}" if left > 0 else "its Bindings"


def _turn_of_others(group: Group, turns: Turns | None, names: Mapping[tuple[str, str], str], now_s: float) -> str:
    """Return what a complete group waits for that neither has the turn nor rests."""
    if turns is None:
        return "unknown: nothing of the turn is published"
    turn, preferred = turns.turn, turns.preferred
    if turn is not None and now_s < turn.until:
        return f"the turn of {names.get((group.scheduler, turn.group), 'a group that is not seen')}"
    if preferred is not None and now_s < preferred.until and preferred.group != group_hash(group):
        first = names.get((group.scheduler, preferred.group), "a group that is not seen")
        return f"{first}, which is tried first until {_time(_ns(preferred.until))}"
    return "the scheduler, which tries its pods next"


def _first(members: Iterable[GroupMember]) -> int | None:
    return min((one.since for one in members if one.since is not None), default=None)


def _more(count: int) -> str:
    return f"{count} more member{'' if count == 1 else 's'}"


def _not_counted(gated: int) -> str:
    return f" ({gated} with scheduling gates {'does' if gated == 1 else 'do'} not count)" if gated else ""


def _ns(unix_s: float) -> int:
    return round(unix_s * 1000) * (SECOND_NS // 1000)


def _time(moment: int) -> str:
    """Return the time of day in whole seconds."""
    return timestamp_to_string(moment // SECOND_NS * SECOND_NS)[_CLOCK:]


def _name(group: Group) -> str:
    return f"{group.namespace}/{group.value}"
