"""Rules from expressions: the same filters and scores as strategies are."""

from collections.abc import Callable
from typing import Final

from fairlead.cel.errors import Abort
from fairlead.cel.lowering.builder import CAUGHT
from fairlead.cel.lowering.program import translated
from fairlead.policy.expressions import Compiled, as_reads, finite
from fairlead.policy.facts import MissingDataError, NodeView, PodView
from fairlead.strategies.facts import Unknown
from fairlead.strategies.seam import PASS, FilterOf, Reject, ScoreOf, Trace

RAISED: Final = (*CAUGHT, Abort)


class Raised(Unknown, frozen=True):
    """An expression raised; what is said to everybody is stable, the detail is for status and explain."""

    detail: str = ""


def raised(error: Exception) -> Raised:
    """An error of evaluation as a value."""
    found = translated(error)
    if isinstance(found, MissingDataError):
        return Raised(found.unknown.what, found.unknown.why, found.unknown.until, found.message)
    return Raised("the rule", "cannot be decided", None, found.message)


def filter_of(expression: Compiled, reason: str, *, resolvable: bool) -> FilterOf[PodView, NodeView]:
    """A filter that passes where an expression gives true."""
    reject = Reject(reason, resolvable)

    def for_pod(pod: PodView) -> Callable[..., object]:
        inner = expression.for_pod(pod)

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                return PASS if inner(node, now) else reject
            except RAISED as error:
                return raised(error)

        return one

    reads = as_reads(expression.paths)
    return FilterOf(reads=reads, for_pod=for_pod, reasons=(reason,), resolvable=resolvable)  # type: ignore[arg-type]


def score_of(expression: Compiled) -> ScoreOf[PodView, NodeView]:
    """A score that is what an expression gives."""

    def for_pod(pod: PodView) -> Callable[..., object]:
        inner = expression.for_pod(pod)

        def one(node: NodeView, now: int, _trace: Trace | None = None, /) -> object:
            try:
                return finite(inner(node, now))
            except RAISED as error:
                return raised(error)

        return one

    return ScoreOf(reads=as_reads(expression.paths), for_pod=for_pod)  # type: ignore[arg-type]
