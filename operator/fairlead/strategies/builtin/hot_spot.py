"""Strategy `hotSpot`: leaves nodes alone that just got pods, before any measurement shows the load of these pods.

A pod counts in a window from its placement until the length of the window has passed. A placement in the future counts
as one now, so that it counts a little longer. Placements only ever leave windows with time: a node that passes does so
until a pod is placed there, and a node that is rejected until enough pods have left.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field

from fairlead.api.params import Listed, Params
from fairlead.api.selectors import LabelSelector, compile_selector
from fairlead.api.values import Duration, Name, QualifiedKey, within
from fairlead.strategies.builtin.comparison import at_least, at_most
from fairlead.strategies.contract import (
    PASS,
    Decide,
    Filter,
    NodeFacts,
    NodeScorer,
    PodFacts,
    PodOnNode,
    PodsRead,
    Reads,
    Reject,
    Score,
    Strategy,
    Timed,
    Trace,
    Unknown,
    Use,
    Value,
    Verdict,
)
from fairlead.time_units import SECOND_NS

TOO_MANY = "too many pods placed recently"
_Within = Annotated[Duration, within("5s", "24h")]


class LimitedWindow(Params):
    """A limit on the pods that are placed on a node within a period."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    within: _Within
    """Period in which the pods were placed, such as 30s."""
    limit: Annotated[int, Field(ge=1, le=1000)]
    """Number of pods at which the node is rejected, or with resource the percentage of the node's allocatable amount
    that they request. Pods placed in the last moments may be missing, so a burst can exceed it."""


