"""Binds with grants, failure by failure: each row of the table in the decision page is a test."""

from collections import Counter

import pytest

from fairlead.webhook.binding.api_calls import Failed, Posted
from fairlead.webhook.binding.bind_steps import Bound, NotBound
from support.grants.bind_scene import NODE, OTHER, BindScene
from support.grants.replica import RESOURCE


def test_an_entry_stands_before_the_binding_is_posted() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    binding = scene.until("post_binding").args[0]
    assert scene.entries() == {"ns/a": "0"}
    pod = scene.pod("a")
    assert binding["metadata"] == {
        "namespace": "ns",
        "name": "a",
        "uid": pod.uid,
        "resourceVersion": pod.rv,
        "annotations": {
            "fairlead.dev/devices": '{"v":1,"gpu":[{"id":"0","example.org/gpu-mem":6}]}',
            "fairlead.dev/devices.gpu": "0",
        },
    }
    assert binding["target"]["name"] == NODE
    scene.finish()
    assert call.result == Bound(scene.server.ledgers[NODE].entries[pod.uid])
    assert scene.seen == Counter(read_ledger=1, list_pods=1, create_ledger=1, patch_ledger=1, post_binding=1)


def test_a_grant_with_a_ledger_that_is_known_costs_one_write() -> None:
    scene = BindScene()
    scene.bind(scene.a, "a")
    scene.finish()
    scene.seen.clear()
    scene.server.change_pod("ns/a", ended=True)
    scene.a.views.advance_pods(9)
    scene.bind(scene.a, "b")
    scene.finish()
    assert scene.seen == Counter(patch_ledger=1, post_binding=1)


def test_binds_that_wait_for_one_node_share_a_write() -> None:
    scene = BindScene(20, {f"ns/{one}": 10 for one in range(20)})
    calls = [scene.bind(scene.a, "0")]
    first = scene.until("patch_ledger")
    calls += [scene.bind(scene.a, str(one)) for one in range(1, 20)]
    scene.serve(first)
    scene.finish()
    assert [type(one.result) for one in calls] == [Bound] * 20
    assert scene.seen["patch_ledger"] == 2


def test_a_replica_that_stops_before_the_binding_holds_the_device() -> None:
    scene = BindScene()
    stopped = scene.bind(scene.a, "a")
    late = scene.until("post_binding", scene.a)
    refused = scene.bind(scene.b, "b")
    while scene.sent != [late]:
        scene.serve(next(one for one in scene.sent if one is not late))
    assert refused.result == NotBound("no device free")
    scene.serve(late)
    assert isinstance(stopped.result, Bound)


@pytest.mark.parametrize("patched", [True, False], ids=["scheduler patched the pod", "pod untouched"])
def test_a_binding_that_was_given_up_and_arrives_late(patched: bool) -> None:
    scene = BindScene()
    given_up = scene.bind(scene.a, "a")
    late = scene.until("post_binding")
    late.give_up()
    assert given_up.result == NotBound("timed out", may_stand=True)
    assert scene.entries() == {"ns/a": "0"}, "the entry stays"
    if patched:
        scene.server.change_pod("ns/a")
        scene.a.views.advance_pods(9)
    other = scene.bind(scene.a, "b")
    while scene.sent != [late]:
        scene.serve(next(one for one in scene.sent if one is not late))
    assert isinstance(other.result, Bound) == patched, "room is free as soon as the late Binding can only be refused"
    scene.serve(late)
    assert isinstance(late.outcome, Posted) != patched


def test_a_lost_reply_to_the_write_is_read_back() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    write = scene.until("patch_ledger")
    write.carry_out(scene.server)
    write.give_up()
    scene.sent.remove(write)
    scene.finish()
    assert isinstance(call.result, Bound)
    assert (scene.seen["patch_ledger"], len(scene.entries())) == (0, 1)


def test_a_write_that_arrives_after_the_next_one_is_refused() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    late = scene.until("patch_ledger")
    late.give_up()
    scene.sent.remove(late)
    scene.finish()
    assert isinstance(call.result, Bound)
    late.carry_out(scene.server)
    assert not isinstance(late.outcome, type(scene.server.ledgers[NODE]))


def test_two_replicas_and_one_pod_share_the_grant() -> None:
    scene = BindScene(2)
    calls = [scene.bind(one, "a") for one in (scene.a, scene.b)]
    scene.until("post_binding", scene.a)
    scene.until("post_binding", scene.b)
    posted = [one.args[0]["metadata"]["annotations"] for one in scene.sent]
    assert posted[0] == posted[1]
    scene.finish()
    assert [type(one.result) for one in calls] == [Bound, Bound]
    assert len(scene.entries()) == 1


