"""The result of `fairlead explain`: its context, and the data that programs read. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.inputs.live_policies import LivePolicy
from fairlead.cli.inputs.shadow_effects import PodShadow
from fairlead.cli.installation.scheduling import OperatorState, PodScheduled, SchedulerState, Scheduling
from fairlead.cli.reports.published_text import published_data
from fairlead.cli.reports.rule_text import in_words, of_unmatched
from fairlead.cli.reports.shadow_text import InShadow, shadow_data
from fairlead.policy.explain.explanation import RuleExplained
from fairlead.simulation.explain_pod import Explanation, NodeExplanation, Verdict, verdicts_of
from fairlead.simulation.results import NodeResult, PodResult
from fairlead.simulation.scheduler_filters import NOT_SIMULATED, amount
from fairlead.simulation.simulation import scheduler_of


@dataclass(frozen=True, slots=True)
class ExplainContext:
    """Context of an explanation: the pod, the time, the cluster's policies and notes."""

    judged: PodResult
    now: int
    live: Sequence[LivePolicy]
    """Policies of the cluster, if they were read."""
    scheduling: Scheduling
    notes: Sequence[str]
    nodes: int
    shadow: PodShadow | None = None
    """Changes that rules in shadow would make for the pod; None if there are none for it."""
    in_shadow: InShadow = field(default_factory=dict)
    """Rejections that they would add."""

    @property
    def name(self) -> str:
        """Namespace and name of the pod."""
        return f"{self.judged.pod.namespace}/{self.judged.pod.name}"

    @property
    def scheduler(self) -> str:
        """Scheduler of the pod."""
        return scheduler_of(self.judged.pod)

    @property
    def node(self) -> str:
        """Node of the pod."""
        return str(self.judged.pod.pod.spec.nodeName)

    @property
    def gates(self) -> list[str]:
        """Scheduling gates of the pod."""
        return [str(one.name) for one in self.judged.pod.pod.spec.schedulingGates]

    @property
    def nominated_in_vain(self) -> tuple[str, list[str]] | None:
        """The node for which the pod is nominated, and the rules that reject it; None if it is placed or none does."""
        name = "" if self.node else self.judged.pod.nominated
        found = self.judged.node(name) if name else None
        if found is None or not found.rejections:
            return None
        return name, [f"{one.policy}/{one.rule}" if one.rule else one.policy for one in found.rejections]

    @property
    def asks(self) -> str:
        """Requests of the pod, as text."""
        asked = {name: value for name, value in self.judged.pod.request.items() if value and name != "pods"}
        return ", ".join(f"{name} {amount(name, value)}" for name, value in sorted(asked.items())) or "nothing"

    @property
    def served(self) -> list[LivePolicy]:
        """Policies of the cluster that match the pod, and those of its scheduler that do not compile."""
        return [
            one
            for one in self.live
            if one.name in self.judged.policies
            or (self.shadow is not None and one.name in self.shadow.enforced.policies)
            or ((one.fault or one.compiled is None) and one.scheduler == self.scheduler)
        ]

    @property
    def unplaceable(self) -> str:
        """Return why no scheduler places the pod, whatever the nodes; "" if one does, as far as known."""
        state = self.scheduling.scheduler
        if state is None or self.node or (state.ready is not False and not state.meant):
            return ""
        meant = f" (did you mean {state.meant}?)" if state.meant else ""
        if state.ready is None:
            return f"no policy here is for scheduler {state.name}{meant}"
        if state.missing:
            return f"there is no scheduler {state.name}{meant}"
        return f"scheduler {state.name} is not ready"

    @property
    def match_errors(self) -> list[str]:
        """Policies whose match could not be evaluated."""
        return [
            f"{each.policy.name}: cannot tell whether it matches the pod: {each.condition}: "
            f"{each.undecided.detail or each.undecided}"
            for each in self.judged.matched
            if each.undecided is not None
        ]


_WORDS: Final[Mapping[Verdict, str]] = {
    "Preferred": "Preferred",
    "Possible": "Possible",
    "Unknown": "Unknown",
    "Unanswered": "NoAnswer",
    "Rejected": "Rejected",
    "Unfit": "DoesNotFit",
}
ReportData = dict[str, Any]


