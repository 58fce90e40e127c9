"""What is legal in a policy and hardly meant, and what will surprise its owner.

A Warning's severity follows from its reason: `warning` for what is surely or very likely a mistake, `note` for what is
meant and behaves in a way that somebody should know of. Nothing is said that is only perhaps so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from fairlead.api.errors import FieldPath
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cel.lowering.builder import NotLoweredError
from fairlead.cel.lowering.program import Program
from fairlead.cel.reads import Path
from fairlead.policy.compiled import CompiledPolicy, FilterRule, ScoreRule, Selector
from fairlead.policy.expressions import Compiled
from fairlead.policy.node_affinity import as_yaml, node_affinity
from fairlead.policy.terms import outcomes, possible
from fairlead.strategies.reads import EVERY

Severity = Literal["warning", "note"]


class Reason(StrEnum):
    """Why something is said; the words never change."""

    NEVER_PASSES = "NeverPasses"
    ALWAYS_PASSES = "AlwaysPasses"
    SAME_FOR_EVERY_NODE = "SameForEveryNode"
    SCORE_IS_ZERO = "ScoreIsZero"
    SCORE_OUT_OF_RANGE = "ScoreOutOfRange"
    SCORE_IS_TINY = "ScoreIsTiny"
    MATCHES_NOTHING = "MatchesNothing"
    DOES_NOTHING = "DoesNothing"
    POD_IDENTITY = "PodIdentity"
    RESOLVABLE_NOT_HONOURED = "ResolvableNotHonoured"
    RESOLVABLE_CANNOT_HELP = "ResolvableCannotHelp"
    RUNS_ON_ENGINE = "RunsOnEngine"
    UNUSED_VARIABLE = "UnusedVariable"
    UNUSED_DATA = "UnusedData"
    EVENTUALLY_CONSISTENT = "EventuallyConsistent"
    INVISIBLE_TO_AUTOSCALERS = "InvisibleToAutoscalers"
    READS_NOW = "ReadsNow"
    SWITCHED_OFF = "SwitchedOff"


_NOTES: Final = frozenset(
    {Reason.EVENTUALLY_CONSISTENT, Reason.INVISIBLE_TO_AUTOSCALERS, Reason.READS_NOW, Reason.SWITCHED_OFF}
)


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the word that the status uses
    """One thing to be said of a policy."""

    reason: Reason
    path: FieldPath
    message: str
    hint: str = ""

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return "note" if self.reason in _NOTES else "warning"


_OF_NODE: Final = frozenset({"node", "free", "requested", "allocatable", "pods", "data", "victim"})
_CHANGING: Final = ("free", "requested", "pods")
_IDENTITY: Final = ("name", "uid", "creationTimestamp", "resourceVersion", "selfLink", "managedFields")
_INDICES: Final = (
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
)
_FULL: Final = 100.0
_NAME_OF_NAMESPACE: Final = "kubernetes.io/metadata.name"


def warnings(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> list[Warning]:
    """Everything to be said of a policy that compiles, in the order of its fields."""
    return [
        *_switched_off(compiled),
        *_match(compiled, policy),
        *_unused(compiled, policy),
        *(
            warning
            for at, rule in enumerate(compiled.filters)
            for warning in _filter(("spec", "filters", at), rule, policy.spec.filters[at].resolvable)
        ),
        *(warning for at, rule in enumerate(compiled.scores) for warning in _score(("spec", "scores", at), rule)),
        *(
            warning
            for at, rule in enumerate(compiled.protections)
            for warning in _protection(("spec", "preemption", "protect", at, "expression"), rule.expression)
        ),
        *(
            warning
            for at, rule in enumerate(compiled.annotations)
            for warning in _on_engine(("spec", "binding", "annotations", at, "expression"), rule.expression)
        ),
    ]


def why_on_engine(expression: Compiled) -> str:
    """What keeps an expression from being lowered; empty if nothing does."""
    if expression.evaluation == "Lowered":
        return ""
    try:
        Program(
            expression.expression.checked, {name: one.expression.checked for name, one in expression.variables.items()}
        ).check()
    except NotLoweredError as error:
        return str(error)
    return ""


def _switched_off(compiled: CompiledPolicy) -> Iterator[Warning]:
    if not compiled.enforced:
        said = "the policy is compiled and reported on, and not applied to any pod"
        yield Warning(Reason.SWITCHED_OFF, ("spec", "mode"), said, "write Enforce to apply it")
    if not (compiled.filters or compiled.scores or compiled.protections or compiled.annotations):
        hint = "give it filters, scores, preemption.protect or binding.annotations"
        yield Warning(Reason.DOES_NOTHING, ("spec",), "the policy has no rules and changes nothing", hint)


def _match(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> Iterator[Warning]:
    match, path = compiled.match, ("spec", "match")
    for name, selector in (("namespaceSelector", match.namespace_selector), ("podSelector", match.pod_selector)):
        if selector is not None and (key := _contradiction(selector)) is not None:
            said = f"no object has these labels: what is wanted of {key!r} cannot hold together"
            yield Warning(Reason.MATCHES_NOTHING, (*path, name), said, "the policy is for no pod at all; remove a part")
    if match.namespaces is not None and match.namespace_selector is not None:
        wanted = [values for key, values in _positive(match.namespace_selector) if key == _NAME_OF_NAMESPACE]
        if any(values.isdisjoint(match.namespaces) for values in wanted):
            said = f"{_NAME_OF_NAMESPACE} is the namespace's name, and none of match.namespaces is meant by it"
            hint = "the policy is for no pod at all: both parts must hold; keep one of them"
            yield Warning(Reason.MATCHES_NOTHING, (*path, "namespaceSelector"), said, hint)
    for at, condition in enumerate(compiled.match.conditions):
        here = (*path, "conditions", at, "expression")
        if not possible(condition.expression, want=True):
            hint = "the policy is for no pod at all"
            yield Warning(Reason.NEVER_PASSES, here, "this condition can never be true", hint)
        elif not possible(condition.expression, want=False):
            yield Warning(Reason.ALWAYS_PASSES, here, "this condition can never be false", "remove it, or mend it")
        yield from _of_pod(here, condition.expression)
        yield from _on_engine(here, condition.expression)


def _positive(selector: Selector) -> Iterator[tuple[str, frozenset[str]]]:
    for key, value in selector.labels:
        yield key, frozenset({value})
    for key, operator, values in selector.requirements:
        if operator == "In":
            yield key, values


def _contradiction(selector: Selector) -> str | None:
    """A label of which a selector wants what no label can be."""
    keys = {key for key, _ in selector.labels} | {key for key, _, _ in selector.requirements}
    for key in sorted(keys):
        wanted = [values for name, values in _positive(selector) if name == key]
        # A label is absent, one of the values that are named, or another one, of which all are alike.
        named = {value for name, _, values in selector.requirements if name == key for value in values}
        candidates = [{}, *({key: value} for value in named.union(*wanted)), {key: "\0"}]
        parts = Selector(
            tuple(one for one in selector.labels if one[0] == key),
            tuple(one for one in selector.requirements if one[0] == key),
        )
        if not any(parts.matches(labels) for labels in candidates):
            return key
    return None


def _unused(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> Iterator[Warning]:
    expressions = list(_expressions(compiled))
    used = {name for expression in expressions for name in expression.variables}
    for at, variable in enumerate(policy.spec.variables):
        if variable.name not in used:
            path = ("spec", "variables", at, "name")
            yield Warning(Reason.UNUSED_VARIABLE, path, f"no rule uses variables.{variable.name}", "remove it")
    read = set(compiled.reads.data)
    for expression in expressions:
        read |= {path[1] if len(path) > 1 else EVERY for path in expression.paths if path[0] == "data"}
    for at, entry in enumerate(policy.spec.data):
        if entry.name not in read and EVERY not in read:
            path = ("spec", "data", at, "name")
            yield Warning(Reason.UNUSED_DATA, path, f"no rule reads data.{entry.name}", "remove it")


def _expressions(compiled: CompiledPolicy) -> Iterator[Compiled]:
    rules = (*compiled.match.conditions, *compiled.filters, *compiled.scores, *compiled.protections)
    for rule in (*rules, *compiled.annotations):
        if rule.expression is not None:
            yield rule.expression


def _filter(path: FieldPath, rule: FilterRule, resolvable: bool | None) -> Iterator[Warning]:  # noqa: FBT001 - as written
    expression = rule.expression
    if resolvable:
        yield _resolvable((*path, "resolvable"), rule)
    if expression is None:
        return
    here = (*path, "expression")
    is_label_rule = _reads_only_labels(expression)
    terms = node_affinity(expression, rejects_on_error=rule.rejects_on_error) if is_label_rule else None
    if not possible(expression, want=True) or terms == []:
        hint = "no node is ever left for a pod" if rule.rejects_on_error else "only nodes on which it fails are left"
        yield Warning(Reason.NEVER_PASSES, here, "this can never be true, so that the filter refuses every node", hint)
    elif not possible(expression, want=False) or terms == [{}]:
        said = "this can never be false, so that the filter refuses no node that it can decide on"
        yield Warning(Reason.ALWAYS_PASSES, here, said, "!= and || often stand where && is meant" if expression.paths else "")
    elif not expression.roots & _OF_NODE:
        if "now" not in expression.roots:
            said = "this does not depend on the node, so that the filter refuses all nodes or none"
            hint = "to choose the pods that the policy is for, move it to match.conditions"
            yield Warning(Reason.SAME_FOR_EVERY_NODE, here, said, hint)
    elif is_label_rule:
        yield _invisible(here, terms, expression)
    yield from _of_rule(here, expression)


def _resolvable(path: FieldPath, rule: FilterRule) -> Warning:
    reads = rule.filter.reads
    if not (reads.pods or reads.free or reads.requested):
        said = "evicting pods cannot change what this rule decides: it does not read free, requested or pods"
        return Warning(Reason.RESOLVABLE_CANNOT_HELP, path, said, "remove resolvable")
    said = "no version of kube-scheduler preempts for a node that an extender refused, so that this has no effect yet"
    return Warning(Reason.RESOLVABLE_NOT_HONOURED, path, said, "remove it, or keep it for a version that will")


def _score(path: FieldPath, rule: ScoreRule) -> Iterator[Warning]:
    expression = rule.expression
    if expression is None:
        return
    here = (*path, "expression")
    given = outcomes(expression)
    if given == {0.0}:
        said = "this is always 0, so that the score adds nothing"
        yield Warning(Reason.SCORE_IS_ZERO, here, said, "remove the score, or mend it")
    elif not expression.roots & _OF_NODE:
        said = "this does not depend on the node: a score that is the same for every node prefers none"
        yield Warning(Reason.SAME_FOR_EVERY_NODE, here, said, "read node, free, requested, pods or data in it")
    elif given is not None and len(given) == 1:
        said = f"this is always {_number(next(iter(given)))}: a score that is the same for every node prefers none"
        yield Warning(Reason.SAME_FOR_EVERY_NODE, here, said, "remove the score, or mend it")
    elif given is not None and rule.normalize == "None":
        yield from _out_of_range(here, given, rule.weight)
    yield from _of_rule(here, expression)


def _out_of_range(path: FieldPath, given: frozenset[float], weight: int) -> Iterator[Warning]:
    outside = sorted(value for value in given if not 0 <= value <= _FULL)
    if outside:
        listed = " and ".join(map(_number, outside))
        said = f"scores are from 0 to 100, so that {listed} {'is' if len(outside) == 1 else 'are'} cut"
        hint = "stay within 0 and 100 and give the rule a weight, or set normalize: MinMax"
        yield Warning(Reason.SCORE_OUT_OF_RANGE, path, said, hint)
    elif max(given) <= 1 and weight == 1:
        said = f"scores are from 0 to 100, and this gives {_number(max(given))} at most, which next to nothing depends on"
        yield Warning(Reason.SCORE_IS_TINY, path, said, "write 100.0 for the best, or set normalize: MinMax")


def _number(value: float) -> str:
    return f"{value:g}"


def _protection(path: FieldPath, expression: Compiled) -> Iterator[Warning]:
    if not possible(expression, want=True):
        yield Warning(Reason.NEVER_PASSES, path, "this can never be true, so that it protects no pod", "remove or mend it")
    yield from _on_engine(path, expression)


def _of_rule(path: FieldPath, expression: Compiled) -> Iterator[Warning]:
    changing = [root for root in _CHANGING if root in expression.roots]
    if changing:
        said = f"{' and '.join(changing)} may be behind by the pods that were placed in the last moments"
        hint = "pods placed at the same time can end up together where the rule would have kept them apart"
        yield Warning(Reason.EVENTUALLY_CONSISTENT, path, said, hint)
    if "now" in expression.roots:
        said = "this reads now: it is evaluated again at each call"
        hint = "pods that it refuses are tried again when time alone makes it true"
        yield Warning(Reason.READS_NOW, path, said, hint)
    yield from _of_pod(path, expression)
    yield from _on_engine(path, expression)


def _of_pod(path: FieldPath, expression: Compiled) -> Iterator[Warning]:
    if found := sorted(".".join(one) for one in expression.paths if _is_identity(one)):
        said = f"{', '.join(found)} is another for every pod, so that nothing decided for one pod is kept for the next"
        hint = "read a label that pods of one kind share"
        yield Warning(Reason.POD_IDENTITY, path, said, hint)


def _is_identity(path: Path) -> bool:
    match path:
        case ("pod",) | ("pod", "metadata"):
            return True
        case ("pod", "metadata", name, *_) if name in _IDENTITY:
            return True
        case ("pod", "metadata", "labels", key):
            return key in _INDICES
    return False


def _on_engine(path: FieldPath, expression: Compiled) -> Iterator[Warning]:
    if expression.evaluation == "Lowered":
        return
    cost = "some 25 us for each node instead of one" if expression.roots & _OF_NODE else "once for each kind of pod"
    why = why_on_engine(expression)
    said = f"this runs on the CEL engine{f' because of {why}' if why else ''}, which takes {cost}"
    yield Warning(Reason.RUNS_ON_ENGINE, path, said, "it gives the same, and slower")


def _reads_only_labels(expression: Compiled) -> bool:
    """Whether nothing of the node is read but its labels and its name."""
    of_node = [path for path in expression.paths if path[0] in _OF_NODE]
    return bool(of_node) and all(
        path[:3] == ("node", "metadata", "labels") or path == ("node", "metadata", "name") for path in of_node
    )


def _invisible(path: FieldPath, terms: list[dict[str, object]] | None, expression: Compiled) -> Warning:
    said = "this reads only labels of nodes, and autoscalers ask no extender: for a pod that it refuses they may add a node"
    said += " in vain, or none"
    if terms:
        hint = f"pods that say the same themselves are understood by all:\n{as_yaml(terms)}"
    elif expression.roots - _OF_NODE:
        hint = "what it wants depends on the pod: let the pods carry a nodeSelector or nodeAffinity of their own"
    else:
        hint = "no nodeAffinity says the same: give nodes a label that says it in one word, and let the pods select that"
    return Warning(Reason.INVISIBLE_TO_AUTOSCALERS, path, said, hint)
