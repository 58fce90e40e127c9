"""Views of the page for one reading of the cluster. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.inputs.caveats import notes_on_skipped
from fairlead.cli.reports.explained_pods import ExplainedPods
from fairlead.cli.ui.decision_table import DecisionTable, ReadDecisions, decision_table
from fairlead.cli.ui.first_glance import FirstGlance, first_glance
from fairlead.cli.ui.matrix import Matrix, matrix_of
from fairlead.cli.ui.node_rows import NodeTable, node_table
from fairlead.cli.ui.policy_rows import ShownPolicy, policy_rows
from fairlead.cli.ui.shown_pods import ShownPods, show_pods
from fairlead.cli.ui.waiting_workloads import WaitingWorkload, waiting_workloads
from fairlead.simulation.scheduler_filters import NOT_SIMULATED


@dataclass(frozen=True, slots=True)
class PageInput:
    """The cluster as it was read for the page."""

    explained: ExplainedPods
    stored: Mapping[str, Mapping[str, Any]]
    """Policies as the cluster stores them, by name."""
    texts: Mapping[str, str]
    """Policies as text for the editor, by name."""
    decisions: ReadDecisions
    options: str
    """Options that say of which cluster and policies this is, for commands that show more."""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PageView:
    """The views of the page."""

    where: str
    read_at: str
    glance: FirstGlance
    workloads: Sequence[WaitingWorkload]
    more_workloads: int
    matrix: Matrix
    policies: Sequence[ShownPolicy]
    nodes: NodeTable
    decisions: DecisionTable
    texts: Mapping[str, str]
    notes: Sequence[str]
    not_simulated: Sequence[str]
    is_live: bool
    options: str


def page_view(read: PageInput) -> tuple[PageView, ShownPods]:
    """Return the views, and the judged pods for what comes after."""
    cluster = read.explained.cluster
    shown = show_pods(read.explained)
    policies, nodes = policy_rows(shown, read.stored), node_table(shown)
    workloads, more = waiting_workloads(shown, read.options)
    skipped = notes_on_skipped(cluster.versions[0].skipped)
    view = PageView(
        cluster.where,
        timestamp_to_string(cluster.now // 10**9 * 10**9),
        first_glance(shown, policies, nodes),
        workloads,
        more,
        matrix_of(shown),
        policies,
        nodes,
        decision_table(read.decisions),
        read.texts,
        [*dict.fromkeys([*read.notes, *cluster.notes(), *skipped])],
        NOT_SIMULATED,
        cluster.is_live,
        read.options,
    )
    return view, shown
