"""Text of `fairlead learned`. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlead.cli.console.output import columns, pluralize
from fairlead.cli.reports.learned_report import Report
from fairlead.simulation.scheduler_filters import amount

_PAIRS: Final = ("POLICY", "RULE", "TYPE", "NODE", "SCORE", "OUTCOMES", "LAST OUTCOME")
_REQUESTS: Final = ("POLICY", "RULE", "PODS", "MEAN REQUEST", "GAMMA OF PODS", "GAMMA OF NODES", "NOW")
_NONE: Final = "no policy has a rule that learns"
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))
_TENDENCIES: Final[Mapping[str, str]] = {
    "Spreads": "spreads",
    "Packs": "packs",
    "Level": "neither",
    "NoNodes": "adds nothing: no node is in its system",
}


def learned_text(report: Report) -> Iterator[str]:
    """Yield tables of what rules have learned, what is published of each, and what cannot be read."""
    rules = report["rules"]
    if not rules:
        yield _NONE
        return
    rows: list[Sequence[str]] = [_PAIRS]
    rows += [_pair(rule, one) for rule in rules for one in rule.get("pairs", ())]
    if len(rows) > 1:
        yield from columns(rows)
        yield ""
    if requests := [_request(rule) for rule in rules if "requests" in rule]:
        yield from columns([_REQUESTS, *requests])
        yield ""
    for rule in rules:
        yield f"{rule['policy']}/{rule['rule']}: {_published(rule)}"
        for fault in () if rule["configMaps"] is None else rule["faults"]:
            yield f"{rule['policy']}/{rule['rule']} adds nothing: {fault}"
    for name in report["unclaimed"]:
        yield f"ConfigMap {name} does not say which rule it belongs to, and is left alone: delete it"
    gone = sum(not one["node"] for rule in rules for one in rule.get("pairs", ()))
    if gone:
        yield f"{pluralize(gone, 'pair')} of nodes that are gone: they fade, and are forgotten"


def _pair(rule: Report, pair: Report) -> Sequence[str]:
    shown = pair["node"] or "(gone)", str(pair["score"]), f"{pair['outcomes']:.2f}", _ago(pair["lastOutcomeSeconds"])
    return rule["policy"], rule["rule"], pair["type"], *shown


def _request(rule: Report) -> Sequence[str]:
    of = rule["requests"]
    mean = ", ".join(f"{name} {amount(name, value)}" for name, value in of["mean"].items())
    gammas = [_gamma(of["gammaDemand"]), _gamma(of["gammaSystem"])]
    few = f"adds nothing: it knows fewer than {pluralize(of['leastPods'], 'pod')}"
    now = few if of.get("now") == "TooFewPods" else _TENDENCIES.get(of.get("now", ""), "")
    return rule["policy"], rule["rule"], str(of["pods"]), mean, *gammas, now


def _gamma(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _published(rule: Report) -> str:
    if rule["configMaps"] is None:
        return f"what it has learned is unknown: {', '.join(rule['faults'])}"
    if not rule["configMaps"]:
        return "nothing is learned yet"
    there = f"{pluralize(rule['configMaps'], 'ConfigMap')} of {pluralize(rule['bytes'], 'byte')}"
    age = rule["lastPublicationSeconds"]
    written = "written last at an unknown time" if age is None else f"written last {_ago(age)}"
    late = rule["late"]
    came = f", {pluralize(late, 'outcome')} came too late to count" if late else ""
    return f"{there}, {written}{came}"


def _ago(seconds: int) -> str:
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"
