"""Report on the measured values of the policies that serve, computed from their times on request."""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from fairlead.api.data import DataEntry
from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.metrics import Labels, Metrics
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import data_in_force
from fairlead.policy.nodes.measured_summary import MeasuredSummary, node_values, summarize
from fairlead.policy.nodes.measured_table import FUTURE, STALE, MeasuredEntry, TableKey
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import Poll
from fairlead.replica_state import DataEntryState, FaultState
from fairlead.time_units import SECOND_NS
from fairlead.webhook.data_sources.poller import PollStatus
from fairlead.webhook.measured_data.usable_nodes import PodNamespace, UsableNodes, namespaces_of

PAIRS_MAX: Final = 512
"""Pairs of policy and entry that have metrics of their own."""
SPENT_S: Final = 0.05
"""Time that summaries may take in a second."""
_KEPT_NS: Final = 600 * SECOND_NS
_SOURCE_MAX: Final = 256
_TEXT_MAX: Final = 512
_NOT_ASKED: Final = PollStatus()
_WITHOUT_TIME: Final = "the document has no time `at`, so that its values count as too old: add it, or drop maxAge"
_NO_NAMESPACES: Final[Mapping[str, Any]] = MappingProxyType({})
_Like: TypeAlias = tuple[TableKey, int | None, bool, int | None, str]
"""Key of entries with equal summaries: table, greatest age, whether there is no default, up to which age of a node it
holds, and the policy if its pods may use some nodes only."""


@dataclass(frozen=True, slots=True, eq=False)
class _Basis:
    """Basis of the nodes that pods of a policy may use."""

    policy: CompiledPolicy
    others: tuple[CompiledPolicy, ...]
    namespaces: Sequence[PodNamespace]

    def is_as(self, other: "_Basis") -> bool:
        """Return whether nothing has changed: compiled policies and namespaces are replaced, never changed."""
        mine = (self.policy, *self.others, *(one.object for one in self.namespaces))
        theirs = (other.policy, *other.others, *(one.object for one in other.namespaces))
        names = [one.name for one in self.namespaces] == [one.name for one in other.namespaces]
        return names and len(mine) == len(theirs) and all(map(operator.is_, mine, theirs))


