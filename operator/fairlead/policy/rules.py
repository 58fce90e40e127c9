"""Rules from expressions: the same filters and scores as strategies are."""

from collections.abc import Callable
from typing import Final

from fairlead.cel.errors import Abort
from fairlead.cel.functions.ends import Ends
from fairlead.cel.lowering.builder import CAUGHT
from fairlead.cel.lowering.program import translated
from fairlead.policy.expressions import Compiled, as_reads, finite
from fairlead.policy.facts import MissingDataError, NodeView, PodView
from fairlead.strategies.facts import Unknown
from fairlead.strategies.seam import PASS, FilterOf, Pass, Reject, ScoreOf, Timed, Trace

RAISED: Final = (*CAUGHT, Abort)


class Raised(Unknown, frozen=True):
    """An expression raised; what is said to everybody is stable, the detail is for status and explain."""

    detail: str = ""


def raised(error: Exception, until: int | None = None, *, rule: str = "the rule") -> Raised:
    """An error of evaluation as a value, and when it may be another; who reads it alone wants the rule named."""
    found = translated(error)
    if isinstance(found, MissingDataError):
        return Raised(found.unknown.what, found.unknown.why, until, found.message)
    return Raised(rule, "cannot be decided", until, found.message)


def filter_of(expression: Compiled, name: str, reason: str, *, resolvable: bool) -> FilterOf[PodView, NodeView]:
    """A filter that passes where an expression gives true."""
    rule = f"rule {name}"
    reject = Reject(reason, resolvable)

    def timed(pod: PodView) -> Callable[..., object]:
        ends = Ends()
        inner = expression.noting(pod, ends.note)

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                passes = inner(node, now)
            except RAISED as error:
                return raised(error, ends.until(now), rule=rule)
            until = ends.until(now)
            if until is None:
                return PASS if passes else reject
            return Pass(until) if passes else Reject(reason, resolvable, until)

        return one

    def for_pod(pod: PodView) -> Callable[..., object]:
        inner = expression.for_pod(pod)

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                return PASS if inner(node, now) else reject
            except RAISED as error:
                return raised(error, rule=rule)

        return one

    make = timed if _is_timed(expression) else for_pod
    reads = as_reads(expression.paths)
    return FilterOf(reads=reads, for_pod=make, reasons=(reason,), resolvable=resolvable)  # type: ignore[arg-type]


def score_of(expression: Compiled, name: str) -> ScoreOf[PodView, NodeView]:
    """A score that is what an expression gives."""
    rule = f"rule {name}"

    def timed(pod: PodView) -> Callable[..., object]:
        ends = Ends()
        inner = expression.noting(pod, ends.note)

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                value = finite(inner(node, now))
            except RAISED as error:
                return raised(error, ends.until(now), rule=rule)
            until = ends.until(now)
            return value if until is None else Timed(value, until)

        return one

    def for_pod(pod: PodView) -> Callable[..., object]:
        inner = expression.for_pod(pod)

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                return finite(inner(node, now))
            except RAISED as error:
                return raised(error, rule=rule)

        return one

    make = timed if _is_timed(expression) else for_pod
    return ScoreOf(reads=as_reads(expression.paths), for_pod=make)  # type: ignore[arg-type]


def _is_timed(expression: Compiled) -> bool:
    return "now" in expression.roots and expression.says_until
