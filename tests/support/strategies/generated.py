"""Facts made up by hypothesis: of the words of a rule's parameters, so that they often matter, and of junk."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from fairlead.api.params import Params
from fairlead.learned.pair import OutcomeSums
from fairlead.strategies.contract import (
    ANNOTATIONS,
    ControllerRef,
    GrantedDevice,
    LearnedOutcomes,
    NodeCondition,
    Nominated,
    PodGrant,
    Predicted,
    Reads,
    RequestingContainers,
    Unknown,
)
from support.strategies.facts import Node, OnNode, Pod

_JUNK = ("", "other", "True", "False", " ", "a,b", "ünï/cødé", "x" * 300)
_PHASES = ("Running", "Running", "Running", "Pending", "Succeeded", "Failed", "Unknown", "")
_SECOND = 1_000_000_000
_READS_NOTHING = Reads()
_T = TypeVar("_T", Pod, Node)
# Times lie close together, so that they are often equal and often a hold-off apart.
NOW = 1_800_000_000 * _SECOND
times = st.integers(-90, 90).map(lambda seconds: NOW + seconds * _SECOND) | st.sampled_from([0, -1, NOW * 4])
maybe_times = times | st.none()
# Tenths, of which sums are seldom what they should be, what a node may have too little of, and what nobody meant.
amounts = (
    st.integers(0, 200).map(lambda tenths: tenths / 10)
    | st.sampled_from([0.0, 0.0, 1e-9, 0.999, 1e18])
    | st.floats(0, 1e12)
)
measured = (
    st.integers(-20, 200).map(lambda tenths: tenths / 10)
    | st.floats(0, 1)
    | st.sampled_from([0.0, -0.0, -1e18, 1e18, 5e-324])
    | st.builds(Unknown, st.just("data x"), st.sampled_from(["is stale", "is missing"]))
)


_weights = st.floats(0, 20) | st.sampled_from([0.0, 1.0, 1e-3, 1e12])
_sums = st.builds(
    lambda weight, share, at: OutcomeSums(weight * share, weight, at),
    _weights,
    st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1),
    times.map(lambda at: max(0, at // _SECOND)),
)
_learned = (
    st.builds(LearnedOutcomes, st.sampled_from(["ml/train", "ml/serve"]), _sums)
    | st.just(Unknown("the pod", "has no type", expected=True))
    | st.just(Unknown("the learned state", "cannot be read"))
)


@dataclass(frozen=True)
class Scene:
    """All that a verdict may depend on, and what may change without it."""

    pod: Pod
    node: Node
    now: int
    later: int
    leaving: tuple[str, ...]


def words_of(params: object) -> set[str]:
    """Every string in parameters."""
    if isinstance(params, str):
        return {str(params)}
    if isinstance(params, Params):
        return {word for name in type(params).model_fields for word in words_of(getattr(params, name))}
    if isinstance(params, tuple):
        return {word for one in params for word in words_of(one)}
    if isinstance(params, dict):
        return {word for entry in params.items() for word in words_of(entry)}
    return set()


def scenes(params: Params, reads: Reads = _READS_NOTHING) -> st.SearchStrategy[Scene]:
    """Every second node has all the amounts and values that are read, so that a rule gets as far as deciding."""
    own = sorted(words_of(params)) or ["own"]  # parameters may have no words
    words = st.sampled_from(own) | st.sampled_from(_JUNK)
    maps = st.dictionaries(words, words | _lists_of(own), max_size=6)
    resources = st.sampled_from(["cpu", "memory"]) | words
    listed = st.dictionaries(resources, amounts, max_size=5)
    expected = st.dictionaries(resources, st.builds(Predicted, amounts, amounts, st.integers(0, 5)), max_size=3)
    pod = st.builds(
        Pod,
        namespace=words,
        name=words,
        uid=words,
        labels=maps,
        annotations=maps,
        request=listed,
        limit=listed,
        expected=expected,
    )
    on_node = st.builds(
        OnNode,
        namespace=words,
        name=words,
        labels=maps,
        controller=st.none()
        | st.builds(ControllerRef, st.sampled_from(["DaemonSet", "DaemonSet", "ReplicaSet"]), words),
        phase=st.sampled_from(_PHASES),
        ready=st.sampled_from([True, True, False]),
        ready_since=maybe_times,
        deleting=st.sampled_from([False, False, False, True]),
        uid=st.uuids().map(str),
        placed_at=times,
        request=listed,
        expected=expected,
    )
    node = st.builds(
        Node,
        name=words,
        labels=maps,
        annotations=maps,
        created=maybe_times,
        pods=st.lists(on_node, max_size=6),
        conditions=st.dictionaries(words, st.builds(NodeCondition, words, maybe_times), max_size=4),
        stamps=st.dictionaries(st.tuples(st.sampled_from(["labels", "annotations"]), words), times, max_size=6),
        values=st.dictionaries(words, measured, max_size=6),
        measured_at=st.dictionaries(words, times, max_size=6),
        allocatable=listed,
        capacity=listed,
        requested=listed,
        limits=listed,
        unlimited=st.dictionaries(resources, st.integers(0, 3), max_size=3),
    )
    read = st.fixed_dictionaries(
        {
            "values": _each(reads.data, measured),
            "measured_at": _each((name for name, _ in reads.unmeasured), times),
            **{
                what: _each(getattr(reads, what), amounts)
                for what in ("allocatable", "capacity", "requested", "limits")
            },
        }
    )
    if reads.learned:
        node = st.builds(replace, node, learned=_learned)
    if reads.devices:
        pod, node = _with_devices(pod, node, reads)
    asked = st.fixed_dictionaries({what: _each(getattr(reads, what), amounts) for what in ("request", "limit")})
    pod = st.builds(_with, pod, st.just({}) | asked)
    node = st.builds(_with, node, st.just({}) | read)
    return st.builds(_scene, pod, node, times, st.integers(0, 4000 * _SECOND), st.sets(st.integers(0, 5)))


def _with_devices(
    pod: st.SearchStrategy[Pod], node: st.SearchStrategy[Node], reads: Reads
) -> tuple[st.SearchStrategy[Pod], st.SearchStrategy[Node]]:
    """Some devices with little room, so that it is often short."""
    resources = sorted(reads.devices)
    small = st.integers(0, 12)
    few = st.fixed_dictionaries({name: small.map(float) for name in resources})
    ids = st.sampled_from(["0", "1", "2", "gone"])
    grant = st.builds(GrantedDevice, ids, st.fixed_dictionaries(dict.fromkeys(resources, small)))
    listed = st.lists(
        st.fixed_dictionaries(
            {"id": ids, "capacity": st.fixed_dictionaries(dict.fromkeys(resources, small)), "healthy": st.booleans()}
        ),
        max_size=4,
        unique_by=lambda one: str(one["id"]),
    ).map(json.dumps)
    texts = listed | listed | st.sampled_from(["", "[", "{}", "0", "0,1"])
    uids = [f"u{at}" for at in range(4)]
    requesting_containers = st.fixed_dictionaries(
        {name: st.builds(RequestingContainers, st.integers(0, 2), st.integers(0, 1)) for name in resources}
    )
    some_pod = st.builds(
        lambda pod, request, priority, nominated, asked: replace(
            pod, request={**pod.request, **request}, priority=priority, nominated=nominated, askers_of=asked
        ),
        pod,
        few,
        st.integers(0, 2),
        st.sampled_from(["", "n1"]),
        requesting_containers,
    )
    on_node = st.lists(
        st.builds(OnNode, uid=st.sampled_from(uids), request=few, deleting=st.booleans()),
        max_size=3,
        unique_by=lambda one: one.uid,
    )
    granted = st.lists(
        st.builds(PodGrant, st.sampled_from(uids), st.lists(grant, max_size=2).map(tuple) | st.none(), st.booleans()),
        max_size=4,
        unique_by=lambda one: one.uid,
    )
    annotations = [path[-1] for path in reads.node if path[:2] == ANNOTATIONS]
    numbers = {name: st.integers(0, 40 if name in resources else 4).map(float) for name in reads.capacity}
    some_node = st.builds(
        lambda node, texts, capacity, is_whole, allocatable, pods, granted, nominated: replace(
            node,
            name="n1",
            annotations={**node.annotations, **texts},
            capacity=capacity,
            allocatable=capacity if is_whole else allocatable,
            pods=pods,
            granted=granted,
            nominated=[Nominated(replace(one, uid=f"w{at}"), at) for at, one in enumerate(nominated)],
        ),
        node,
        st.fixed_dictionaries(dict.fromkeys(annotations, texts)),
        st.fixed_dictionaries(numbers),
        st.booleans(),
        st.fixed_dictionaries(numbers),
        on_node,
        granted,
        st.lists(some_pod, max_size=2),
    )
    return some_pod, _mostly(some_node, node)


def _mostly(often: st.SearchStrategy[_T], seldom: st.SearchStrategy[_T]) -> st.SearchStrategy[_T]:
    """Facts of the first kind, and sometimes of the second."""
    return st.integers(0, 9).flatmap(lambda tenth: often if tenth else seldom)


def _each(names: Iterable[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(sorted(names), values))


def _with(thing: _T, facts: dict[str, dict[str, Any]]) -> _T:
    changed: dict[str, Any] = {field: {**getattr(thing, field), **more} for field, more in facts.items()}
    return replace(thing, **changed)


def _lists_of(words: Sequence[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from([*words, "", " "]), max_size=3).map(" , ".join)


def _scene(pod: Pod, node: Node, now: int, after: int, leaving: set[int]) -> Scene:
    uids = tuple(one.uid for index, one in enumerate(node.pods) if index in leaving)
    return Scene(pod, node, now, now + after, uids)
