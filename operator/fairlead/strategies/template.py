"""Template of a strategy, to copy: its filter passes every node, and its score is the same for every node.

It is tested as every strategy is, and not installed. docs/guide/write-a-strategy.md explains its parts.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from fairlead.api.params import Params
from fairlead.strategies.contract import (
    PASS,
    Decide,
    Filter,
    NodeFacts,
    NodeScorer,
    PodFacts,
    Reads,
    Score,
    Strategy,
    Trace,
    Use,
    Value,
    Verdict,
)


class TemplateFilter(Params):
    """Pass every node."""

    list_keys: ClassVar[tuple[str, ...]] = ()


class TemplateScore(Params):
    """Give every node the same score."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    value: Annotated[float, Field(ge=0, le=100)] = 50.0
    """Score of every node. 50 when absent."""


def _filter(_params: TemplateFilter) -> Filter:
    # Here: what depends on the parameters alone. It runs once for each generation of a policy.

    def for_pod(_pod: PodFacts) -> Decide:
        # Here: what depends on the pod. It runs once for pods that are equal in all that the rule reads.

        def one(_node: NodeFacts, _now: int, trace: Trace | None = None) -> Verdict:
            if trace is not None:
                trace.note(passes="every node")
            return PASS

        return one

    return Filter(reads=Reads(), for_pod=for_pod, reasons=())


def _score(params: TemplateScore) -> Score:
    def for_pod(_pod: PodFacts) -> NodeScorer[NodeFacts]:
        def one(_node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
            if trace is not None:
                trace.note(value=params.value)
            return params.value

        return one

    return Score(reads=Reads(), for_pod=for_pod)


STRATEGY = Strategy(
    name="template",
    filter=Use(TemplateFilter, _filter),
    score=Use(TemplateScore, _score),
)
