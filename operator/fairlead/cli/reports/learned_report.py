"""Report of `fairlead learned`: what rules have learned as of now, what is published of it, and the same to read back.

Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.reports.written_learned import written_demands, written_pairs
from fairlead.learned.pair import node_key, score, value
from fairlead.learned.published import LearnedState
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import undivided
from fairlead.policy.nodes.compared_views import current_system
from fairlead.policy.nodes.learned_facts import table_of
from fairlead.simulation.simulation import Simulation
from fairlead.strategies.builtin.system_objectives import variety, variety_of_demands
from fairlead.strategies.reads import DemandsRead, OutcomesRead, SystemRead
from fairlead.time_units import SECOND_NS

Report: TypeAlias = dict[str, Any]
_ALIKE: Final = 1e-9


def learned_report(
    policies: Iterable[CompiledPolicy], rule: str, simulation: Simulation, *, unread: str = ""
) -> Report:
    """Return what rules have learned, of each the lowest score first; `unread` says why that is not known."""
    views = [view for name in simulation.names if (view := simulation.mirror.nodes.view_of(name)) is not None]
    names = {node_key(view.uid): view.name for view in views}
    rules, learned = list[Report](), dict[str, Any]()
    for policy in policies:
        if unread:
            names_of_rules = (name for name, _ in (*policy.learning, *policy.demanding) if rule in ("", name))
            rules += [_unread(policy, name, unread) for name in names_of_rules]
            continue
        found = [
            *(_outcomes(policy, name, read, simulation, names) for name, read in policy.learning if rule in ("", name)),
            *(_requests(policy, name, read, simulation) for name, read in policy.demanding if rule in ("", name)),
        ]
        for report, written in found:
            rules.append(report)
            if report["readable"]:
                learned[f"{policy.name}/{report['rule']}"] = written
    at = timestamp_to_string(simulation.now // SECOND_NS * SECOND_NS)
    return {"time": at, "rules": rules, "unclaimed": sorted(simulation.learned.unclaimed), "learned": learned}


def _outcomes(
    policy: CompiledPolicy, name: str, outcomes: OutcomesRead, simulation: Simulation, names: dict[str, str]
) -> tuple[Report, Any]:
    now_s, of = simulation.now / SECOND_NS, table_of(policy, name, outcomes)
    table = simulation.mirror.nodes.learned.tables.get(of)
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
    report = _published(policy, name, simulation.learned.states.get(of, ()), now_s) | {"pairs": entries}
    return report, written_pairs(pairs, names, outcomes, simulation.now // SECOND_NS)


def _requests(policy: CompiledPolicy, name: str, read: DemandsRead, simulation: Simulation) -> tuple[Report, Any]:
    of, nodes, now_s = table_of(policy, name, read), simulation.mirror.nodes, simulation.now / SECOND_NS
    known = nodes.learned_demands(policy.uid or policy.name, name, read)
    requests: Report = {
        "pods": known.number,
        "leastPods": read.least,
        "mean": dict(zip(read.resources, known.mean, strict=True)),
        "gammaDemand": None,
        "gammaSystem": None,
    }
    for system in _systems(policy, name):
        sums = current_system(nodes, system).sums
        figures = sums.figures
        requests |= {"nodes": sums.number, "now": "NoNodes"}
        if sums.number:
            wanted, found = variety_of_demands(known, figures.capacity), variety(figures.mean, figures.covariance)
            requests |= {"gammaDemand": wanted, "gammaSystem": found, "now": _tendency(found - wanted)}
        if known.number < read.least:
            requests["now"] = "TooFewPods"
    report = _published(policy, name, simulation.learned.states.get(of, ()), now_s) | {"requests": requests}
    return report, written_demands(simulation.learned.requests.demands(of), read.resources)


def _systems(policy: CompiledPolicy, rule: str) -> Iterable[SystemRead]:
    return (system for one in undivided(policy).scores if one.name == rule for system in one.score.reads.system)


def _tendency(excess: float) -> str:
    """Return what a pod makes of nodes whose load is more, or less, varied than the requests of pods."""
    return "Level" if abs(excess) < _ALIKE else "Spreads" if excess > 0 else "Packs"


def _unread(policy: CompiledPolicy, rule: str, why: str) -> Report:
    """Return the report of a rule whose ConfigMaps are not read: nothing is known, so it must not look like nothing."""
    unknown = dict.fromkeys(("configMaps", "bytes", "lastPublicationSeconds", "late"))
    return {"policy": policy.name, "rule": rule, "readable": False, "faults": [why], **unknown}


def _published(policy: CompiledPolicy, rule: str, states: Sequence[LearnedState], now_s: float) -> Report:
    """Return what the ConfigMaps of a rule say of themselves."""
    times = [one.publication.at for one in states if one.publication.at is not None]
    faults = sorted(one.document.fault for one in states if one.document.fault)
    return {
        "policy": policy.name,
        "rule": rule,
        "readable": not faults,
        "faults": faults,
        "configMaps": len(states),
        "bytes": sum(one.size for one in states),
        "lastPublicationSeconds": max(0, round(now_s - max(times))) if times else None,
        "late": sum(one.publication.late for one in states),
    }
