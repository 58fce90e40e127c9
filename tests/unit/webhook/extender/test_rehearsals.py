"""Rehearsals: prioritize is answered ahead, in the same way as when it is called, or not at all."""

import asyncio
import gc
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fairlead.pki.identities import NO_POD
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.strategies.reads import NodeChange
from fairlead.webhook.extender.call import IncomingCall
from fairlead.webhook.extender.rehearsals import Rehearsal, Rehearsals, expected_after, rehearse
from support.faults import virtual
from support.policy import NOW, SECOND, Clock, node, ns, policy
from support.webhook import Asking, at, body

NODES = [
    node(name, cpu=cpu, labels={"pool": pool})
    for name, cpu, pool in (("a", 10.0, "x"), ("b", 20.0, "x"), ("c", 90.0, "y"))
]
ALL = ["c", "a", "b", "unknown"]
CPU = {"s": "allocatable['cpu']"}
RATES: Mapping[str, dict[str, Any]] = {
    "amounts": {"scores": CPU},
    "no filter": {"scores": CPU, "filters": {}},
    "an undecided entry": {"scores": CPU, "failurePolicy": "Ignore"},
    "what the pod asks for": {"scores": {"s": "allocatable['cpu'] * request['cpu']"}},
    "a namespace": {"scores": CPU, "match": {"namespaceSelector": {"matchLabels": {"team": "a"}}}},
    "no policy of the pod": {"scores": CPU, "match": {"podSelector": {"matchLabels": {"team": "a"}}}},
    "time with a known end": {"scores": {"s": "now < timestamp('2027-01-15T08:00:30Z') ? 0.0 : allocatable['cpu']"}},
}


def asking(*, filters: Mapping[str, Any] | None = None, **spec: Any) -> Asking:
    rules = {"pool": "node.metadata.labels['pool'] == 'x'"} if filters is None else filters
    return Asking([policy(**{"filters": rules, **spec})], NODES, namespaces={"ml": ns(labels={"team": "a"})})


def rehearsed(world: Asking, asked: bytes | None = None) -> tuple[Rehearsal | None, bytes]:
    """Return what is rehearsed after a filter, and what the scheduler sends then."""
    asked = body(ALL) if asked is None else asked
    reply = world.filter(asked)
    sent = {**json.loads(asked), "NodeNames": json.loads(reply.body)["NodeNames"]}
    written = json.dumps(sent, separators=(",", ":"), ensure_ascii=False).encode()
    expected = expected_after(IncomingCall("all", world.caller, asked, 0), reply)
    return None if expected is None else rehearse(expected, world.serving, at()), written


@pytest.mark.parametrize("case", RATES)
def test_the_reply_is_the_one_of_the_call(case: str) -> None:
    world = asking(**RATES[case])
    rehearsal, sent = rehearsed(world)
    assert rehearsal is not None
    reply, result = rehearsal.answer(sent, world.serving, world.caller, at())
    assert result == "hit"
    expected = asking(**RATES[case])
    assert reply == expected.prioritize(sent)
    assert reply.considered == rehearsal.reply.considered


def _other_node(world: Asking) -> None:
    world.nodes.put(node("a", cpu=80.0, labels={"pool": "x"}), NodeChange(allocatable=frozenset({"cpu"})))


def _gone(world: Asking) -> None:
    world.nodes.remove("a")


def _other_namespace(world: Asking) -> None:
    world.mirror.namespaces = {"ml": ns(labels={"team": "b"})}


def _no_namespace(world: Asking) -> None:
    world.mirror.namespaces = {}


def _other_policies(world: Asking) -> None:
    world.serve([policy(scores={"s": "-allocatable['cpu']"})])


def _open_circuit(world: Asking) -> None:
    for _ in range(2):
        world.serving.record_timeout("p", "scores", json_pod(world), 0)


def json_pod(world: Asking) -> Any:
    considered = world.prioritize(body(ALL)).considered
    assert considered is not None
    return considered.pod.pod  # type: ignore[attr-defined]


def _granted(world: Asking) -> None:
    world.mirror.granted_uid = lambda *_: "u-x"  # type: ignore[method-assign]


