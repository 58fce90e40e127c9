"""What is said of a single rule: of a filter, a score, a protection, and of every expression."""

from collections.abc import Iterator
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.cel.analysis.expression_reads import Path
from fairlead.cel.lowering.program import Program
from fairlead.cel.values.errors import NotLoweredError
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import FilterRule, ScoreRule
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.policy.lint.node_affinity import as_yaml, node_affinity
from fairlead.policy.lint.score_bounds import bounds
from fairlead.policy.lint.symbolic import can_be, term_outcomes

_OF_NODE: Final = frozenset({"node", "free", "requested", "allocatable", "pods", "data", "victim"})
_CHANGING: Final = ("free", "requested", "pods")
_IDENTITY: Final = ("name", "uid", "creationTimestamp", "resourceVersion", "selfLink", "managedFields")
_INDICES: Final = (
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
)
_FULL: Final = 100.0
Said = Iterator[LintWarning | None]
"""None: a pause."""


def check_filter(path: FieldPath, rule: FilterRule, resolvable: bool | None) -> Said:  # noqa: FBT001
    """What is said of a filter; `path` is that of the rule."""
    expression = rule.expression
    if resolvable:
        yield _resolvable((*path, "resolvable"), rule)
    if expression is None:
        return
    here = (*path, "expression")
    what = _known_to_affinity(expression)
    terms = node_affinity(expression, rejects_on_error=rule.rejects_on_error) if what else None
    yield None
    can_pass = can_be(expression, want=True)
    yield None
    can_refuse = not can_pass or can_be(expression, want=False)
    yield None
    if not can_pass or terms == []:
        hint = "no node is ever left for a pod" if rule.rejects_on_error else "only nodes on which it fails are left"
        yield LintWarning(
            LintCode.NEVER_PASSES, here, "this can never be true, so that the filter refuses every node", hint
        )
    elif not can_refuse or terms == [{}]:
        said = "this can never be false, so that the filter refuses no node that it can decide on"
        yield LintWarning(
            LintCode.ALWAYS_PASSES, here, said, "!= and || often stand where && is meant" if expression.paths else ""
        )
    elif not expression.roots & _OF_NODE:
        if "now" not in expression.roots:
            said = "this does not depend on the node, so that the filter refuses all nodes or none"
            hint = "to choose the pods that the policy is for, move it to match.conditions"
            yield LintWarning(LintCode.SAME_FOR_EVERY_NODE, here, said, hint)
    elif what:
        yield _invisible(here, what, terms, expression)
    yield from _of_rule(here, expression)


def _resolvable(path: FieldPath, rule: FilterRule) -> LintWarning:
    reads = rule.filter.reads
    if not (reads.pods or reads.free or reads.requested):
        said = "evicting pods cannot change what this rule decides: it does not read free, requested or pods"
        return LintWarning(LintCode.RESOLVABLE_CANNOT_HELP, path, said, "remove resolvable")
    said = "no version of kube-scheduler preempts for a node that an extender refused, so that this has no effect yet"
    return LintWarning(LintCode.RESOLVABLE_NOT_HONOURED, path, said, "remove it, or keep it for a version that will")


def check_score(path: FieldPath, rule: ScoreRule) -> Said:
    """What is said of a score; `path` is that of the rule."""
    expression = rule.expression
    if expression is None:
        return
    here = (*path, "expression")
    given = term_outcomes(expression)
    yield None
    if given == frozenset({0.0}):
        said = "this is always 0, so that the score adds nothing"
        yield LintWarning(LintCode.SCORE_IS_ZERO, here, said, "remove the score, or mend it")
    elif not expression.roots & _OF_NODE:
        said = "this does not depend on the node: a score that is the same for every node prefers none"
        yield LintWarning(LintCode.SAME_FOR_EVERY_NODE, here, said, "read node, free, requested, pods or data in it")
    elif given is not None and len(given) == 1:
        said = f"this is always {_number(next(iter(given)))}: a score that is the same for every node prefers none"
        yield LintWarning(LintCode.SAME_FOR_EVERY_NODE, here, said, "remove the score, or mend it")
    elif rule.normalize == "None":
        yield from _constants_cut(here, given, rule.weight) if given is not None else _cut(here, expression, rule)
    yield from _of_rule(here, expression)


def _constants_cut(path: FieldPath, given: frozenset[float], weight: int) -> Iterator[LintWarning]:
    outside = sorted(value for value in given if not 0 <= value <= _FULL)
    if outside:
        listed = " and ".join(map(_number, outside))
        said = f"scores are from 0 to 100, so that {listed} {'is' if len(outside) == 1 else 'are'} cut"
        hint = "stay within 0 and 100 and give the rule a weight, or set normalize: MinMax"
        yield LintWarning(LintCode.SCORE_OUT_OF_RANGE, path, said, hint)
    elif max(given) <= 1 and weight == 1:
        yield _tiny(path, max(given))


