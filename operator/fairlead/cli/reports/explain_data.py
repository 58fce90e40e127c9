"""An explanation for programs. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.reports.explain_context import ExplainContext
from fairlead.cli.reports.rule_text import in_words, of_unmatched
from fairlead.policy.explain.explanation import RuleExplained
from fairlead.simulation.explain_pod import Explanation, OneNode, Verdict, verdict_of
from fairlead.simulation.results import NodeResult
from fairlead.simulation.scheduler_filters import NOT_SIMULATED, FitFailure

_WORDS: Final[Mapping[Verdict, str]] = {
    "Preferred": "Preferred",
    "Possible": "Possible",
    "Rejected": "Rejected",
    "Unfit": "DoesNotFit",
}
Data = dict[str, Any]


def explanation_data(about: ExplainContext, found: Explanation) -> Data:
    """Every node, each rule that rejects some with what it compared on one, and the closest node."""
    preferred = frozenset(found.judged.preferred)
    closest = found.closest
    return {
        **_about(about),
        "notFor": [{"policy": one.policy, "why": of_unmatched(one)} for one in found.others],
        "nodes": [_node(node, verdict_of(node, preferred)) for node in found.judged.nodes],
        "preferred": found.judged.preferred,
        "asGood": [*found.as_good],
        "rules": [{**_rule(one.told), "rejected": one.count, "node": one.node} for one in found.rejecting],
        "closest": None
        if closest is None
        else {
            "name": closest.node.name,
            "unfit": _unfit(closest.node),
            "rules": [_rule(rule) for rule in closest.rules],
        },
        **_rest(about),
    }


def node_data(about: ExplainContext, one: OneNode) -> Data:
    """Every rule on one node."""
    scored = one.scored
    return {
        **_about(about),
        "node": {
            **_node(one.node, one.verdict),
            "filters": [_rule(rule) for rule in one.told.filters],
            "scores": [_rule(rule) for rule in one.told.scores],
            "points": None if scored is None else _plain(scored.scores),
            "sent": None if scored is None else scored.sent,
        },
        **_rest(about),
    }


def _about(about: ExplainContext) -> Data:
    judged = about.judged
    return {
        "pod": {
            "namespace": judged.pod.namespace,
            "name": judged.pod.name,
            "scheduler": about.scheduler,
            "node": about.node or None,
            "asks": dict(judged.pod.request),
            "schedulingGates": about.gates,
        },
        "now": timestamp_to_string(about.now),
        "policies": judged.policies,
        "doubts": about.doubts,
        "served": [
            {
                "policy": one.name,
                "generation": one.generation,
                "servingGeneration": one.serving,
                "fault": one.fault or None,
            }
            for one in about.served
        ],
    }


def _rest(about: ExplainContext) -> Data:
    return {"asksBeyond": [*about.judged.unsimulated], "notSimulated": [*NOT_SIMULATED], "notes": [*about.notes]}


def _node(node: NodeResult, verdict: Verdict) -> Data:
    return {
        "name": node.name,
        "verdict": _WORDS[verdict],
        "fits": node.fits,
        "passed": node.passed,
        "resolvable": node.resolvable,
        "reasons": node.reasons,
        "score": node.score,
        "unfit": _unfit(node),
        "rejectedBy": [{"policy": one.policy, "rule": one.rule, "reason": one.reason} for one in node.rejections],
    }


def _unfit(node: NodeResult) -> list[Data]:
    return [_one_unfit(one) for one in node.unfit]


def _one_unfit(one: FitFailure) -> Data:
    return {"what": one.what, "detail": one.detail}


def _rule(rule: RuleExplained) -> Data:
    told: Data = _plain(rule if rule.noted is None else replace(rule, noted=in_words(rule.noted)))
    return told


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)
