"""The workload of a pod that is explained: how many of its pods wait, and why. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.cli.console.output import clean, counted
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
    """Why its controller creates no pods."""

    @property
    def waiting(self) -> int:
        """Number of its pods that wait."""
        return sum(len(one.pods) for one in self.groups)


def workload_lines(found: ExplainedWorkload, *, colour: bool) -> Iterator[str]:
    """Yield the lines about a workload, which come before those about its pod."""
    wanted = "" if found.replicas is None else f" of {found.replicas:,}"
    if not found.pod:
        said = f"{found.ref} has no pods{wanted and f' ({found.replicas:,} wanted)'}: this explains its template."
        yield clean(said)
        if found.fault:
            yield clean(f"Its controller creates none: {found.fault}")
        yield ""
        return
    count = f"{found.pods:,}{wanted} {'pod' if (found.replicas or found.pods) == 1 else 'pods'}"
    if not found.waiting:
        yield clean(f"{found.ref}: {count}, none waits; this explains {found.pod}.")
    elif len(found.groups) == 1:
        alike = found.waiting - 1
        more = f", as {counted(alike, 'more waits', 'more wait')} for the same reason" if alike else ""
        yield clean(f"{found.ref}: {count}, {found.waiting:,} waiting; this explains {found.pod}{more}.")
    else:
        yield clean(f"{found.ref}: {count}, {found.waiting:,} waiting; this explains {found.pod}.")
        yield from group_rows(found.groups, colour=colour)
    if found.fault:
        yield clean(f"Its controller creates no more: {found.fault}")
    yield ""


def workload_data(found: ExplainedWorkload) -> dict[str, Any]:
    """Return the workload for programs."""
    return {
        "kind": found.ref.kind.kind,
        "namespace": found.ref.key[0],
        "name": found.ref.key[1],
        "replicas": found.replicas,
        "pods": found.pods,
        "waiting": found.waiting,
        "explained": "Pod" if found.pod else "Template",
        "fault": found.fault or None,
        "groups": [group_data(one) for one in found.groups],
    }
