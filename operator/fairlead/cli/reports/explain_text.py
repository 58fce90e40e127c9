"""Text of `fairlead explain`, for an engineer on call: where the pod can go, and what rejects the other nodes. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.cli.console.output import clean, columns, paint, pluralize
from fairlead.cli.reports.explain_data import ExplainContext
from fairlead.cli.reports.explain_head import GREEN, RED, head, summary
from fairlead.cli.reports.explain_nodes import eviction_lines, node_rows
from fairlead.cli.reports.group_text import group_section
from fairlead.cli.reports.published_text import published_lines
from fairlead.cli.reports.rows import score_text, some
from fairlead.cli.reports.rule_text import indent_rows, of_items, of_rejection, of_step, of_unmatched, of_ways, value_of
from fairlead.cli.reports.shadow_text import shadow_lines
from fairlead.policy.columns.column import Rejection
from fairlead.policy.explain.explanation import RuleExplained, ScoreExplained
from fairlead.policy.explain.group_explained import group_steps
from fairlead.policy.explain.mismatch import Unmatched
from fairlead.simulation.explain_pod import Closest, Explanation, NodeExplanation, NodesAlike, RejectingRule, Verdict
from fairlead.simulation.results import NodeResult
from fairlead.simulation.scheduler_filters import NOT_SIMULATED, PREEMPTION

_BOLD: Final = "\x1b[1m"
_COLOURS: Final[dict[Verdict, str]] = {
    "Preferred": "\x1b[32m",
    "Possible": "",
    "Unknown": "\x1b[33m",
    "Unanswered": "\x1b[31m",
    "Rejected": "\x1b[31m",
    "Unfit": "\x1b[33m",
}
_WORDS: Final[dict[Verdict, str]] = {
    "Preferred": "preferred",
    "Possible": "possible",
    "Unknown": "unknown",
    "Unanswered": "no answer",
    "Rejected": "rejected",
    "Unfit": "does not fit",
}
_TRIED_AGAIN: Final = (
    "The scheduler tries it again when a pod leaves any node, or after five minutes, but not when a policy changes."
)
_GROUPS_MAX: Final = 12
_OTHERS_MAX: Final = 8
_STEPS_MAX: Final = 12


def explanation_text(
    context: ExplainContext, explanation: Explanation, *, wide: bool = False, colour: bool
) -> Iterator[str]:
    """Yield the lines of the text; a wide one has a row for each node instead of each group."""
    yield from head(context, colour=colour)
    yield from summary(context, colour=colour)
    yield ""
    yield from _nodes(context, explanation, colour) if wide else _groups(context, explanation, colour)
    if explanation.as_good:
        verb = "is" if len(explanation.as_good) == 1 else "are"
        yield clean(
            f"The scheduler gets a tenth of the points, rounded: for it {some(explanation.as_good)} {verb}"
            " equally good."
        )
    yield from _group(context, colour)
    yield from _published(context, colour)
    if context.shadow is not None:
        yield from _titled("IN SHADOW", colour)
        yield from map(clean, shadow_lines(context.shadow, context.in_shadow))
    if explanation.rejecting:
        yield from _titled("WHAT THE RULES COMPARED", colour)
        for one in explanation.rejecting:
            yield from _rejecting(one)
    if explanation.closest is not None:
        yield from _titled("CLOSEST", colour)
        yield from _closest(explanation.closest)
    if explanation.evictions:
        yield from _titled("PREEMPTION", colour)
        yield from map(clean, eviction_lines(explanation.evictions))
        if context.scheduling.last is not None and any(one.is_possible for one in explanation.evictions):
            yield _TRIED_AGAIN
    own = [one for one in explanation.others if one.policy not in explanation.foreign]
    foreign = [explanation.foreign[one.policy] for one in explanation.others if one.policy in explanation.foreign]
    yield from _tail(context, own, foreign, simulates_preemption=bool(explanation.evictions))


def _groups(context: ExplainContext, explanation: Explanation, colour: bool) -> Iterator[str]:  # noqa: FBT001 - it is about the text
    rows = [_row(context, group) for group in explanation.groups[:_GROUPS_MAX]]
    title, *rest = columns([("NODES", "VERDICT", "WHICH", "WHY"), *rows])
    yield paint(title, _BOLD, colour)
    for line, group in zip(rest, explanation.groups, strict=False):
        yield paint(line, _COLOURS[group.verdict], colour and bool(_COLOURS[group.verdict]))
    if len(explanation.groups) > _GROUPS_MAX:
        rest_ = sum(len(group.nodes) for group in explanation.groups[_GROUPS_MAX:])
        yield f"and {pluralize(rest_, 'node')} for other reasons: -o wide lists all"


def _nodes(context: ExplainContext, explanation: Explanation, colour: bool) -> Iterator[str]:  # noqa: FBT001 - it is about the text
    rows = [*node_rows(context.judged, explanation.groups, context.in_shadow)]
    cells = [(name, _WORDS[verdict], score, why) for name, verdict, score, why in rows]
    title, *lines = columns([("NODE", "VERDICT", "SCORE", "REASON"), *cells])
    yield paint(title, _BOLD, colour)
    for line, (_, verdict, *_rest) in zip(lines, rows, strict=True):
        yield paint(line, _COLOURS[verdict], colour and bool(_COLOURS[verdict]))


def node_text(
    context: ExplainContext, node: NodeExplanation, in_shadow: Sequence[RuleExplained] = (), *, colour: bool
) -> Iterator[str]:
    """Yield the lines of the text; `in_shadow` are rules that decide nothing."""
    yield from head(context, colour=colour)
    good = node.verdict in ("Preferred", "Possible")
    yield paint(clean(f"node {node.node.name}: {_WORDS[node.verdict]}"), GREEN if good else RED, colour)
    for why in node.node.unfit:
        yield f"    the scheduler: {clean(str(why))}"
    yield from _group(context, colour)
    yield from _published(context, colour)
    for title, rules in (("FILTERS", node.explained.filters), ("SCORES", node.explained.scores)):
        if rules:
            yield from _titled(title, colour)
        points = {} if node.scored is None else {(each.policy, each.rule): each for each in node.scored.scores}
        for rule in rules:
            yield from _of_rule(rule, _said(rule, points.get((rule.policy, rule.rule))))
    if in_shadow:
        yield from _titled("IN SHADOW", colour)
    for rule in in_shadow:
        yield from _of_rule(rule, _would_say(rule))
    if node.scored is not None and node.scored.scores:
        yield ""
        sent = f"the scheduler gets {node.scored.sent}: a tenth of the points above the worst of these nodes"
        yield f"{node.scored.total:.10g} points in total; {sent}"
    yield from _tail(context, (), ())


def _of_rule(rule: RuleExplained, say: str) -> Iterator[str]:
    yield clean(f"{_rule(rule)}: {say}")
    yield from _compared([*map(of_step, rule.steps), *_noted(rule)], "VALUE")
    if rule.changes:
        yield "  would pass with another result of:"
        yield from _compared(of_ways([rule.changes, *rule.alternatives]), "VALUE")


def _group(context: ExplainContext, colour: bool) -> Iterator[str]:  # noqa: FBT001 - it is about the text
    """Yield the section about the pod's group; a pod in no group has none."""
    judged = context.judged
    if judged.group is not None:
        yield from _titled("GROUP", colour)
        steps = group_steps(judged.group, judged.pod, judged.matched, context.now)
        yield from map(clean, group_section(judged.group, steps))


