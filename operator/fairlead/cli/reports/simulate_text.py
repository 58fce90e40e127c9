"""Text of `fairlead simulate`: a row for each pod, those without a node first. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from fairlead.cli.console.output import clean, columns, paint, pluralize
from fairlead.cli.reports.group_text import group_phrase
from fairlead.cli.reports.rows import alike, score_text, some
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.results import CLASSES, NodeResult, PodResult, Verdicts
from fairlead.simulation.scheduler_filters import NOT_SIMULATED

__all__ = ["NOT_SIMULATED", "SimulateRow", "reasons_of_nodes", "row", "simulate_lines"]

_HEAD: Final = ("POD", "POLICIES", "NODES", "PREFERRED", "SCORE", "OTHER NODES")
_RED: Final = "\x1b[1;31m"
_BOLD: Final = "\x1b[1m"
_REASONS_MAX: Final = 3


class SimulateRow(NamedTuple):
    """Cells of a row."""

    policies: str
    left: int
    preferred: str
    score: str
    others: str
    beyond: tuple[str, ...]
    gates: str
    is_open: bool = False
    """Whether a rule that was not evaluated may reject the nodes that are left."""
    group: str = ""
    """Group of the pod, and what filter says to it."""
    waits_for_group: bool = False
    """Whether filter rejects the pod as a member of its group."""


def row(judged: PodResult) -> SimulateRow:
    """Return the cells of a pod."""
    left = judged.left
    best = next((node.score for node in left if judged.preferred and node.name == judged.preferred[0]), None)
    has_scores = any(each.policy.scores for each in judged.matched)
    return SimulateRow(
        ", ".join(judged.policies) or "none",
        len(left),
        "not known" if left and judged.unevaluated else _preferred(judged.preferred, has_scores=has_scores),
        score_text(best) if best is not None and has_scores else "-",
        reasons_of_nodes(judged.verdicts),
        tuple(judged.unsimulated),
        ", ".join(one.name for one in judged.pod.pod.spec.schedulingGates),
        judged.is_open,
        "" if judged.group is None else group_phrase(judged.group),
        judged.group is not None and bool(judged.group.reason),
    )


def _preferred(names: Sequence[str], *, has_scores: bool) -> str:
    if not names:
        return "-"
    return some(names) if has_scores or len(names) == 1 else "any of them"


@lru_cache(maxsize=CLASSES)
def reasons_of_nodes(verdicts: Verdicts) -> str:
    """Return the reasons of nodes that are not possible, each node counted once."""
    counts = Counter(_first(node) for node in verdicts.nodes if not node.is_candidate)
    told = [f"{count:,} {reason}" for reason, count in counts.most_common(_REASONS_MAX)]
    rest = sum(counts.values()) - sum(count for _, count in counts.most_common(_REASONS_MAX))
    return ", ".join([*told, *([f"{rest:,} for other reasons"] if rest else [])]) or "-"


def simulate_lines(
    rows: Sequence[tuple[PodView, SimulateRow]],
    nodes: int,
    notes: Sequence[str],
    *,
    in_shadow: str = "",
    colour: bool,
) -> Iterator[str]:
    """Yield the lines of the text; `in_shadow` is what rules in shadow would change."""
    found = sorted(alike(rows), key=lambda one: one[1].left > 0)
    if found:
        head, *rest = columns([_HEAD, *(_cells(name, one, nodes) for name, one in found)])
        yield paint(head, _BOLD, colour)
        for line, (_, one) in zip(rest, found, strict=True):
            yield paint(line, _RED, colour and not one.left)
        yield ""
    yield _summary([one for _, one in rows], nodes)
    if count := sum(1 for _, one in rows if one.waits_for_group):
        yield f"As members of groups, {pluralize(count, 'pod')} {'has' if count == 1 else 'have'} to wait."
    if in_shadow:
        yield clean(in_shadow)
    yield "Each pod is simulated by itself: none is placed, and none takes capacity from another."
    yield f"Not simulated: {', '.join(NOT_SIMULATED)}{_asking(rows)}."
    for note in notes:
        yield f"Note: {clean(note)}."


def _cells(name: str, simulated: SimulateRow, nodes: int) -> tuple[str, ...]:
    most = "at most " if simulated.is_open else ""
    left = "none" if not simulated.left else f"{most}{simulated.left:,} of {nodes:,}"
    others = simulated.others
    if simulated.gates:
        others += f"; waits for its scheduling gates: {simulated.gates}"
    if simulated.group:
        others = f"in {simulated.group}" if others == "-" else f"{others}; in {simulated.group}"
    return (name, simulated.policies, left, simulated.preferred, simulated.score, others)


def _summary(rows: Sequence[SimulateRow], nodes: int) -> str:
    none = sum(1 for one in rows if not one.left)
    if not rows:
        return "Nothing is simulated: none of these pods has a scheduler that the policies name."
    said = f"{pluralize(len(rows), 'pod')} on {pluralize(nodes, 'node')}: "
    if is_open := sum(1 for one in rows if one.left and one.is_open):
        parts = {"can be placed": len(rows) - none - is_open, "cannot": none, "cannot be judged": is_open}
        return f"{said}{', '.join(f'{count:,} {what}' for what, count in parts.items() if count)}."
    if not none:
        return said + ("it can be placed." if len(rows) == 1 else "all can be placed.")
    return f"{said}{len(rows) - none:,} can be placed, {none:,} cannot."


def _asking(rows: Sequence[tuple[PodView, SimulateRow]]) -> str:
    counts = Counter(what for _, one in rows for what in one.beyond)
    said = ", ".join(f"{what} by {pluralize(count, 'pod')}" for what, count in counts.items())
    return f" (used: {said})" if said else ""


def _first(node: NodeResult) -> str:
    """Return the first reason of a node, shortened."""
    said = node.rejections[0].reason if node.rejections else node.unfit[0].reason
    return said.removeprefix("node(s) ")
