"""Binds of members: alone if a read shows that their group has started, else held here, or passed on."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from fairlead.groups.group import Group, Membership
from fairlead.mirror import decode
from fairlead.webhook.binding.api_calls import Failed, Missing, Posted
from fairlead.webhook.binding.bind_steps import BindResult, Bound, NotBound, PodBind
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.mirror_views import MirrorViews
from fairlead.webhook.extender import bind as placing
from fairlead.webhook.extender.call import CallClock, IncomingCall, VerbReply
from fairlead.webhook.holding.group_binds import NOT_HERE, READS, UNTOLD, GroupBinds
from fairlead.webhook.holding.group_watch import GroupWatch
from fairlead.webhook.holding.passed_calls import PassedCall
from scripted.loop import in_loop
from support.mirror import FedMirror, pod, written
from support.policy import NOW, SECOND, node, policy
from support.webhook import Asking, go

RED = Group("fairlead", "ml", "red")
GANG = {"name": "job", "group": "pod.metadata.labels[?'job'].orValue('')", "size": "2"}
POLICY = policy(binding={"gang": [GANG]})
ARGS = json.dumps({"PodName": "a", "PodNamespace": "ml", "PodUID": "u-a", "Node": "n1"}).encode()
MEMBERSHIP = Membership(RED, 2, 30, "p", "job")
DELETED = {"deletionTimestamp": "2026-05-01T10:00:00Z"}


class Api:
    """The API server: what a read of each pod shows, and the Bindings that it has made."""

    def __init__(self, pods: Mapping[str, Any]) -> None:
        self.pods = dict(pods)
        self.reads: list[str] = []
        self.posted: list[Any] = []
        self.on_read: Callable[[str], None] = lambda _: None

    async def read_body(self, _namespace: str, name: str, timeout_s: float) -> bytes | Missing | Failed:
        assert timeout_s > 0
        self.reads.append(name)
        self.on_read(name)
        found = self.pods.get(name, Missing())
        return written(found) if isinstance(found, dict) else found

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted:
        self.posted.append(binding)
        return Posted()


class Holding:
    """A holder that notes its calls, and answers at once."""

    def __init__(self, result: BindResult) -> None:
        self.result = result
        self.calls: list[tuple[str, Membership, str, int]] = []

    async def bind(self, call: PodBind, membership: Membership, address: str, deadline_ns: int) -> BindResult:
        self.calls.append((call.uid, membership, address, deadline_ns))
        return self.result


class Passing:
    """A client of another replica that notes what it passes on."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, PassedCall, float]] = []

    async def bind(self, uid: str, call: PassedCall, within_s: float, _: Callable[[], bool]) -> VerbReply:
        self.calls.append((uid, call, within_s))
        return placing.refuse(uid, "passed on")


class Scene:
    """A replica that may hold or not, and knows others or not."""

    def __init__(
        self, *, placed: tuple[str, ...] = (), holds: bool = True, knows_others: bool = True, pods: Any = None
    ) -> None:
        self.told = FedMirror()
        self.watch = GroupWatch(self.told.mirror, lambda: NOW, lambda _: None)
        self.watch.use([POLICY])
        self.told.node()
        self.told.unplaced("a", labels={"job": "red"}, schedulerName="fairlead")
        for name in placed:
            self.told.pod(name, labels={"job": "red"})
        alive = {name: pod(name, labels={"job": "red"}) for name in placed}
        self.api = Api(alive if pods is None else pods)
        self.holding, self.passing = Holding(Bound(None)), Passing()
        server: Any = None
        granter = Granter(self.told.mirror, server, server, MirrorViews(self.told.mirror, list))
        held = self.holding if holds else None
        self.binds = GroupBinds(
            self.watch,
            granter,
            self.api,
            lambda _: cast("Any", held),
            cast("Any", self.passing if knows_others else None),
        )
        self.binder = Binder(self.api, granter)
        self.binder.groups = self.binds
        waiting = decode.pod(written(pod("a", on="", labels={"job": "red"}, schedulerName="fairlead")))
        self.asking = Asking([POLICY], [node("n1")], unplaced=[waiting])

    is_held = False

    async def bind(self, *, is_passed_on: bool = False, hold_deadline_ns: int | None = None) -> str:
        call = IncomingCall("s", self.asking.caller, ARGS, 0, address="10.0.0.9", is_passed_on=is_passed_on)
        when = CallClock(NOW, lambda: 0, 4 * SECOND, hold_deadline_ns=hold_deadline_ns)
        reply = await self.binder.bind(call, self.asking.serving, when)
        self.is_held = reply.outcome.is_held
        return str(go.decode("bind", reply.body)["Error"])


