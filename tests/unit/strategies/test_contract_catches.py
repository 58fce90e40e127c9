"""The contract finds what it is there to find: each of these strategies breaks one promise."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, settings

from fairlead.api.params import Params
from fairlead.strategies.contract import (
    PASS,
    ComparedNodes,
    DemandsRead,
    Filter,
    Pass,
    PodsRead,
    Reads,
    Reject,
    Score,
    SystemRead,
    Timed,
    Trace,
    Unknown,
    Use,
)
from fairlead.strategies.reads import LABELS
from support.strategies.contract import keeps_contract
from support.strategies.generated import NOW, Scene, scenes


class Nothing(Params):
    """Parameters that there are not, but for a word that facts are made of."""

    word: str = "gpu"
    """A label."""


_NO = Reject("no")
_GPU = frozenset({(*LABELS, "gpu")})
_PODS = frozenset({PodsRead()})


def filters(one: Callable[..., Any], *, resolvable: bool = False, **reads: Any) -> Use[Filter]:
    def compiled(_: Nothing) -> Filter:
        return Filter(reads=Reads(**reads), for_pod=lambda _pod: one, reasons=("no",), resolvable=resolvable)

    return Use(Nothing, compiled)


def scores(one: Callable[..., Any], **reads: Any) -> Use[Score]:
    return Use(Nothing, lambda _: Score(reads=Reads(**reads), for_pod=lambda _pod: one))


def compares(over: Callable[..., Any], **reads: Any) -> Use[Score]:
    return Use(Nothing, lambda _: Score(reads=Reads(**reads), over=over, scale="word"))


def _by_system(_pod: Any, nodes: ComparedNodes[Any], _now: int, _trace: Trace | None = None) -> list[float]:
    mean = nodes.system(_SYSTEM).sums.figures.mean[0]
    return [100.0 * min(mean, 1.0)] * len(nodes)


def _by_demands(_pod: Any, nodes: ComparedNodes[Any], _now: int, _trace: Trace | None = None) -> list[float]:
    return [min(100.0, nodes.demands(_DEMANDS).mean[0])] * len(nodes)


_SYSTEM, _DEMANDS = SystemRead(("cpu",)), DemandsRead(("cpu",), 10, (0.0,))


def some_scenes() -> list[Scene]:
    """Scenes to be looked at one after the other: what is broken is known and need not be made small."""
    made: list[Scene] = []

    @settings(max_examples=500, derandomize=True, database=None, phases=[Phase.generate])
    @given(scenes(Nothing()))
    def collect(scene: Scene) -> None:
        made.append(scene)

    collect()
    return made


def holds(use: Use[Any], scenes: list[Scene]) -> None:
    for scene in scenes:
        keeps_contract(use, Nothing(), scene)


@pytest.fixture(scope="module", name="seen")
def seen_() -> list[Scene]:
    return some_scenes()


def _has_gpu(node: Any, _now: int, trace: Trace | None = None) -> Any:
    found = node.labels.get("gpu")
    if trace is not None:
        trace.note(gpu=found)
    return PASS if found is not None else _NO


_GOOD = {
    "a filter on a label": filters(_has_gpu, node=_GPU),
    "a filter on all labels": filters(lambda node, _now, _trace=None: PASS if len(node.labels) else _NO,
                                      node=frozenset({LABELS})),
    "a filter by the clock": filters(
        lambda _node, now, _trace=None: Reject("no", until=NOW) if now < NOW else PASS, now=True),
    "a filter on how many pods there are": filters(
        lambda node, _now, _trace=None: PASS if len(node.pods) < 3 else Reject("no", resolvable=True),
        resolvable=True, pods=_PODS),
    "a score by the clock": scores(
        lambda _node, now, _trace=None: Timed(1.0, NOW) if now < NOW else 2.0, now=True),
    "a score by a system": compares(_by_system, system=frozenset({_SYSTEM})),
    "a score by learned requests": compares(_by_demands, demands=frozenset({_DEMANDS})),
    "a score that cannot decide": scores(lambda _node, _now, _trace=None: Unknown("all", "is lost")),
}  # fmt: skip

_counter = itertools.count()

_BROKEN = {
    "it reads a label that is not declared": (filters(_has_gpu), "gpu is not declared"),
    "it walks all labels where one is declared": (
        filters(lambda node, _now, _trace=None: PASS if len(node.labels) else _NO, node=_GPU),
        "labels is not declared"),
    "it reads pods that are not declared": (
        filters(lambda node, _now, _trace=None: PASS if node.pods else _NO), "pods is not declared"),
    "it reads pods of another namespace than declared": (
        filters(lambda node, _now, _trace=None: PASS if all(pod.ready for pod in node.pods) else _NO,
                pods=frozenset({PodsRead("gpu")})), "is not declared"),
    "it reads data that are not declared": (
        scores(lambda node, _now, _trace=None: node.data("gpu")), "data gpu is not declared"),
    "it reads the pod and does not declare it": (
        Use(Nothing, lambda _: Filter(
            reads=Reads(), reasons=("no",),
            for_pod=lambda pod: lambda _node, _now, _trace=None: PASS if pod.labels.get("gpu") else _NO)),
        "gpu is not declared"),
    "it remembers": (
        filters(lambda _node, _now, _trace=None: PASS if next(_counter) % 3 else _NO), "another answer"),
    "it decides otherwise under a trace": (
        filters(lambda _node, _now, trace=None: PASS if trace is None else _NO), "with a trace"),
    "its trace is silent": (
        filters(lambda node, _now, _trace=None: PASS if node.labels.get("gpu") else _NO, node=_GPU),
        "the trace does not show"),
    "its trace is silent about placements": (
        filters(lambda node, _now, _trace=None: PASS if node.placed(0) else _NO, placements=_PODS),
        "the trace does not show"),
    "it reads the clock and does not declare it": (
        filters(lambda _node, now, _trace=None: Reject("no", until=NOW) if now < NOW else PASS), "until"),
    "it does not say until when": (
        filters(lambda _node, now, _trace=None: _NO if now < NOW else PASS, now=True), "nothing but time changed"),
    "its until is too late": (
        filters(lambda _node, now, _trace=None: Reject("no", until=NOW + 5) if now < NOW else PASS, now=True),
        "nothing but time changed"),
    "its until is past": (filters(lambda _node, _now, _trace=None: Pass(until=NOW), now=True), "and now is"),
    "its reason is not among its reasons": (
        filters(lambda _node, _now, _trace=None: Reject("why not")), "not among its reasons"),
    "it is resolvable and says it is not": (
        filters(lambda _node, _now, _trace=None: Reject("no", resolvable=True)), "never resolvable"),
    "it is resolvable and reads no pods": (
        filters(lambda _node, _now, _trace=None: PASS, resolvable=True), "no eviction"),
    "it is resolvable and wants pods": (
        filters(lambda node, _now, _trace=None: PASS if len(node.pods) else _NO, resolvable=True, pods=_PODS),
        "fewer pods"),
    "its score is not a number": (scores(lambda _node, _now, _trace=None: float("nan")), "not finite"),
    "it reads a system that is not declared": (compares(_by_system), "is not declared"),
    "it reads another system than declared": (
        compares(_by_system, system=frozenset({SystemRead(("memory",))})), "is not declared"),
    "it reads learned requests that are not declared": (compares(_by_demands), "is not declared"),
    "its score depends on the order": (
        compares(lambda _pod, nodes, _now, _trace=None: [float(at) for at, _ in enumerate(nodes)]), "other scores"),
    "its score is a verdict": (scores(lambda _node, _now, _trace=None: PASS), "a score answered"),
    "its verdict is a score": (filters(lambda _node, _now, _trace=None: 1.0), "a filter answered"),
}  # fmt: skip


@pytest.mark.parametrize("use", _GOOD.values(), ids=_GOOD)
def test_what_keeps_the_contract_passes(use: Use[Any], seen: list[Scene]) -> None:
    holds(use, seen)


@pytest.mark.parametrize(("use", "want"), _BROKEN.values(), ids=_BROKEN)
def test_what_breaks_the_contract_is_found(use: Use[Any], want: str, seen: list[Scene]) -> None:
    with pytest.raises(AssertionError, match=want):
        holds(use, seen)


def test_what_raises_is_found(seen: list[Scene]) -> None:
    with pytest.raises(KeyError):
        holds(filters(lambda node, _now, _trace=None: PASS if node.labels["gpu"] else _NO, node=_GPU), seen)
