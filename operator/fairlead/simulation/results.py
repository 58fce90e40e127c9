"""What is said of a pod on each node."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from fairlead.policy.evaluate.columns import Rejection
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.views.pod_and_node import PodView
from fairlead.simulation.scheduler_filters import FITS, FitFailures

Rejections = Sequence[Rejection]
NO_REJECTIONS: Rejections = ()
CLASSES: Final = 128
"""Of pods that are alike, that are kept at a time: each takes a megabyte where there are thousands of nodes."""


class NodeResult(msgspec.Struct, frozen=True, gc=False):
    """One node."""

    name: str
    unfit: FitFailures = FITS
    """Why the scheduler itself would not take it."""
    rejections: Rejections = NO_REJECTIONS
    """The rules that reject it, in order: the scheduler is told the first."""
    score: float | None = None
    """The exact total of all policies, normalised over the nodes that fit and pass; None for the others."""

    @property
    def fits(self) -> bool:
        """Whether the scheduler itself would take it."""
        return not self.unfit

    @property
    def passed(self) -> bool:
        """Whether no policy rejects it."""
        return not self.rejections

    @property
    def resolvable(self) -> bool | None:
        """Whether evicting pods might help against what the scheduler is told; None where nobody rejects."""
        return self.rejections[0].resolvable if self.rejections else None

    @property
    def reasons(self) -> list[str]:
        """Of policies, each once."""
        return [*dict.fromkeys(one.reason for one in self.rejections)]

    @property
    def is_candidate(self) -> bool:
        """Whether the pod could go there."""
        return not self.unfit and not self.rejections


@dataclass(frozen=True, eq=False)
class Verdicts:
    """All nodes for one pod, and for those that are like it."""

    nodes: Sequence[NodeResult]
    """In the order of the snapshot."""

    @cached_property
    def left(self) -> Sequence[NodeResult]:
        """The nodes that fit and pass."""
        return [node for node in self.nodes if node.score is not None]

    @cached_property
    def preferred(self) -> Sequence[str]:
        """All nodes with the highest score among those that fit and pass."""
        best = max([node.score or 0.0 for node in self.left], default=0.0)
        return [node.name for node in self.left if node.score == best]


@dataclass(frozen=True, slots=True)
class PodResult:
    """A pod, and what every node is to it."""

    pod: PodView
    matched: Sequence[Matched]
    verdicts: Verdicts
    unsimulated: Sequence[str] = ()
    """What it asks for that is not simulated."""

    @property
    def policies(self) -> list[str]:
        """The names of the policies that are for it, in their order."""
        return [each.policy.name for each in self.matched]

    @property
    def nodes(self) -> Sequence[NodeResult]:
        """All nodes, in the order of the snapshot."""
        return self.verdicts.nodes

    @property
    def left(self) -> Sequence[NodeResult]:
        """The nodes that fit and pass."""
        return self.verdicts.left

    @property
    def preferred(self) -> Sequence[str]:
        """All nodes with the highest score among those that fit and pass."""
        return self.verdicts.preferred

    def node(self, name: str) -> NodeResult | None:
        """The node of that name."""
        return next((node for node in self.nodes if node.name == name), None)


class NodeShown(msgspec.Struct, gc=False):
    """As it is printed for programs."""

    name: str
    fits: bool
    passed: bool
    resolvable: bool | None
    reasons: Sequence[str]
    score: float | None


class PodShown(msgspec.Struct, gc=False):
    """As it is printed for programs."""

    namespace: str
    name: str
    policies: list[str]
    nodes: msgspec.Raw
    preferred: Sequence[str]


def shown(judged: PodResult) -> PodShown:
    """For programs."""
    pod = judged.pod
    return PodShown(pod.namespace, pod.name, judged.policies, _written(judged.verdicts), judged.preferred)


@lru_cache(maxsize=CLASSES)
def _written(verdicts: Verdicts) -> msgspec.Raw:
    """What the scheduler itself has against a node stands after what policies have."""
    said: dict[tuple[int, int], tuple[bool, bool, bool | None, list[str]]] = {}
    nodes = []
    for node in verdicts.nodes:
        key = id(node.rejections), id(node.unfit)  # few, and as long as the nodes are there
        found = said.get(key)
        if found is None:
            unfit = dict.fromkeys(f"does not fit: {one.what}" for one in node.unfit)
            found = said[key] = node.fits, node.passed, node.resolvable, [*node.reasons, *unfit]
        nodes.append(NodeShown(node.name, *found, node.score))
    return msgspec.Raw(msgspec.json.encode(nodes))
