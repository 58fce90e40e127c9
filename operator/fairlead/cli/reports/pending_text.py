"""Pods that wait, grouped by the reason: text and data of `fairlead explain --pending`, and of a workload. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.console.output import clean, columns, paint, pluralize
from fairlead.cli.inputs.shadow_effects import ShadowSummary
from fairlead.cli.reports.explain_data import ExplainContext
from fairlead.cli.reports.group_text import group_phrase
from fairlead.cli.reports.rows import some
from fairlead.cli.reports.shadow_text import AS_ENFORCED, summary_data, summary_line
from fairlead.cli.reports.simulate_text import reasons_of_nodes
from fairlead.simulation.scheduler_filters import NOT_SIMULATED

WaitVerdict = Literal["Gated", "NoAnswer", "NotScheduled", "Group", "Unknown", "NoNode", "Possible"]
_BOLD: Final = "\x1b[1m"
_RED: Final = "\x1b[1;31m"
_WITHOUT_NODE: Final = frozenset({"NoAnswer", "NotScheduled", "Group", "NoNode"})


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """Pods that wait for the same reason."""

    verdict: WaitVerdict
    why: str
    pods: Sequence[ExplainContext]

    @property
    def names(self) -> list[str]:
        """Namespaces and names of the pods."""
        return [one.name for one in self.pods]


def pending_groups(pods: Iterable[ExplainContext]) -> list[PendingGroup]:
    """Return the pods grouped by the reason, the largest group first."""
    found: dict[tuple[WaitVerdict, str], list[ExplainContext]] = {}
    for about in pods:
        found.setdefault(_why(about), []).append(about)
    groups = [PendingGroup(*key, pods) for key, pods in found.items()]
    return sorted(groups, key=lambda one: (-len(one.pods), one.why))


def _why(context: ExplainContext) -> tuple[WaitVerdict, str]:
    judged, count = context.judged, f"{context.nodes:,}"
    if context.gates:
        return "Gated", f"they wait for scheduling gates: {', '.join(context.gates)}"
    if context.scheduling.waits:
        return "NoAnswer", f"no replica of the operator answers the scheduler {context.scheduler}"
    if context.unplaceable:
        return "NotScheduled", context.unplaceable
    if judged.group is not None and judged.group.reason:
        return "Group", group_phrase(judged.group)
    if not judged.left:
        why = f"none of {count} nodes: {reasons_of_nodes(judged.verdicts)}"
        if judged.excluded:
            passing = f"{pluralize(len(judged.excluded), 'node')} {'passes' if len(judged.excluded) == 1 else 'pass'}"
            why += f"; {passing} all rules but not their node affinity, of an older publication: create them again"
        return "NoNode", why
    if judged.is_open:
        rules = ", ".join(dict.fromkeys(one.name for one in judged.unevaluated if one.filters))
        return "Unknown", f"not evaluated: {rules}"
    return "Possible", f"{len(judged.left):,} of {count} nodes are possible now"


def pending_lines(
    groups: Sequence[PendingGroup], namespace: str, notes: Sequence[str], *, options: str = "", colour: bool
) -> Iterator[str]:
    """Yield the lines of the text; `namespace` is "" for all namespaces.

    `options` are those that say of which cluster and policies all this is, for the command that shows more.
    """
    where = f"the namespace {namespace}" if namespace else "all namespaces"
    total = sum(len(one.pods) for one in groups)
    if not total:
        yield clean(f"No pod waits for a node in {where}.")
    else:
        yield clean(f"{pluralize(total, 'pod')} {'waits' if total == 1 else 'wait'} for a node in {where}")
        yield ""
        yield from group_rows(groups, colour=colour)
        yield ""
        pod = groups[0].pods[0].judged.pod
        name, within = shlex.quote(f"pod/{pod.name}"), shlex.quote(pod.namespace)
        yield clean(f"In full: fairlead explain {name} -n {within} {options}".rstrip())
        if said := summary_line(in_shadow(groups), AS_ENFORCED):
            yield clean(said)
        yield f"Not simulated: {', '.join(NOT_SIMULATED)}."
    for note in notes:
        yield f"Note: {clean(note)}."


def in_shadow(groups: Iterable[PendingGroup]) -> ShadowSummary:
    """Return what rules in shadow would change for the pods."""
    summary = ShadowSummary()
    for one in groups:
        for pod in one.pods:
            summary.add(pod.shadow)
    return summary


def group_rows(groups: Sequence[PendingGroup], *, colour: bool) -> Iterator[str]:
    """Yield a table with a row for each group."""
    rows = [(f"{len(one.pods):,}", clean(some(one.names)), clean(one.why)) for one in groups]
    title, *lines = columns([("PODS", "WHICH", "WHY"), *rows])
    yield paint(title, _BOLD, colour)
    for line, one in zip(lines, groups, strict=True):
        yield paint(line, _RED, colour and one.verdict in _WITHOUT_NODE)


def pending_data(groups: Sequence[PendingGroup], namespace: str, now: int, notes: Sequence[str]) -> dict[str, Any]:
    """Return the groups for programs."""
    return {
        "namespace": namespace or None,
        "now": timestamp_to_string(now),
        "pods": sum(len(one.pods) for one in groups),
        "groups": [group_data(one) for one in groups],
        "shadow": summary_data(in_shadow(groups)),
        "notSimulated": [*NOT_SIMULATED],
        "notes": [*notes],
    }


def group_data(group: PendingGroup) -> dict[str, Any]:
    """Return a group for programs."""
    return {
        "verdict": group.verdict,
        "why": group.why,
        "count": len(group.pods),
        "pods": [
            {
                "namespace": one.judged.pod.namespace,
                "name": one.judged.pod.name,
                "scheduler": one.scheduler,
                "policies": one.judged.policies,
                "possibleNodes": len(one.judged.left),
            }
            for one in group.pods
        ],
    }
