"""Text of `fairlead status`, for an engineer on call: problems with their fixes, then all else on one screen. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.cli.console.output import clean, columns, paint, pluralize
from fairlead.cli.reports.status_data import STALE_S, Overview, ProblemRow, RuleRow, Stray
from fairlead.cli.reports.status_problems import NOT_READ
from fairlead.render.native_groups import NOT_ASKED

_RED: Final = "\x1b[1;31m"
_GREEN: Final = "\x1b[1;32m"
_BOLD: Final = "\x1b[1m"
_SHOWN: Final = 12
_TEXT_MAX: Final = 70


def status_text(what: Overview, *, colour: bool, whole: bool = True) -> Iterator[str]:
    """Yield the lines of the text. Unless `whole`, long messages in tables are cut, as fits a terminal."""
    limit = None if whole else _TEXT_MAX
    yield paint(_headline(what), _GREEN if what.ready else _RED, colour)
    for wrong in what.wrong[:_SHOWN]:
        yield clean(f"  {wrong.kind} {wrong.name}: {wrong.reason}: {wrong.message}".rstrip(": "))
        if wrong.cure:
            yield clean(f"    -> {wrong.cure}")
    yield from _more(len(what.wrong) - _SHOWN)
    tables: dict[str, list[Sequence[str]]] = {
        "POLICIES": _policies(what),
        "SCHEDULERS": _schedulers(what),
        "REPLICAS": _replicas(what),
        "RULES WITH ERRORS OR REJECTED NODES": _rules(what.rules, limit),
        "WARNINGS": _warnings(what, limit),
    }
    for title, rows in tables.items():
        if rows:
            yield ""
            yield paint(title, _BOLD, colour)
            yield from (f"  {line}" for line in columns(rows[: _SHOWN + 1]))
            yield from _more(len(rows) - _SHOWN - 1)
        if title == "SCHEDULERS":
            yield from _ending(what)
            yield from _groups(what)
    if what.strays:
        yield ""
        yield paint("PODS OF NO SCHEDULER", _BOLD, colour)
        for stray in what.strays[:_SHOWN]:
            yield from _stray(stray)
        yield from _more(len(what.strays) - _SHOWN)
    if what.not_read:
        yield ""
        yield paint("NOT READ", _BOLD, colour)
        for one in what.not_read:
            yield clean(f"  {one.what}: {one.why}")


def _headline(what: Overview) -> str:
    if gone := [one for one in what.wrong if one.kind == "operator" and one.reason in ("NotThere", "Uninstalled")]:
        rest = "; the rest is what it last wrote" if what.policies and gone[0].reason == "NotThere" else ""
        return f"NOT READY: {', '.join(_causes(what.wrong))} in {what.namespace}{rest}"
    staying = [one for one in what.schedulers if not one.deleted_after and one.management != "Refused"]
    known = [one for one in staying if one.ready is not None]
    unknown = len(staying) - len(known)
    replicas = [one for one in what.replicas if not one.terminating]
    parts = [
        f"{sum(1 for one in what.policies if one.ready)} of {pluralize(len(what.policies), 'policy', 'policies')}",
        f"{sum(1 for one in known if one.ready)} of {pluralize(len(known), 'scheduler')}",
    ]
    unread = [one for one in what.wrong if one.reason == NOT_READ]
    if not unread:
        parts.append(f"{sum(1 for one in replicas if one.ready)} of {pluralize(len(replicas), 'replica')}")
    rest = f"; {pluralize(unknown, 'scheduler')} unknown" if unknown else ""
    counts = f"{', '.join(parts)} ready in {what.namespace}{rest}"
    if what.ready:
        return f"READY: {counts}"
    return f"{'UNKNOWN' if unread == what.wrong else 'NOT READY'}: {', '.join(_causes(what.wrong))}; {counts}"


_OF_ALL: Final = {
    "NotThere": "the operator has no pods",
    NOT_READ: "it is not known whether replicas are ready",
    "Uninstalled": "the operator was uninstalled",
    "NotReady": "no replica of the operator is ready",
    "NoLeader": "no replica leads",
    "SetsDiffer": "replicas serve different policies",
    "AnotherOperator": "there is another operator",
}
"""Causes that are about the operator as a whole."""
_OF_EACH: Final = {
    "DataMissing": ("values of {} are missing", "policy", "policies"),
    "DataStale": ("values of {} are too old", "policy", "policies"),
    "PollFailed": ("values of {} cannot be polled", "policy", "policies"),
    "LearnedStateUnreadable": ("what {} learned cannot be read", "policy has", "policies have"),
    "Stale": ("{} behind the cluster", "replica is", "replicas are"),
}


def _causes(wrong: Sequence[ProblemRow]) -> Iterator[str]:
    """Yield what is not as it should be, each kind of problem once."""
    none = any(one.reason == "NotReady" and one.kind == "operator" for one in wrong)
    wrong = [one for one in wrong if not (none and one.kind == "replica")]
    kinds = Counter((one.kind, one.reason if one.reason in (_OF_ALL | _OF_EACH) else "") for one in wrong)
    for (kind, reason), count in kinds.items():
        if kind == "operator" and reason in _OF_ALL:
            yield _OF_ALL[reason]
        elif reason in _OF_EACH:
            text, one, more = _OF_EACH[reason]
            yield text.format(pluralize(count, one, more))
        elif kind == "policy":
            yield f"{pluralize(count, 'policy is', 'policies are')} not ready"
        else:
            yield f"{pluralize(count, f'{kind} is', f'{kind}s are')} not ready"


def _ending(what: Overview) -> Iterator[str]:
    for one in what.schedulers:
        if one.deleted_after:
            when = f"after {one.deleted_after}, once no pending pod names it"
            yield clean(f"  {one.name}: no policy uses it; it will be deleted {when}")


def _groups(what: Overview) -> Iterator[str]:
    """Yield what became of Kubernetes' own groups where they were asked for."""
    asked = [one for one in what.schedulers if one.groups and one.groups_message != NOT_ASKED]
    yield from (clean(f"  {one.name}: groups {one.groups}: {one.groups_message}") for one in asked[:_SHOWN])
    yield from _more(len(asked) - _SHOWN)


