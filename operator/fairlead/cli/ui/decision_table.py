"""Decisions on the page: the answers of replicas and what came of them, or why they are not known. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.cli.console.output import pluralize
from fairlead.cli.inputs.replica_decisions import ReplicaDecisions, unreadable_records

ROWS_MAX: Final = 100
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


def decisions_of(replicas: Sequence[ReplicaDecisions]) -> ReadDecisions:
    """Return the decisions of all replicas, and of each when it began to keep them or why it could not be read."""
    unread = [replica for replica in replicas if replica.unread]
    if len(unread) == len(replicas):
        return ReadDecisions(unread="; ".join(dict.fromkeys(replica.unread for replica in unread)))
    notes = [f"{replica.replica} could not be read: {replica.unread}" for replica in unread]
    notes += [
        f"{replica.replica}: {unreadable_records(replica.unreadable)}" for replica in replicas if replica.unreadable
    ]
    notes += [f"{replica.replica} remembers since {replica.since}" for replica in replicas if replica.since]
    return ReadDecisions([each for replica in replicas for each in replica.decisions], notes=notes)


class _Pod(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Rule(msgspec.Struct, frozen=True):
    policy: str = ""
    rule: str = ""
    reason: str = ""
    nodes: int = 0


class _Effect(msgspec.Struct, frozen=True):
    policy: str = ""
    effects: Sequence[str] = ()


class _Decision(msgspec.Struct, frozen=True):
    time: str = ""
    pod: _Pod = _Pod()
    candidates: int = 0
    passed: int = 0
    rules: Sequence[_Rule] = ()
    effects: Sequence[_Effect] = ()
    error: str = ""
    node: str = ""
    waits: bool = False
    attempts: int = 0


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
                msgspec.convert({name: value for name, value in record.items() if value is not None}, _Decision)
            )
        except msgspec.ValidationError:
            unreadable += 1
    records.sort(key=lambda record: record.time, reverse=True)
    notes = [
        *read.notes,
        *([unreadable_records(unreadable)] if unreadable else []),
    ]
    return DecisionTable(
        [_row(each) for each in records[:ROWS_MAX]], max(0, len(records) - ROWS_MAX), read.unread, notes
    )


def _row(record: _Decision) -> DecisionRow:
    place = f"placed on {record.node}" if record.node else "waits" if record.waits else "is gone"
    reasons = [record.error] if record.error else []
    reasons += [f"{_named(rule)}: {rule.reason}, on {pluralize(rule.nodes, 'node')}" for rule in record.rules]
    return DecisionRow(
        record.time,
        f"{record.pod.namespace}/{record.pod.name}",
        f"{place}; {record.passed:,} of {pluralize(record.candidates, 'node')} passed",
        reasons,
        [f"in shadow: {effect.policy} {', '.join(effect.effects)}" for effect in record.effects],
        record.attempts,
    )


def _named(rule: _Rule) -> str:
    return "/".join(filter(None, (rule.policy, rule.rule))) or "no rule"
