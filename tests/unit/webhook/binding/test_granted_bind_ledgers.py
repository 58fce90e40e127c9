"""Binds with grants: ledgers that are new, gone, full or of nodes that are deleted, and annotations."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from fairlead.grants.entry import GrantedDevice, LedgerEntry, copies
from fairlead.webhook.binding.api_calls import Missing
from fairlead.webhook.binding.bind_steps import Bound, Budget, Committed, NotBound, PodBind, committed_binding
from fairlead.webhook.binding.poster import Poster
from support.grants.bind_scene import NODE, BindScene
from support.grants.replica import RESOURCE, PickedDevices


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "versions that cannot be compared"])
def test_entries_of_pods_that_no_view_shows_are_read_where_room_is_missing(numbers: bool) -> None:
    scene = BindScene(numbers=numbers)
    scene.bind(scene.a, "a")
    scene.finish()
    scene.server.delete_pod("ns/a")
    fresh = scene.replica("C")
    call = scene.bind(fresh, "b")
    scene.finish()
    assert isinstance(call.result, Bound)
    assert scene.entries() == {"ns/b": "0"}


def test_a_commit_that_takes_too_long_is_an_error_and_its_entry_stays() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    scene.until("patch_ledger")
    scene.a.loop.fire(scene.a.loop.timers[0])
    scene.a.loop.run_ready()
    assert call.result == NotBound("no time was left to write the ledger", may_stand=True)
    scene.finish()
    assert scene.entries() == {"ns/a": "0"}
    again = scene.bind(scene.a, "a")
    scene.finish()
    assert isinstance(again.result, Bound)


def test_an_error_in_a_strategy_is_said_and_ends_nothing() -> None:
    scene = BindScene()
    pick = scene.a.pick
    scene.a.pick = lambda fitting, _room: fitting[7]
    failed = scene.bind(scene.a, "a")
    scene.finish()
    assert failed.result == NotBound(
        "the ledger was not written because of an error: IndexError('list index out of range')", may_stand=True
    )
    scene.a.pick = pick
    call = scene.bind(scene.a, "a")
    scene.finish()
    assert isinstance(call.result, Bound)


def test_ledgers_that_are_created_at_once_are_one() -> None:
    scene = BindScene(2)
    calls = [scene.bind(scene.a, "a"), scene.bind(scene.b, "b")]
    scene.until("create_ledger", scene.a)
    scene.until("create_ledger", scene.b)
    scene.finish()
    assert [type(one.result) for one in calls] == [Bound, Bound]
    assert scene.entries() == {"ns/a": "0", "ns/b": "1"}


def test_a_ledger_that_was_deleted_by_hand_is_made_of_annotations() -> None:
    scene = BindScene(2)
    scene.bind(scene.a, "a")
    scene.finish()
    scene.server.lost.add(NODE)
    scene.server.remove_ledger(NODE)
    call = scene.bind(scene.a, "b")
    scene.finish()
    assert isinstance(call.result, Bound)
    assert scene.entries() == {"ns/a": "0", "ns/b": "1"}


def test_a_missing_namespace_is_named() -> None:
    scene = BindScene()
    call = scene.bind(scene.a, "a")
    request = scene.until("create_ledger")
    scene.sent.remove(request)
    request.answer(Missing())
    assert call.result == NotBound("the operator's namespace is missing", may_stand=True)


def test_a_node_that_was_deleted_is_forgotten_once_nobody_waits() -> None:
    scene = BindScene()
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


@pytest.mark.parametrize("shown", [True, False])
def test_of_a_ledger_that_a_watch_shows_nothing_is_kept_twice(shown: bool) -> None:
    scene = BindScene(2)
    scene.bind(scene.a, "a")
    scene.finish()
    scene.a.advance_ledgers(9 if shown else 0)
    scene.a.ledgers.drop_shown(NODE)
    scene.a.views.ledgers_at = 0  # so that what is known is known from elsewhere
    scene.seen.clear()
    scene.bind(scene.a, "b")
    scene.finish()
    assert scene.seen["read_ledger"] == shown


def test_of_a_ledger_that_a_watch_shows_before_its_write_is_answered_nothing_is_kept_twice() -> None:
    scene = BindScene(2)
    scene.bind(scene.a, "a")
    scene.finish()
    scene.bind(scene.a, "b")
    write = scene.until("patch_ledger")
    write.carry_out(scene.server)
    write.outcome = replace(write.outcome)  # as decoded from the reply
    scene.a.advance_ledgers(9)
    scene.finish()
    assert scene.a.ledgers._writers[NODE]._known is scene.a.views.ledger(NODE)


def test_a_version_that_is_newer_than_what_a_watch_shows_is_kept() -> None:
    scene = BindScene(3, dict.fromkeys(("ns/a", "ns/b", "ns/c"), 6))
    scene.bind(scene.a, "a")
    scene.finish()
    scene.a.advance_ledgers(9)
    scene.bind(scene.a, "b")
    scene.finish()
    scene.a.ledgers.drop_shown(NODE)
    scene.seen.clear()
    scene.bind(scene.a, "c")
    scene.finish()
    assert (scene.seen["patch_ledger"], scene.seen["read_ledger"]) == (1, 0)


def test_requests_wait_for_the_one_before_also_when_a_watch_shows_the_ledger_meanwhile() -> None:
    scene = BindScene(3, dict.fromkeys(("ns/a", "ns/b", "ns/c"), 6))
    scene.bind(scene.a, "a")
    scene.finish()
    scene.bind(scene.a, "b")
    scene.until("patch_ledger")
    scene.a.advance_ledgers(9)
    scene.bind(scene.a, "c")
    assert [one.verb for one in scene.sent] == ["patch_ledger"]
    scene.finish()
    assert scene.entries() == {"ns/a": "0", "ns/b": "1", "ns/c": "2"}


def test_what_was_unclear_twice_is_read_also_when_a_watch_shows_the_ledger_meanwhile() -> None:
    scene = BindScene(4, dict.fromkeys(("ns/a", "ns/b", "ns/c", "ns/d"), 6))
    scene.bind(scene.a, "a")
    scene.finish()
    scene.server.delete_pod("ns/a")
    fresh = scene.replica("C")
    for name in ("b", "c", "d"):
        scene.bind(fresh, name)
        scene.finish()
        fresh.advance_ledgers(9)
    assert "ns/a" not in scene.entries()


def test_the_last_quarter_of_a_call_is_for_the_binding() -> None:
    now = 100.0
    budget = Budget(lambda: now, 8.0)
    assert (budget.commit_left_s(), budget.left_s()) == (6.0, 8.0)
    now = 107.0
    assert (budget.commit_left_s(), budget.left_s()) == (-1.0, 1.0)


class Forged(PickedDevices):
    """Devices whose annotations claim another grant."""

    def annotations(self, _entry: LedgerEntry | None, /) -> Mapping[str, str]:
        return {"fairlead.dev/devices": "forged", "fairlead.dev/devices.gpu": "1", "example.org/other": "kept"}


def test_other_annotations_are_no_place_for_a_grant() -> None:
    scene = BindScene(20, {"ns/a": 1})
    entry = LedgerEntry("ns/a", "1", "policy", {"gpu": (GrantedDevice("0", {RESOURCE: 1}),)})
    devices = Forged(scene.a, scene.server.pods["ns/a"])
    call = PodBind("u", "ns/a", NODE, devices, Poster(scene.a.calls, is_abandoned=lambda: False))
    annotations = committed_binding(call, Committed(entry.rv, entry))["metadata"]["annotations"]
    assert annotations == {**copies(entry.grant), "example.org/other": "kept"}


def test_ids_of_each_kind_are_annotations_of_their_own() -> None:
    devices = (GrantedDevice("0", {RESOURCE: 1}), GrantedDevice("2", {RESOURCE: 1}))
    entry = LedgerEntry("ns/a", "1", "policy", {"gpu": devices, "fpga": (GrantedDevice("x", {"f": 1}),)})
    found = copies(entry.grant)
    assert (found["fairlead.dev/devices.gpu"], found["fairlead.dev/devices.fpga"]) == ("0,2", "x")


def test_it_runs_on_the_event_loop_of_a_process_too() -> None:
    """Bind for bind with replies at once, on asyncio's own loop."""
    scene = BindScene(20, {f"ns/{one}": 10 for one in range(30)})

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
