"""Facts that a rule has learned, about nodes and for one class of pods."""

from collections.abc import Callable, Sequence
from typing import Protocol

from fairlead.api.data import DataEntry
from fairlead.learned.content import Content, demands_in, pairs_in
from fairlead.policy.nodes.annotated_values import read_entries
from fairlead.policy.nodes.learned_demands import LearnedRequests
from fairlead.policy.nodes.learned_tables import TableOfRule
from fairlead.policy.nodes.measured_table import Source
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.faults import RAISED, internal_error
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import DemandsRead, OutcomesRead, Reads


class RuleOwner(Protocol):
    """Policy of a rule."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> str: ...  # noqa: D102
    @property
    def data(self) -> Sequence[DataEntry]: ...  # noqa: D102


class LearningPolicy(RuleOwner, Protocol):
    """Policy with what its rules learn."""

    @property
    def learning(self) -> Sequence[tuple[str, OutcomesRead]]: ...  # noqa: D102


def tables_of(policy: LearningPolicy) -> list[TableOfRule]:
    """Return what the tables of a policy are known by."""
    return [table_of(policy, rule, outcomes) for rule, outcomes in policy.learning]


def table_of(policy: RuleOwner, rule: str, learned: OutcomesRead | DemandsRead) -> TableOfRule:
    """Return what the table of a rule is known by."""
    return TableOfRule(policy.uid or policy.name, rule, learned.meaning)


def put_content(
    nodes: Nodes, requests: LearnedRequests, table: TableOfRule, number: int, content: Content | None
) -> bool:
    """Store what a ConfigMap of a rule says, None if it cannot be read; return whether the rule is followed at all."""
    if table in requests.rules:
        requests.put(table, demands_in(content))
    elif table in nodes.learned.tables:
        nodes.put_learned(table, number, pairs_in(content))
    else:
        return False
    return True


def pod_type(outcomes: OutcomesRead, pod: PodView, rule: str) -> str | Unknown:
    """Return the type of a pod, or why it cannot be told, whatever its function raises."""
    try:
        return outcomes.pod_type(pod)
    except RAISED as error:
        return internal_error(error, f"rule {rule}")


def sources_of(nodes: Nodes, policy: RuleOwner, rule: str, reads: Reads) -> frozenset[Source]:
    """Return what is published of all nodes at once and read by a rule."""
    return nodes.sources(policy.data, reads) | {(table_of(policy, rule, one), None) for one in reads.learned}


def seen_by(
    nodes: Nodes, policy: RuleOwner, rule: str, reads: Reads, pod: PodView
) -> Callable[[int, int], NodeView | None]:
    """Return a function from slot and time to node, as a rule of a policy sees it for a class of pods."""
    view = nodes.seen_by(policy.name, read_entries(policy.data, reads))
    for outcomes in reads.learned:
        return _with_learned(view, nodes, table_of(policy, rule, outcomes), pod_type(outcomes, pod, rule))
    return view


def _with_learned(
    view: Callable[[int, int], NodeView | None], nodes: Nodes, table: TableOfRule, kind: str | Unknown
) -> Callable[[int, int], NodeView | None]:
    tables = nodes.learned

    def learned(slot: int, now: int) -> NodeView | None:
        node = view(slot, now)
        return None if node is None else node.with_learned(tables.learned(table, kind, node))

    return learned


def with_learned(view: NodeView, nodes: Nodes, policy: RuleOwner, rule: str, reads: Reads, pod: PodView) -> NodeView:
    """Return a node with what a rule has learned of pods like one, for a caller that needs one node only."""
    for outcomes in reads.learned:
        learned = nodes.learned.learned(table_of(policy, rule, outcomes), pod_type(outcomes, pod, rule), view)
        return view.with_learned(learned)
    return view
