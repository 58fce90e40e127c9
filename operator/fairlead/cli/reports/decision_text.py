"""Decisions of all replicas: which are shown, as text and as data. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fairlead.cli.console.output import clean, columns
from fairlead.cli.inputs.replica_decisions import ReplicaDecisions
from fairlead.time_units import SECOND_NS, age_text

_HEADS: Final = ("AGE", "POD", "NODE", "PASSED", "WHY")
_WAITS: Final = "(waits)"
_GONE: Final = "(gone)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """Selection of decisions."""

    namespace: str = ""
    pod: str = ""
    policy: str = ""
    waiting: bool = False
    effects: bool = False
    since: datetime | None = None

    def selects(self, decision: Mapping[str, Any]) -> bool:
        """Report whether a decision is shown."""
        pod = decision["pod"]
        named = {one["name"] for one in decision["policies"]} | {one["policy"] for one in decision["rules"]}
        named |= {one["policy"] for one in decision["effects"]}
        return (
            self.namespace in ("", pod["namespace"])
            and self.pod in ("", pod["name"])
            and (not self.policy or self.policy in named)
            and (not self.waiting or bool(decision["waits"]))
            and (not self.effects or bool(decision["effects"]))
            and (self.since is None or datetime.fromisoformat(decision["time"]) >= self.since)
        )


def decisions_report(replicas: Sequence[ReplicaDecisions], chosen: DecisionFilter) -> dict[str, Any]:
    """Return the decisions of all replicas that are selected, the newest first, and where they come from."""
    found = [
        {**decision, "replica": one.replica}
        for one in replicas
        for decision in one.decisions
        if chosen.selects(decision)
    ]
    found.sort(key=lambda decision: str(decision["time"]), reverse=True)
    read = [
        {
            "replica": one.replica,
            "since": one.since or None,
            "unread": one.unread or None,
            "unreadable": one.unreadable,
        }
        for one in replicas
    ]
    return {"replicas": read, "decisions": found}


def decisions_text(report: Mapping[str, Any], now: datetime, *, details: bool) -> Iterator[str]:
    """Yield a table of the decisions, or each with its details, and since when the replicas remember."""
    decisions = report["decisions"]
    if not decisions:
        yield "no decision that fits is kept"
    elif details:
        for one in decisions:
            yield from (clean(line) for line in _details(one, now))
            yield ""
    else:
        yield from columns([_HEADS, *(_row(one, now) for one in decisions)])
    if not (decisions and details):
        yield ""
    for one in report["replicas"]:
        if one["since"]:
            yield clean(f"{one['replica']} remembers since {one['since']}")


def _row(decision: Mapping[str, Any], now: datetime) -> Sequence[str]:
    pod = decision["pod"]
    return (
        _age(decision, now),
        clean(f"{pod['namespace']}/{pod['name']}"),
        clean(_node(decision)),
        f"{decision['passed']} of {decision['candidates']}",
        clean("; ".join(_why(decision))),
    )


def _why(decision: Mapping[str, Any]) -> Iterator[str]:
    if decision["error"]:
        yield decision["error"]
    for rule in decision["rules"]:
        yield f"{_rule(rule)}: {rule['reason']} ({rule['nodes']})"
    for effect in decision["effects"]:
        yield f"in shadow: {effect['policy']} {', '.join(effect['effects'])}"


def _details(decision: Mapping[str, Any], now: datetime) -> Iterator[str]:
    pod, policies = decision["pod"], decision["policies"]
    yield f"{pod['namespace']}/{pod['name']}  {decision['time']} ({_age(decision, now)} ago)"
    yield f"  scheduler: {decision['scheduler']}, answered by {decision['replica']} in {decision['milliseconds']:g} ms"
    if policies:
        named = [f"{one['name']} (generation {one['generation']})" for one in policies]
        yield f"  policies: {', '.join(named)}"
    yield f"  passed: {decision['passed']} of {decision['candidates']} nodes"
    for rule in decision["rules"]:
        few = ", ".join(
            [*rule.get("examples", ()), *(["..."] if rule["nodes"] > len(rule.get("examples", ())) else [])]
        )
        yield f"    {_rule(rule)} rejected {rule['nodes']}: {rule['reason']} ({few})"
    if decision["error"]:
        yield f"  failed: {decision['error']}"
    if decision["best"]:
        best = [f"{one['node']} ({one['points']} points)" for one in decision["best"]]
        yield f"  best: {', '.join(best)}"
    yield f"  node: {_node(decision)}"
    if decision["attempts"] > 1:
        yield f"  attempts since it was first left without a node: {decision['attempts']}"
    for effect in decision["effects"]:
        rules = f" by {', '.join(effect['rules'])}" if effect.get("rules") else ""
        yield f"  in shadow: {effect['policy']}: {', '.join(effect['effects'])}{rules}"


def _rule(rule: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (rule["policy"], rule["rule"]))) or "no rule"


def _node(decision: Mapping[str, Any]) -> str:
    return str(decision["node"] or (_WAITS if decision["waits"] else _GONE))


def _age(decision: Mapping[str, Any], now: datetime) -> str:
    passed = now - datetime.fromisoformat(decision["time"])
    return age_text(max(0, int(passed.total_seconds())) * SECOND_NS)
