"""What a rule is to the engine, whether it was compiled from CEL or from a strategy's parameters.

A rule is made in three steps, each as seldom as it can be: `filter(params)` once per generation of the policy,
`for_pod(pod)` once per class of pods, `one(node, now, trace)` per node. All three are pure: the same facts give the
same verdict, nothing is kept between calls, nothing raises. A rule that cannot decide says `Unknown`.

`now` is a fact like any other: whoever uses it declares `Reads(now=True)` and says with the verdict `until` when it
holds: the earliest moment, later than `now`, at which it may be another though no other fact changed. Without `until` a
verdict holds for ever. That a value of `data` grows stale is a change of that value, and no matter of `until`.

A strategy imports from here everything it needs.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from fairlead.api.params import Params
from fairlead.strategies.facts import Condition, Controller, NodeFacts, PodFacts, PodOnNode, Stamped, Unknown
from fairlead.strategies.reads import ANNOTATIONS, CONDITIONS, LABELS, Path, PodsRead, Reads

__all__ = [
    "ANNOTATIONS",
    "CONDITIONS",
    "LABELS",
    "PASS",
    "CompiledFilter",
    "CompiledScore",
    "Condition",
    "Controller",
    "Decide",
    "Filter",
    "NodeFacts",
    "NodeFilter",
    "NodeScorer",
    "Normalize",
    "Pass",
    "Path",
    "PodFacts",
    "PodOnNode",
    "PodsRead",
    "Rate",
    "Reads",
    "Reject",
    "Score",
    "Stamped",
    "Strategy",
    "Timed",
    "Trace",
    "Unknown",
    "Value",
    "Verdict",
]

Normalize = Literal["None", "MinMax", "Rank"]
"""How raw values become scores from 0 to 100; a strategy for which less is better gives its values negated."""


class Pass(Struct, frozen=True):
    """The node will do. Use `PASS` unless there is an `until`: the engine knows it by identity."""

    until: int | None = None


class Reject(Struct, frozen=True):
    """The node will not do. Make it once per rule and reason where there is no `until`."""

    reason: str
    """One of the filter's `reasons`."""
    resolvable: bool = False
    """Whether the rule would pass at once if pods were taken away from the node."""
    until: int | None = None


class Timed(Struct, frozen=True):
    """A score that holds for a time only."""

    value: float
    until: int


PASS: Final = Pass()
Verdict: TypeAlias = Pass | Reject | Unknown
Value: TypeAlias = float | Timed | Unknown


class Trace(Protocol):
    """Takes down what a rule compared, for explain. With a trace a rule looks at all there is, and decides the same."""

    def note(self, **values: object) -> None:
        """Values of the rule as a whole."""

    def item(self, name: str, /, **values: object) -> None:
        """Values of one of several things that the rule looks at, in the order in which it does."""


_Pod = TypeVar("_Pod", bound=PodFacts, contravariant=True)
_Node = TypeVar("_Node", bound=NodeFacts, contravariant=True)


class NodeFilter(Protocol[_Node]):
    """A filter for one class of pods."""

    def __call__(self, node: _Node, now: int, trace: Trace | None = None, /) -> Verdict:
        """Judge a node."""


class NodeScorer(Protocol[_Node]):
    """A score for one class of pods."""

    def __call__(self, node: _Node, now: int, trace: Trace | None = None, /) -> Value:
        """Rate a node."""


# Without slots: Python 3.11 cannot make a frozen dataclass with slots through an alias of its generic.
@dataclass(frozen=True, kw_only=True)
class CompiledFilter(Generic[_Pod, _Node]):
    """A compiled filter that needs facts of these types; one that needs less stands in for one that needs more."""

    reads: Reads
    for_pod: Callable[[_Pod], NodeFilter[_Node]]
    reasons: tuple[str, ...]
    """Every text it may reject with: short, and the same for every node."""
    resolvable: bool = False
    """Whether any of its rejections is."""


@dataclass(frozen=True, kw_only=True)
class CompiledScore(Generic[_Pod, _Node]):
    """A compiled score; types as in `CompiledFilter`."""

    reads: Reads
    for_pod: Callable[[_Pod], NodeScorer[_Node]]
    normalize: Normalize = "None"
    """What is done to the raw values where the policy does not say."""


Filter: TypeAlias = CompiledFilter[PodFacts, NodeFacts]
Decide: TypeAlias = NodeFilter[NodeFacts]
Score: TypeAlias = CompiledScore[PodFacts, NodeFacts]
Rate: TypeAlias = NodeScorer[NodeFacts]

_P = TypeVar("_P", bound=Params)
_R = TypeVar("_R")


class Strategy:
    """A built-in strategy: the field that policies name, the parameters under it, and what they compile to.

    `filter` and `score` take parameters of its own model; None where the strategy has no such use.
    """

    __slots__ = ("filter", "name", "params", "score")

    def __init__(
        self,
        *,
        name: str,
        params: type[_P],
        filter: Callable[[_P], Filter] | None = None,  # noqa: A002 - the word that policies use
        score: Callable[[_P], Score] | None = None,
    ) -> None:
        if not re.fullmatch("[a-z][A-Za-z0-9]*", name):
            raise ValueError(f"a strategy cannot be called {name!r}: fields of a policy are written like nodeReadiness")
        if filter is None and score is None:
            raise ValueError(f"the strategy {name} neither filters nor scores")
        self.name: Final = name
        self.params: Final[type[Params]] = params
        self.filter: Final = _of(params, filter)
        self.score: Final = _of(params, score)

    def __repr__(self) -> str:
        return f"Strategy({self.name!r})"


def _of(model: type[_P], make: Callable[[_P], _R] | None) -> Callable[[Params], _R] | None:
    """Forget which model a function wants, so that strategies are all of one type; asked with another, it raises."""
    if make is None:
        return None

    def compiled(params: Params) -> _R:
        if not isinstance(params, model):
            raise TypeError(f"parameters are of type {type(params).__name__}, not {model.__name__}")
        return make(params)

    return compiled
