"""Warnings about a single rule: a filter, a score or a protection."""

from collections.abc import Iterator
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.cel.analysis.expression_reads import Path
from fairlead.cel.analysis.ranges import OF_TIME
from fairlead.cel.functions.overloads import OF_TIME_ZONES
from fairlead.cel.lowering.program import Program
from fairlead.cel.syntax.ast import Call, Comprehension, Const, Ident, ListExpr, walk
from fairlead.cel.values.errors import NotLoweredError
from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.node_affinity import as_yaml, node_affinity, node_bound
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import FilterRule, ScoreRule
from fairlead.policy.lint.amount_checks import check_score_range
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings
from fairlead.policy.symbolic.label_sets import EVERY
from fairlead.policy.symbolic.terms import Term, TooLargeError, can_be, read, term_of, term_outcomes

_OF_NODE: Final = frozenset({"node", "free", "requested", "allocatable", "pods", "data", "victim"})
_CHANGING: Final = ("free", "requested", "pods")
_IDENTITY: Final = ("name", "uid", "creationTimestamp", "resourceVersion", "selfLink", "managedFields")
_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
_FULL: Final = 100.0
_LESS: Final = ("_<_", "_<=_")
_MORE: Final = ("_>_", "_>=_")


MEASURED_BURST: Final = "13 pods on one node were measured where 3 were meant"
HARD_LIMITS: Final = "give the pods topologySpreadConstraints, a podAntiAffinity or an extended resource"


_PUBLISH: Final = "with `publish: NodeAffinity` pods get what it implies when they are created"


def check_filter(
    path: FieldPath,
    rule: FilterRule,
    resolvable: bool | None,  # noqa: FBT001
    *,
    publishes: bool = False,
) -> LintWarnings:
    """Yield the warnings about a filter; `path` is the rule's."""
    expression = rule.expression
    if resolvable:
        message = "kube-scheduler does not preempt on a node that an extender rejected, so this has no effect yet"
        hint = "remove it, or keep it for a version that does"
        yield LintWarning(LintCode.HAS_NO_EFFECT, (*path, "resolvable"), message, hint)
    if expression is None:
        return
    here = (*path, "expression")
    what = _known_to_affinity(expression)
    terms = node_affinity(expression, rejects_on_error=rule.rejects_on_error) if what else None
    yield None
    can_pass = can_be(expression, want=True)
    yield None
    can_reject = not can_pass or can_be(expression, want=False)
    yield None
    if not can_pass or terms == []:
        message = "this can never be true, so the filter rejects every node"
        hint = "no node is left for a pod" if rule.rejects_on_error else "only nodes on which it raises an error pass"
        hint += "".join(f"; {one}" for one in _of_time(expression))
        yield LintWarning(LintCode.NEVER_PASSES, here, message, hint)
    elif not can_reject or terms == [{}]:
        message = "this can never be false, so the filter rejects no node that it can evaluate"
        hint = "`!=` and `||` are often written where `&&` is meant" if expression.paths else ""
        hint = "".join(_of_time(expression)) or hint
        yield LintWarning(LintCode.ALWAYS_PASSES, here, message, hint)
    elif what and not publishes:
        yield _invisible(here, what, terms, rule)
    yield from _of_rule(here, expression, is_limit=limits_pods(expression))


def _of_time(expression: CompiledExpression) -> Iterator[str]:
    """Yield the bounds of the first part of a time that an expression reads."""
    checked = expression.expression.checked
    calls = (one for one in walk(checked.root) if isinstance(one, Call) and one.function in OF_TIME)
    names = [one.function for one in calls if checked.type_of(one.args[0]).name == "timestamp"]
    if names:
        low, high = OF_TIME[names[0]]
        first = {"getDayOfWeek": ", Sunday is 0", "getMonth": ", January is 0"}.get(names[0], "")
        over = ", and hours over midnight are joined by `||`" if names.count("getHours") > 1 else ""
        yield f"{names[0]}() is from {low} to {high}{first}{over}"


