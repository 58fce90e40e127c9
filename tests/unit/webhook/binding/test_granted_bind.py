"""Binds with grants, failure by failure: each row of the table in the decision page is a test."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest

from fairlead.grants.entry import GrantedDevice, LedgerEntry, copies
from fairlead.grants.entry_state import PodState
from fairlead.webhook.binding.api_calls import Failed, Missing, Posted
from fairlead.webhook.binding.granted_bind import Bound, Budget, GrantedBind, NotBound, granted_binding
from fairlead.webhook.binding.poster import Poster
from support.grants.api_server import ApiServer
from support.grants.replica import RESOURCE, Call, PickedDevices, Replica, Sent

NODE, OTHER = "node-1", "node-2"


class Scene:
    """A cluster, replicas, and requests that are carried out one by one."""

    def __init__(self, devices: int = 1, pods: Mapping[str, int] | None = None, *, numbers: bool = True) -> None:
        capacity = {RESOURCE: {str(one): 10 for one in range(devices)}}
        self.server = ApiServer(dict.fromkeys((NODE, OTHER), capacity), numbers=numbers)
        for pod, amount in (pods or {"ns/a": 6, "ns/b": 6}).items():
            self.server.create_pod(pod, {RESOURCE: amount})
        self.sent: list[Sent] = []
        self.seen = Counter[str]()
        self.a, self.b = self.replica("A"), self.replica("B")

    def replica(self, name: str) -> Replica:
        return Replica(name, self.server, self.sent, len(self.server.pod_history) - 1, 0)

    def pod(self, name: str) -> PodState:
        return self.server.pods[f"ns/{name}"]

    def bind(self, replica: Replica, name: str, node: str = NODE) -> Call:
        return replica.start_bind(self.pod(name), node)

    def next(self, verb: str, owner: Replica | None = None) -> Sent:
        return next(one for one in self.sent if one.verb == verb and owner in (None, one.owner))

    def serve(self, one: Sent) -> None:
        self.sent.remove(one)
        self.seen[one.verb] += 1
        if not one.carried_out:
            one.carry_out(self.server)
        one.answer(one.outcome)

    def until(self, verb: str, owner: Replica | None = None) -> Sent:
        """Serve all requests until one with this verb is on its way."""
        while not (found := [one for one in self.sent if one.verb == verb and owner in (None, one.owner)]):
            self.serve(next(one for one in self.sent if owner in (None, one.owner)))
        return found[0]

    def finish(self) -> None:
        while self.sent:
            self.serve(self.sent[0])

    def entries(self, node: str = NODE) -> dict[str, str]:
        return {one.pod: one.grant["gpu"][0].id for one in self.server.ledgers[node].entries.values()}


def test_an_entry_stands_before_the_binding_is_posted() -> None:
    scene = Scene()
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
    scene = Scene()
    scene.bind(scene.a, "a")
    scene.finish()
    scene.seen.clear()
    scene.server.change_pod("ns/a", ended=True)
    scene.a.views.advance_pods(9)
    scene.bind(scene.a, "b")
    scene.finish()
    assert scene.seen == Counter(patch_ledger=1, post_binding=1)


def test_binds_that_wait_for_one_node_share_a_write() -> None:
    scene = Scene(20, {f"ns/{one}": 10 for one in range(20)})
    calls = [scene.bind(scene.a, "0")]
    first = scene.until("patch_ledger")
    calls += [scene.bind(scene.a, str(one)) for one in range(1, 20)]
    scene.serve(first)
    scene.finish()
    assert [type(one.result) for one in calls] == [Bound] * 20
    assert scene.seen["patch_ledger"] == 2


def test_a_replica_that_stops_before_the_binding_holds_the_device() -> None:
    scene = Scene()
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
    scene = Scene()
    given_up = scene.bind(scene.a, "a")
    late = scene.until("post_binding")
    late.give_up()
    assert given_up.result == NotBound("timed out", entry_may_stand=True)
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
    scene = Scene()
    call = scene.bind(scene.a, "a")
    write = scene.until("patch_ledger")
    write.carry_out(scene.server)
    write.give_up()
    scene.sent.remove(write)
    scene.finish()
    assert isinstance(call.result, Bound)
    assert (scene.seen["patch_ledger"], len(scene.entries())) == (0, 1)


def test_a_write_that_arrives_after_the_next_one_is_refused() -> None:
    scene = Scene()
    call = scene.bind(scene.a, "a")
    late = scene.until("patch_ledger")
    late.give_up()
    scene.sent.remove(late)
    scene.finish()
    assert isinstance(call.result, Bound)
    late.carry_out(scene.server)
    assert not isinstance(late.outcome, type(scene.server.ledgers[NODE]))


def test_two_replicas_and_one_pod_share_the_grant() -> None:
    scene = Scene(2)
    calls = [scene.bind(one, "a") for one in (scene.a, scene.b)]
    scene.until("post_binding", scene.a)
    scene.until("post_binding", scene.b)
    posted = [one.args[0]["metadata"]["annotations"] for one in scene.sent]
    assert posted[0] == posted[1]
    scene.finish()
    assert [type(one.result) for one in calls] == [Bound, Bound]
    assert len(scene.entries()) == 1


def test_one_pod_and_two_nodes() -> None:
    scene = Scene()
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
    scene = Scene()
    call = scene.bind(scene.a, "a")
    for _ in range(4):
        binding = scene.until("post_binding")
        scene.server.change_pod("ns/a")
        scene.serve(binding)
    scene.finish()
    assert call.result == NotBound("the pod was changed again and again", entry_may_stand=True)
    assert scene.seen["post_binding"] == 4


def test_a_pod_that_changed_once_is_bound_at_its_new_version() -> None:
    scene = Scene()
    call = scene.bind(scene.a, "a")
    binding = scene.until("post_binding")
    scene.server.change_pod("ns/a")
    scene.serve(binding)
    scene.finish()
    assert isinstance(call.result, Bound)
    assert scene.entries() == {"ns/a": "0"}


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "versions that cannot be compared"])
def test_entries_of_pods_that_no_view_shows_are_read_where_room_is_missing(numbers: bool) -> None:
    scene = Scene(numbers=numbers)
    scene.bind(scene.a, "a")
    scene.finish()
    scene.server.delete_pod("ns/a")
    fresh = scene.replica("C")
    call = scene.bind(fresh, "b")
    scene.finish()
    assert isinstance(call.result, Bound)
    assert scene.entries() == {"ns/b": "0"}


def test_a_pod_that_could_not_be_read_is_read_for_the_next_request() -> None:
    scene = Scene()
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
    assert refused.result == NotBound("no time was left to write the ledger", entry_may_stand=True)
    call = scene.bind(fresh, "b")
    scene.finish()
    assert isinstance(call.result, Bound)


def test_a_pod_of_the_same_name_is_not_the_pod() -> None:
    scene = Scene()
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
    scene = Scene()
    scene.server.gone_nodes.add(NODE)
    scene.server.change_pod("ns/a", **fields)
    scene.a.views.advance_pods(9)
    assert scene.bind(scene.a, "a").result == result
    assert scene.sent == []


@pytest.mark.parametrize("verb", ["read_ledger", "list_pods", "create_ledger", "patch_ledger", "post_binding"])
def test_what_the_api_server_refuses_is_the_error(verb: str) -> None:
    scene = Scene()
    call = scene.bind(scene.a, "a")
    request = scene.until(verb)
    scene.sent.remove(request)
    request.answer(Failed("forbidden"))
    assert call.result == NotBound("forbidden", entry_may_stand=True)
    assert scene.sent == []


def test_a_pod_that_is_gone_at_the_binding() -> None:
    scene = Scene()
    call = scene.bind(scene.a, "a")
    scene.until("post_binding")
    scene.server.delete_pod("ns/a")
    scene.finish()
    assert call.result == NotBound("the pod no longer exists")


def test_no_binding_is_posted_for_a_caller_that_hung_up() -> None:
    scene = Scene()
    call = scene.bind(scene.a, "a")
    scene.until("patch_ledger")
    call.has_hung_up = True
    scene.finish()
    assert call.result == NotBound("the caller has hung up", entry_may_stand=True)
    assert (scene.seen["post_binding"], scene.entries()) == (0, {"ns/a": "0"})


def test_a_call_that_is_cancelled_takes_nobody_with_it() -> None:
    scene = Scene(2)
    cancelled, other = scene.bind(scene.a, "a"), scene.bind(scene.a, "b")
    scene.until("read_ledger")
    cancelled.task.cancel()
    scene.a.loop.run_ready()
    scene.finish()
    assert isinstance(other.result, Bound)
    assert scene.entries() == {"ns/b": "0"}


def test_a_commit_that_takes_too_long_is_an_error_and_its_entry_stays() -> None:
    scene = Scene()
    call = scene.bind(scene.a, "a")
    scene.until("patch_ledger")
    scene.a.loop.fire(scene.a.loop.timers[0])
    scene.a.loop.run_ready()
    assert call.result == NotBound("no time was left to write the ledger", entry_may_stand=True)
    scene.finish()
    assert scene.entries() == {"ns/a": "0"}
    again = scene.bind(scene.a, "a")
    scene.finish()
    assert isinstance(again.result, Bound)


def test_an_error_in_a_strategy_is_said_and_ends_nothing() -> None:
    scene = Scene()
    pick = scene.a.pick
    scene.a.pick = lambda fitting, _room: fitting[7]
    failed = scene.bind(scene.a, "a")
    scene.finish()
    assert failed.result == NotBound(
        "no devices were chosen because of an error: IndexError('list index out of range')", entry_may_stand=True
    )
    scene.a.pick = pick
    call = scene.bind(scene.a, "a")
    scene.finish()
    assert isinstance(call.result, Bound)


def test_ledgers_that_are_created_at_once_are_one() -> None:
    scene = Scene(2)
    calls = [scene.bind(scene.a, "a"), scene.bind(scene.b, "b")]
    scene.until("create_ledger", scene.a)
    scene.until("create_ledger", scene.b)
    scene.finish()
    assert [type(one.result) for one in calls] == [Bound, Bound]
    assert scene.entries() == {"ns/a": "0", "ns/b": "1"}


def test_a_ledger_that_was_deleted_by_hand_is_made_of_annotations() -> None:
    scene = Scene(2)
    scene.bind(scene.a, "a")
    scene.finish()
    scene.server.lost.add(NODE)
    scene.server.remove_ledger(NODE)
    call = scene.bind(scene.a, "b")
    scene.finish()
    assert isinstance(call.result, Bound)
    assert scene.entries() == {"ns/a": "0", "ns/b": "1"}


def test_a_missing_namespace_is_named() -> None:
    scene = Scene()
    call = scene.bind(scene.a, "a")
    request = scene.until("create_ledger")
    scene.sent.remove(request)
    request.answer(Missing())
    assert call.result == NotBound("the operator's namespace is missing", entry_may_stand=True)


def test_a_node_that_was_deleted_is_forgotten_once_nobody_waits() -> None:
    scene = Scene()
    scene.bind(scene.a, "a")
    scene.a.ledgers.forget(NODE)
    scene.a.ledgers.forget("never seen")
    assert scene.sent
    scene.finish()
    scene.a.ledgers.forget(NODE)
    scene.seen.clear()
    scene.bind(scene.a, "b")
    scene.finish()
    assert scene.seen["read_ledger"] == 1


def test_the_last_quarter_of_a_call_is_for_the_binding() -> None:
    now = 100.0
    budget = Budget(lambda: now, 8.0)
    assert (budget.commit_left_s(), budget.left_s()) == (6.0, 8.0)
    now = 107.0
    assert (budget.commit_left_s(), budget.left_s()) == (-1.0, 1.0)


class Forged(PickedDevices):
    """Devices whose annotations claim another grant."""

    def annotations(self, _entry: LedgerEntry, /) -> Mapping[str, str]:
        return {"fairlead.dev/devices": "forged", "fairlead.dev/devices.gpu": "1", "example.org/other": "kept"}


def test_other_annotations_are_no_place_for_a_grant() -> None:
    scene = Scene(20, {"ns/a": 1})
    entry = LedgerEntry("ns/a", "1", "policy", {"gpu": (GrantedDevice("0", {RESOURCE: 1}),)})
    devices = Forged(scene.a, scene.server.pods["ns/a"])
    call = GrantedBind("u", "ns/a", NODE, devices, Poster(scene.a.calls, is_abandoned=lambda: False))
    annotations = granted_binding(call, entry)["metadata"]["annotations"]
    assert annotations == {**copies(entry.grant), "example.org/other": "kept"}


def test_ids_of_each_kind_are_annotations_of_their_own() -> None:
    devices = (GrantedDevice("0", {RESOURCE: 1}), GrantedDevice("2", {RESOURCE: 1}))
    entry = LedgerEntry("ns/a", "1", "policy", {"gpu": devices, "fpga": (GrantedDevice("x", {"f": 1}),)})
    found = copies(entry.grant)
    assert (found["fairlead.dev/devices.gpu"], found["fairlead.dev/devices.fpga"]) == ("0,2", "x")


def test_it_runs_on_the_event_loop_of_a_process_too() -> None:
    """Bind for bind with replies at once, on asyncio's own loop."""
    scene = Scene(20, {f"ns/{one}": 10 for one in range(30)})

    async def run() -> list[type]:
        for one in (scene.a, scene.b):
            one.loop = asyncio.get_running_loop()  # type: ignore[assignment]
            one.loop.run_ready = lambda: None  # type: ignore[method-assign]
            one.loop.dead = False
        calls = [scene.bind((scene.a, scene.b)[one % 2], str(one)) for one in range(30)]
        while not all(one.task.done() for one in calls):
            await asyncio.sleep(0)
            if scene.sent:
                scene.serve(scene.sent[0])
        return [type(one.result) for one in calls]

    found = asyncio.run(run())
    assert Counter(found) == Counter({Bound: 20, NotBound: 10})
