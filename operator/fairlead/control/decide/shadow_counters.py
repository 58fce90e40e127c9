"""Counters of rules in shadow, one for each process of the operator; pure.

A process counts for itself and only ever adds, so what it says twice, late or to two leaders is merged by the maximum,
and the sums are those over the processes. To fold a process into `earlier` is the one step that must not be done twice:
what is decided here is written only in place of the version that it was decided from.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.replica_state import ShadowCounts

RuleKey = tuple[str, str]
"""Kind and name of a rule."""
Counts = Mapping[tuple[RuleKey, str], int]
"""Numbers by rule and by what is counted; those of all rules together by `ALL`."""
ALL: Final[RuleKey] = ("", "")
SUMS: Final = (
    "calls",
    "skipped",
    "unknown",
    "pods",
    "restricted",
    "unschedulable",
    "reordered",
    "evictions",
    "too_slow",
)
"""Numbers that are counted for all rules together."""
OF_RULES: Final = ("pods", "unschedulable")
"""Numbers that are counted for each rule."""
PROCESSES_MAX: Final = 10
FOLDED_MAX: Final = 16
"""Folded processes that are remembered, so that a leader that was away does not count one of them again."""
RULES_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowRecord:
    """Counters of one generation of a policy."""

    generation: int
    since: str
    """Time at which counting began."""
    rules: tuple[RuleKey, ...] = ()
    """Rules that are counted, in the order in which they are written."""
    processes: Mapping[str, Counts] = field(default_factory=dict)
    """Counts of each process, in the order in which they were first seen."""
    earlier: Counts = field(default_factory=dict)
    """Sums of the processes that were folded."""
    folded: tuple[str, ...] = ()
    """The last of those processes."""

    @property
    def sums(self) -> Counts:
        """Sums over all processes."""
        found = self.earlier
        for counts in self.processes.values():
            found = _added(found, counts)
        return found


def counts_of(counts: ShadowCounts) -> Counts:
    """Return what a process reports, by rule."""
    found = {(ALL, what): getattr(counts, what) for what in SUMS}
    for rule in counts.rules:
        found |= {((rule.kind, rule.name), what): getattr(rule, what) for what in OF_RULES}
    return found


def merged(
    before: ShadowRecord | None,
    reports: Iterable[tuple[str, ShadowCounts]],
    living: Collection[str] | None,
    now: str,
    fits: Callable[[ShadowRecord], bool] = lambda _: True,
) -> ShadowRecord | None:
    """Return a record with what processes report, each by its name; None if there was none and none of them counts.

    The newest generation is counted, from zero. `living` are the processes that there are, None if one of them may be
    unknown; the others have ended, and are folded where there are too many, or where they do not fit.
    """
    known = [(process, int(one.generation), one) for process, one in reports if one.generation.isdecimal() and process]
    newest = max((generation for _, generation, _ in known), default=-1)
    record = before
    if newest >= 0 and (record is None or newest > record.generation):
        record = ShadowRecord(generation=newest, since=now)
    if record is None:
        return None
    for process, generation, counts in known:
        if generation == record.generation and process not in record.folded:
            record = _with_report(record, process, counts, living)
    while not fits(record) and (ended := _ended(record, living)):
        record = _folded(record, ended[0])
    while not fits(record) and record.rules:  # the sums of all rules stay, whatever else is left out
        record = _limited_to(record, record.rules[:-1])
    return record


def _with_report(
    record: ShadowRecord, process: str, counts: ShadowCounts, living: Collection[str] | None
) -> ShadowRecord:
    if process not in record.processes and len(record.processes) >= PROCESSES_MAX:
        ended = _ended(record, living)
        if not ended:
            return record  # one more than are counted
        record = _folded(record, ended[0])
    rules = tuple(dict.fromkeys([*record.rules, *((one.kind, one.name) for one in counts.rules)]))
    found = _greatest(record.processes.get(process, {}), counts_of(counts))
    return _limited_to(replace(record, processes={**record.processes, process: found}), rules[:RULES_MAX])


def _ended(record: ShadowRecord, living: Collection[str] | None) -> Sequence[str]:
    """Return the processes that have ended, the oldest first."""
    return () if living is None else [one for one in record.processes if one not in living]


def _folded(record: ShadowRecord, process: str) -> ShadowRecord:
    return replace(
        record,
        processes={name: counts for name, counts in record.processes.items() if name != process},
        earlier=_added(record.earlier, record.processes[process]),
        folded=(*record.folded, process)[-FOLDED_MAX:],
    )


def _limited_to(record: ShadowRecord, rules: tuple[RuleKey, ...]) -> ShadowRecord:
    kept = {ALL, *rules}

    def only(counts: Counts) -> Counts:
        return {key: count for key, count in counts.items() if key[0] in kept}

    processes = {name: only(counts) for name, counts in record.processes.items()}
    return replace(record, rules=rules, processes=processes, earlier=only(record.earlier))


def _greatest(left: Counts, right: Counts) -> Counts:
    return {key: max(left.get(key, 0), right.get(key, 0)) for key in left.keys() | right.keys()}


def _added(left: Counts, right: Counts) -> Counts:
    return {key: left.get(key, 0) + right.get(key, 0) for key in left.keys() | right.keys()}