def _published(context: ExplainContext, colour: bool) -> Iterator[str]:  # noqa: FBT001 - it is about the text
    """Yield the section about the pod's published affinity, if it has some."""
    judged = context.judged
    if judged.published is not None:
        yield from _titled("PUBLISHED AFFINITY", colour)
        yield from map(clean, published_lines(judged.published, judged.excluded))


def _row(context: ExplainContext, group: NodesAlike) -> Sequence[str]:
    count, names = f"{len(group.nodes):,}", [node.name for node in group.nodes]
    return count, _WORDS[group.verdict], some(names), _why(context, group)  # the longest last: terminals wrap it


def _why(context: ExplainContext, group: NodesAlike) -> str:
    unevaluated = ", ".join(one.name for one in context.judged.unevaluated)
    if group.verdict == "Unanswered":
        return "the scheduler's call is not answered"
    if unevaluated and group.verdict in ("Possible", "Unknown"):
        return f"not evaluated: {unevaluated}"
    if not context.judged.matched and group.verdict == "Possible":
        return "no policy applies"
    first, scores = group.first, sorted({node.score or 0.0 for node in group.nodes})
    if group.verdict in ("Preferred", "Possible"):
        low, high = score_text(scores[0]), score_text(scores[-1])
        return f"{low} points" if low == high else f"{low} to {high} points"
    return "; ".join(
        _reasons(first) if group.verdict == "Rejected" else dict.fromkeys(one.reason for one in first.unfit)
    )