def _policies(what: Overview) -> list[Sequence[str]]:
    head = ("NAME", "READY", "REASON", "SCHEDULER", "GENERATION", "SERVING", "RULES", "ERRORS")
    rows = [
        (
            one.name,
            _yes(one.ready),
            one.reason,
            one.scheduler,
            str(one.generation),
            "-" if one.serving is None else str(one.serving),
            str(one.rules),
            str(one.errors),
        )
        for one in what.policies
    ]
    return [head, *rows] if rows else []


def _schedulers(what: Overview) -> list[Sequence[str]]:
    head = ("NAME", "READY", "MANAGEMENT", "PODS", "LEADER", "CONFIG", "POLICIES")
    rows = [
        (
            one.name,
            _yes(one.ready),
            one.management or "unknown",
            one.pods or "-",
            one.leader or "-",
            one.config_hash or "-",
            str(one.policies),
        )
        for one in what.schedulers
    ]
    return [head, *rows] if rows else []


def _replicas(what: Overview) -> list[Sequence[str]]:
    head = ("NAME", "READY", "LEADER", "POLICY SET", "CACHE", "RESTARTS")
    rows = [
        (
            one.name,
            "Terminating" if one.terminating else _yes(one.ready),
            _yes(one.leads, no="-"),
            one.policy_set or ("unknown" if one.stale_s is None else "none"),
            _cache(one.stale_s),
            str(one.restarts),
        )
        for one in what.replicas
    ]
    return [head, *rows] if rows else []


def _rules(rules: Iterable[RuleRow], limit: int | None) -> list[Sequence[str]]:
    head = ("POLICY", "KIND", "RULE", "ERRORS", "REJECTED NODES", "LAST ERROR")
    rows = [
        (
            one.policy,
            one.kind,
            one.name,
            str(one.errors),
            "unknown" if one.rejected_nodes is None else str(one.rejected_nodes),
            _cut(f"{one.last_error_at} {one.last_error}".strip(), limit) or "-",
        )
        for one in rules
        if one.errors or one.rejected_nodes
    ]
    return [head, *rows] if rows else []


def _warnings(what: Overview, limit: int | None) -> list[Sequence[str]]:
    head = ("POLICY", "REASON", "COUNT", "MESSAGE")
    rows = [(one.policy, one.reason, str(one.count), _cut(one.message, limit)) for one in what.warnings]
    return [head, *rows] if rows else []


def _stray(stray: Stray) -> Iterator[str]:
    verb, such = ("waits", f": {stray.pod}") if stray.pods == 1 else ("wait", f", such as {stray.pod}")
    where = ", as far as can be seen" if stray.unseen else ""
    said = f"{pluralize(stray.pods, 'pod')} {verb} for {stray.scheduler}, and no policy and no scheduler has this name"
    yield clean(f"  {said}{where}{such}")
    if stray.meant:
        yield clean(f"    -> Did you mean {stray.meant}? schedulerName cannot be changed: create the pods again.")


def _more(count: int) -> Iterator[str]:
    """Yield the number of rows left out to fit one screen."""
    if count > 0:
        yield f"  ... and {count:,} more: -o json lists all"


def _yes(is_so: bool | None, no: str = "NO") -> str:  # noqa: FBT001 - it is about the value
    return "unknown" if is_so is None else "yes" if is_so else no


def _cache(stale_s: float | None) -> str:
    """Return the state of a replica's cache. A cluster in which little changes confirms it once a minute or so."""
    if stale_s is None:
        return "unknown"
    return "current" if stale_s <= STALE_S else f"{stale_s:.0f}s behind"


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else f"{text[: limit - 3]}..."
