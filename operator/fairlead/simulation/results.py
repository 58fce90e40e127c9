"""Results of a simulation, per pod and node."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from fairlead.policy.evaluate.columns import Rejection
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.scheduler_filters import FITS, FitFailures

Rejections = Sequence[Rejection]
NO_REJECTIONS: Rejections = ()
CLASSES: Final = 128
"""Greatest number of cached equivalence classes: each takes a megabyte with thousands of nodes."""


class NodeResult(msgspec.Struct, frozen=True, gc=False):
    """Result of a pod on one node."""

    name: str
    unfit: FitFailures = FITS
    """Why the scheduler itself rejects the node."""
    rejections: Rejections = NO_REJECTIONS
    """The rules that reject the node, in order: the scheduler gets the first."""
    score: float | None = None
    """Exact total of all policies, normalised over the nodes that fit and pass; None for other nodes."""

    @property
    def fits(self) -> bool:
        """True if the scheduler itself accepts the node."""
        return not self.unfit

    @property
    def passed(self) -> bool:
        """True if no policy rejects the node."""
        return not self.rejections

    @property
    def resolvable(self) -> bool | None:
        """True if evicting pods might help against the rejection that the scheduler gets; None if there is none."""
        return self.rejections[0].resolvable if self.rejections else None

    @property
    def reasons(self) -> list[str]:
        """Reasons of policies, each once."""
        return [*dict.fromkeys(one.reason for one in self.rejections)]

    @property
    def is_candidate(self) -> bool:
        """True if the pod could go there."""
        return not self.unfit and not self.rejections


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Results on all nodes for an equivalence class of pods."""

    nodes: Sequence[NodeResult]
    """Nodes in the order of the snapshot."""

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
    """Results of one pod."""

    pod: PodView
    matched: Sequence[Matched]
    verdicts: Verdicts
    unsimulated: Sequence[str] = ()
    """Constraints of the pod that are not simulated."""

    @property
    def policies(self) -> list[str]:
        """Names of the policies that match, in order."""
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
        """Return the result on a node; None if there is no such node."""
        return next((node for node in self.nodes if node.name == name), None)


class NodeShown(msgspec.Struct, gc=False):
    """Node in the output for programs."""

    name: str
    fits: bool
    passed: bool
    resolvable: bool | None
    reasons: Sequence[str]
    score: float | None


class PodShown(msgspec.Struct, gc=False):
    """Pod in the output for programs."""

    namespace: str
    name: str
    policies: list[str]
    nodes: msgspec.Raw
    preferred: Sequence[str]


def shown(judged: PodResult) -> PodShown:
    """Return a result for programs."""
    pod = judged.pod
    return PodShown(pod.namespace, pod.name, judged.policies, _written(judged.verdicts), judged.preferred)


@lru_cache(maxsize=CLASSES)
def _written(verdicts: Verdicts) -> msgspec.Raw:
    """Return the nodes as JSON; reasons of the scheduler come after those of policies."""
    said: dict[tuple[int, int], tuple[bool, bool, bool | None, list[str]]] = {}
    nodes = []
    for node in verdicts.nodes:
        key = id(node.rejections), id(node.unfit)  # few, and alive as long as the nodes
        found = said.get(key)
        if found is None:
            unfit = dict.fromkeys(f"does not fit: {one.what}" for one in node.unfit)
            found = said[key] = node.fits, node.passed, node.resolvable, [*node.reasons, *unfit]
        nodes.append(NodeShown(node.name, *found, node.score))
    return msgspec.Raw(msgspec.json.encode(nodes))
