"""Strategy `congestion`: prefers nodes with a low value of congestion, which another program measures."""

from typing import Annotated

from pydantic import Field

from fairlead.api.params import DataName, Params
from fairlead.strategies.builtin.comparison import position
from fairlead.strategies.contract import (
    NodeFacts,
    NodeScorer,
    PodFacts,
    Reads,
    Score,
    Strategy,
    Trace,
    Unknown,
    Use,
    Value,
)


class Congestion(Params):
    """Prefer nodes with a low value of congestion: 0 scores 100, max and more score 0, and between them it is linear.

    A node without a value gets the mean score of the other nodes. If no value means no congestion, give the entry of
    data a default of 0.
    """

    value: DataName
    """Entry of data with the congestion of the node."""
    max: Annotated[float, Field(ge=1e-9, le=1e18)] = 100.0
    """Congestion from which a node scores 0. Defaults to 100."""


def _score(params: Congestion) -> Score:
    name, most = params.value, params.max

    def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
        value = node.data(name)
        if trace is not None:
            trace.note(value=None if isinstance(value, Unknown) else value, max=most)
        if isinstance(value, Unknown):
            return value
        return 100.0 - position(value, 0.0, most)

    def for_pod(_pod: PodFacts) -> NodeScorer[NodeFacts]:
        return one

    return Score(reads=Reads(data=frozenset({name})), for_pod=for_pod)


STRATEGY = Strategy(name="congestion", score=Use(Congestion, _score))
