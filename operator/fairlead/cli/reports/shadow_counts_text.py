"""Text of `fairlead shadow`: what rules in shadow would have changed. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from fairlead.cli.console.output import clean, columns, paint, pluralize
from fairlead.cli.inputs.shadow_counts import COUNTED, CountedShadow, PolicyInShadow
from fairlead.time_units import SECOND_NS, age_text

_RED: Final = "\x1b[1;31m"
_GREEN: Final = "\x1b[1;32m"
_EFFECTS: Final = {
    "unschedulable": "would have been left without a node",
    "restricted": "would have lost some or all of their nodes",
    "reordered": "would have preferred other nodes",
    "evictions": "would have been offered fewer nodes for preemption",
}
_RULES_MAX: Final = 24


def counts_list(policies: Sequence[PolicyInShadow], least: int, now: datetime, *, colour: bool) -> Iterator[str]:
    """Yield a line for each policy, and what speaks against enforcing it."""
    if not policies:
        yield "No policy has anything in shadow."
        return
    head = ("POLICY", "IN SHADOW", "CALLS COMPARED", *(one.upper() for one in COUNTED), "ROLLS", "SINCE")
    rows = [(one.name, _what(one), *_cells(one.counts), _rolls(one), _age(one.counts, now)) for one in policies]
    yield from columns([head, *rows])
    yield ""
    for one in policies:
        for problem in one.problems(least):
            yield paint(clean(f"{one.name}: {problem}"), _RED, colour)


def counts_lines(policy: PolicyInShadow, least: int, now: datetime, *, colour: bool) -> Iterator[str]:
    """Yield the lines about one policy."""
    yield clean(f"policy {policy.name}, scheduler {policy.scheduler}, mode {policy.mode or 'unknown'}")
    if policy.has_shadow:
        yield clean(f"in shadow: {_what(policy)}")
    if policy.not_compared:
        yield clean(f"not compared, as it depends on what they hold or write: {', '.join(policy.not_compared)}")
    counts = policy.counts
    if counts is not None and policy.has_shadow:
        since = f", since {counts.since}{_ago(counts, now)}" if counts.since else ""
        yield clean(f"counted: generation {counts.generation}{since}")
        yield _coverage(counts)
        yield ""
        for effect, said in _EFFECTS.items():
            yield f"{counts.sums[effect]:>8,} of {pluralize(counts.sums['pods'], 'pod')} {said}"
        if slow := counts.sums["tooSlow"]:
            yield f"{pluralize(slow, 'time')} the rules took too long for a class of pods, which rested for 5 minutes"
        if counts.rules:
            yield ""
            rows = [(one.kind, one.name, f"{one.pods:,}", f"{one.unschedulable:,}") for one in counts.rules]
            yield from columns([("KIND", "RULE", "PODS", "UNSCHEDULABLE"), *rows[:_RULES_MAX]])
            if len(rows) > _RULES_MAX:
                yield f"and {pluralize(len(rows) - _RULES_MAX, 'other rule')}: -o json has all"
    if policy.has_shadow:
        yield ""
        yield clean(_of_scheduler(policy))
    problems = [*policy.problems(least)]
    for problem in problems:
        yield paint(clean(f"Not yet: {problem}."), _RED, colour)
    if not problems:
        yield paint("No pod would have been left without a node.", _GREEN, colour)


def _what(policy: PolicyInShadow) -> str:
    kinds = Counter(kind.lower() for kind, _ in policy.rules)
    parts = [pluralize(count, kind) for kind, count in kinds.items()]
    if groups := policy.groups:
        parts.append(pluralize(groups, "group"))
    return ", ".join(parts) or "nothing"


def _coverage(counts: CountedShadow) -> str:
    left_out = [f"{counts.sums[name]:,} {name}" for name in ("skipped", "unknown") if counts.sums[name]]
    more = f" ({', '.join(left_out)})" if left_out else ""
    return f"coverage: {counts.compared:,} of {pluralize(counts.sums['calls'], 'call')} compared{more}"


def _cells(counts: CountedShadow | None) -> tuple[str, ...]:
    if counts is None:
        return ("-", *("-" for _ in COUNTED))
    return (f"{counts.compared:,} of {counts.sums['calls']:,}", *(f"{counts.sums[one]:,}" for one in COUNTED))


def _rolls(policy: PolicyInShadow) -> str:
    return "unknown" if policy.rolls is None else "yes" if policy.rolls else "no"


def _of_scheduler(policy: PolicyInShadow) -> str:
    if policy.rolls is None:
        return f"It is not known whether enforcing it rolls scheduler {policy.scheduler}: its spec cannot be read here."
    if not policy.rolls:
        return f"Enforcing it does not roll scheduler {policy.scheduler}."
    return f"Enforcing it rolls scheduler {policy.scheduler}: then {', '.join(policy.rolls)}."


def _ago(counts: CountedShadow, now: datetime) -> str:
    age = _age(counts, now)
    return "" if age == "-" else f" ({age} ago)"


def _age(counts: CountedShadow | None, now: datetime) -> str:
    try:
        at = datetime.fromisoformat("" if counts is None else counts.since)
    except ValueError:
        return "-"
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return age_text(int((now - at).total_seconds()) * SECOND_NS)
