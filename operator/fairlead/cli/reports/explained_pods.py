"""Pods with what is known of their cluster, judged by the policies that answer their schedulers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairlead.cli.inputs.created_pods import judge_pod
from fairlead.cli.inputs.shadow_effects import shadow_evictions
from fairlead.cli.inputs.shadow_simulation import ShadowSimulation
from fairlead.cli.inputs.simulated_cluster import SimulatedCluster
from fairlead.cli.inputs.simulation_inputs import Pod
from fairlead.cli.installation.scheduling import Scheduling, last_word
from fairlead.cli.reports.explain_data import ExplainContext
from fairlead.cli.reports.pending_text import pending_groups
from fairlead.cli.reports.shadow_text import InShadow
from fairlead.cli.reports.workload_text import ExplainedWorkload
from fairlead.policy.explain.explanation import RuleExplained
from fairlead.simulation.evictions import Eviction, evictions
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.workloads import Workload, WorkloadRef


@dataclass(slots=True)
class ExplainedPods:
    """The pods of a cluster, with the state of their schedulers."""

    cluster: SimulatedCluster
    schedulers: Mapping[str, Scheduling]
    """By name, without what they say of one pod."""
    _simulations: dict[bool, Simulation] = field(default_factory=dict)
    _shadow: ShadowSimulation | None = field(init=False)

    def __post_init__(self) -> None:
        self._shadow = self.cluster.shadow()

    def simulation_of(self, scheduler: str) -> Simulation:
        """Return the simulation of what decides for the pods of a scheduler."""
        is_unanswered = self._goes_on_without(scheduler)
        if is_unanswered not in self._simulations:
            cluster = self.cluster.without_policies() if is_unanswered else self.cluster
            self._simulations[is_unanswered] = cluster.simulation()
        return self._simulations[is_unanswered]

    def context(self, pod: Pod, *, is_new: bool = False) -> ExplainContext:
        """Judge a pod; `is_new`: it need not exist yet."""
        simulation = self.simulation_of(pod.scheduler)
        scheduling = replace(
            self.schedulers[pod.scheduler], last=last_word(pod.raw), is_new=is_new or bool(pod.template_of)
        )
        judged = replace(judge_pod(simulation, pod), unanswered=scheduling.waits)
        shadow = None if self._shadow is None or self._goes_on_without(pod.scheduler) else self._shadow
        return ExplainContext(
            judged,
            self.cluster.now,
            self.cluster.live_policies,
            scheduling,
            (),
            len(simulation.names),
            None if shadow is None else shadow.judge(pod, judged),
        )

    def rejections_in_shadow(self, context: ExplainContext, pod: Pod, decided: Sequence[Eviction]) -> InShadow:
        """Return what rules in shadow would reject, also the evictions of `decided` that they would forbid, by node."""
        if context.shadow is None or self._shadow is None:
            return {}
        found = context.shadow.rejections()
        if any(one.is_possible for one in decided):
            simulation, enforced = self._shadow.simulation, context.shadow.enforced
            forbidden = shadow_evictions(context.shadow.rules, decided, evictions(simulation, pod.raw, enforced))
            for node, one in forbidden.items():
                found.setdefault(node, []).append(one)
        return found

    def rules_in_shadow(self, context: ExplainContext, pod: Pod, node: str) -> list[RuleExplained]:
        """Return what the filters and scores in shadow say of one node."""
        if context.shadow is None or self._shadow is None:
            return []
        [told] = self._shadow.simulation.explain(pod.raw, context.shadow.enforced, [node])
        return [*context.shadow.explained(told.filters, "Filter"), *context.shadow.explained(told.scores, "Score")]

    def notes(self, scheduler: str | None = None) -> Iterator[str]:
        """Return notes on the limits of what is known of the cluster, for the pods of one scheduler or of all."""
        is_unanswered = scheduler is not None and self._goes_on_without(scheduler)
        return (self.cluster.without_policies() if is_unanswered else self.cluster).notes()

    def of_workload(self, ref: WorkloadRef, workload: Workload | None) -> tuple[Pod, ExplainedWorkload]:
        """Return the pod that stands best for a workload, and how many others wait."""
        pods = self.cluster.pods
        waiting = [one for one in pods if one.waits and not one.template_of]
        groups = pending_groups([self.context(one) for one in waiting])
        chosen = next(iter(waiting), pods[0])
        if groups:
            first = groups[0].pods[0].judged.pod
            chosen = next(one for one in waiting if one.key == (first.namespace, first.name))
        return chosen, ExplainedWorkload(
            ref,
            pods=0 if chosen.template_of else len(pods),
            replicas=None if workload is None else workload.replicas,
            groups=groups,
            pod="" if chosen.template_of else chosen.key[1],
            fault="" if workload is None else workload.fault,
        )

    def _goes_on_without(self, scheduler: str) -> bool:
        """Return whether a scheduler places its pods without policies, as no replica answers."""
        found = self.schedulers[scheduler]
        return found.is_unanswered and not found.waits
