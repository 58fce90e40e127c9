"""First lines of `fairlead explain`: the pod, its scheduler's last word, who is alive, how many nodes it has. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from fairlead.cli.console.output import clean, paint, pluralize
from fairlead.cli.reports.explain_data import ExplainContext
from fairlead.cli.reports.rows import some
from fairlead.cli.reports.shadow_text import named_rules
from fairlead.time_units import SECOND_NS, age_text

GREEN: Final = "\x1b[1;32m"
RED: Final = "\x1b[1;31m"
_LAST_TRY: Final = (
    "The message above is from the scheduler's last try: it tries again when something changes, or it rejects these "
    "nodes for a reason that is not simulated."
)


def head(context: ExplainContext, *, colour: bool) -> Iterator[str]:
    """Yield the lines about the pod, its scheduler and the operator."""
    yield clean(f"pod {context.name}, scheduler {context.scheduler}, requests {context.asks}")
    if context.gates:
        yield clean(f"It waits for its scheduling gates, {', '.join(context.gates)}: until then no scheduler tries it.")
    if context.node:
        yield clean(f"It is on {context.node}; this shows where it could go now, with its own capacity there free.")
    if context.nominated_in_vain is not None:
        node, rules = context.nominated_in_vain
        said = f"It is nominated for {node}, which is rejected by {' and '.join(rules)}"
        yield paint(clean(f"{said}: autoscalers count it as placed there, and add no node for it."), RED, colour)
    last = context.scheduling.last
    if last is not None:
        yield clean(f"PodScheduled: {last.reason}{_since(last.last_transition_time, context.now)}: {last.message}")
    elif context.scheduling.scheduler is not None and not (context.node or context.gates or context.scheduling.is_new):
        yield "PodScheduled: no scheduler has reported on this pod."
    yield from _alive(context, colour)
    policies = context.judged.policies
    unknown = list(dict.fromkeys(one.policy.name for one in context.judged.unevaluated if not one.rule))
    if context.scheduling.is_unanswered and not context.scheduling.waits:
        yield "Policies are skipped while no replica answers."
    elif policies:
        yield clean(f"policies: {', '.join(policies)}")
    elif unknown:
        yield clean(
            f"It is not known whether {' and '.join(unknown)} {'matches' if len(unknown) == 1 else 'match'} this pod."
        )
    else:
        yield "No policy matches this pod." if context.shadow is None else "No policy decides for this pod."
    if context.shadow is not None:
        yield clean(f"in shadow: {named_rules(context.shadow.rules)}")
    for error in context.match_errors:
        yield clean(error)


def _since(written: str, now: int) -> str:
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        return ""
    return f" for {age_text(now - int(at.timestamp() * SECOND_NS))}"


def _alive(context: ExplainContext, colour: bool) -> Iterator[str]:  # noqa: FBT001 - it is about the text
    state, operator = context.scheduling.scheduler, context.scheduling.operator
    if state is None:
        return
    if state.missing or state.meant:
        exists = not context.scheduling.is_new
        again = "schedulerName cannot be changed, create the pod again" if exists else "correct schedulerName"
        meant = f": did you mean {state.meant}? {again}" if state.meant else ""
        yield paint(clean(f"scheduler {state.name}: {state.message}{meant}."), RED, colour)
    elif state.ready is False:
        yield paint(clean(f"scheduler {state.name}: NOT READY: {state.message}"), RED, colour)
    else:
        yield clean(f"scheduler {state.name}: {'ready' if state.ready else 'not known'}: {state.message}")
    if operator is None or not state.ours:
        return
    if operator.unread:
        yield clean(f"operator: not known: {operator.unread}")
    elif operator.is_silent:
        there = (
            f"none of {pluralize(operator.replicas, 'replica')} is ready" if operator.replicas else "it has no replicas"
        )
        yield paint(clean(f"operator: NO ANSWER: {there} in {operator.namespace}"), RED, colour)
    else:
        yield clean(
            f"operator: {operator.ready} of {pluralize(operator.replicas, 'replica')} ready in {operator.namespace}"
        )


def summary(context: ExplainContext, *, colour: bool) -> Iterator[str]:
    """Yield how many nodes are possible, or why the pod waits although some might be."""
    left = [node.name for node in context.judged.left]
    of = f"{len(left):,} of {pluralize(context.nodes, 'node')}"
    would = f"Otherwise {of} would be {'possible' if not context.judged.is_open else 'unknown'}"
    is_good = False
    if not context.nodes:
        said = "there are no nodes"
    elif context.scheduling.waits:
        said = f"UNSCHEDULABLE: {_unanswered(context)}"
        if left:
            said += f". {would}: {some(left)}"
    elif context.unplaceable:
        said = f"NOT SCHEDULED: {context.unplaceable}. {would}"
    elif context.judged.group is not None and context.judged.group.reason:
        said = f"UNSCHEDULABLE: {context.judged.group.reason}. {would}"
        said += f": {some(left)}" if left else ""
    elif not left:
        said = f"UNSCHEDULABLE: none of {pluralize(context.nodes, 'node')} is possible"
    elif context.judged.is_open:
        rules = ", ".join(one.name for one in context.judged.unevaluated if one.filters)
        said = f"UNKNOWN: {of} cannot be judged, as {rules} {_was(rules)} not evaluated; the others are not possible"
        if len(left) == context.nodes:
            said = said.partition(";")[0]
    else:
        is_good = True
        said = f"{of} {'are' if len(left) > 1 else 'is'} possible"
        if context.judged.unevaluated:
            scores = ", ".join(one.name for one in context.judged.unevaluated)
            said += f"; preferred ones are not known, as {scores} {_was(scores)} not evaluated"
        if context.scheduling.is_unanswered:
            said += ": no replica answers, and all policies of this scheduler have failurePolicy Ignore"
    yield paint(clean(said), GREEN if is_good else RED, colour)
    if is_good and context.scheduling.last is not None:
        yield _LAST_TRY


def _unanswered(context: ExplainContext) -> str:
    fails = sorted(one.name for one in context.live if one.scheduler == context.scheduler and one.wiring.fails)
    binds = sorted(one.name for one in context.live if one.scheduler == context.scheduler and one.wiring.binds)
    why = f"failurePolicy Fail of {', '.join(fails)}" if fails else f"{', '.join(binds)} binds pods"
    return f"no replica answers scheduler {context.scheduler}, and all its pods wait ({why})"


def _was(names: str) -> str:
    return "were" if ", " in names else "was"
