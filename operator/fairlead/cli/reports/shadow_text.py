"""Text and data of what rules in shadow would change, beside what decides. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.cli.console.output import pluralize
from fairlead.cli.inputs.shadow_effects import PodShadow, RuleInShadow, ShadowRejection, ShadowSummary
from fairlead.cli.reports.group_text import group_phrase
from fairlead.cli.reports.rows import some

InShadow = Mapping[str, Sequence[ShadowRejection]]
"""Rejections by rules in shadow, by node."""
AS_ENFORCED: Final = "--as-enforced shows them"
_ROWS_MAX: Final = 12


def named_rules(rules: Iterable[RuleInShadow]) -> str:
    """Return a few of the rules, and the number of the others; conditions count with what they are for."""
    return some([str(one) for one in rules if one.kind != "Condition"])


def node_texts(rejections: Iterable[ShadowRejection]) -> Iterator[str]:
    """Yield what rules in shadow say of one node."""
    return (f"in shadow: {one}" for one in rejections)


def shadow_lines(shadow: PodShadow, in_shadow: InShadow) -> Iterator[str]:
    """Yield what rules in shadow would change for a pod."""
    left, lost, effects, unknown = shadow.decided.left, shadow.lost, shadow.effects, shadow.unknown
    if "unschedulable" in effects:
        yield f"If enforced, what is in shadow would leave none of {pluralize(len(left), 'possible node')}."
    elif "restricted" in effects:
        of = f"{len(lost):,} of {pluralize(len(left), 'possible node')}"
        yield f"If enforced, what is in shadow would take away {of}: {some(lost)}."
    if "reordered" in effects:
        yield f"If enforced, what is in shadow would prefer {some(shadow.preferred)}."
    if unknown:
        rules = [one.name for one in shadow.enforced.unevaluated]
        why = [f"not evaluated: {some(rules)}"] if rules else []
        why += [] if shadow.unknown_group is None else [group_phrase(shadow.unknown_group)]
        what = "what else it would change" if effects else "what it would change for this pod, if enforced"
        yield f"It is not known {what}: {'; '.join(why)}."
    elif not effects:
        yield "If enforced, what is in shadow would change nothing for this pod."
    by_group = ("", "")
    if (group := shadow.refused_group) is not None:
        by_group = group.policy, group.rule
        yield f"    {group.policy}/{group.rule} would reject it on every node: {group_phrase(group)}"
    said: dict[ShadowRejection, list[str]] = {}
    lost_first = sorted(in_shadow, key=lambda name: name not in lost)
    for name in lost_first:
        for one in (each for each in in_shadow[name] if (each.policy, each.rule) != by_group):
            said.setdefault(one, []).append(name)
    for one, names in [*said.items()][:_ROWS_MAX]:
        which = names[0] if len(names) == 1 else f"{pluralize(len(names), 'node')}, such as {names[0]}"
        yield f"    {one}, on {which}"
    if len(said) > _ROWS_MAX:
        yield f"    and for {pluralize(len(said) - _ROWS_MAX, 'other reason')}: -o json has all"


def shadow_data(shadow: PodShadow | None) -> dict[str, Any] | None:
    """Return what rules in shadow would change for a pod, for programs; None if there are none."""
    if shadow is None:
        return None
    return {
        "rules": [one._asdict() for one in shadow.rules],
        "effects": shadow.effects,
        "unknown": shadow.unknown,
        "lost": shadow.lost,
        "preferred": [*shadow.preferred],
    }


def summary_line(summary: ShadowSummary, hint: str = "") -> str:
    """Return what rules in shadow would change for several pods, and how to see it; "" if there are none for them."""
    if not summary.pods:
        return ""
    rules = named_rules(summary.rules)
    effects = [
        f"{pluralize(count, 'pod')} {what}"
        for count, what in (
            (summary.unschedulable, "would be left without a node"),
            (summary.restricted - summary.unschedulable, "would lose nodes"),
            (summary.reordered, "would prefer others"),
        )
        if count
    ]
    unknown = pluralize(summary.unknown, "pod")
    if effects:
        more = f", and not all is known for {unknown}" if summary.unknown else ""
        return f"In shadow: {rules}. If enforced, {', '.join(effects)}{more}{f': {hint}' if hint else ''}."
    if unchanged := summary.pods - summary.unknown:
        more = f", and it is not known what it would change for {unknown}" if summary.unknown else ""
        return f"In shadow: {rules}. If enforced, that would change nothing for {pluralize(unchanged, 'pod')}{more}."
    return f"In shadow: {rules}. It is not known what that would change for {unknown}, if enforced."


def summary_data(summary: ShadowSummary) -> dict[str, Any] | None:
    """Return the same for programs; None if there are no such rules for the pods."""
    if not summary.pods:
        return None
    return {
        "rules": [one._asdict() for one in summary.rules],
        "pods": summary.pods,
        "unschedulable": summary.unschedulable,
        "restricted": summary.restricted,
        "reordered": summary.reordered,
        "unknown": summary.unknown,
    }
