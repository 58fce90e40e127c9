"""What stands around an explanation: which pod, when, and what its reader has to know."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.cli.inputs.live_policies import LivePolicy
from fairlead.simulation.results import PodResult
from fairlead.simulation.scheduler_filters import amount
from fairlead.simulation.simulation import scheduler_of


@dataclass(frozen=True, slots=True)
class ExplainContext:
    """All of that."""

    judged: PodResult
    now: int
    live: Sequence[LivePolicy]
    """The policies of the cluster, where it was asked for them."""
    notes: Sequence[str]
    nodes: int

    @property
    def name(self) -> str:
        """The pod's, with its namespace."""
        return f"{self.judged.pod.namespace}/{self.judged.pod.name}"

    @property
    def scheduler(self) -> str:
        """That the pod names."""
        return scheduler_of(self.judged.pod)

    @property
    def node(self) -> str:
        """Where the pod is."""
        return str(self.judged.pod.pod.spec.nodeName)

    @property
    def gates(self) -> list[str]:
        """What the pod waits for before any scheduler looks at it."""
        return [str(one.name) for one in self.judged.pod.pod.spec.schedulingGates]

    @property
    def asks(self) -> str:
        """What the pod asks for, in words."""
        asked = {name: value for name, value in self.judged.pod.request.items() if value and name != "pods"}
        return ", ".join(f"{name} {amount(name, value)}" for name, value in sorted(asked.items())) or "nothing"

    @property
    def served(self) -> list[LivePolicy]:
        """The policies of the cluster that are for the pod, and those of its scheduler that do not compile."""
        return [
            one
            for one in self.live
            if one.name in self.judged.policies or (one.fault and one.scheduler == self.scheduler)
        ]

    @property
    def doubts(self) -> list[str]:
        """Policies of which nobody can tell whether they are for the pod."""
        return [
            f"{each.policy.name}: cannot tell whether it matches the pod: {each.condition}: "
            f"{each.undecided.detail or each.undecided}"
            for each in self.judged.matched
            if each.undecided is not None
        ]
