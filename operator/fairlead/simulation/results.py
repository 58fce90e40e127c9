"""Results of a simulation, per pod and node."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, TypeVar

import msgspec

from fairlead.policy.affinity.published_parts import PublishedOfPod
from fairlead.policy.columns.column import Rejection
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.explain.group_explained import GroupExplained
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.scheduler_filters import FITS, FitFailures
from fairlead.simulation.visibility import SkippedRule

Rejections = Sequence[Rejection]
NO_REJECTIONS: Rejections = ()
T = TypeVar("T")
CLASSES: Final = 128
"""Greatest number of cached equivalence classes: each takes a megabyte with thousands of nodes."""


def keep(kept: dict[Hashable, T], key: Hashable, value: T, most: int) -> None:
    """Keep a value in a cache, which is emptied when it is full."""
    if len(kept) >= most:
        kept.clear()
    kept[key] = value


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
    def kept_out(self) -> bool:
        """True if no policy rejects the node, and the terms of the pod's required node affinity do."""
        return self.passed and any(one.by_terms for one in self.unfit)

    @property
    def published_by(self) -> tuple[str, ...]:
        """Policies that publish node affinity which rejects the node."""
        return next((one.policies for one in self.unfit if one.policies), ())

    @property
    def has_room(self) -> bool:
        """True if the scheduler itself accepts the node, or only node affinity that policies publish rejects it."""
        return all(one.policies and one.by_terms for one in self.unfit)

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
    def published_by(self) -> Sequence[str]:
        """Policies that publish node affinity which rejects one of the nodes."""
        return [*dict.fromkeys(policy for node in self.nodes for policy in node.published_by)]

    @cached_property
    def kept_out(self) -> Sequence[str]:
        """The nodes that no policy rejects, and the pod's required node affinity does."""
        return [node.name for node in self.nodes if node.kept_out]

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
    unevaluated: Sequence[SkippedRule] = ()
    """Rules of policies that match the pod, or may match it, that were not evaluated."""
    unanswered: bool = False
    """Whether nothing answers the calls of the pod's scheduler, so that the pod waits whatever the rules say."""
    group: GroupExplained | None = None
    """Group of the pod. What filter says to it as a member of the group is not among the results of nodes."""
    published: PublishedOfPod | None = None
    """Published part of its node affinity; None if it has none."""

    @property
    def is_open(self) -> bool:
        """Return whether a rule that was not evaluated may reject nodes that fit and pass."""
        return any(one.filters for one in self.unevaluated)

    @property
    def excluded(self) -> Sequence[str]:
        """The nodes that all rules pass, and affinity that was published before excludes."""
        if self.published is None or not self.published.is_outdated or self.is_open or self.unanswered:
            return ()
        return self.verdicts.kept_out

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
        """All nodes with the highest score among those that fit and pass; none if a rule was not evaluated."""
        return () if self.unevaluated or self.unanswered else self.verdicts.preferred

    def score(self, node: NodeResult) -> float | None:
        """Return the total score of a node; None also if a rule was not evaluated."""
        return None if self.unevaluated else node.score

    def node(self, name: str) -> NodeResult | None:
        """Return the result on a node; None if there is no such node."""
        return next((node for node in self.nodes if node.name == name), None)


class NodeShown(msgspec.Struct, gc=False):
    """Node in the output for programs."""

    name: str
    fits: bool
    passed: bool | None
    """None: no rule rejects it, but one that may was not evaluated."""
    resolvable: bool | None
    reasons: Sequence[str]
    score: float | None


class PublishedShown(msgspec.Struct, gc=False, rename="camel"):
    """Published affinity of a pod in the output for programs."""

    policies: Sequence[str]
    added: bool
    excluded_nodes: Sequence[str]


class PodShown(msgspec.Struct, gc=False, rename="camel"):
    """Pod in the output for programs."""

    namespace: str
    name: str
    policies: list[str]
    nodes: msgspec.Raw
    preferred: Sequence[str]
    group: GroupExplained | None
    published_affinity: PublishedShown | None


def result_for_programs(judged: PodResult) -> PodShown:
    """Return a result for programs."""
    pod = judged.pod
    nodes = _written(judged.verdicts, judged.is_open, bool(judged.unevaluated))
    published = published_for_programs(judged)
    return PodShown(pod.namespace, pod.name, judged.policies, nodes, judged.preferred, judged.group, published)


def published_for_programs(judged: PodResult) -> PublishedShown | None:
    """Return the published affinity of a pod for programs; None if it has none."""
    found = judged.published
    return None if found is None else PublishedShown(found.policies, found.added, judged.excluded)


@lru_cache(maxsize=CLASSES)
def _written(verdicts: Verdicts, is_open: bool, lacks_rules: bool) -> msgspec.Raw:  # noqa: FBT001 - it is a key
    """Return the nodes as JSON; reasons of the scheduler come after those of policies."""
    said: dict[tuple[int, int], tuple[bool, bool | None, bool | None, list[str]]] = {}
    nodes = []
    for node in verdicts.nodes:
        key = id(node.rejections), id(node.unfit)  # few, and alive as long as the nodes
        found = said.get(key)
        if found is None:
            unfit = dict.fromkeys(f"does not fit: {one.reason}" for one in node.unfit)
            passed = None if node.passed and is_open else node.passed
            found = said[key] = node.fits, passed, node.resolvable, [*node.reasons, *unfit]
        nodes.append(NodeShown(node.name, *found, None if lacks_rules else node.score))
    return msgspec.Raw(msgspec.json.encode(nodes))
