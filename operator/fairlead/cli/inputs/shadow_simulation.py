"""Simulation of what is in shadow, as if it were enforced, beside that of what decides."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead.cli.inputs.created_pods import judge_pod
from fairlead.cli.inputs.policy_versions import ShadowVersion
from fairlead.cli.inputs.shadow_effects import PodShadow, pod_shadow
from fairlead.cli.inputs.simulation_inputs import Pod
from fairlead.simulation.results import PodResult
from fairlead.simulation.simulation import Simulation


@dataclass(slots=True)
class ShadowSimulation:
    """Simulation that is made when the first pod needs it."""

    version: ShadowVersion
    make: Callable[[], Simulation]
    _made: Simulation | None = None

    @property
    def simulation(self) -> Simulation:
        """Return the simulation of all policies, with what is in shadow enforced."""
        if self._made is None:
            self._made = self.make()
        return self._made

    def judge(self, pod: Pod, decided: PodResult) -> PodShadow | None:
        """Return what rules in shadow would change for a pod; None if there are none for it."""
        if not self.version.concerns(pod.scheduler):
            return None
        return pod_shadow(self.version.rules, decided, judge_pod(self.simulation, pod))
