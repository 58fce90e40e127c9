"""Nodes that pods of a policy may use, as far as its filters about nodes alone can tell.

A node that such a filter rejects for every pod needs no measured value: it is rejected with one, too.
"""

from typing import Final

from fairlead.cel.values.schema import POD
from fairlead.cel.values.structs import empty
from fairlead.policy.compile.expression_rules import verdict_of
from fairlead.policy.compile.model import CompiledPolicy, FilterRule
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import Reject
from fairlead.strategies.reads import Reads

_KNOWN_MAX: Final = 20_000
_ANY_POD: Final = PodView(empty(POD))
"""A pod for filters that read nothing of it."""


class UsableNodes:
    """Answers about nodes, each kept until the node changes."""

    def __init__(self, policy: CompiledPolicy) -> None:
        """Take the filters of a policy that read nothing but the node."""
        self._filters = [rule for rule in policy.filters if _is_about_nodes(rule)]
        self._known: dict[str, tuple[NodeView, bool]] = {}

    @property
    def are_all(self) -> bool:
        """True if no filter is about nodes alone, so that pods may use every node."""
        return not self._filters

    def __call__(self, node: NodeView, now: int) -> bool:
        """Return whether no filter rejects a node for every pod."""
        known = self._known.get(node.name)
        if known is None or known[0] is not node:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            known = self._known[node.name] = node, not any(_rejects(rule, node, now) for rule in self._filters)
        return known[1]


def _is_about_nodes(rule: FilterRule) -> bool:
    reads = rule.filter.reads
    return bool(reads.node) and reads == Reads(node=reads.node, allocatable=reads.allocatable, capacity=reads.capacity)


def _rejects(rule: FilterRule, node: NodeView, now: int) -> bool:
    return isinstance(verdict_of(rule.filter, _ANY_POD, rule.name, node, now), Reject)
