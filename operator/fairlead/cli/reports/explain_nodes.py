"""Tables of `fairlead explain`: a row for each node, and the evictions on nodes that lack room. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.cli.console.output import columns, pluralize
from fairlead.cli.reports.rows import score_text, some
from fairlead.cli.reports.shadow_text import InShadow, node_texts
from fairlead.simulation.evictions import Eviction
from fairlead.simulation.explain_pod import NodesAlike, Verdict
from fairlead.simulation.results import NodeResult, PodResult

EVICTIONS_MAX: Final = 12
"""Nodes whose evictions are shown; those that a policy keeps come first."""


def node_rows(
    judged: PodResult, groups: Sequence[NodesAlike], in_shadow: InShadow
) -> Iterator[tuple[str, Verdict, str, str]]:
    """Yield the name of each node, its verdict, its score and the reasons, the best first."""
    for group in groups:
        for node in group.nodes:
            score = judged.score(node)
            shown = "-" if score is None or node.unfit or node.rejections else score_text(score)
            reasons = [*_reasons(judged, node), *node_texts(in_shadow.get(node.name, ()))]
            yield node.name, group.verdict, shown, "; ".join(reasons)


def _reasons(judged: PodResult, node: NodeResult) -> Iterator[str]:
    if not judged.unanswered:
        yield from dict.fromkeys(f"{one.policy}/{one.rule}: {one.reason}" for one in node.rejections)
    yield from dict.fromkeys(map(str, node.unfit))
    if not node.unfit and judged.unanswered:
        yield "the scheduler's call is not answered"
    elif not node.unfit and not node.rejections and judged.unevaluated:
        yield f"not evaluated: {', '.join(one.name for one in judged.unevaluated)}"


def eviction_lines(evictions: Sequence[Eviction]) -> Iterator[str]:
    """Yield the lines about the pods that a scheduler may evict, and those that policies protect."""
    ordered = sorted(evictions, key=lambda one: (not one.is_possible, not one.protected))
    rows = [(one.node, f"{one.lower:,}", some(one.victims) or "-", _outcome(one)) for one in ordered[:EVICTIONS_MAX]]
    yield from columns([("NODE", "LOWER PRIORITY", "WOULD BE EVICTED", "OUTCOME"), *rows])
    if len(evictions) > EVICTIONS_MAX:
        yield f"and {pluralize(len(evictions) - EVICTIONS_MAX, 'node')} more: -o json lists them"
    protected: dict[str, list[str]] = defaultdict(list)
    for one in evictions:
        for each in one.protected:
            protected[f"{each.policy}/{each.rule}"].append(f"{each.pod} on {one.node}")
    for rule, pods in sorted(protected.items()):
        yield f"{rule} protects from this pod: {some(pods)}"


def _outcome(eviction: Eviction) -> str:
    if not eviction.victims:
        return "without all of them there is still no room"
    if eviction.given_up is None:
        return "makes room"
    rule = (
        f"{eviction.given_up.policy}/{eviction.given_up.rule}" if eviction.given_up.rule else eviction.given_up.policy
    )
    return f"given up: {rule}: {eviction.given_up.why}"
