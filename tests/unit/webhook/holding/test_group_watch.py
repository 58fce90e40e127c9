"""What the mirror hears of pods, namespaces and nodes reaches the index of groups, and then what holds their calls."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from fairlead.groups.group import Group, Membership
from fairlead.groups.members import GroupChange
from fairlead.mirror import decode
from fairlead.mirror.pod_entry import Key, PodEntry
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.holding.group_watch import GroupWatch
from scripted.loop import in_loop
from support.mirror import CREATED, CREATED_NS, FedMirror, pod, written
from support.policy import SECOND, policy

JOB = "pod.metadata.labels[?'job'].orValue('')"
SIZE = "int(pod.metadata.annotations[?'size'].orValue('1'))"
RED, BLUE = Group("fairlead", "ml", "red"), Group("fairlead", "ml", "blue")
DELETED = {"deletionTimestamp": "2026-05-01T10:00:00Z"}
OTHER_TEXT = "0/3 nodes are available: 3 Insufficient cpu."


def gangs(name: str = "p", group: str = JOB, size: str = SIZE, **spec: Any) -> CompiledPolicy:
    return policy(name, binding={"gang": [{"name": "job", "group": group, "size": size}]}, **spec)


def unschedulable(message: str = OTHER_TEXT, reason: str = "Unschedulable") -> list[dict[str, str]]:
    return [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]


class Heard:
    """Held calls that note what they hear."""

    def __init__(self, *groups: Group) -> None:
        self.groups, self.news = groups, list[tuple[Any, ...]]()
        self.fails = False

    def has_calls_of(self, group: Group) -> bool:
        return group in self.groups

    def members_changed(self, change: GroupChange) -> None:
        if self.fails:
            raise RuntimeError("a slip")
        self.news.append(("changed", change.group.value, change.completed, change.placed))

    def pod_changed(self, uid: str, rv: str) -> None:
        self.news.append(("version", uid, rv))

    def pod_deleted(self, uid: str) -> None:
        self.news.append(("deleted", uid))

    def unschedulable(self, uid: str, group: Group, message: str) -> None:
        self.news.append(("unschedulable", uid, group.value, message))

    def regrouped(self, uid: str, membership: Membership | None) -> None:
        self.news.append(("membership", uid, None if membership is None else membership.group.value))

    def room_came(self) -> None:
        self.news.append(("room",))

    def take(self, *kinds: str) -> list[tuple[Any, ...]]:
        """Return what was heard since the last time, of these kinds."""
        news, self.news = self.news, []
        return [one for one in news if one[0] in kinds or not kinds]


class Scene:
    def __init__(self, *policies: CompiledPolicy, groups: tuple[Group, ...] = ()) -> None:
        self.told = FedMirror(annotations=["size"])
        self.asked: list[Group] = []
        self.watch = GroupWatch(self.told.mirror, lambda: self.told.now, self.asked.append)
        self.heard = Heard(*groups)
        self.watch.held_binds = cast("Any", {"fairlead": self.heard})
        self.policies = policies or (gangs(),)

    async def use(self, *policies: CompiledPolicy) -> None:
        self.watch.use(policies)
        await self.watch.wait_until_looked()

    async def begin(self) -> "Scene":
        await self.use(*self.policies)
        return self

    def unplaced(self, name: str, job: str = "red", size: int = 2, version: int = 1, **more: Any) -> None:
        labels = more.pop("labels", {"job": job})
        self.told.unplaced(
            name, version=version, labels=labels, annotations={"size": str(size)}, schedulerName="fairlead", **more
        )

    def deleting(self, name: str) -> None:
        one = pod(name, on="", labels={"job": "red"}, annotations={"size": "2"}, schedulerName="fairlead")
        one["metadata"] |= DELETED
        self.told.mirror.unplaced_sink.put(decode.pod(written(one)))

    def placed(self, name: str, job: str = "red", **more: Any) -> None:
        self.told.pod(name, labels={"job": job}, annotations={"size": "2"}, **more)

    def known(self) -> Mapping[str, int]:
        return {group.value: self.watch.index.known(group) for group in self.watch.index.groups()}


@in_loop
async def test_members_are_known_as_they_come_change_and_go() -> None:
    scene = await Scene().begin()
    scene.unplaced("a")
    assert scene.heard.take() == [
        ("changed", "red", False, False),
        ("membership", "u-a", "red"),
        ("version", "u-a", "1"),
    ]
    scene.unplaced("b")
    assert ("changed", "red", True, False) in scene.heard.take()
    scene.unplaced("b", "blue", version=2)
    assert ("membership", "u-b", "blue") in scene.heard.take()
    assert scene.known() == {"red": 1, "blue": 1}
    scene.deleting("b")
    assert ("deleted", "u-b") in scene.heard.take()
    scene.told.mirror.unplaced_sink.remove(("ml", "a"))
    assert ("deleted", "u-a") in scene.heard.take()
    assert scene.known() == {}


# the pod, and whether it is a known member
PODS: dict[str, tuple[dict[str, Any], bool]] = {
    "a member": ({}, True),
    "of another scheduler": ({"schedulerName": "other"}, False),
    "with a gate": ({"schedulingGates": [{"name": "g"}]}, False),
    "of a native group": ({"schedulingGroup": {"podGroupName": "g"}}, False),
    "whose size is none": ({"size": "many"}, False),
    "alone": ({"size": "1"}, False),
    "without the label": ({"labels": {}}, False),
}


@pytest.mark.parametrize("case", PODS)
@in_loop
async def test_who_is_a_known_member(case: str) -> None:
    spec, is_known = PODS[case]
    scene = await Scene().begin()
    given = {"schedulerName": "fairlead", "labels": {"job": "red"}, "size": "2"} | spec
    scene.told.unplaced("a", annotations={"size": given.pop("size")}, **given)
    assert scene.known() == ({"red": 1} if is_known else {})


@in_loop
async def test_the_size_may_depend_on_what_the_pod_requests() -> None:
    scene = await Scene(gangs(size="int(pod.spec.containers[0].resources.requests['cpu'])")).begin()
    scene.unplaced("a", cpu="3")
    assert scene.watch.index.size(RED) == 3


@in_loop
async def test_another_pod_of_the_name_is_another_member() -> None:
    scene = await Scene().begin()
    scene.unplaced("a", uid="u-1")
    scene.unplaced("a", uid="u-2")
    assert scene.known() == {"red": 1}
    assert scene.watch.index.group_of("u-1") is None
    assert ("deleted", "u-1") in scene.heard.take()


@in_loop
async def test_what_priority_and_age_say_is_indexed() -> None:
    scene = await Scene().begin()
    one = pod("a", on="", labels={"job": "red"}, annotations={"size": "2"}, schedulerName="fairlead", priority=7)
    one["metadata"]["creationTimestamp"] = CREATED
    scene.told.mirror.unplaced_sink.put(decode.pod(written(one)))
    assert scene.watch.index.rank(RED)[:2] == (-7, CREATED_NS // SECOND)


# the conditions of two states of a pod, and what is told of the second
CONDITIONS: dict[str, tuple[list[Any], list[Any], bool]] = {
    "it finds no node": ([], unschedulable(), True),
    "it says the same": (unschedulable(), unschedulable(), False),
    "it says something else": (unschedulable("waiting for members of its group"), unschedulable(), True),
    "its bind has failed": ([], unschedulable(reason="SchedulerError"), False),
    "it says so no more": (unschedulable(), [], False),
}


@pytest.mark.parametrize("case", CONDITIONS)
@in_loop
async def test_that_a_member_finds_no_node_is_told_when_it_is_new(case: str) -> None:
    before, after, is_told = CONDITIONS[case]
    scene = await Scene().begin()
    scene.unplaced("a", conditions=before)
    scene.heard.take()
    scene.unplaced("a", conditions=after, version=2)
    found = scene.heard.take("unschedulable")
    assert found == ([("unschedulable", "u-a", "red", OTHER_TEXT)] if is_told else [])


@in_loop
async def test_a_condition_that_was_there_before_the_pod_was_seen_is_no_news() -> None:
    scene = await Scene().begin()
    scene.unplaced("a", conditions=unschedulable())
    assert scene.heard.take("unschedulable") == []


@in_loop
async def test_placed_pods_start_a_group_and_are_read_while_calls_are_held() -> None:
    scene = await Scene(groups=(RED,)).begin()
    scene.told.node()
    scene.placed("a")
    scene.placed("b", "blue")
    assert (scene.watch.index.is_placed(RED), scene.watch.index.is_placed(BLUE)) == (True, True)
    assert scene.asked == [RED]
    assert scene.heard.take("changed") == [("changed", "red", False, True), ("changed", "blue", False, True)]


@in_loop
async def test_of_placed_pods_another_one_is_read_when_one_goes() -> None:
    scene = await Scene(groups=(RED,)).begin()
    scene.told.node()
    for name in ("a", "b"):
        scene.placed(name)
    del scene.asked[:]
    scene.told.pod_gone("b")
    assert scene.asked == [RED]
    scene.told.pod_gone("a")
    assert (scene.asked, scene.watch.index.is_placed(RED)) == ([RED], False)


@in_loop
async def test_a_placed_pod_that_is_deleted_has_not_started_its_group() -> None:
    scene = await Scene().begin()
    scene.told.node()
    one = pod("a", labels={"job": "red"}, annotations={"size": "2"})
    one["metadata"] |= DELETED
    scene.told.mirror.placed_sink.put(scene.told.placed(written(one)))
    assert not scene.watch.index.is_placed(RED)


@in_loop
async def test_room_comes_with_a_node_and_when_a_pod_goes() -> None:
    scene = await Scene().begin()
    scene.told.node()
    assert scene.heard.take("room") == [("room",)]
    scene.told.node(labels={"a": "b"}, version=2)
    scene.placed("a", "")
    assert scene.heard.take("room") == []
    scene.told.pod_gone("a")
    assert scene.heard.take("room") == [("room",)]


@in_loop
async def test_policies_that_come_late_find_all_pods_and_forget_them_when_they_go() -> None:
    scene = Scene()
    scene.told.node()
    for number in range(45):  # more than are looked at in one piece
        scene.unplaced(f"u{number}")
        scene.placed(f"p{number}", "blue")
    assert scene.known() == {}
    await scene.begin()
    assert (scene.known(), scene.watch.index.is_placed(BLUE)) == ({"red": 45}, True)
    await scene.use()
    assert (scene.known(), scene.watch.index.is_placed(BLUE)) == ({}, False)
    scene.unplaced("more")
    assert scene.known() == {}


@in_loop
async def test_policies_that_mean_the_same_look_at_nothing() -> None:
    scene = await Scene().begin()
    scene.unplaced("a")
    scene.heard.take()
    await scene.use(*scene.policies, policy("other", filters={"f": "true"}))
    assert scene.heard.take() == []


@in_loop
async def test_policies_that_mean_other_groups_regroup_what_is_known() -> None:
    scene = await Scene().begin()
    scene.unplaced("a")
    scene.heard.take()
    await scene.use(gangs(group="'all'", generation=2))
    assert ("membership", "u-a", "all") in scene.heard.take()
    assert scene.known() == {"all": 1}


@in_loop
async def test_a_look_goes_on_when_its_caller_waits_no_more() -> None:
    scene = Scene()
    for number in range(45):
        scene.unplaced(f"u{number}")
    scene.watch.use(scene.policies)
    waiting = asyncio.create_task(scene.watch.wait_until_looked())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await scene.watch.wait_until_looked()
    assert scene.known() == {"red": 45}


OF_TEAM: dict[str, Any] = {"match": {"namespaceSelector": {"matchLabels": {"team": "a"}}}}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (gangs(**OF_TEAM), ({"red": 1}, True)),
        (
            gangs(match={"conditions": {"c": "namespaceObject.metadata.labels[?'team'].orValue('') == 'a'"}}),
            ({"red": 1}, True),
        ),
    ],
    ids=["selector", "condition"],
)
@in_loop
async def test_a_namespace_that_changes_regroups_its_pods(given: CompiledPolicy, want: Any) -> None:
    scene = await Scene(given).begin()
    scene.told.node()
    scene.told.namespace("ml")
    await scene.watch.wait_until_looked()
    scene.unplaced("a")
    scene.placed("b")
    assert scene.known() == {}
    scene.told.namespace("ml", team="a")
    await scene.watch.wait_until_looked()
    assert (scene.known(), scene.watch.index.is_placed(RED)) == want


@pytest.mark.parametrize("change", [lambda told: told.namespace("other", team="a"), lambda told: told.namespace("ml")])
@in_loop
async def test_a_namespace_that_is_as_before_or_another_one_looks_at_no_placed_pod(
    change: Callable[[FedMirror], None],
) -> None:
    scene = await Scene(gangs(**OF_TEAM)).begin()
    scene.told.namespace("ml")
    await scene.watch.wait_until_looked()
    looked = list[str]()

    def look(key: Key, entry: PodEntry) -> None:
        looked.append(key[1])

    scene.watch.put_placed = look  # type: ignore[method-assign]
    scene.placed("a")
    del looked[:]
    change(scene.told)
    await scene.watch.wait_until_looked()
    assert looked == []


@in_loop
async def test_a_fault_of_the_watch_stops_no_other_part_of_the_mirror(caplog: pytest.LogCaptureFixture) -> None:
    scene = await Scene().begin()
    scene.heard.fails = True
    scene.unplaced("a")
    assert scene.told.mirror.unplaced("ml", "a") is not None
    assert "mirror.watcher_fault" in [one.msg for one in caplog.records]
    scene.heard.fails = False
    scene.unplaced("b")
    assert scene.known() == {"red": 2}


@in_loop
async def test_a_pod_as_it_was_read_is_in_its_group_while_it_lives() -> None:
    scene = await Scene().begin()
    alive = pod("a", labels={"job": "red"}, annotations={"size": "2"})
    states = {
        "alive": (alive, True),
        "unplaced": (pod("a", on="", labels={"job": "red"}, annotations={"size": "2"}), False),
        "ended": (pod("a", labels={"job": "red"}, annotations={"size": "2"}, phase="Succeeded"), False),
        "deleted": ({**alive, "metadata": alive["metadata"] | DELETED}, False),
        "of another group": (pod("a", labels={"job": "blue"}, annotations={"size": "2"}), False),
        "alone": (pod("a", labels={"job": "red"}, annotations={"size": "1"}), False),
    }
    found = {name: scene.watch.is_placed_in(RED, decode.pod(written(one))) for name, (one, _) in states.items()}
    assert found == {name: want for name, (_, want) in states.items()}
