"""Condition `DataReady` of a policy, and its status of measured values, from what the replicas say; pure.

A condition that comes and goes is not believed: a node that joined a moment ago is no reason, and neither is one poll
that failed while the values are fresh.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from fairlead.api.mode import Mode
from fairlead.control.status.conditions import ConditionValue, Reason
from fairlead.policy.nodes.measured_table import FUTURE, MISSING, NO_NUMBER, SEVERAL, STALE
from fairlead.replica_state import DataEntryState, FaultState
from fairlead.time_units import SECOND_NS, age_text

Entries = Sequence[DataEntryState]
MEASURED: Final = ("prometheus", "nodeMetrics", "configMap")
_ORDER: Final[Sequence[Reason]] = ("DataMissing", "DataStale", "PollFailed")
_REPLICAS_MAX: Final = 10
_NAMES_MAX: Final = 256
_FAILED_POLLS: Final = 2
"""Polls that have to fail one after the other."""
_WATCHED_S: Final = 10
_NAMED: Final = 3


class _Problem(NamedTuple):
    reason: Reason
    nodes: int
    text: str

    @property
    def rank(self) -> tuple[int, int]:
        return _ORDER.index(self.reason), self.nodes


def measured_entries(spec: Mapping[str, Any]) -> list[str]:
    """Return the names of the entries of a policy's data that are measured."""
    return [one["name"] for one in spec.get("data", ()) if any(source in one for source in MEASURED)]


def data_condition(measured: Sequence[str], by_replica: Mapping[str, Entries], mode: Mode) -> ConditionValue | None:
    """Return whether the measured values are there, as the worst replica sees it; None if nothing is measured."""
    if not measured:
        return None
    if mode == "Disabled":
        return ConditionValue("True", "Disabled", "it is disabled: nothing is measured for it")
    found = {pod: entries for pod, entries in by_replica.items() if entries}
    waiting = [name for name in measured if not any(_is_answered(name, entries) for entries in found.values())]
    problems = {pod: sorted(_problems(entries), key=_rank, reverse=True) for pod, entries in found.items()}
    bad = {pod: one for pod, one in problems.items() if one}
    if bad:
        worst = max(bad, key=lambda pod: ([*map(_rank, bad[pod])], pod))
        where = (
            ""
            if len(bad) == len(found)
            else f" (on {worst}; {len(found) - len(bad)} of {len(found)} replicas are unaffected)"
        )
        return ConditionValue("False", bad[worst][0].reason, "; ".join(one.text for one in bad[worst]) + where)
    if waiting:
        return ConditionValue("Unknown", "Pending", f"not measured yet: {', '.join(waiting)}")
    notes = dict.fromkeys(f"{one.name}: {one.note}" for entries in found.values() for one in entries if one.note)
    return ConditionValue("True", "DataReady", "; ".join(notes))


def data_status(by_replica: Mapping[str, Entries], now: datetime) -> list[dict[str, Any]]:
    """Return the status of each measured entry, on each replica."""
    found: dict[str, dict[str, Any]] = {}
    for pod, entries in sorted(by_replica.items())[:_REPLICAS_MAX]:
        for one in entries:
            made = found.setdefault(one.name, {"name": one.name, "source": one.source})
            if one.interval_s:
                made["intervalSeconds"] = one.interval_s
            if one.greatest_age_s:
                made["maxAgeSeconds"] = one.greatest_age_s
            made["observedTime"] = _time(now)
            made.setdefault("replicas", []).append(_replica(pod, one, now))
    return [found[name] for name in sorted(found)]


def without_ages(data: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the status without what differs after each poll."""
    moving = {"oldestAgeSeconds", "medianAgeSeconds", "lastSuccess"}
    return [
        {key: value for key, value in one.items() if key != "observedTime"}
        | {"replicas": [{key: each[key] for key in each if key not in moving} for each in one.get("replicas", ())]}
        for one in data
    ]


def _is_answered(name: str, entries: Entries) -> bool:
    return any(one.name == name and one.answered for one in entries)


def _rank(problem: _Problem) -> tuple[int, int]:
    return problem.rank


def _problems(entries: Entries) -> Iterator[_Problem]:
    for one in entries:
        lacking = [text for fault in one.faults if (text := _fault_text(one, fault))]
        nodes = sum(fault.nodes for fault in one.faults)
        values = f"of {one.nodes} nodes {', '.join(lacking)}" if lacking else ""
        if _has_failed(one):
            since = (
                "never succeeded" if one.succeeded_s_ago is None else f"last succeeded {_age(one.succeeded_s_ago)} ago"
            )
            text = f"{one.name}: the poll of {one.source} {since}: {one.error}"
            yield _Problem("PollFailed", nodes, "; ".join(filter(None, [text, values])))
        elif one.answered and lacking:
            is_old = any(fault.why in (STALE, FUTURE) for fault in one.faults)
            text = f"{one.name}: {values}"
            yield _Problem("DataStale" if is_old else "DataMissing", nodes, "; ".join(filter(None, [text, one.note])))
        elif one.answered and one.nodes and not one.with_value and one.note:
            yield _Problem("DataMissing", one.nodes, f"{one.name}: no node has a value; {one.note}")


def _has_failed(state: DataEntryState) -> bool:
    if not state.error:
        return False
    return state.succeeded_s_ago is None or state.succeeded_s_ago > _FAILED_POLLS * (state.interval_s or _WATCHED_S)


def _fault_text(state: DataEntryState, fault: FaultState) -> str:
    have = f"{fault.nodes} {'has' if fault.nodes == 1 else 'have'}"
    value = "a value" if fault.nodes == 1 else "values"
    more = ", ..." if fault.nodes > len(fault.names[:_NAMED]) else ""
    names = f" ({', '.join(fault.names[:_NAMED])}{more})"
    if fault.why == STALE:
        return f"{have} {value} older than {_age(state.greatest_age_s)}{names}"
    if fault.why == FUTURE:
        return f"{have} {value} with a time in the future{names}"
    if fault.why == SEVERAL:
        return f"{have} several values{names}"
    if fault.why == NO_NUMBER:
        return f"{have} {value} that {'is not a number' if fault.nodes == 1 else 'are not numbers'}{names}"
    joined = fault.nodes - state.young
    if fault.why == MISSING and not joined and state.with_value:
        return ""  # nodes that have just joined
    return f"{have} no value{names}"


def _age(age_s: int) -> str:
    return age_text(age_s * SECOND_NS)


def _replica(pod: str, state: DataEntryState, now: datetime) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": pod,
        "nodes": state.nodes,
        "withValue": state.with_value,
        "onDefault": state.on_default,
    }
    if state.oldest_s is not None and state.median_s is not None:
        made |= {"oldestAgeSeconds": state.oldest_s, "medianAgeSeconds": state.median_s}
    if state.faults:
        made["withoutValue"] = [
            {"reason": _WORDS[fault.why], "nodes": fault.nodes, "names": ", ".join(fault.names)[:_NAMES_MAX]}
            for fault in state.faults
        ]
    if state.succeeded_s_ago is not None:
        made["lastSuccess"] = _time(now - timedelta(seconds=state.succeeded_s_ago))
    made |= {key: text for key, text in (("lastError", state.error), ("note", state.note)) if text}
    if state.failures:
        made["failedPolls"] = state.failures
    return made


_WORDS: Final = {
    STALE: "Stale",
    FUTURE: "InFuture",
    MISSING: "Missing",
    SEVERAL: "SeveralValues",
    NO_NUMBER: "NoNumber",
}


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
