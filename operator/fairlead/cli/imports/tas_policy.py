"""TASPolicy of Intel's Telemetry Aware Scheduling, as `telemetry` rules. Pure.

What TAS does is kept where a rule can say it: a node without a metric is not rejected, nodes are ordered by their rank,
only the first rule of scheduleonmetric counts, and pods opt in by a label in the namespace of the policy.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from fairlead.api.errors import FieldPath
from fairlead.api.params import Listed
from fairlead.api.parse import parse_params
from fairlead.api.values import Name, ObjectName, Shape
from fairlead.cli.imports.draft import BURST, LOAD_WEIGHT, PolicyDraft, PolicyNames
from fairlead.cli.imports.foreign import Foreign, ObjectHead, join_names, one_error

_Metric = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Shape("[-a-zA-Z0-9_:.]+", "write the name of a metric: letters, digits, '-', '_', ':' and '.'"),
]
_TARGET_MAX: Final = 10**18
_RULES_MAX: Final = 16
_PLAIN: Final = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
_NOT_A_METRIC: Final = frozenset(
    ("and", "atan2", "bool", "group_left", "group_right", "ignoring", "inf", "nan", "on", "or", "unless")
)
"""Words that PromQL does not take for the name of a metric."""
_STRATEGIES: Final = ("dontschedule", "scheduleonmetric")
_WHY_NOT: Final = {
    "deschedule": "Fairlead evicts no pods: use the descheduler",
    "labeling": "Fairlead writes no labels on nodes: read the metric in a rule instead",
}


class TasRule(Foreign):
    """Comparison of a metric with a target."""

    metricname: _Metric
    operator: Literal["LessThan", "GreaterThan", "Equals"]
    target: Annotated[int, Field(ge=-_TARGET_MAX, le=_TARGET_MAX)] | None = None
    labels: Listed[str] = ()

    def __str__(self) -> str:
        target = "" if self.target is None else f" {self.target}"
        labels = f" with the labels {join_names(self.labels)}" if self.labels else ""
        return f"{self.metricname} {self.operator}{target}{labels}"


class TasStrategy(Foreign):
    """Rules for one purpose."""

    policy_name: str = ""
    logical_operator: Literal["anyOf", "allOf"] = "anyOf"
    rules: Listed[TasRule]


class TasSpec(Foreign):
    """Strategies by their names."""

    strategies: dict[str, TasStrategy]


class TasMetadata(Foreign):
    """Name, which pods have in their label, and namespace."""

    name: ObjectName
    namespace: Name | None = None


class TasPolicy(ObjectHead):
    """The object."""

    metadata: TasMetadata
    spec: TasSpec
    status: object = None


def import_tas_policy(data: object, where: str, names: PolicyNames) -> PolicyDraft:
    """Return the policy for a TASPolicy. Raises InvalidObjectError."""
    found = parse_params(data, TasPolicy)
    name, namespace = found.metadata.name, found.metadata.namespace
    full = f"{namespace}/{name}" if namespace else name
    draft = PolicyDraft(names.take(name, f"{namespace or 'default'}-{name}"), [f"From the TASPolicy {full} ({where})."])
    _match(draft, name, namespace)
    strategies = found.spec.strategies
    for strategy in strategies:
        path: FieldPath = ("spec", "strategies", strategy)
        if strategy not in _STRATEGIES:
            _leave_out(draft, path, strategies[strategy])
        for part in (strategies[strategy], *strategies[strategy].rules):
            if part.unread:
                draft.note(
                    f"Not imported: the fields {join_names(part.unread)} of {strategy}, which TAS does not know."
                )
    if "dontschedule" in strategies:
        _dont_schedule(draft, strategies["dontschedule"])
    if "scheduleonmetric" in strategies:
        _schedule_on_metric(draft, strategies["scheduleonmetric"])
    if draft.has_rules:
        draft.note(
            "Give the pods schedulerName: fairlead, or that of the policy if you add one; it cannot be changed later. "
            "Remove the resource telemetry/scheduling from them, which made kube-scheduler call TAS."
        )
        draft.comment(
            ("data",),
            "TAS reads the custom metrics API, which Fairlead does not. Check in Prometheus that each query gives one "
            "series for each node, in the unit of the targets, and that the label instance names the node or its "
            "address. Adapters rename metrics: with TAS's own charts, node_power is power in the custom metrics API.",
        )
    else:
        draft.note("That leaves nothing to import.")
    return draft


def _match(draft: PolicyDraft, name: str, namespace: str | None) -> None:
    selector = {"matchLabels": {"telemetry-policy": name}}
    if namespace:
        draft.match(namespaces=[namespace], podSelector=selector)
        return
    draft.match(podSelector=selector)
    draft.comment(
        ("match",),
        "The TASPolicy has no namespace in this file. TAS applies it to the pods of its own namespace: add it as "
        "namespaces, or pods of all namespaces match.",
    )


def _leave_out(draft: PolicyDraft, path: FieldPath, strategy: TasStrategy) -> None:
    kind = str(path[-1])
    why = _WHY_NOT.get(kind, "TAS has no such strategy, and ignores it")
    rules = "; ".join(map(str, strategy.rules)) or "no rules"
    operator = f" ({strategy.logical_operator})" if len(strategy.rules) > 1 else ""
    draft.note(f"Not imported: {kind}{operator}: {rules}. {why}.")


def _dont_schedule(draft: PolicyDraft, strategy: TasStrategy) -> None:
    path: FieldPath = ("spec", "strategies", "dontschedule", "rules")
    if not strategy.rules:
        draft.note("Not imported: dontschedule without rules, with which TAS rejects every node.")
        return
    is_any = strategy.logical_operator == "anyOf"
    rules = [*_telemetry(draft, path, strategy.rules)]
    groups = [rules[at : at + _RULES_MAX] for at in range(0, len(rules), _RULES_MAX)]
    if len(groups) > 1 and not is_any:
        hint = "allOf cannot be split into several filters: leave rules out"
        raise one_error(path, f"has {len(rules)} different rules, and a filter has at most {_RULES_MAX}", hint)
    for group in groups:
        rule = {"rejectWhen": "AnyOf" if is_any else "AllOf", "rules": group}
        draft.add("filters", "dontschedule", {"onError": "Pass", "telemetry": rule})
    draft.comment(
        ("filters", 0),
        "As in TAS, a node without a value passes. To reject it, remove onError, and give the data a default for new "
        "nodes.",
    )
    draft.comment(
        ("filters", 0),
        BURST,
    )
    unset = [str(one) for one in strategy.rules if one.target is None]
    if unset:
        draft.comment(("filters", 0), f"Rules without a target, which TAS takes for 0: {join_names(unset)}.")


def _telemetry(draft: PolicyDraft, path: FieldPath, rules: Sequence[TasRule]) -> Iterator[dict[str, Any]]:
    """Yield the comparisons, each once: to compare twice makes no difference."""
    seen = set[tuple[str, str, int]]()
    for rule in rules:
        target = rule.target or 0
        key = (rule.metricname, rule.operator, target)
        if key not in seen:
            seen.add(key)
            yield {"value": _value(draft, path, rule.metricname), "operator": rule.operator, "target": target}


def _schedule_on_metric(draft: PolicyDraft, strategy: TasStrategy) -> None:
    path: FieldPath = ("spec", "strategies", "scheduleonmetric", "rules")
    if not strategy.rules:
        draft.note("Not imported: scheduleonmetric without rules.")
        return
    first, *others = strategy.rules
    if others:
        draft.note(
            f"Not imported: {_joined(others)} of scheduleonmetric, of which TAS reads only the first rule. Add scores "
            "for them if they are to count."
        )
    if first.operator == "Equals":
        draft.note(f"Not imported: {first} of scheduleonmetric, with which TAS orders nodes at random.")
        return
    prefer = "Highest" if first.operator == "GreaterThan" else "Lowest"
    draft.add(
        "scores",
        "scheduleonmetric",
        {
            "weight": LOAD_WEIGHT,
            "normalize": "Rank",
            "telemetry": {"value": _value(draft, path, first.metricname), "prefer": prefer},
        },
        "TAS scores nodes by their order, as Rank does: a small difference counts as much as a large one. If you know "
        "the range of the metric, write it as range, and remove normalize.",
    )


def _value(draft: PolicyDraft, path: FieldPath, metric: str) -> str:
    entry = {"prometheus": {"query": promql_metric(metric), "nodeLabel": "instance"}}
    other = "" if metric.startswith("node_") else f"; in Prometheus it may be node_{metric}"
    return draft.data(metric, path, entry, f"{metric} of the custom metrics API{other}.")


def promql_metric(name: str) -> str:
    """Return the PromQL that selects a metric."""
    is_plain = _PLAIN.fullmatch(name) and name.lower() not in _NOT_A_METRIC
    return name if is_plain else f'{{__name__="{name}"}}'


def _joined(rules: Iterable[TasRule]) -> str:
    return "; ".join(map(str, rules))
