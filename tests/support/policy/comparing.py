"""A custom strategy whose score compares the nodes of a call."""

from collections.abc import Callable, Sequence
from typing import Any

from fairlead.api.params import Params
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.strategies.contract import NodeFacts, PodFacts, Reads, Score, Strategy, Trace, Use, Value
from support.policy.building import INSTALLED

CPU = frozenset({"cpu"})


class Compared(Params):
    """Parameters of a score that compares nodes."""

    of: str = "cpu"


Over = Callable[..., Any]


class Counting:
    """A score by the distance from the node with most of cpu requested, which counts how often it is asked."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(
        self, pod: PodFacts, nodes: Sequence[NodeFacts], now: int, trace: Trace | None = None
    ) -> Sequence[Value]:
        self.calls.append([one.name for one in nodes])
        used = [one.requested.get("cpu", 0.0) for one in nodes]
        if trace is not None:
            trace.note(most=max(used))
            for one, each in zip(nodes, used, strict=True):
                trace.item(one.name, used=each)
        return [100.0 * each / max(used) for each in used]


def comparing(over: Over, **fields: Any) -> CompileOptions:
    made = Score(reads=Reads(request=CPU, requested=CPU), over=over, **{"scale": "of", **fields})
    strategy = Strategy(name="compared", score=Use(Compared, lambda _: made))
    return CompileOptions(INSTALLED, custom={"compared": strategy})


COMPARED: dict[str, Any] = {"custom": {"name": "compared"}}