def check_score(path: FieldPath, rule: ScoreRule) -> LintWarnings:
    """Yield the warnings about a score; `path` is the rule's."""
    expression = rule.expression
    if expression is None:
        return
    here = (*path, "expression")
    outcomes = term_outcomes(expression)
    yield None
    if outcomes is not None and len(outcomes) == 1:
        (only,) = outcomes
        message = f"this is always {only:g}: a score that is the same for every node prefers none"
        yield LintWarning(LintCode.HAS_NO_EFFECT, here, message, "remove or fix the score")
    elif not expression.roots & _OF_NODE:
        message = "this does not depend on the node: a score that is the same for every node prefers none"
        yield LintWarning(LintCode.HAS_NO_EFFECT, here, message, "read node, free, requested, pods or data in it")
    elif rule.normalize == "None":
        outside = [*_out_of_range(here, outcomes or frozenset())]
        yield from outside or check_score_range(here, expression)
    yield from _of_rule(here, expression)


def _out_of_range(path: FieldPath, outcomes: frozenset[float]) -> Iterator[LintWarning]:
    """Yield a warning about a score of constants outside of 0 to 100."""
    if outside := sorted(value for value in outcomes if not 0 <= value <= _FULL):
        listed = " and ".join(f"{value:g}" for value in outside)
        message = f"scores range from 0 to 100, so {listed} {'is' if len(outside) == 1 else 'are'} cut"
        hint = "stay within 0 and 100 and give the rule a weight, or set normalize: MinMax"
        yield LintWarning(LintCode.SCORE_OUT_OF_RANGE, path, message, hint)


def check_protection(path: FieldPath, expression: CompiledExpression) -> LintWarnings:
    """Yield the warnings about a protection; `path` is its expression's."""
    if not can_be(expression, want=True):
        message = "this can never be true, so it protects no pod"
        yield LintWarning(LintCode.NEVER_PASSES, path, message, "remove or fix it")
    elif "victim" not in expression.roots and expression.roots - {"now"}:
        message = "this does not depend on the victim: it protects every pod on the node, or none"
        hint = (
            "read `victim`, the pod that may be evicted: `pod` is the one that needs room, for match.conditions to ask"
        )
        yield LintWarning(LintCode.HAS_NO_EFFECT, path, message, hint)
    yield None
    yield from check_engine(path, expression)


def _of_rule(path: FieldPath, expression: CompiledExpression, *, is_limit: bool = False) -> LintWarnings:
    if is_limit:
        message = f"this limits the pods on a node by counting them, and a burst passes it together: {MEASURED_BURST}"
        hint = f"for a limit that must hold, {HARD_LIMITS}"
        yield LintWarning(LintCode.COUNTS_PODS, path, message, hint)
    elif changing := [f"`{root}`" for root in _CHANGING if root in expression.roots]:
        message = f"{' and '.join(changing)} may miss pods that were placed moments ago"
        hint = "pods placed at the same time can end up together where the rule would have kept them apart"
        yield LintWarning(LintCode.EVENTUALLY_CONSISTENT, path, message, hint)
    yield from check_identity(path, expression)
    yield None
    yield from check_engine(path, expression)


def limits_pods(expression: CompiledExpression) -> bool:
    """Report whether a filter rejects nodes for having too many pods, or pods of some kind."""
    try:
        return "pods" in {part for path in expression.paths for part in path[:2]} and _limits(
            term_of(expression), want=True
        )
    except TooLargeError:
        return False


def _limits(term: Term, *, want: bool) -> bool:
    """Report whether a condition has this value only while few pods are on the node."""
    if negated := term.args("!_"):
        return _limits(negated[0], want=not want)
    if parts := term.args("_&&_", "_||_"):
        return any(_limits(part, want=want) for part in parts)
    if chosen := term.args("_?_:_"):
        return any(_limits(part, want=want) for part in chosen[1:])
    if sides := term.args(*_LESS, *_MORE):
        few, many = sides if term.function in _LESS else sides[::-1]
        return _is_count(few if want else many)
    if sides := term.args("_==_" if want else "_!=_"):
        return any(map(_is_count, sides))
    match term.node:
        case Comprehension(range=range_, init=Const(), step=Call(function=step)) if step == (
            "_&&_" if want else "_||_"
        ):
            return _is_pods(term.at(range_))
    return False


