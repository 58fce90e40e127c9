"""Report and text of `fairlead learned`. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from fairlead.cli.console.output import columns, pluralize
from fairlead.learned.pair import node_key, score, value
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.learned_facts import table_of
from fairlead.simulation.simulation import Simulation
from fairlead.strategies.reads import DemandsRead
from fairlead.time_units import SECOND_NS

Report: TypeAlias = dict[str, Any]
_COLUMNS: Final = ("POLICY", "RULE", "TYPE", "NODE", "SCORE", "OUTCOMES", "LAST OUTCOME")
_NONE: Final = "no policy has a rule that learns"
_NOTHING: Final = "nothing is learned yet"
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"))


def learned_report(policies: Iterable[CompiledPolicy], rule: str, simulation: Simulation) -> Report:
    """Return what rules have learned, of each the lowest score first."""
    views = [view for name in simulation.names if (view := simulation.mirror.nodes.view_of(name)) is not None]
    names = {node_key(view.uid): view.name for view in views}
    now_s = simulation.now / SECOND_NS
    rules = list[Report]()
    for policy in policies:
        for name, outcomes in policy.learning:
            if rule not in ("", name):
                continue
            table = simulation.mirror.nodes.learned.tables.get(table_of(policy, name, outcomes))
            pairs = [] if table is None else [*table.all_pairs()]
            entries: list[Report] = [
                {
                    "type": kind,
                    "node": names.get(node, ""),
                    "score": score(pair, round(100 * outcomes.prior), outcomes.half_life_s, simulation.now).points,
                    "value": value(pair, outcomes.prior, outcomes.half_life_s, now_s),
                    "outcomes": pair.weight_at(now_s, outcomes.half_life_s),
                    "lastOutcomeSeconds": max(0, round(now_s - pair.at)),
                }
                for (kind, node), pair in pairs
            ]
            entries.sort(key=lambda one: (one["value"], -one["outcomes"], one["type"], one["node"]))
            readable = table is None or table.is_readable
            rules.append({"policy": policy.name, "rule": name, "readable": readable, "pairs": entries})
        rules += [
            {
                "policy": policy.name,
                "rule": name,
                "readable": True,
                "requests": _requests(policy, name, read, simulation),
            }
            for name, read in policy.demanding
            if rule in ("", name)
        ]
    return {"rules": rules}


def _requests(policy: CompiledPolicy, rule: str, read: DemandsRead, simulation: Simulation) -> Report:
    """Return of how many pods a rule knows the requests, and their means, in base units."""
    known = simulation.mirror.nodes.learned_demands(policy.uid or policy.name, rule, read)
    return {"pods": known.number, "mean": dict(zip(read.resources, known.mean, strict=True))}


def learned_text(report: Report) -> Iterator[str]:
    """Yield a line for each pair of a type of pods and a node, and what cannot be read."""
    rules = report["rules"]
    if not rules:
        yield _NONE
        return
    rows: list[Sequence[str]] = [_COLUMNS]
    for rule in rules:
        for one in rule.get("pairs", ()):
            outcomes = f"{one['outcomes']:.2f}"
            node = one["node"] or "(gone)"
            age = _age(one["lastOutcomeSeconds"])
            rows.append((rule["policy"], rule["rule"], one["type"], node, str(one["score"]), outcomes, age))
    if len(rows) > 1:
        yield from columns(rows)
    elif all(rule["readable"] and not rule.get("requests", {}).get("pods") for rule in rules):
        yield _NOTHING
    for rule in rules:
        if "requests" in rule:
            means = ", ".join(f"{name} {mean:g}" for name, mean in rule["requests"]["mean"].items())
            pods = pluralize(rule["requests"]["pods"], "pod")
            yield f"{rule['policy']}/{rule['rule']} knows the requests of {pods}, on average {means}"
    for rule in rules:
        if not rule["readable"]:
            yield (
                f"{rule['policy']}/{rule['rule']} adds nothing: a ConfigMap with what it has learned cannot be read. "
                "Upgrade Fairlead if a newer version wrote it, or delete it, and the rule learns again"
            )
    gone = sum(not one["node"] for rule in rules for one in rule.get("pairs", ()))
    if gone:
        yield f"{pluralize(gone, 'pair')} of nodes that are gone: they fade, and are forgotten"


def _age(seconds: int) -> str:
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"