def _cut(path: FieldPath, expression: CompiledExpression, rule: ScoreRule) -> Iterator[LintWarning]:
    """A score of which hardly anything is left, because it is on one side of what scores can be."""
    least, most = bounds(expression)
    if most <= 0 or least >= _FULL:
        which, cut = ("never more than 0", 0) if most <= 0 else ("hardly ever less than 100", 100)
        said = f"scores are from 0 to 100, and this is {which}: it is cut to {cut} for every node, and prefers none"
        hint = "set normalize: MinMax, or Rank, to make 0 to 100 of whatever the values are"
        yield LintWarning(LintCode.SCORE_OUT_OF_RANGE, path, said, hint)
    elif least >= 0 and most <= 1 and rule.weight == 1:
        yield _tiny(path, most)


def _tiny(path: FieldPath, most: float) -> LintWarning:
    said = f"scores are from 0 to 100, and this gives {_number(most)} at most, which next to nothing depends on"
    return LintWarning(LintCode.SCORE_IS_TINY, path, said, "write 100.0 for the best, or set normalize: MinMax")


def _number(value: float) -> str:
    return f"{value:g}"


def check_protection(path: FieldPath, expression: CompiledExpression) -> Said:
    """What is said of a protection; `path` is that of its expression."""
    if not can_be(expression, want=True):
        yield LintWarning(
            LintCode.NEVER_PASSES, path, "this can never be true, so that it protects no pod", "remove or mend it"
        )
    yield None
    yield from on_engine(path, expression)


def _of_rule(path: FieldPath, expression: CompiledExpression) -> Said:
    changing = [root for root in _CHANGING if root in expression.roots]
    if changing:
        said = f"{' and '.join(changing)} may be behind by the pods that were placed in the last moments"
        hint = "pods placed at the same time can end up together where the rule would have kept them apart"
        yield LintWarning(LintCode.EVENTUALLY_CONSISTENT, path, said, hint)
    if "now" in expression.roots:
        said = "this reads now: what it gives may change with the time alone"
        if not expression.has_known_expiry:
            said = "this reads now so that nobody can tell until when a result holds: it is evaluated at each call"
        hint = "pods that it refuses are tried again when time alone frees them" if "filters" in path else ""
        yield LintWarning(LintCode.READS_NOW, path, said, hint)
    yield from check_identity(path, expression)
    yield None
    yield from on_engine(path, expression)


def check_identity(path: FieldPath, expression: CompiledExpression) -> Iterator[LintWarning]:
    """Whether an expression reads what only one pod has."""
    if found := sorted(".".join(one) for one in expression.paths if _is_identity(one)):
        said = f"{', '.join(found)} is another for every pod, so that nothing decided for one pod is kept for the next"
        hint = "read a label that pods of one kind share"
        yield LintWarning(LintCode.POD_IDENTITY, path, said, hint)


def _is_identity(path: Path) -> bool:
    match path:
        case ("pod",) | ("pod", "metadata"):
            return True
        case ("pod", "metadata", name, *_) if name in _IDENTITY:
            return True
        case ("pod", "metadata", "labels", key):
            return key in _INDICES
    return False


def on_engine(path: FieldPath, expression: CompiledExpression) -> Iterator[LintWarning]:
    """Whether an expression is not lowered."""
    if expression.evaluation == "Lowered":
        return
    cost = "some 25 us for each node instead of one" if expression.roots & _OF_NODE else "once for each kind of pod"
    why = why_on_engine(expression)
    said = f"this runs on the CEL engine{f' ({why})' if why else ''}, which takes {cost}"
    yield LintWarning(LintCode.RUNS_ON_ENGINE, path, said, "it gives the same, and slower")


def _known_to_affinity(expression: CompiledExpression) -> str:
    """What it reads of nodes, if that is nothing but what a nodeAffinity can ask for."""
    of_node = [path for path in expression.paths if path[0] in _OF_NODE]
    is_name = [path == ("node", "metadata", "name") for path in of_node]
    is_label = [path[:3] == ("node", "metadata", "labels") for path in of_node]
    if not all(map(any, zip(is_name, is_label, strict=True))):
        return ""
    return " and ".join(["labels"] * any(is_label) + ["the name"] * any(is_name))


def _invisible(
    path: FieldPath, what: str, terms: list[dict[str, object]] | None, expression: CompiledExpression
) -> LintWarning:
    said = (
        f"this reads only {what} of nodes, and autoscalers ask no extender: for a pod that no node will do for, "
        "they may add nodes in vain, or none"
    )
    if terms:
        hint = f"pods that say the same themselves are understood by all:\n{as_yaml(terms)}"
    elif expression.roots - _OF_NODE - {"now"}:
        hint = "what it wants depends on the pod: let the pods carry a nodeSelector or nodeAffinity of their own"
    else:
        hint = (
            "no nodeAffinity says the same: give nodes a label that says it in one word, and let the pods select that"
        )
    return LintWarning(LintCode.INVISIBLE_TO_AUTOSCALERS, path, said, hint)


def why_on_engine(expression: CompiledExpression) -> str:
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
