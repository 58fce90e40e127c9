"""Filters and scores made from expressions, with the same interface as strategies.

No exception leaves them: whatever a rule raises, expected or not, becomes a rule error, and its `onError` says what
happens.
"""

from collections.abc import Callable, Collection, Sequence
from math import isfinite
from typing import Any, Final, cast

from fairlead.cel.analysis.expiry import ExpiryTracker
from fairlead.cel.engine.safe_messages import stable
from fairlead.cel.lowering.program import translate_error
from fairlead.cel.lowering.pyast import CAUGHT
from fairlead.cel.values.errors import Abort, Kind
from fairlead.policy.compile.expression import CompiledExpression, as_reads, finite
from fairlead.policy.views.faults import RAISED, InternalRuleError, RuleError, internal_error
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.policy.views.policy_data import MissingDataError
from fairlead.strategies.compared_nodes import ComparedNodes
from fairlead.strategies.contract import (
    PASS,
    CompiledFilter,
    CompiledScore,
    Filter,
    Pass,
    Reject,
    Score,
    Timed,
    Trace,
)
from fairlead.strategies.facts import Unknown

_EXPECTED: Final = (*CAUGHT, Abort)


def error_verdict(
    error: Exception, until: int | None = None, *, rule: str = "the rule", written: Collection[object] = ()
) -> RuleError:
    """Return the verdict for an exception; `until` is when the result may change.

    A missing key is named only if it is `written` in the expression: others may come from data of the cluster.
    """
    if not isinstance(error, _EXPECTED):
        return internal_error(error, rule, until)
    found = translate_error(error)
    if isinstance(found, MissingDataError):
        return _missing(found.unknown, until, written)
    detail = stable(found)
    if found.kind is Kind.NO_SUCH_KEY and isinstance(error, KeyError) and error.args and error.args[0] in written:
        detail = found.message
    return RuleError(rule, "cannot be decided", until, detail=detail)


def _missing(unknown: Unknown, until: int | None, written: Collection[object]) -> RuleError:
    if isinstance(unknown, InternalRuleError):
        return InternalRuleError(unknown.what, unknown.why, until, detail=unknown.detail, error=unknown.error)
    if unknown.what.removeprefix("data ") not in written:  # the name was computed, perhaps from data of the cluster
        return RuleError("data", "has no entry of that name", until, detail="data has no entry of that name")
    return RuleError(unknown.what, unknown.why, until, unknown.passes, detail=str(unknown))


def with_values(error: Exception) -> str:
    """Return the message of an exception with its values, for a user whose own rights were used to read them."""
    return translate_error(error).message


def bind_rule(rule: Filter | Score, pod: Any, name: str) -> Callable[..., Any]:
    """Return a rule for one pod; if that raises, one that returns the error for every node."""
    try:
        return rule.for_pod(pod)
    except RAISED as error:
        return _always(internal_error(error, f"rule {name}"))


def verdict_of(rule: Filter | Score, pod: Any, name: str, node: Any, now: int, trace: Trace | None = None) -> Any:
    """Return the verdict of a rule for one pod and one node."""
    try:
        found = bind_rule(rule, pod, name)(node, now, trace)
        _refuse_other(rule, found)
    except RAISED as error:
        return internal_error(error, f"rule {name}")
    return found


def values_over(
    score: Score, pod: Any, name: str, nodes: ComparedNodes[Any], now: int, trace: Trace | None = None
) -> Sequence[Any]:
    """Return the values of nodes by a score that compares them; if that raises, the error for each of them."""
    try:
        found = score.over(pod, nodes, now, trace) if score.over is not None and nodes else ()
        if len(found) != len(nodes):
            raise ValueError(f"the score returned {len(found)} values for {len(nodes)} nodes")
        # One look at all of them is the quick way; an int, which would add up like a float, is found by its type.
        if {*map(type, found)} != {float} or not isfinite(sum(cast("Sequence[float]", found))):
            for value in found:
                _refuse_other(score, value)
    except RAISED as error:
        return [internal_error(error, f"rule {name}")] * len(nodes)
    return found


def _refuse_other(rule: Filter | Score, result: object) -> None:
    """Raise TypeError or ValueError for what a strategy must not return."""
    if isinstance(rule, CompiledFilter) and not isinstance(result, Pass | Reject | Unknown):
        raise TypeError(f"the filter returned {result!r}, not PASS, a Reject or an Unknown")
    if not isinstance(rule, CompiledScore):
        return
    value = result.value if isinstance(result, Timed) else result
    if not isinstance(value, int | float | Unknown):
        raise TypeError(f"the score returned {result!r}, not a number or an Unknown")
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"the score returned {value}, which is not a number: return an Unknown")


def _always(verdict: object) -> Callable[..., object]:
    return lambda *_: verdict


def filter_of(
    expression: CompiledExpression, name: str, reason: str, *, resolvable: bool
) -> CompiledFilter[PodView, NodeView]:
    """Return a filter that passes a node if an expression is true."""
    rule = f"rule {name}"
    reject = Reject(reason, resolvable)

    def failed(error: Exception, until: int | None = None) -> RuleError:
        return error_verdict(error, until, rule=rule, written=expression.written)

    def timed(pod: PodView) -> Callable[..., object]:
        ends = ExpiryTracker()
        try:
            inner = expression.for_pod_with_expiry(pod, ends.note)
        except RAISED as error:
            return _always(failed(error))

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                passes = inner(node, now)
            except RAISED as error:
                return failed(error, ends.until(now))
            until = ends.until(now)
            if until is None:
                return PASS if passes else reject
            return Pass(until) if passes else Reject(reason, resolvable, until)

        return one

    def for_pod(pod: PodView) -> Callable[..., object]:
        try:
            inner = expression.for_pod(pod)
        except RAISED as error:
            return _always(failed(error))

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                return PASS if inner(node, now) else reject
            except RAISED as error:
                return failed(error)

        return one

    make = timed if _is_timed(expression) else for_pod
    reads = as_reads(expression.paths)
    return CompiledFilter(reads=reads, for_pod=make, reasons=(reason,), resolvable=resolvable)  # type: ignore[arg-type]


def score_of(expression: CompiledExpression, name: str) -> CompiledScore[PodView, NodeView]:
    """Return a score with the value of an expression."""
    rule = f"rule {name}"

    def failed(error: Exception, until: int | None = None) -> RuleError:
        return error_verdict(error, until, rule=rule, written=expression.written)

    def timed(pod: PodView) -> Callable[..., object]:
        ends = ExpiryTracker()
        try:
            inner = expression.for_pod_with_expiry(pod, ends.note)
        except RAISED as error:
            return _always(failed(error))

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                value = finite(inner(node, now))
            except RAISED as error:
                return failed(error, ends.until(now))
            until = ends.until(now)
            return value if until is None else Timed(value, until)

        return one

    def for_pod(pod: PodView) -> Callable[..., object]:
        try:
            inner = expression.for_pod(pod)
        except RAISED as error:
            return _always(failed(error))

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                return finite(inner(node, now))
            except RAISED as error:
                return failed(error)

        return one

    make = timed if _is_timed(expression) else for_pod
    return CompiledScore(reads=as_reads(expression.paths), for_pod=make)  # type: ignore[arg-type]


def _is_timed(expression: CompiledExpression) -> bool:
    return "now" in expression.roots and expression.has_known_expiry