@in_loop
async def test_a_member_of_a_group_that_has_not_started_is_held_here() -> None:
    scene = Scene()
    assert await scene.bind(hold_deadline_ns=34 * SECOND) == ""
    assert (scene.holding.calls, scene.is_held) == ([("u-a", MEMBERSHIP, "10.0.0.9", 34 * SECOND)], True)
    assert (scene.api.reads, scene.api.posted, scene.passing.calls) == ([], [], [])
    scene.holding.result = NotBound("1 of 2 members of the group found room (attempt 1)")
    assert await scene.bind() == "1 of 2 members of the group found room (attempt 1)"
    assert scene.holding.calls[1][3] == 4 * SECOND, "its scheduler waits no longer"


@in_loop
async def test_or_passed_on_with_its_address_and_all_that_was_sent() -> None:
    scene = Scene(holds=False)
    assert await scene.bind(hold_deadline_ns=34 * SECOND) == "passed on"
    ((uid, call, within_s),) = scene.passing.calls
    assert (uid, call.scheduler, call.address, bytes(call.arguments), within_s) == (
        "u-a",
        "fairlead",
        "10.0.0.9",
        ARGS,
        34.0,
    )
    assert scene.api.posted == []


@pytest.mark.parametrize(("knows_others", "is_passed_on"), [(False, False), (True, True)])
@in_loop
async def test_or_refused_where_nothing_is_held(knows_others: bool, is_passed_on: bool) -> None:
    scene = Scene(holds=False, knows_others=knows_others)
    assert await scene.bind(is_passed_on=is_passed_on) == NOT_HERE
    assert (scene.passing.calls, scene.api.posted) == ([], [])


@pytest.mark.parametrize("holds", [True, False], ids=["holds", "does not hold"])
@in_loop
async def test_a_member_of_a_group_that_has_started_is_bound_by_whoever_is_called(holds: bool) -> None:
    scene = Scene(placed=("b",), holds=holds)
    assert await scene.bind() == ""
    assert (scene.api.reads, len(scene.api.posted)) == (["b"], 1)
    assert (scene.holding.calls, scene.passing.calls, scene.is_held) == ([], [], False)


# what a read of the placed pod that the mirror shows says
NOT_STARTED: dict[str, Any] = {
    "it is gone": Missing(),
    "it is being deleted": pod("b", labels={"job": "red"})
    | {"metadata": pod("b", labels={"job": "red"})["metadata"] | DELETED},
    "it has ended": pod("b", labels={"job": "red"}, phase="Failed"),
    "another pod of its name is unplaced": pod("b", on="", labels={"job": "red"}),
    "another pod of its name is of another group": pod("b", labels={"job": "blue"}),
}


@pytest.mark.parametrize("case", NOT_STARTED)
@in_loop
async def test_what_the_mirror_alone_shows_starts_nothing(case: str) -> None:
    scene = Scene(placed=("b",), pods={"b": NOT_STARTED[case]})
    assert await scene.bind() == ""
    assert (len(scene.holding.calls), scene.api.reads, scene.api.posted) == (1, ["b"], [])


@pytest.mark.parametrize("found", [Failed("no answer"), b"[]"], ids=["no answer", "no pod"])
@in_loop
async def test_what_cannot_be_read_binds_and_holds_nothing(found: Any) -> None:
    scene = Scene(placed=("b",), pods={"b": found})
    assert await scene.bind() == UNTOLD
    assert (scene.holding.calls, scene.passing.calls, scene.api.posted) == ([], [], [])


@in_loop
async def test_of_several_placed_pods_the_next_is_read_when_the_mirror_hears_that_the_first_is_gone() -> None:
    scene = Scene(placed=("b", "c"))
    del scene.api.pods["c"]

    def hear(name: str) -> None:
        if name == "c":
            scene.told.pod_gone("c")

    scene.api.on_read = hear
    assert await scene.bind() == ""
    assert (scene.api.reads, len(scene.api.posted)) == (["c", "b"], 1)


@in_loop
async def test_a_pod_that_is_placed_while_another_is_read_is_read_as_well_but_not_for_ever() -> None:
    scene = Scene(placed=("p0",), pods={})

    def place_another(name: str) -> None:
        scene.told.pod(f"p{int(name[1:]) + 1}", labels={"job": "red"})

    scene.api.on_read = place_another
    assert await scene.bind() == ""
    assert (len(scene.api.reads), len(scene.holding.calls)) == (READS, 1)


@in_loop
async def test_without_time_nothing_is_read() -> None:
    scene = Scene(placed=("b",))
    left_s = iter([4.0, 0.0])
    del scene.api.pods["b"]

    def place_another(_: str) -> None:
        scene.told.pod("c", labels={"job": "red"})

    scene.api.on_read = place_another
    assert await scene.binds.has_started(RED, lambda: next(left_s)) is None
    assert scene.api.reads == ["b"]