def _reasons(node: NodeResult) -> Iterator[str]:
    for one in node.rejections:
        yield f"{_rule(one)}: {one.reason}"
    yield from dict.fromkeys(one.reason for one in node.unfit)


def _rejecting(rejecting: RejectingRule) -> Iterator[str]:
    explained = rejecting.explained
    which = (
        rejecting.node if rejecting.count == 1 else f"{pluralize(rejecting.count, 'node')}, such as {rejecting.node}"
    )
    yield clean(f"{_rule(explained)}: {_reason(explained)}, on {which}")
    yield from _compared(of_rejection(explained), f"VALUE ON {rejecting.node}")


def _closest(closest: Closest) -> Iterator[str]:
    yield clean(f"{closest.node.name} is possible but for")
    yield from (f"    {clean(str(why))}" for why in closest.node.unfit)
    for rule in closest.rules:
        yield clean(f"    {_rule(rule)}: {_reason(rule)}")
        yield from (f"    {line}" for line in _compared(of_rejection(rule), "VALUE"))


def _reason(rule: RuleExplained) -> str:
    """Return the reason of a rejection; of a rule that cannot be decided also what it raised."""
    return f"{rule.reason} ({rule.raised})" if rule.raised and rule.raised not in rule.reason else rule.reason


def _said(rule: RuleExplained, points: ScoreExplained | None) -> str:
    if rule.outcome == "Passed":
        return "passes"
    if rule.outcome == "Rejected":
        return f"rejects: {_reason(rule)}"
    if rule.outcome == "LeftOut":
        return f"left out: {rule.reason}"
    value = _reason(rule) if rule.value is None else value_of(rule.value, rule.unit)
    if points is None or points.score is None:
        return value
    return f"{value}, which is {points.score:.10g} of 100 and adds {points.points:.10g} points"


def _would_say(rule: RuleExplained) -> str:
    """Return the say of a rule that decides nothing."""
    if rule.outcome == "Passed":
        return "would pass it"
    return f"would reject it: {_reason(rule)}" if rule.outcome == "Rejected" else _said(rule, None)


def _rule(rule: RuleExplained | Rejection) -> str:
    """Return policy/rule; a policy that does not compile has no rule."""
    return f"{rule.policy}/{rule.rule}" if rule.rule else rule.policy


def _noted(rule: RuleExplained) -> Iterable[tuple[str, str]]:
    return () if rule.noted is None else of_items(rule.noted)


def _compared(rows: Sequence[tuple[str, str]], title: str) -> Iterator[str]:
    return (clean(line) for line in indent_rows(rows, title, _STEPS_MAX))


def _titled(title: str, colour: bool) -> Iterator[str]:  # noqa: FBT001 - it is about the text
    yield ""
    yield paint(title, _BOLD, colour)


def _tail(
    context: ExplainContext, others: Sequence[Unmatched], foreign: Sequence[str], *, simulates_preemption: bool = False
) -> Iterator[str]:
    """Yield the end of the text; `foreign` has the scheduler of each policy that is for another one."""
    yield ""
    for one in others[:_OTHERS_MAX]:
        yield clean(f"No match: {of_unmatched(one)}")
    if more := len(others[_OTHERS_MAX:]):
        yield f"No match: {pluralize(more, 'more policy', 'more policies')} for similar reasons"
    if foreign:
        names = sorted({*foreign})
        which = f"the scheduler{'s' if len(names) > 1 else ''} {some(names)}"
        yield clean(f"No match: {pluralize(len(foreign), 'policy', 'policies')} of {which}")
    answered = not context.scheduling.is_unanswered
    for served in context.served:
        yield clean(f"Serving: {served.describe_serving(answered=answered)}")
    asked = f" (the pod uses {', '.join(context.judged.unsimulated)})" if context.judged.unsimulated else ""
    beyond = [one for one in NOT_SIMULATED if not (simulates_preemption and one == PREEMPTION)]
    yield f"Not simulated: {', '.join(beyond)}{asked}."
    for note in context.notes:
        yield f"Note: {clean(note)}."