class ScoredWindow(Params):
    """Points that a node loses for pods that are placed on it within a period."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    within: _Within
    """Period in which the pods were placed, such as 5m."""
    count: Annotated[float, Field(ge=0.01, le=1000)]
    """Number of pods that cost the points, or with resource the percentage of the node's allocatable amount that they
    request. Fewer pods cost a part of the points."""
    points: Annotated[float, Field(ge=0, le=100)] = 10.0
    """Points that they cost. Defaults to 10."""


class CountedPods(Params):
    """The pods that count, and how. Pods of DaemonSets and of the node itself never count."""

    selector: LabelSelector | None = None
    """Selector of the pods that count. If not set, all pods count."""
    namespaces: Annotated[Listed[Name], Field(min_length=1, max_length=16)] | None = None
    """Namespaces of the pods that count. If not set, all namespaces."""
    resource: QualifiedKey | None = None
    """Resource whose requests count instead of the number of pods, such as cpu, as a percentage of the node's
    allocatable amount. If not set, each pod counts as one."""


class HotSpotFilter(CountedPods):
    """Reject nodes on which many pods were placed recently."""

    windows: Annotated[Listed[LimitedWindow], Field(min_length=1, max_length=4)]
    """Limits, each for a period. A node that reached one is rejected until enough of its pods were placed longer ago
    than that."""


class HotSpotScore(CountedPods):
    """Prefer nodes on which few pods were placed recently: a node scores 100 minus the points that its pods cost."""

    windows: Annotated[Listed[ScoredWindow], Field(min_length=1, max_length=4)] = (
        ScoredWindow(within=Duration("5m"), count=5.0),
        ScoredWindow(within=Duration("1m"), count=2.0),
    )
    """Points, each for a period; they add up. Defaults to 10 points for 5 pods within 5m and 10 for 2 within 1m."""


class _Counted(NamedTuple):
    at: int
    amount: float


# Returns the pods that count, newest first, or why they cannot be counted.
_Count = Callable[[NodeFacts, int, Trace | None], Sequence[_Counted] | Unknown]


def _counting(params: CountedPods) -> _Count:
    """Return the function that counts the pods placed after a moment: each as one, or as a percentage."""
    resource, covers = params.resource, _covering(params)
    missing = Unknown(f"allocatable {resource}", "is missing or 0")

    def count(node: NodeFacts, after: int, trace: Trace | None) -> Sequence[_Counted] | Unknown:
        placed = node.placed(after)
        found = [one for one in placed if covers(one.pod)]
        allocatable = None if resource is None else node.allocatable.get(resource)
        if trace is not None:
            trace.note(placed=len(placed), counted=len(found), allocatable=allocatable)
        if resource is None:
            return [_Counted(one.at, 1.0) for one in found]
        if allocatable is None or at_most(allocatable, 0.0):
            return missing
        amounts = [(one.at, one.request.get(resource, 0.0)) for one in found]
        return [_Counted(at, 100.0 * (amount / allocatable)) for at, amount in amounts if amount > 0.0]

    return count


def _covering(params: CountedPods) -> Callable[[PodOnNode], bool]:
    matches = None if params.selector is None else compile_selector(params.selector)
    namespaces = None if params.namespaces is None else frozenset(params.namespaces)

    def covers(pod: PodOnNode) -> bool:
        return (namespaces is None or pod.namespace in namespaces) and (matches is None or matches(pod.labels))

    return covers


def _reads(params: CountedPods) -> Reads:
    spaces = (None,) if params.namespaces is None else params.namespaces
    return Reads(
        placements=frozenset(PodsRead(namespace) for namespace in spaces),
        allocatable=frozenset() if params.resource is None else frozenset({params.resource}),
        now=True,
    )


def _filter(params: HotSpotFilter) -> Filter:
    count = _counting(params)
    windows = [(one.within, one.within.seconds * SECOND_NS, one.limit) for one in params.windows]
    longest = max(length for _, length, _ in windows)

    def one(node: NodeFacts, now: int, trace: Trace | None = None) -> Verdict:
        counted = count(node, now - longest, trace)
        if isinstance(counted, Unknown):
            return counted
        ends = list[int]()
        for name, length, limit in windows:
            placed = _since(counted, now - length)
            full = _newest_too_many(placed, limit)
            if full is not None:
                ends.append(full + length)
            if trace is not None:
                trace.item(name, placed=_sum(placed), limit=limit)
        if not ends:
            return PASS
        if trace is not None:
            trace.note(now=now, until=max(ends))
        return Reject(TOO_MANY, until=max(ends))

    def for_pod(_pod: PodFacts) -> Decide:
        return one

    return Filter(reads=_reads(params), for_pod=for_pod, reasons=(TOO_MANY,))


def _score(params: HotSpotScore) -> Score:
    count = _counting(params)
    windows = [(one.within, one.within.seconds * SECOND_NS, one.count, one.points) for one in params.windows]
    longest = max(length for _, length, _, _ in windows)

    def one(node: NodeFacts, now: int, trace: Trace | None = None) -> Value:
        counted = count(node, now - longest, trace)
        if isinstance(counted, Unknown):
            return counted
        ends, total = list[int](), 0.0
        for name, length, per, points in windows:
            placed = _since(counted, now - length)
            cost = points * (_sum(placed) / per)
            total += cost
            if placed:
                ends.append(placed[-1].at + length)
            if trace is not None:
                trace.item(name, placed=_sum(placed), count=per, points=points, cost=cost)
        score = max(100.0 - total, 0.0)
        if not ends:
            return score
        if trace is not None:
            trace.note(now=now, until=min(ends))
        return Timed(score, until=min(ends))

    def for_pod(_pod: PodFacts) -> NodeScorer[NodeFacts]:
        return one

    return Score(reads=_reads(params), for_pod=for_pod)


def _since(counted: Sequence[_Counted], after: int) -> Sequence[_Counted]:
    return [one for one in counted if one.at > after]


def _sum(counted: Sequence[_Counted]) -> float:
    return sum((one.amount for one in counted), 0.0)


def _newest_too_many(placed: Sequence[_Counted], limit: float) -> int | None:
    """Return when the pod was placed that has to leave, with all older ones, before a window is below its limit."""
    amount = 0.0
    for one in placed:
        amount += one.amount
        if at_least(amount, limit):
            return one.at
    return None


STRATEGY = Strategy(name="hotSpot", filter=Use(HotSpotFilter, _filter), score=Use(HotSpotScore, _score))