def test_one_pod_and_two_nodes() -> None:
    scene = BindScene()
    here, there = scene.bind(scene.a, "a"), scene.bind(scene.b, "a", OTHER)
    scene.until("post_binding", scene.a)
    scene.until("post_binding", scene.b)
    scene.finish()
    assert isinstance(here.result, Bound)
    assert there.result == NotBound(f"the pod is already bound to node {NODE}")
    assert scene.entries(OTHER) == {"ns/a": "0"}
    scene.b.views.advance_pods(9)
    next_one = scene.bind(scene.b, "b", OTHER)
    scene.finish()
    assert isinstance(next_one.result, Bound)
    assert scene.entries(OTHER) == {"ns/b": "0"}, "the other entry is over"


def test_a_pod_that_changed_is_read_and_tried_again_three_times() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    for _ in range(4):
        binding = scene.until("post_binding")
        scene.server.change_pod("ns/a")
        scene.serve(binding)
    scene.finish()
    assert call.result == NotBound("the pod was changed again and again", may_stand=True)
    assert scene.seen["post_binding"] == 4


def test_a_pod_that_changed_once_is_bound_at_its_new_version() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    binding = scene.until("post_binding")
    scene.server.change_pod("ns/a")
    scene.serve(binding)
    scene.finish()
    assert isinstance(call.result, Bound)
    assert scene.entries() == {"ns/a": "0"}


def test_a_pod_that_could_not_be_read_is_read_for_the_next_request() -> None:
    scene = BindScene()
    scene.bind(scene.a, "a")
    scene.finish()
    scene.server.delete_pod("ns/a")
    fresh = scene.replica("C")
    refused = scene.bind(fresh, "b")
    read = scene.until("read_pod")
    fresh.loop.fire(fresh.loop.timers[0])
    fresh.loop.run_ready()
    read.give_up()
    scene.sent.remove(read)
    assert refused.result == NotBound("no time was left to write the ledger", may_stand=True)
    call = scene.bind(fresh, "b")
    scene.finish()
    assert isinstance(call.result, Bound)


def test_a_pod_of_the_same_name_is_not_the_pod() -> None:
    scene = BindScene()
    old = scene.pod("a")
    scene.server.delete_pod("ns/a")
    scene.server.create_pod("ns/a", {RESOURCE: 6})
    call = scene.replica("C").start_bind(old, NODE)
    scene.finish()
    assert call.result == NotBound("another pod has that name now")
    assert scene.server.ledgers == {}


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"node": NODE}, Bound(None)),
        ({"node": OTHER}, NotBound(f"the pod is already bound to node {OTHER}")),
        ({"ended": True}, NotBound("the pod has ended")),
    ],
)
def test_a_pod_that_needs_no_binding_gets_none(fields: dict[str, object], result: object) -> None:
    scene = BindScene()
    scene.server.gone_nodes.add(NODE)
    scene.server.change_pod("ns/a", **fields)
    scene.a.views.advance_pods(9)
    assert scene.bind(scene.a, "a").result == result
    assert scene.sent == []


@pytest.mark.parametrize("verb", ["read_ledger", "list_pods", "create_ledger", "patch_ledger", "post_binding"])
def test_what_the_api_server_refuses_is_the_error(verb: str) -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    request = scene.until(verb)
    scene.sent.remove(request)
    request.answer(Failed("forbidden"))
    assert call.result == NotBound("forbidden", may_stand=True)
    assert scene.sent == []


def test_a_pod_that_is_gone_at_the_binding() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    scene.until("post_binding")
    scene.server.delete_pod("ns/a")
    scene.finish()
    assert call.result == NotBound("the pod no longer exists")


def test_no_binding_is_posted_for_a_caller_that_hung_up() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    scene.until("patch_ledger")
    call.has_hung_up = True
    scene.finish()
    assert call.result == NotBound("the caller has hung up", may_stand=True)
    assert (scene.seen["post_binding"], scene.entries()) == (0, {"ns/a": "0"})


def test_a_call_that_is_cancelled_takes_nobody_with_it() -> None:
    scene = BindScene(2)
    cancelled, other = scene.bind(scene.a, "a"), scene.bind(scene.a, "b")
    scene.until("read_ledger")
    cancelled.task.cancel()
    scene.a.loop.run_ready()
    scene.finish()
    assert isinstance(other.result, Bound)
    assert scene.entries() == {"ns/b": "0"}