CHANGES: Mapping[str, tuple[Callable[[Asking], None], str]] = {
    "a node": (_other_node, "refreshed"),
    "a node is gone": (_gone, "refreshed"),
    "the labels of the namespace": (_other_namespace, "miss"),
    "the namespace is gone": (_no_namespace, "miss"),
    "the policies": (_other_policies, "miss"),
    "an open circuit": (_open_circuit, "miss"),
    "an entry in a ledger": (_granted, "miss"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_after_a_change_the_reply_is_that_of_the_call(case: str) -> None:
    change, result = CHANGES[case]
    world = asking(scores=CPU, match={"namespaceSelector": {"matchLabels": {"team": "a"}}})
    rehearsal, sent = rehearsed(world)
    assert rehearsal is not None
    change(world)
    reply, was = rehearsal.answer(sent, world.serving, world.caller, at())
    assert was == result
    assert reply == world.prioritize(sent)
    if case != "an entry in a ledger":
        assert reply.body != rehearsal.reply.body


def test_a_score_that_has_expired_is_computed_again() -> None:
    world = asking(**RATES["time with a known end"])
    rehearsal, sent = rehearsed(world)
    assert rehearsal is not None
    assert rehearsal.reply.body == b"[]"
    before, after = rehearsal.until - 1, rehearsal.until
    assert [rehearsal.answer(sent, world.serving, world.caller, at(now))[1] for now in (before, after)] == [
        "hit",
        "refreshed",
    ]
    reply, _ = rehearsal.answer(sent, world.serving, world.caller, at(after))
    assert reply.body == world.prioritize(sent, at(after)).body != b"[]"


def test_other_calls_are_answered_as_without_a_rehearsal() -> None:
    world = asking(scores=CPU)
    rehearsal, sent = rehearsed(world)
    assert rehearsal is not None
    other = replace(world.caller, schedulers=frozenset({"other"}))
    for asked, caller in (
        (sent.replace(b"u-x", b"u-y"), world.caller),
        (body(["b", "a"]), world.caller),
        (sent, other),
    ):
        reply, result = rehearsal.answer(asked, world.serving, caller, at())
        assert result == "miss"
        assert reply == (asking(scores=CPU).prioritize(asked) if caller is world.caller else world_of(other, asked))


def world_of(caller: Any, asked: bytes) -> Any:
    world = asking(scores=CPU)
    world.caller = caller
    return world.prioritize(asked)


NOT_EXPECTED: Mapping[str, tuple[dict[str, Any], bytes]] = {
    "one node is left": ({}, body(["a", "c"])),
    "no node is left": ({}, body(["c"])),
    "nodes in full": ({}, body(nodes=[{"metadata": {"name": one, "labels": {"pool": "x"}}} for one in "ab"])),
    "a simulation": ({}, body(ALL, pod={"name": NO_POD})),
    "another form": ({}, body(ALL).replace(b',"Nodes":null', b', "Nodes": null')),
    "another filter comes first": ({"ignore_entry": True}, body(ALL)),
}


@pytest.mark.parametrize("case", NOT_EXPECTED)
def test_no_call_is_expected(case: str) -> None:
    caller, asked = NOT_EXPECTED[case]
    world = asking(scores=CPU)
    world.caller = replace(world.caller, **caller)
    assert expected_after(IncomingCall("all", world.caller, asked, 0), world.filter(asked)) is None


def test_the_second_entry_is_the_last_filter() -> None:
    world = asking(scores=CPU, failurePolicy="Ignore")
    world.caller = replace(world.caller, ignore_entry=True)
    reply = world.filter(body(ALL), "Ignore")
    expected = expected_after(IncomingCall("all", world.caller, body(ALL), 0), reply)
    assert expected is not None
    assert expected.body == body(["a", "b"])


NOT_REHEARSED: Mapping[str, dict[str, Any]] = {
    "a score of the moment": {"scores": {"s": "double(size(string(now)))"}},
    "a class of its own": {"scores": {"s": "pod.metadata.name == node.metadata.name ? 1.0 : 2.0"}},
    "a condition that reads the time": {"scores": CPU, "match": {"conditions": {"c": "now.getHours() < 25"}}},
    "a condition that raises": {"scores": CPU, "match": {"conditions": {"c": "pod.metadata.labels['x'] == 'y'"}}},
}


@pytest.mark.parametrize("case", NOT_REHEARSED)
def test_what_holds_for_a_moment_is_not_rehearsed(case: str) -> None:
    rehearsal, _ = rehearsed(asking(filters={}, **NOT_REHEARSED[case]))
    assert rehearsal is None


def test_a_rehearsal_that_takes_too_long_blames_no_policy() -> None:
    world = Asking([policy(scores=CPU)], [node(f"n{number}", cpu=1.0) for number in range(200)])
    asked = body([f"n{number}" for number in range(200)])
    expected = expected_after(IncomingCall("all", world.caller, asked, 0), world.filter(asked))
    assert expected is not None
    for _ in range(3):
        world.nodes.put(node("more", cpu=2.0))
        with pytest.raises(TooSlowError):
            rehearse(expected, world.serving, at(NOW, Clock(SECOND), SECOND))
    assert world.pace.open_circuits(0) == []


def test_a_call_that_is_summed_up_again_too_late_blames_the_policy() -> None:
    names = [f"n{number}" for number in range(2000)]
    world = Asking([policy(scores=CPU)], [node(name, cpu=1.0) for name in names])
    rehearsal, sent = rehearsed(world, body(names))
    assert rehearsal is not None
    for name in names:
        world.nodes.put(node(name, cpu=2.0))
    reply, result = rehearsal.answer(sent, world.serving, world.caller, at(NOW, Clock(SECOND), SECOND))
    assert (result, reply.status, reply.outcome.too_slow) == ("refreshed", 503, "p")


def test_one_that_no_call_came_for_is_freed_at_once_with_the_state_that_it_has() -> None:
    world = asking(scores=CPU)
    call = IncomingCall("all", world.caller, body(ALL), 0)
    results: list[str] = []

    def there() -> int:
        return sum(isinstance(one, Rehearsal) for one in gc.get_objects())

    async def pass_by() -> None:
        loop = asyncio.get_running_loop()

        def soon(one: Callable[[], None]) -> None:
            loop.call_soon(one)

        rehearsals = Rehearsals(lambda: world.serving, lambda: NOW, Clock(), results.append, soon, loop.call_later)
        rehearsals.plan(call, world.filter(call.body), world.serving)
        await asyncio.sleep(0.5)
        assert there() == 1
        await asyncio.sleep(1)

    gc.collect()
    gc.disable()
    try:
        virtual.run(pass_by())
        assert there() == 0
    finally:
        gc.enable()
    assert results == ["unused"]
