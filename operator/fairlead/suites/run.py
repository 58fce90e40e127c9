"""Execution of a case: simulate, compare and count outcomes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

import msgspec

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.groups.group import Group
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy, ExpressionRule
from fairlead.policy.evaluate.annotations import annotations
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.evaluate.preemption import PROTECTED, dropped
from fairlead.policy.explain.explainer import steps_of
from fairlead.policy.explain.explanation import NodeExplained
from fairlead.policy.explain.group_explained import group_steps
from fairlead.policy.explain.mismatch import Unmatched, explain_mismatch
from fairlead.policy.nodes.annotated_values import with_data
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.results import NodeResult, PodResult
from fairlead.simulation.simulation import Simulation, scheduler_of
from fairlead.simulation.snapshot import Snapshot
from fairlead.simulation.snapshot_error import SnapshotError
from fairlead.suites import coverage, validate
from fairlead.suites.compare import (
    Actual,
    CoveredOutcome,
    Difference,
    EvictionVerdict,
    OnNode,
    ProtectionResult,
    WrittenAnnotations,
    differences,
)
from fairlead.suites.created_affinity import affinity_of_case
from fairlead.suites.group_states import as_filter_judges, give_states
from fairlead.suites.learned_values import config_maps_of, given_to_rules
from fairlead.suites.node_values import readings
from fairlead.suites.objects import CaseInputs, case_inputs
from fairlead.suites.suite import Case, Expect, Suite
from fairlead.time_units import SECOND_NS

_EVICTS_NOTHING: Final = "a group evicts no pods to start"


def ask(policies: Sequence[CompiledPolicy], inputs: CaseInputs, expect: Expect) -> Actual:
    """Return the actual results of a case. Raises SnapshotError and InvalidObjectError for what cannot be read."""
    snapshot = Snapshot()
    uids = {str(node["metadata"]["name"]): str(node["metadata"]["uid"]) for node in inputs.nodes}
    given = given_to_rules(inputs.learned, policies)
    learned = config_maps_of(given.values(), uids, inputs.now // SECOND_NS)
    for one in (*inputs.namespaces, *inputs.nodes, *inputs.pods, *inputs.waiting, *learned):
        snapshot.put(one)
    simulation = Simulation(
        policy_set(policies), snapshot, inputs.now, readings=readings(inputs.values, policies, inputs.now)
    )
    raw = msgspec.json.encode(inputs.pod)
    judged = _with_group(simulation, simulation.judge(raw), inputs)
    group = judged.group
    steps = [] if group is None else group_steps(group, judged.pod, judged.matched, inputs.now)
    explained = [as_filter_judges(one, group, steps) for one in simulation.explain(raw, judged, simulation.names)]
    eviction_verdicts = {name: _eviction_verdict(simulation, judged, name, inputs) for name in validate.pods_of(expect)}
    bound = {node: _annotated(simulation, judged, node) for node in expect.annotations}
    outcomes = [
        *_of_match(policies, judged, inputs),
        *(one for node, said in zip(judged.nodes, explained, strict=True) for one in _of_node(node, said)),
        *(_of_protection(said) for one in eviction_verdicts.values() for said in one.protections),
        *_of_annotations(judged, bound),
    ]
    return Actual(
        policies=judged.policies,
        nodes={
            said.node: OnNode(said, [str(one) for one in node.unfit], node.score if said.passed else None)
            for node, said in zip(judged.nodes, explained, strict=True)
        },
        preferred=() if group is not None and group.reason else judged.preferred,
        eviction_verdicts=eviction_verdicts,
        annotations=bound,
        group=group,
        affinity=None if expect.affinity is None else affinity_of_case(policies, inputs),
        others=[one for one in map(partial(_unmatched, judged, inputs), policies) if one is not None],
        outcomes=outcomes,
    )


def _with_group(simulation: Simulation, judged: PodResult, inputs: CaseInputs) -> PodResult:
    """Return a result with the group as it is in the states of groups that a case says."""
    if not inputs.groups:
        return judged
    pod, groups = judged.pod, simulation.groups
    own = Group(scheduler_of(pod), pod.namespace, "" if judged.group is None else judged.group.value)
    give_states(inputs.groups, groups, own, inputs.now)
    return replace(judged, group=groups.explain(pod, judged.matched))


def _annotated(simulation: Simulation, judged: PodResult, node: str) -> WrittenAnnotations:
    made = annotations(
        judged.pod, judged.matched, simulation.mirror.nodes, node, now=simulation.now, tally=RuleErrorTally()
    )
    return WrittenAnnotations(made.values, made.refusal or "")


def _eviction_verdict(simulation: Simulation, judged: PodResult, name: str, inputs: CaseInputs) -> EvictionVerdict:
    node, uid = _victim(name, inputs)
    found = dropped(
        judged.pod,
        judged.matched,
        simulation.mirror.nodes,
        node,
        {uid},
        requests=simulation.mirror.requests_of_placed,
        now=simulation.now,
        tally=RuleErrorTally(),
    )
    said = [*_protections(simulation, judged, node, uid)]
    group = judged.group
    if group is not None and group.evicts_nothing:
        return EvictionVerdict(group.policy, group.rule, _EVICTS_NOTHING, protections=said, of_group=True)
    if found is None:
        return EvictionVerdict(protections=said)
    return EvictionVerdict(found.policy, found.rule, found.why, found.why == PROTECTED, said)


def _victim(name: str, inputs: CaseInputs) -> tuple[str, str]:
    """Return the node and the UID of a pod."""
    key = validate.key_of(name, inputs)
    [found] = [pod for pod in inputs.pods if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == key]
    return str(found["spec"]["nodeName"]), str(found["metadata"]["uid"])


def _of_match(policies: Sequence[CompiledPolicy], judged: PodResult, inputs: CaseInputs) -> Iterator[CoveredOutcome]:
    scheduler = inputs.pod["spec"]["schedulerName"]
    for policy in policies:
        if policy.scheduler_name == scheduler:
            is_for = policy.name in judged.policies
            yield policy.name, "Match", "match", coverage.MATCHED if is_for else coverage.NOT_MATCHED


def _of_node(node: NodeResult, explained: NodeExplained) -> Iterator[CoveredOutcome]:
    """Yield the outcomes on a node. A rejection counts only for the rule whose reason is reported."""
    rejected = False
    for rule in explained.filters:
        if rule.outcome == "Passed":
            yield rule.policy, "Filter", rule.rule, coverage.PASSED
        elif rule.outcome == "Rejected" and not rejected:
            rejected = True
            yield rule.policy, "Filter", rule.rule, coverage.REJECTED
    for rule in explained.scores if node.is_candidate else ():
        if rule.outcome == "Scored":
            yield rule.policy, "Score", rule.rule, coverage.SCORED


def _protections(simulation: Simulation, judged: PodResult, node: str, uid: str) -> Iterator[ProtectionResult]:
    """Yield the result of each protection by itself; the scheduler gets only the first."""
    view = simulation.mirror.nodes.view_of(node)
    if view is None:
        return
    for each in judged.matched:
        seen = with_data(view, each.policy.data, simulation.now, simulation.mirror.nodes)
        [faced] = [seen.with_victim(pod) for pod in seen.pods if pod.uid == uid]
        for rule in each.policy.protections:
            steps = steps_of(rule.expression, judged.pod, faced, simulation.now)
            protects = each.undecided is not None or _protects(rule, judged.pod, faced, simulation.now)
            yield ProtectionResult(each.policy.name, rule.name, protects, steps)


def _protects(rule: ExpressionRule, pod: PodView, faced: NodeView, now: int) -> bool:
    """In doubt it does."""
    try:
        return bool(rule.expression.for_pod(pod)(faced, now))
    except RAISED:
        return True


def _of_protection(protection: ProtectionResult) -> CoveredOutcome:
    return (
        protection.policy,
        "Protection",
        protection.rule,
        coverage.PROTECTED if protection.protects else coverage.EVICTABLE,
    )


def _unmatched(judged: PodResult, inputs: CaseInputs, policy: CompiledPolicy) -> Unmatched | None:
    return explain_mismatch(policy, judged.pod, str(inputs.pod["spec"]["schedulerName"]), inputs.now)


def _of_annotations(judged: PodResult, bound: dict[str, WrittenAnnotations]) -> Iterator[CoveredOutcome]:
    written = {key for one in bound.values() for key in one.values}
    for each in judged.matched:
        for rule in each.policy.annotations:
            if rule.key in written:
                written.remove(rule.key)  # the first policy that has the key is the one that writes it
                yield each.policy.name, "Annotation", rule.key, coverage.WRITTEN


class EvaluateCase(Protocol):
    """Function that returns the actual results of a case."""

    def __call__(self, policies: Sequence[CompiledPolicy], inputs: CaseInputs, expect: Expect, /) -> Actual:
        """Return the actual results. Raises SnapshotError and InvalidObjectError for what cannot be read."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a case."""

    case: str
    differences: Sequence[Difference] = ()
    faults: Sequence[FieldError] = ()
    """Errors in the suite that keep the case from running."""
    outcomes: Sequence[CoveredOutcome] = ()

    @property
    def passed(self) -> bool:
        """True if everything is as expected."""
        return not self.differences and not self.faults