class DataReport:
    """Report on what is measured for the policies that serve in this process."""

    def __init__(
        self,
        serving: Callable[[], Iterable[CompiledPolicy]],
        nodes: Nodes,
        polls: Callable[[], Mapping[Poll, PollStatus]],
        now: Callable[[], int],
        clock: Callable[[], float] = perf_counter,
        namespaces: Mapping[str, Any] = _NO_NAMESPACES,
    ) -> None:
        """Report on what is `serving`; `now` is the time of day in nanoseconds, `namespaces` are the cluster's."""
        self._serving, self._nodes, self._polls, self._now, self._clock = serving, nodes, polls, now, clock
        self._known: dict[_Like, tuple[int, MeasuredSummary]] = {}
        """Summaries, with the times at which they were made."""
        self._began_ns, self._spent_s = 0, 0.0
        self._namespaces = namespaces
        self._usable: dict[str, tuple[_Basis, UsableNodes]] = {}
        self._bases: dict[str, _Basis] = {}
        """Bases of the usable nodes, as they were in the current second."""

    def entries(self, limit: int | None = None) -> Mapping[str, tuple[DataEntryState, ...]]:
        """Return the state of each measured entry by policy, of the first ones up to a limit."""
        polls, now = self._polls(), self._now()
        if abs(now - self._began_ns) >= SECOND_NS:  # several metrics are asked for at one moment
            self._began_ns, self._spent_s = now, 0.0
            self._known = {like: one for like, one in self._known.items() if abs(now - one[0]) < _KEPT_NS}
            served = {policy.name for policy in self._serving()}
            self._usable = {name: one for name, one in self._usable.items() if name in served}
            self._bases = {}
        asked = [
            (policy, entry, measured, self._like(policy, entry, measured))
            for policy, entry, measured in islice(self._measured(), limit)
        ]
        self._summarize({like: (measured, self._usable_of(policy)) for policy, _, measured, like in asked}, now)
        made = dict[str, list[DataEntryState]]()
        in_force = {policy.name: data_in_force(policy) for policy in self._serving()}
        for policy, entry, measured, like in asked:
            if (known := self._known.get(like)) is not None:
                poll = measured.key.poll
                decides = entry in in_force[policy.name]
                state = _state(entry, poll, known[1], polls.get(poll, _NOT_ASKED), now, decides=decides)
                made.setdefault(policy.name, []).append(state)
        return {name: tuple(found) for name, found in made.items()}

    def _like(self, policy: CompiledPolicy, entry: DataEntry, measured: MeasuredEntry) -> _Like:
        by = "" if self._usable_of(policy) is None else policy.name
        return measured.key, entry.greatest_age_s, entry.default is None, entry.default_for_s, by

    def _summarize(self, wanted: Mapping[_Like, tuple[MeasuredEntry, UsableNodes | None]], now: int) -> None:
        """Make the summaries that are old anew, as far as there is time: calls wait meanwhile.

        The oldest come first, so that the others have their turn when the report is asked for again.
        """
        known = self._known
        old = [like for like in wanted if like not in known or abs(now - known[like][0]) >= SECOND_NS]
        for like in sorted(old, key=lambda like: known[like][0] if like in known else 0):
            if self._spent_s >= SPENT_S:
                return
            began = self._clock()
            measured, usable = wanted[like]
            known[like] = now, summarize(measured, self._nodes, now, usable)
            self._spent_s += self._clock() - began

    def register(self, metrics: Metrics) -> None:
        """Register the metrics, which are computed at each scrape."""

        def of_each(number: Callable[[DataEntryState], float | None]) -> Callable[[], Mapping[Labels, float]]:
            return lambda: {
                (policy, one.name): value
                for policy, found in self.entries(PAIRS_MAX).items()
                for one in found
                if (value := number(one)) is not None
            }

        def failures() -> Mapping[Labels, float]:
            polls = self._polls()
            return {
                (policy.name, entry.name): polls.get(measured.key.poll, _NOT_ASKED).failures
                for policy, entry, measured in islice(self._measured(), PAIRS_MAX)
            }

        metrics.gauge(
            "fairlead_data_oldest_value_age_seconds",
            "Age of the oldest value that was measured for an entry of a policy's data.",
            "policy",
            "entry",
            ask=of_each(lambda one: one.oldest_s),
        )
        metrics.gauge(
            "fairlead_data_nodes_without_value",
            "Nodes without a usable value for an entry of a policy's data, and without its default.",
            "policy",
            "entry",
            ask=of_each(lambda one: sum(fault.nodes for fault in one.faults)),
        )
        metrics.gauge(
            "fairlead_data_nodes_in_the_future",
            "Nodes whose value for an entry of a policy's data has a time in the future, so that it is not used.",
            "policy",
            "entry",
            ask=of_each(lambda one: sum(fault.nodes for fault in one.faults if fault.why == FUTURE)),
        )
        metrics.gauge(
            "fairlead_data_failed_polls",
            "Failed polls of the source of an entry of a policy's data.",
            "policy",
            "entry",
            ask=failures,
            grows=True,
        )

    def _usable_of(self, policy: CompiledPolicy) -> UsableNodes | None:
        """Return the nodes that pods of a policy may use; None if these are all."""
        basis = self._bases.get(policy.name)
        if basis is None or basis.policy is not policy:
            others = (one for one in self._serving() if one.scheduler_name == policy.scheduler_name and one.filters)
            basis = self._bases[policy.name] = _Basis(policy, tuple(others), namespaces_of(policy, self._namespaces))
        known = self._usable.get(policy.name)
        if known is None or not known[0].is_as(basis):
            known = self._usable[policy.name] = basis, UsableNodes(policy, basis.others, basis.namespaces)
        return None if known[1].are_all else known[1]

    def values(self, policy: str, entry: str) -> Mapping[str, Any] | None:
        """Return the values of an entry by node, as plain data; None if no policy that serves has it."""
        now = self._now()
        for one, declared, measured in self._measured():
            if (one.name, declared.name) == (policy, entry):
                return {
                    "policy": policy,
                    "entry": entry,
                    "source": measured.key.poll.name,
                    "now": timestamp_to_string(now),
                    "nodes": dict(sorted(self._values(measured, now))),
                }
        return None

    def _values(self, measured: MeasuredEntry, now: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for one in node_values(measured, self._nodes, now):
            found: dict[str, Any] = {"fault": one.fault} if one.value is None else {"value": one.value}
            if one.is_default:
                found["default"] = True
            if one.at is not None:
                found |= {"time": timestamp_to_string(one.at), "ageSeconds": round((now - one.at) / SECOND_NS, 3)}
            yield one.name, found

    def _measured(self) -> Iterator[tuple[CompiledPolicy, DataEntry, MeasuredEntry]]:
        for policy in sorted(self._serving(), key=lambda one: one.name):
            if policy.evaluated:
                by_name = {entry.name: entry for entry in policy.data}
                for measured in self._nodes.measurements.entries(policy.data):
                    yield policy, by_name[measured.name], measured


def _state(
    entry: DataEntry, poll: Poll, summary: MeasuredSummary, status: PollStatus, now: int, *, decides: bool
) -> DataEntryState:
    note = status.note
    if poll.is_whole and summary.oldest_s is None and any(one.why == STALE for one in summary.faults):
        note = note or _WITHOUT_TIME
    since = status.succeeded_at
    return DataEntryState(
        name=entry.name,
        source=poll.name[:_SOURCE_MAX],
        interval_s=entry.interval_s or 0,
        greatest_age_s=entry.greatest_age_s or 0,
        answered=status.is_answered,
        succeeded_s_ago=None if since is None else max(0, now - since) // SECOND_NS,
        error=status.error[:_TEXT_MAX],
        note=note[:_TEXT_MAX],
        failures=status.failures,
        nodes=summary.nodes,
        with_value=summary.with_value,
        on_default=summary.on_default,
        young=summary.young,
        oldest_s=summary.oldest_s,
        median_s=summary.median_s,
        faults=tuple(FaultState(why=one.why, nodes=one.nodes, names=one.names) for one in summary.faults),
        decides=decides,
    )
