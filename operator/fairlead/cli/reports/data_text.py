"""Text of `fairlead data`: what the status of a policy says of its measured values. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fairlead.cli.console.output import clean, columns
from fairlead.time_units import SECOND_NS, age_text

_REASONS: Final = {
    "Stale": "too old",
    "InFuture": "with a time in the future",
    "Missing": "without value",
    "SeveralValues": "with several values",
    "NoNumber": "with a value that is not a number",
}


def data_of(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of the measured values, as plain data; `ready` is None while it is unknown."""
    status: Mapping[str, Any] = policy.get("status", {})
    found: Mapping[str, Any] = next((one for one in status.get("conditions", ()) if one["type"] == "DataReady"), {})
    return {
        "policy": policy["metadata"]["name"],
        "ready": {"True": True, "False": False}.get(found.get("status", "")),
        "reason": found.get("reason", ""),
        "message": found.get("message", ""),
        "entries": [*status.get("data", ())],
    }


def list_lines(entries: Sequence[Mapping[str, Any]], now: datetime) -> Iterator[str]:
    """Yield a line for each entry of each policy, with the replica that has the fewest values."""
    if not entries:
        yield "no policy measures values"
        return
    rows: list[Sequence[str]] = [("POLICY", "DATA", "ENTRY", "SOURCE", "WITH VALUE", "OLDEST", "LAST SUCCESS")]
    for policy in entries:
        head = (policy["policy"], policy["reason"] or "unknown")
        rows += [(*head, *_summary(entry, now)) for entry in policy["entries"]] or [(*head, *["-"] * 5)]
    yield from columns(rows)


def _summary(entry: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    replicas: Sequence[Mapping[str, Any]] = entry.get("replicas") or ()
    if not replicas:
        return (entry["name"], entry.get("source", ""), "-", "-", "-")
    least = min(replicas, key=lambda one: one.get("withValue", 0) - one.get("nodes", 0))
    _, nodes, count, _, oldest, _, success, _ = _row(least, now)
    return (entry["name"], entry.get("source", ""), f"{count} of {nodes}", oldest, success)


def data_lines(report: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """Yield the lines of the text."""
    if not report["reason"]:
        yield clean(f"{report['policy']}: nothing is measured for it, or the operator has not looked at it yet")
        return
    said = f": {report['message']}" if report["message"] else ""
    yield clean(f"{report['policy']}: {report['reason']}{said}")
    for entry in report["entries"]:
        yield ""
        yield clean(" ".join(_head(entry, now)))
        rows: list[tuple[str, ...]] = [
            ("REPLICA", "NODES", "WITH VALUE", "DEFAULT", "OLDEST", "MEDIAN", "LAST SUCCESS", "FAILED POLLS")
        ]
        rows += [_row(one, now) for one in entry.get("replicas", ())]
        yield from (f"  {line}" for line in columns(rows))
        for one in entry.get("replicas", ()):
            yield from (clean(f"  {one['name']}: {text}") for text in _remarks(one))
        values: Mapping[str, Mapping[str, Any]] = (report.get("values") or {}).get(entry["name"], {})
        if values:
            yield ""
            yield clean(f"  values of {report['valuesFrom']}:")
            head = ("NODE", "VALUE", "AGE", "REMARK")
            yield from (f"  {line}" for line in columns([head, *(_value(*one) for one in values.items())]))
    if why := report.get("valuesUnknown"):
        yield ""
        yield clean(f"The values of the nodes are not shown: {why}")


def _head(entry: Mapping[str, Any], now: datetime) -> Iterator[str]:
    yield f"{entry['name']}: {entry.get('source', '')},"
    interval_s, greatest_age_s = entry.get("intervalSeconds"), entry.get("maxAgeSeconds")
    yield "watched," if interval_s is None else f"every {_age(interval_s)},"
    yield "values of any age," if greatest_age_s is None else f"values at most {_age(greatest_age_s)} old,"
    yield f"as of {_ago(entry.get('observedTime'), now)}"


def _row(entry: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    counts = (str(entry.get(key, 0)) for key in ("nodes", "withValue", "onDefault"))
    ages = (
        "-" if (age_s := entry.get(key)) is None else _age(age_s) for key in ("oldestAgeSeconds", "medianAgeSeconds")
    )
    return (entry["name"], *counts, *ages, _ago(entry.get("lastSuccess"), now), str(entry.get("failedPolls", 0)))


def _value(node: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    age_s = entry.get("ageSeconds")
    value = "-" if entry.get("value") is None else f"{entry['value']:,.6g}"
    remark = "the default" if entry.get("default") else str(entry.get("fault", ""))
    return (node, value, "-" if age_s is None else _age(int(age_s)), remark)


def _remarks(entry: Mapping[str, Any]) -> Iterator[str]:
    for each in entry.get("withoutValue", ()):
        yield f"{each.get('nodes', 0)} {_REASONS.get(each['reason'], each['reason'])}: {each.get('names', '')}"
    if text := entry.get("lastError"):
        yield f"the last poll failed: {text}"
    if text := entry.get("note"):
        yield text


def _age(age_s: int) -> str:
    return age_text(age_s * SECOND_NS)


def _ago(time: str | None, now: datetime) -> str:
    return "never" if time is None else f"{_age(int((now - datetime.fromisoformat(time)).total_seconds()))} ago"