def run_case(suite: Suite, at: int, policies: Sequence[CompiledPolicy], ask: EvaluateCase) -> Result:
    """Run a case and compare its results."""
    case = suite.cases[at]
    try:
        about = case_inputs(suite, at, _scheduler(case, at, policies))
    except InvalidObjectError as error:
        return Result(case.name, faults=error.errors)
    if faults := [*validate.name_errors(case.expect, about, policies, ("cases", at, "expect"))]:
        return Result(case.name, faults=faults)
    try:
        answer = ask(policies, about, case.expect)
    except InvalidObjectError as error:
        return Result(case.name, faults=error.errors)
    except SnapshotError as error:
        return Result(case.name, faults=[FieldError(("cases", at), f"an object cannot be read: {error}")])
    return Result(case.name, differences(case.expect, answer), outcomes=answer.outcomes)


def _scheduler(case: Case, at: int, policies: Sequence[CompiledPolicy]) -> str:
    """Return the scheduler of the policies, which a pod has by default. Raises InvalidObjectError."""
    found = sorted({policy.scheduler_name for policy in policies})
    said = (case.pod.get("spec") or {}).get("schedulerName")
    if len(found) > 1 and not said and "from" not in case.pod:
        message = f"is missing: the policies have several schedulers, {', '.join(found)}"
        raise InvalidObjectError([FieldError(("cases", at, "pod", "spec", "schedulerName"), message, "name one")])
    return found[0] if found else ""
