"""Warnings about rules that decide by measured values: what such values do to new nodes, to bursts and to daemons."""

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.data import DataEntry
from fairlead.api.errors import FieldPath
from fairlead.api.params import data_names
from fairlead.api.rules import FilterSpec, Rule, ScoreSpec
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cel.syntax.ast import Call, Ident, Select, walk
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy, FilterRule
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.strategies.reads import EVERY

NO_DAEMONS: Final = "!pod.metadata.ownerReferences.exists(owner, owner.kind == 'DaemonSet')"
"""Condition that matches all pods but those of DaemonSets."""
_BURSTS: Final = "hotSpot: {windows: [{within: 1m, limit: 5}]}"
_OPTIONAL: Final = ("_[?_]", "_?._", "@in")


def check_measured_values(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> Iterator[LintWarning]:
    """Yield the warnings about the rules of a policy that decide by measured values."""
    spec = policy.spec
    entries = {entry.name: entry for entry in spec.data}
    measured = {name for name, entry in entries.items() if _is_measured(entry)}
    for at, rule in enumerate(spec.filters):
        path: FieldPath = ("spec", "filters", at, _deciding_field(rule))
        yield from _refuses_new_nodes(path, rule, compiled.filters[at], entries)
        if _strategy(rule) == "telemetry" and _read(compiled.filters[at]) & measured and not _has_hot_spot(policy):
            message = "when a value falls below a threshold, pods arrive in a burst, before the value shows their load"
            yield LintWarning(LintCode.MEASURED_VALUES, path, message, f"put {_BURSTS} beside it")
    yield from _refuses_daemons(compiled, policy, measured)
    for at, score in enumerate(spec.scores):
        is_telemetry = _strategy(score) == "telemetry" and bool(compiled.scores[at].score.reads.data & measured)
        if is_telemetry and compiled.scores[at].normalize == "MinMax" and not _has_range(score):
            path = ("spec", "scores", at, "telemetry")
            message = "with normalize MinMax even a difference of 0.1 counts in full, if there is no greater one"
            hint = "give range: {from: LOW, to: HIGH}, which takes its place, and leave normalize out"
            yield LintWarning(LintCode.MEASURED_VALUES, path, message, hint)


def _refuses_new_nodes(
    path: FieldPath, rule: FilterSpec, compiled: FilterRule, entries: Mapping[str, DataEntry]
) -> Iterator[LintWarning]:
    if not compiled.rejects_on_error or (compiled.expression is not None and _tests_for_data(compiled.expression)):
        return
    needed = _read(compiled)
    if rule.strategy is not None:
        # A forecast that is missing is left out.
        needed &= {str(name) for at, name in data_names(rule.strategy[1]) if at[-1] != "forecast"}
    polled = [name for name in sorted(needed & entries.keys()) if entries[name].interval_s is not None]
    if missing := [name for name in polled if entries[name].default is None]:
        listed = f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} no default"
        message = f"new nodes are rejected until they are measured: {listed}"
        hint = "give default and defaultFor there, or set onError: Pass"
        yield LintWarning(LintCode.MEASURED_VALUES, path, message, hint)


def _refuses_daemons(
    compiled: CompiledPolicy, policy: SchedulerExtenderPolicy, measured: set[str]
) -> Iterator[LintWarning]:
    """Yield one warning about all filters by load, unless the policy chooses its pods by what they are."""
    spec = policy.spec
    conditions = [rule.expression for rule in compiled.match.conditions]
    if spec.match.pod_selector is not None or any("pod" in expression.roots for expression in conditions):
        return
    by_load = [
        at
        for at, rule in enumerate(compiled.filters[: len(spec.filters)])
        if _strategy(spec.filters[at]) == "safe" or _read(rule) & measured
    ]
    if by_load:
        path: FieldPath = ("spec", "filters", by_load[0], _deciding_field(spec.filters[by_load[0]]))
        message = "a filter by load also keeps pods of DaemonSets off their nodes, and these can run nowhere else"
        hint = f'add a condition to match.conditions: expression: "{NO_DAEMONS}"'
        yield LintWarning(LintCode.MEASURED_VALUES, path, message, hint)


def _is_measured(entry: DataEntry) -> bool:
    """Report whether values are measured again and again: labels and documents hold what seldom changes."""
    return entry.interval_s is not None or (entry.node_annotation is not None and entry.tells_time)


def _read(rule: FilterRule) -> frozenset[str]:
    return rule.filter.reads.data - {EVERY}


def _strategy(rule: Rule) -> str:
    return rule.strategy[0] if rule.strategy is not None else ""


def _deciding_field(rule: FilterSpec) -> str:
    return _strategy(rule) or ("custom" if rule.custom is not None else "expression")


def _has_hot_spot(policy: SchedulerExtenderPolicy) -> bool:
    return any(_strategy(rule) == "hotSpot" for rule in (*policy.spec.filters, *policy.spec.scores))


def _has_range(rule: ScoreSpec) -> bool:
    return rule.strategy is not None and getattr(rule.strategy[1], "range", None) is not None


def _tests_for_data(expression: CompiledExpression) -> bool:
    """Report whether an expression decides itself what a value that is missing means."""
    trees = (expression.expression.checked, *(one.expression.checked for one in expression.variables.values()))
    for node in (node for tree in trees for node in walk(tree.root)):
        held = node.operand if isinstance(node, Select) and node.test_only else None
        if isinstance(node, Call) and node.function in _OPTIONAL:
            held = node.args[1 if node.function == "@in" else 0]
        if isinstance(held, Ident) and held.name == "data":
            return True
    return False
