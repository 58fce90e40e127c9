"""Promises of every strategy, whatever it decides. Raises AssertionError where one does not keep them."""

import math
from typing import Any

from msgspec.structs import replace

from fairlead.api.params import Params
from fairlead.strategies.contract import (
    CompiledFilter,
    Filter,
    NodeFacts,
    Pass,
    PodFacts,
    Reads,
    Reject,
    Score,
    Timed,
    Unknown,
    Use,
    Value,
    Verdict,
)
from support.strategies.facts import Notes
from support.strategies.generated import Scene
from support.strategies.samples import SHARES
from support.strategies.systems import compared
from support.strategies.watched import WatchedNode, WatchedPod


def keeps_contract(use: Use[Any], params: Params, scene: Scene) -> None:
    """All of it, for one scene."""
    rule, again = use.compile(params, SHARES), use.compile(params, SHARES)
    answer = _ask(rule, scene.pod, scene.node, scene.now)
    _sound(rule, answer)
    assert answer == _ask(again, scene.pod, scene.node, scene.now), "same facts, another answer"
    assert rule.reads == again.reads, "same parameters, other reads"
    _declared(rule, scene, answer)
    _traced(rule, scene, answer)
    _timely(rule, scene, answer)
    _resolvable(rule, scene, answer)
    _over(rule, scene)
    assert answer == _ask(rule, scene.pod, scene.node, scene.now), "asked again, it gave another answer"


def _ask(rule: Filter | Score, pod: PodFacts, node: NodeFacts, now: int, trace: Notes | None = None) -> Verdict | Value:
    if not isinstance(rule, CompiledFilter) and rule.over is not None:
        fact = node.node if isinstance(node, WatchedNode) else node
        (found,) = rule.over(pod, compared([node], [fact], rule.reads), now, trace)
        return found
    return rule.for_pod(pod)(node, now, trace)


def _sound(rule: Filter | Score, answer: Verdict | Value) -> None:
    if isinstance(answer, Unknown):
        return
    if not isinstance(rule, CompiledFilter):
        assert not isinstance(answer, Pass | Reject), f"a score answered {answer}"
        value = answer.value if isinstance(answer, Timed) else answer
        assert math.isfinite(value), f"the score {value} is not finite"
        return
    assert isinstance(answer, Pass | Reject), f"a filter answered {answer!r}"
    if isinstance(answer, Reject):
        assert answer.reason in rule.reasons, f"{answer.reason!r} is not among its reasons"
        assert rule.resolvable or not answer.resolvable, "it says that it is never resolvable, but was"


def _declared(rule: Filter | Score, scene: Scene, answer: Verdict | Value) -> None:
    pod, node = WatchedPod(scene.pod, rule.reads), _watched(scene.node, rule)
    assert _ask(rule, pod, node, scene.now) == answer, "facts that are watched gave another answer"


def _traced(rule: Filter | Score, scene: Scene, answer: Verdict | Value) -> None:
    notes, pod, node = Notes(), WatchedPod(scene.pod, rule.reads), _watched(scene.node, rule)
    assert _ask(rule, pod, node, scene.now, notes) == answer, "with a trace it gave another answer"
    for value in node.seen:
        assert notes.mentions(value), f"the trace does not show {value!r}"


def _watched(node: NodeFacts, rule: Filter | Score) -> WatchedNode:
    """Watch a node. A score that compares nodes may name them in its trace."""
    is_compared = not isinstance(rule, CompiledFilter) and rule.over is not None
    return WatchedNode(node, rule.reads | Reads(node=frozenset({("metadata", "name")})) if is_compared else rule.reads)


def _timely(rule: Filter | Score, scene: Scene, answer: Verdict | Value) -> None:
    until = None if isinstance(answer, float | int) else answer.until
    assert until is None or (rule.reads.now and until > scene.now), f"until {until}, and now is {scene.now}"
    moments = [scene.later, scene.now + (until - scene.now) // 2, until - 1] if until is not None else [scene.later]
    for moment in moments:
        if until is None or scene.now <= moment < until:
            then = _ask(rule, scene.pod, scene.node, moment)
            assert _timeless(then) == _timeless(answer), f"{answer} became {then} though nothing but time changed"


def _timeless(answer: Verdict | Value) -> Pass | Reject | Unknown | float:
    if isinstance(answer, Timed):
        return answer.value
    return answer if isinstance(answer, float | int) else replace(answer, until=None)


def _resolvable(rule: Filter | Score, scene: Scene, answer: Verdict | Value) -> None:
    if not isinstance(rule, CompiledFilter) or not rule.resolvable:
        return
    assert rule.reads.of_pods, "no eviction can change what does not read pods"
    if isinstance(answer, Pass):
        then = _ask(rule, scene.pod, scene.node.without(*scene.leaving), scene.now)
        assert not isinstance(then, Reject), "it refused the node for having fewer pods"


def _over(rule: Filter | Score, scene: Scene) -> None:
    """A score that compares nodes rates each of them, whatever their order and whether its facts are watched."""
    if isinstance(rule, CompiledFilter) or rule.over is None:
        return
    nodes = [scene.node, scene.node.without(*scene.leaving), scene.node]
    found = [*rule.over(scene.pod, compared(nodes, nodes, rule.reads), scene.now)]
    assert len(found) == len(nodes), f"{len(found)} answers about {len(nodes)} nodes"
    for one in found:
        _sound(rule, one)
        assert isinstance(one, Unknown) or 0 <= _timeless(one) <= 100, f"the score {one} is not on a scale of 100"  # type: ignore[operator]
    assert found[0] == found[2], "equal nodes got other scores"
    turned = compared(nodes[::-1], nodes[::-1], rule.reads)
    assert [*rule.over(scene.pod, turned, scene.now)] == found[::-1], "in another order it gave other scores"
    watched = compared([_watched(node, rule) for node in nodes], nodes, rule.reads)
    assert [*rule.over(WatchedPod(scene.pod, rule.reads), watched, scene.now)] == found, "it reads what it does not say"
    assert not rule.over(scene.pod, compared([], [], rule.reads), scene.now), "it rates nodes that are not there"
