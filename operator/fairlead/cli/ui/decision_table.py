"""Decisions on the page: the answers of replicas and what came of them, or why they are not known. Pure.

The page reads them through a `DecisionSource`, which asks the replicas of the operator with the rights of the user.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.cli.console.output import pluralize

ROWS_MAX: Final = 100
NOT_KEPT: Final = "this version of the operator keeps no decisions"
OF_FILES: Final = "a snapshot has no decisions: replicas of the operator keep them"


@dataclass(frozen=True, slots=True)
class ReadDecisions:
    """Decisions as they were read."""

    records: Sequence[Mapping[str, Any]] = ()
    """Records of all replicas, in any order, as they were read."""
    unread: str = ""
    """Reason why none are shown, such as a missing permission with the name of the Role that has it; "" if some are."""
    notes: Sequence[str] = ()
    """Replicas that could not be read, and since when each of the others remembers."""


DecisionSource = Callable[[], Awaitable[ReadDecisions]]
"""Reads the decisions of all replicas, or says why not; it raises nothing that a missing permission explains."""


async def no_decisions() -> ReadDecisions:
    """Return why there are no decisions yet."""
    return ReadDecisions(unread=NOT_KEPT)


class _Reason(msgspec.Struct, frozen=True, rename="camel"):
    policy: str = ""
    rule: str = ""
    reason: str = ""
    count: int = 0
    nodes: Sequence[str] = ()


class _Record(msgspec.Struct, frozen=True, rename="camel"):
    time: str = ""
    scheduler: str = ""
    namespace: str = ""
    pod: str = ""
    candidates: int = 0
    passed: int = 0
    rules: Sequence[_Reason] = ()
    node: str = ""
    effects: Sequence[str] = ()
    attempts: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision."""

    time: str
    pod: str
    outcome: str
    reasons: Sequence[str]
    effects: Sequence[str]
    attempts: int


@dataclass(frozen=True, slots=True)
class DecisionTable:
    """The newest decisions."""

    rows: Sequence[DecisionRow] = ()
    more: int = 0
    unread: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


def decision_table(read: ReadDecisions) -> DecisionTable:
    """Return the decisions, newest first; a record that cannot be read is counted and left out."""
    records, unreadable = [], 0
    for record in read.records:
        try:
            records.append(
                msgspec.convert({name: value for name, value in record.items() if value is not None}, _Record)
            )
        except msgspec.ValidationError:
            unreadable += 1
    records.sort(key=lambda record: record.time, reverse=True)
    notes = [
        *read.notes,
        *([f"{pluralize(unreadable, 'record')} cannot be read by this version"] if unreadable else []),
    ]
    return DecisionTable(
        [_row(each) for each in records[:ROWS_MAX]], max(0, len(records) - ROWS_MAX), read.unread, notes
    )


def _row(record: _Record) -> DecisionRow:
    outcome = f"placed on {record.node}" if record.node else f"{record.passed:,} of {record.candidates:,} nodes passed"
    reasons = [f"{each.policy}/{each.rule}: {each.reason}, on {each.count:,} nodes" for each in record.rules]
    return DecisionRow(
        record.time, f"{record.namespace}/{record.pod}", outcome, reasons, [*record.effects], record.attempts
    )
