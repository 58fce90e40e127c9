"""Metrics of groups: how many there are in each state, how long they wait and are held, and how attempts end."""

from collections.abc import Callable, Mapping
from typing import Final, get_args

from fairlead.groups.group import Group
from fairlead.groups.group_state import GroupState, state_of
from fairlead.groups.member_calls import AttemptEnded, AttemptResult
from fairlead.groups.members import GroupIndex
from fairlead.metrics import LONG_BUCKETS, Counter, Histogram, Labels, Metrics
from fairlead.time_units import SECOND_NS
from fairlead.webhook.holding.held_binds import HeldBinds

STATES: Final[tuple[GroupState, ...]] = get_args(GroupState)


class GroupMetrics:
    """Metrics of the groups that a replica sees. What each group does is shown by the replica that holds alone."""

    def __init__(
        self, index: GroupIndex, held_binds: Mapping[str, HeldBinds], now: Callable[[], int], clock: Callable[[], int]
    ) -> None:
        """`held_binds` are the held calls by scheduler; `now` is the time of day, `clock` that of holders."""
        self._index, self._held, self._now, self._clock = index, held_binds, now, clock
        self._complete_since = dict[Group, int]()
        """Moments at which groups that have not started were first seen complete, also while another replica holds."""
        self._attempts: Final = Counter(
            "fairlead_group_attempts",
            "Attempts to place a group, by the scheduler and how each ended.",
            ("scheduler", "result"),
        )
        self._hold_seconds: Final = Histogram(
            "fairlead_group_hold_seconds",
            "Time from the first held call of a group to its last Binding, of the attempts that started it.",
            ("scheduler",),
            LONG_BUCKETS,
        )

    def begin(self, scheduler: str) -> None:
        """Expose what is counted of a scheduler: Prometheus sees no increase in a series that begins with 1."""
        self._hold_seconds.begin(scheduler)
        for result in AttemptResult:
            self._attempts.add(scheduler, result.value, amount=0)

    def attempt_ended(self, ended: AttemptEnded) -> None:
        """Count an attempt."""
        scheduler = ended.group.scheduler
        self._attempts.add(scheduler, ended.result.value)
        if ended.result is AttemptResult.STARTED:
            self._hold_seconds.observe((self._clock() - ended.began) / SECOND_NS, scheduler)

    def register(self, metrics: Metrics) -> None:
        """Register them."""
        metrics.add(self._attempts, self._hold_seconds)
        metrics.gauge(
            "fairlead_groups",
            "Groups by scheduler and state, on the replica that holds: Waiting, Turn, Resting or Started.",
            "scheduler",
            "state",
            ask=self._states,
        )
        metrics.gauge(
            "fairlead_group_longest_wait_seconds",
            "Time for which the group that has waited longest is complete and has not started, by scheduler, on the "
            "replica that holds.",
            "scheduler",
            ask=self._longest_waits,
        )
        metrics.gauge(
            "fairlead_held_binds",
            "Bind calls of members that wait for the others of their group.",
            "scheduler",
            ask=lambda: {(name,): len(held) for name, held in self._held.items()},
        )

    def _states(self) -> Mapping[Labels, float]:
        now_s = self._now() / SECOND_NS
        turns = {scheduler: held.turns(now_s) for scheduler, held in self._held.items()}
        counts: dict[Labels, float] = {(scheduler, state): 0 for scheduler in turns for state in STATES}
        for group in self._index.placed_groups():
            if group.scheduler in turns:
                counts[group.scheduler, "Started"] += 1
        for group in self._index.groups():
            if group.scheduler in turns and not self._index.is_placed(group):
                counts[group.scheduler, state_of(group, turns[group.scheduler], now_s, is_placed=False)] += 1
        return counts

    def _longest_waits(self) -> Mapping[Labels, float]:
        now, index, before = self._clock(), self._index, self._complete_since
        complete = (one for one in index.groups() if index.is_complete(one) and not index.is_placed(one))
        self._complete_since = {group: before.get(group, now) for group in complete}
        longest: dict[Labels, float] = {(scheduler,): 0.0 for scheduler in self._held}
        for group, since in self._complete_since.items():
            if (labels := (group.scheduler,)) in longest:
                longest[labels] = max(longest[labels], (now - since) / SECOND_NS)
        return longest
