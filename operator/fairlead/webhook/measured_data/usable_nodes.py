"""Nodes that pods of a policy may use, as far as facts of nodes and of the pods' namespaces tell.

A node that a filter rejects for every pod that the policy matches needs no measured value: it is rejected anyway.
Filters of the scheduler's other policies count if they are in force, and these match all pods of the namespace. The
policy's own also count in shadow if all its rules are: else its rules in force decide about the other nodes too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.cel.values.schema import POD
from fairlead.cel.values.structs import empty
from fairlead.policy.compile.expression_rules import verdict_of
from fairlead.policy.compile.model import CompiledMatch, CompiledPolicy, FilterRule
from fairlead.policy.compile.modes import all_in_shadow, undivided
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import Reject
from fairlead.strategies.reads import Path, Reads

NAMESPACES_MAX: Final = 8
"""A policy that matches pods of more namespaces is taken to match any pod, because each is asked about on its own."""
_KNOWN_MAX: Final = 20_000
_NAME: Final[Path] = ("metadata", "namespace")
_ANY_POD: Final[Any] = empty(POD)


@dataclass(frozen=True, slots=True)
class PodNamespace:
    """Namespace of pods that a policy matches."""

    name: str = ""
    """"" stands for any namespace."""
    object: Any = None
    """None: it is not known."""

    @property
    def pod(self) -> PodView:
        """Return a pod of the namespace, of which nothing else is known."""
        metadata = msgspec.structs.replace(_ANY_POD.metadata, namespace=self.name)
        return PodView(msgspec.structs.replace(_ANY_POD, metadata=metadata), self.object)


_ANY: Final = (PodNamespace(),)


def namespaces_of(policy: CompiledPolicy, known: Mapping[str, Any]) -> Sequence[PodNamespace]:
    """Return the namespaces whose pods a policy matches, of those of the cluster."""
    match = policy.match
    if match.namespaces is None and match.namespace_selector is None:
        return _ANY
    names = known.keys() if match.namespaces is None else match.namespaces
    found: list[PodNamespace] = []
    for name in sorted(names):
        where = PodNamespace(name, known.get(name))
        if not _selects(match, where) and where.object is not None:
            continue
        if len(found) == NAMESPACES_MAX:
            return _ANY
        found.append(where)
    return found or _ANY


class UsableNodes:
    """Answers about nodes, each kept until the node changes."""

    def __init__(
        self, policy: CompiledPolicy, others: Iterable[CompiledPolicy] = (), namespaces: Sequence[PodNamespace] = _ANY
    ) -> None:
        """Take the filters that decide by the node and the namespace; `others` are those of the same scheduler."""
        own = undivided(policy) if all_in_shadow(policy) else policy
        together = (own, *(one for one in others if one.enforced and one.name != policy.name))
        self._asked: list[tuple[PodView, Sequence[FilterRule]]] = []
        for where in namespaces:
            rules = [rule for one in together if one is own or _matches_all(one, where) for rule in _of(one, where)]
            self._asked.append((where.pod, rules))
        self._known: dict[str, tuple[NodeView, bool]] = {}

    @property
    def are_all(self) -> bool:
        """True if pods of some namespace may use every node."""
        return any(not rules for _, rules in self._asked)

    def __call__(self, node: NodeView, now: int) -> bool:
        """Return whether, for some namespace, no filter rejects a node."""
        known = self._known.get(node.name)
        if known is None or known[0] is not node:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            usable = any(not any(_rejects(rule, pod, node, now) for rule in rules) for pod, rules in self._asked)
            known = self._known[node.name] = node, usable
        return known[1]


def _matches_all(policy: CompiledPolicy, where: PodNamespace) -> bool:
    """Return whether a policy is known to match every pod of a namespace."""
    match = policy.match
    if match.pod_selector is not None or match.conditions:
        return False
    if match.namespaces is not None and where.name not in match.namespaces:
        return False
    return _selects(match, where)


def _selects(match: CompiledMatch, where: PodNamespace) -> bool:
    """Return whether the selector of namespaces, if there is one, is known to match."""
    if match.namespace_selector is None:
        return True
    return where.object is not None and match.namespace_selector(where.object.metadata.labels)


def _of(policy: CompiledPolicy, where: PodNamespace) -> Iterator[FilterRule]:
    """Yield the filters of a policy that read nothing but the node and what is known of the namespace."""
    for rule in policy.filters:
        reads = rule.filter.reads
        known = Reads(
            node=reads.node,
            allocatable=reads.allocatable,
            capacity=reads.capacity,
            pod=reads.pod & {_NAME} if where.name else frozenset(),
            namespace=reads.namespace if where.object is not None else frozenset(),
        )
        if reads.node and reads == known:
            yield rule


def _rejects(rule: FilterRule, pod: PodView, node: NodeView, now: int) -> bool:
    return isinstance(verdict_of(rule.filter, pod, rule.name, node, now), Reject)