def _is_count(term: Term) -> bool:
    """Report whether a number grows with the pods on the node."""
    if parts := term.args("size", "double", "int", "_+_", "_-_", "_*_"):
        return _is_pods(parts[0]) if term.function == "size" else any(map(_is_count, parts))
    entry = read(term)
    return entry is not None and entry[1] == "pods" and _is_root(entry[0], "requested")


def _is_pods(term: Term) -> bool:
    match term.node:
        case Comprehension(range=range_, init=ListExpr()):
            return _is_pods(term.at(range_))
    return _is_root(term, "pods")


def _is_root(term: Term, name: str) -> bool:
    return isinstance(term.node, Ident) and term.checked.names.get(term.node.id) == name


def check_identity(path: FieldPath, expression: CompiledExpression) -> Iterator[LintWarning]:
    """Yield a warning if an expression reads what only one pod has."""
    if found := sorted(".".join(one) for one in expression.paths if _is_identity(one)):
        differs = "is different" if len(found) == 1 else "are different"
        message = f"{', '.join(found)} {differs} for every pod, so no result for one pod is cached for the next"
        hint = "read a label that pods of one kind share"
        yield LintWarning(LintCode.POD_IDENTITY, path, message, hint)


def _is_identity(path: Path) -> bool:
    match path:
        case ("pod",) | ("pod", "metadata"):
            return True
        case ("pod", "metadata", name, *_) if name in _IDENTITY:
            return True
        case ("pod", "metadata", "labels", key):
            # The index of a replica recurs in other workloads, and there is no other way to ask for it.
            return key == _NAME_LABEL
    return False


def check_engine(path: FieldPath, expression: CompiledExpression) -> Iterator[LintWarning]:
    """Yield a warning if an expression is not lowered, other than for a time zone."""
    if expression.evaluation == "ByteCode":
        return
    often = "per node instead of 1 us" if expression.roots & _OF_NODE else "once per kind of pod"
    why = why_on_engine(expression)
    if why.endswith(OF_TIME_ZONES) and "now" in expression.roots:
        return  # there is no other way to ask for a time of day
    message = f"this runs on the CEL engine{f' ({why})' if why else ''}, which takes about 25 us {often}"
    yield LintWarning(LintCode.RUNS_ON_ENGINE, path, message, "the result is the same")


def _known_to_affinity(expression: CompiledExpression) -> str:
    """Return what an expression reads of nodes if a nodeAffinity can ask for all of it, else ""."""
    of_node = [path for path in expression.paths if path[0] in _OF_NODE]
    is_name = [path == ("node", "metadata", "name") for path in of_node]
    is_label = [path[:3] == ("node", "metadata", "labels") for path in of_node]
    if not all(map(any, zip(is_name, is_label, strict=True))):
        return ""
    return " and ".join(["labels"] * any(is_label) + ["the name"] * any(is_name))


def _invisible(path: FieldPath, what: str, terms: list[dict[str, object]] | None, rule: FilterRule) -> LintWarning:
    message = (
        f"this reads only {what} of nodes, and autoscalers do not call extenders: for a pod that every node rejects, "
        "they may add nodes that do not help, or none"
    )
    expression = rule.expression
    bound = expression and node_bound(expression, Vocabulary(), rejects_on_error=rule.rejects_on_error)
    if terms:
        hint = f"{_PUBLISH}; autoscalers understand pods that have the same requirement themselves:\n{as_yaml(terms)}"
    elif bound and bound.terms != EVERY:
        hint = f"{_PUBLISH}; `fairlead affinity` shows it"
        hint += f", without {', '.join(bound.left_out)}" if bound.left_out else ""
    elif expression and expression.roots - _OF_NODE - {"now"}:
        hint = "the requirement depends on the pod: give the pods a nodeSelector or nodeAffinity of their own"
    else:
        hint = "no nodeAffinity says the same: give such nodes one label for it, and let the pods select that label"
    return LintWarning(LintCode.INVISIBLE_TO_AUTOSCALERS, path, message, hint)


def why_on_engine(expression: CompiledExpression) -> str:
    """Return what keeps an expression from being lowered; "" if it is lowered."""
    if expression.evaluation == "ByteCode":
        return ""
    try:
        Program(
            expression.expression.checked, {name: one.expression.checked for name, one in expression.variables.items()}
        ).check()
    except NotLoweredError as error:
        return str(error)
    return ""
