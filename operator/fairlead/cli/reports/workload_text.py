"""The workload of a pod that is explained: how many of its pods wait, and why. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.cli.console.output import clean, pluralize
from fairlead.cli.reports.pending_text import PendingGroup, group_data, group_rows
from fairlead.simulation.workloads import WorkloadRef


@dataclass(frozen=True, slots=True)
class ExplainedWorkload:
    """A workload, of which one pod is explained."""

    ref: WorkloadRef
    pods: int
    """Number of its pods."""
    replicas: int | None
    """Number of pods that it asks for; None if that is not known."""
    groups: Sequence[PendingGroup]
    """Its pods that wait, by the reason."""
    pod: str
    """Name of the explained pod; "" for its template, as it has no pods."""
    fault: str = ""
    """Reason why its controller creates no pods."""

    @property
    def waiting(self) -> int:
        """Number of its pods that wait."""
        return sum(len(one.pods) for one in self.groups)


def workload_lines(workload: ExplainedWorkload, *, colour: bool) -> Iterator[str]:
    """Yield the lines about a workload, which come before those about its pod."""
    wanted = "" if workload.replicas is None else f" of {workload.replicas:,}"
    if not workload.pod:
        said = f"{workload.ref} has no pods{wanted and f' ({workload.replicas:,} wanted)'}: this explains its template."
        yield clean(said)
        if workload.fault:
            yield clean(f"Its controller creates none: {workload.fault}")
        yield ""
        return
    if workload.replicas is not None and workload.pods > workload.replicas:
        count = f"{pluralize(workload.pods, 'pod')} ({workload.replicas:,} wanted)"
    else:
        count = f"{workload.pods:,}{wanted} {'pod' if (workload.replicas or workload.pods) == 1 else 'pods'}"
    if not workload.waiting:
        yield clean(f"{workload.ref}: {count}, none waits; this explains {workload.pod}.")
    elif len(workload.groups) == 1:
        alike = workload.waiting - 1
        more = f", as {pluralize(alike, 'more waits', 'more wait')} for the same reason" if alike else ""
        yield clean(f"{workload.ref}: {count}, {workload.waiting:,} waiting; this explains {workload.pod}{more}.")
    else:
        yield clean(f"{workload.ref}: {count}, {workload.waiting:,} waiting; this explains {workload.pod}.")
        yield from group_rows(workload.groups, colour=colour)
    if workload.fault:
        yield clean(f"Its controller creates no more: {workload.fault}")
    yield ""


def workload_data(workload: ExplainedWorkload) -> dict[str, Any]:
    """Return the workload for programs."""
    return {
        "kind": workload.ref.kind.kind,
        "namespace": workload.ref.key[0],
        "name": workload.ref.key[1],
        "replicas": workload.replicas,
        "pods": workload.pods,
        "waiting": workload.waiting,
        "explained": "Pod" if workload.pod else "Template",
        "fault": workload.fault or None,
        "groups": [group_data(one) for one in workload.groups],
    }