def explanation_data(context: ExplainContext, explanation: Explanation) -> ReportData:
    """Return every node, each rule that rejects nodes with what it compared on one, and the closest node."""
    verdict_of, closest = verdicts_of(explanation.judged), explanation.closest
    return {
        **_about(context),
        "notFor": [{"policy": one.policy, "why": of_unmatched(one)} for one in explanation.others],
        "nodes": [_node(context, node, verdict_of(node)) for node in explanation.judged.nodes],
        "preferred": explanation.judged.preferred if explanation.judged.matched else [],
        "asGood": [*explanation.as_good],
        "rules": [{**_rule(one.explained), "rejected": one.count, "node": one.node} for one in explanation.rejecting],
        "closest": None
        if closest is None
        else {
            "name": closest.node.name,
            "unfit": _unfit(closest.node),
            "rules": [_rule(rule) for rule in closest.rules],
        },
        "evictions": [
            {
                "node": one.node,
                "lowerPriority": one.lower,
                "victims": [*one.victims],
                "protected": _plain(one.protected),
                "givenUp": None if one.given_up is None else _plain(one.given_up),
                "possible": one.is_possible,
            }
            for one in explanation.evictions
        ],
        **_rest(context),
    }


def node_data(context: ExplainContext, node: NodeExplanation) -> ReportData:
    """Return every rule on one node."""
    scored = node.scored
    return {
        **_about(context),
        "node": {
            **_node(context, node.node, node.verdict),
            "filters": [_rule(rule) for rule in node.explained.filters],
            "scores": [_rule(rule) for rule in node.explained.scores],
            "points": None if scored is None else _plain(scored.scores),
            "sent": None if scored is None else scored.sent,
        },
        **_rest(context),
    }


def _about(context: ExplainContext) -> ReportData:
    judged = context.judged
    return {
        "pod": {
            "namespace": judged.pod.namespace,
            "name": judged.pod.name,
            "scheduler": context.scheduler,
            "node": context.node or None,
            "nominatedNode": judged.pod.nominated or None,
            "asks": dict(judged.pod.request),
            "schedulingGates": context.gates,
        },
        "now": timestamp_to_string(context.now),
        "scheduling": _scheduling(context),
        "policies": judged.policies,
        "shadow": shadow_data(context.shadow),
        "group": None if judged.group is None else _plain(judged.group),
        "publishedAffinity": published_data(judged),
        "notEvaluated": [
            {"policy": one.policy.name, "rule": one.rule, "data": [entry.name for entry in one.entries]}
            for one in judged.unevaluated
        ],
        "matchErrors": context.match_errors,
        "served": [
            {
                "policy": one.name,
                "generation": one.generation,
                "servingGeneration": one.serving,
                "fault": one.fault or None,
            }
            for one in context.served
        ],
    }


def _scheduling(context: ExplainContext) -> ReportData:
    found = context.scheduling
    state = found.scheduler
    return {
        "podScheduled": _condition(found.last),
        "scheduler": None if state is None else _scheduler(state),
        "operator": None if found.operator is None else _operator(found.operator),
        "answered": None if found.operator is None or found.operator.unread else not found.is_unanswered,
        "waits": bool(context.unplaceable) or found.waits,
    }


def _condition(last: PodScheduled | None) -> ReportData | None:
    if last is None:
        return None
    return {"reason": last.reason, "message": last.message, "since": last.last_transition_time}


def _scheduler(state: SchedulerState) -> ReportData:
    return {
        "name": state.name,
        "ready": state.ready,
        "exists": None if state.ready is None else not state.missing,
        "meant": state.meant or None,
        "message": state.message,
    }


def _operator(state: OperatorState) -> ReportData:
    return {
        "namespace": state.namespace,
        "ready": None if state.unread else state.ready,
        "replicas": None if state.unread else state.replicas,
        "message": state.unread,
    }


def _rest(context: ExplainContext) -> ReportData:
    return {"asksBeyond": [*context.judged.unsimulated], "notSimulated": [*NOT_SIMULATED], "notes": [*context.notes]}


def _node(context: ExplainContext, node: NodeResult, verdict: Verdict) -> ReportData:
    return {
        "name": node.name,
        "verdict": _WORDS[verdict],
        "fits": node.fits,
        "passed": None if node.passed and context.judged.is_open else node.passed,
        "resolvable": node.resolvable,
        "reasons": node.reasons,
        "score": context.judged.score(node),
        "unfit": _unfit(node),
        "shadow": [one._asdict() for one in context.in_shadow.get(node.name, ())],
        "rejectedBy": [{"policy": one.policy, "rule": one.rule, "reason": one.reason} for one in node.rejections],
    }


def _unfit(node: NodeResult) -> list[ReportData]:
    return [{"what": one.what, "detail": one.detail, "publishedBy": [*one.policies]} for one in node.unfit]


def _rule(rule: RuleExplained) -> ReportData:
    data: ReportData = _plain(rule if rule.noted is None else replace(rule, noted=in_words(rule.noted)))
    return data


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)
