"""Workloads that wait, worst first: why, and what must hold on the closest node. Pods that are alike share one."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.cli.reports.rule_text import OR, of_rejection, of_unmatched
from fairlead.cli.ui.shown_pods import ShownPod, ShownPods, WorkloadKey
from fairlead.simulation.explain_pod import Closest, RejectingRule, explanation

EXPLAINED_MAX: Final = 30
_RULES_MAX: Final = 6
_WAYS_MAX: Final = 6
_OTHERS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class RejectingRow:
    """A rule that rejects nodes for a reason."""

    rule: str
    reason: str
    count: int
    node: str


@dataclass(frozen=True, slots=True)
class ClosestNode:
    """The closest node, and what must hold for the pod to go there."""

    node: str
    changes: Sequence[tuple[str, str]]
    """Comparisons that must hold, each with what it compares now; between two ways, a row with nothing to compare."""
    unfit: Sequence[str]
    """Reasons for which the scheduler itself rejects it."""


@dataclass(frozen=True, slots=True)
class WaitingWorkload:
    """Pods of a workload that wait for the same reason."""

    pod: str
    workload: WorkloadKey
    count: int
    is_stuck: bool
    why: str
    asks: str
    policies: Sequence[str]
    rules: Sequence[RejectingRow]
    closest: ClosestNode | None
    others: Sequence[str]
    """Policies that do not match the pod, and why."""
    no_room: bool
    """True if the scheduler itself finds room on no node, so that no policy can change that."""
    command: str

    @property
    def owner(self) -> str:
        """Kind and name of the controller; "" if nothing controls the pod."""
        return self.workload[1] if " " in self.workload[1] else ""


def waiting_workloads(shown: ShownPods, options: str) -> tuple[list[WaitingWorkload], int]:
    """Return the workloads that wait, worst first, and the number of those that are not explained.

    `options` say of which cluster and policies all this is, for the commands that show more.
    """
    groups: dict[tuple[WorkloadKey, int, str], list[ShownPod]] = {}
    for pod in shown.waiting:
        groups.setdefault((pod.workload, id(pod.judged.verdicts), pod.why), []).append(pod)
    order = sorted(groups.values(), key=lambda group: (not group[0].is_stuck, -len(group), group[0].name))
    found = [_workload(shown, group, options) for group in order[:EXPLAINED_MAX]]
    return found, len(order) - len(found)


def _workload(shown: ShownPods, group: Sequence[ShownPod], options: str) -> WaitingWorkload:
    first = group[0]
    judged = first.judged
    simulation = shown.explained.simulation_of(first.pod.scheduler)
    explained = explanation(simulation, first.pod.raw, judged)
    namespace, name = judged.pod.namespace, judged.pod.name
    command = f"fairlead explain {shlex.quote(f'pod/{name}')} -n {shlex.quote(namespace)} {options}".rstrip()
    return WaitingWorkload(
        first.name,
        first.workload,
        len(group),
        first.is_stuck,
        first.why,
        first.context.asks,
        judged.policies,
        [_rejecting(rule) for rule in explained.rejecting[:_RULES_MAX]],
        None if explained.closest is None else _closest(explained.closest),
        [of_unmatched(other) for other in explained.others[:_OTHERS_MAX]],
        bool(judged.nodes) and not any(node.has_room for node in judged.nodes),
        command,
    )


def _rejecting(rule: RejectingRule) -> RejectingRow:
    return RejectingRow(f"{rule.explained.policy}/{rule.explained.rule}", rule.explained.reason, rule.count, rule.node)


def _closest(closest: Closest) -> ClosestNode:
    changes = [row for rule in closest.rules for row in of_rejection(rule)[:_WAYS_MAX]]
    while changes and changes[-1] == OR:
        changes.pop()
    return ClosestNode(closest.node.name, changes, [str(reason) for reason in closest.node.unfit])
