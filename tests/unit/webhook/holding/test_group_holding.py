"""Groups of a replica: who holds, what filter says, what is published, and when refused pods are woken."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, cast

from fairlead.groups.group import Group, Membership
from fairlead.groups.turns import PLACING, RESTING, WAITING, turns_name
from fairlead.kube.http.client import Client
from fairlead.metrics import Metrics
from fairlead.replica_state import PolicyState, ReplicaState, WaitingGroups
from fairlead.webhook.binding.api_calls import Failed, Missing
from fairlead.webhook.binding.bind_steps import BindResult, Bound, Budget, Committed, NotBound, PodBind
from fairlead.webhook.binding.device_grants import DeviceGrants
from fairlead.webhook.holding.group_holding import GroupHolding
from fairlead.webhook.holding.held_binds import HeldBinds
from support.faults import virtual
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import Wire
from support.mirror import FedMirror, pod, written
from support.policy import SECOND, policy

GANG = {
    "name": "job",
    "group": "pod.metadata.labels[?'job'].orValue('')",
    "size": "int(pod.metadata.annotations[?'size'].orValue('1'))",
}
POLICY = policy(binding={"gang": [GANG]})
RED, BLUE = Group("fairlead", "ml", "red"), Group("fairlead", "ml", "blue")


class Steps:
    """The two steps of binds, of which nothing fails."""

    async def commit(self, call: PodBind, _budget: Budget) -> Committed | BindResult:
        return Committed("1")

    async def bind(self, call: PodBind, _budget: Budget, committed: Committed | None = None) -> BindResult:
        return Bound(None)


class Caller:
    """A caller that stays."""

    def is_abandoned(self) -> bool:
        return False


def nothing() -> object:
    return type("NoDevices", (), {"ask": ()})()


class Replica:
    """A replica that may lead."""

    def __init__(self, cluster: FakeCluster, client: Client, namespace: str | None = NAMESPACE) -> None:
        self.cluster, self.told = cluster, FedMirror(annotations=["size"])
        self.wakes: list[float] = []
        grants = DeviceGrants(client, self.told.mirror, NAMESPACE, list)
        self.groups = GroupHolding(client, self.told.mirror, namespace, self.time, self.clock, grants)
        self.groups._steps = cast("Any", Steps())
        self.groups.wake = lambda: self.wakes.append(asyncio.get_running_loop().time())
        self.leads = False
        self.tasks = [asyncio.ensure_future(self.groups.run())]

    def time(self) -> int:
        return int(self.cluster.now().timestamp() * SECOND)

    def clock(self) -> int:
        return int(asyncio.get_running_loop().time() * SECOND)

    def lead(self) -> None:
        self.leads = True
        self.tasks.append(asyncio.ensure_future(self.groups.lead(lambda: self.leads)))

    def members(self, job: str, number: int, size: int) -> None:
        for at in range(number):
            self.told.unplaced(
                f"{job}-{at}", labels={"job": job}, annotations={"size": str(size)}, schedulerName="fairlead"
            )

    def membership(self, job: str, size: int) -> Membership:
        return Membership(Group("fairlead", "ml", job), size, 30, "p", "job")

    def rejection(self, job: str, size: int) -> str | None:
        return self.groups.rejection(f"u-{job}-0", self.membership(job, size), self.time())

    @property
    def held(self) -> HeldBinds | None:
        return self.groups._held_binds.get("fairlead")

    def call(self, job: str, number: int, size: int) -> "asyncio.Task[BindResult]":
        assert self.held is not None
        name = f"{job}-{number}"
        bind = PodBind(f"u-{name}", f"ml/{name}", "n1", cast("Any", nothing()), cast("Any", Caller()))
        ends = self.clock() + 3600 * SECOND
        return asyncio.ensure_future(self.held.bind(bind, self.membership(job, size), "10.0.0.1", ends))

    def metric(self, name: str) -> list[str]:
        metrics = Metrics()
        self.groups.register(metrics)
        return [one for one in metrics.exposition().decode().splitlines() if one.startswith(name)]


@asynccontextmanager
async def replicas(
    cluster: FakeCluster, number: int = 1, namespace: str | None = NAMESPACE
) -> AsyncIterator[list[Replica]]:
    async with Wire(cluster.api).client() as client:
        made = [Replica(cluster, client, namespace) for _ in range(number)]
        try:
            yield made
        finally:
            for task in [task for one in made for task in one.tasks]:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def story(test: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time, in a cluster of its own."""

    @wraps(test)
    def run() -> None:
        virtual.run(test(FakeCluster()))

    del run.__wrapped__  # pytest would ask for the cluster
    return run


@story
async def test_the_replica_that_leads_holds_the_calls_of_schedulers_with_groups(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await asyncio.sleep(2)
        assert one.held is None, "no policy has groups"
        await one.groups.follow([POLICY])
        assert one.held is not None
        await one.groups.follow([])
        assert one.held is None


@story
async def test_policies_that_come_before_leadership_are_held_for_as_well(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        await one.groups.follow([POLICY])
        assert one.held is None
        one.lead()
        await asyncio.sleep(2)
        assert one.held is not None


@story
async def test_a_look_at_pods_that_takes_too_long_keeps_nobody_from_holding(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await asyncio.sleep(2)
        one.members("red", 200, 2)
        following = asyncio.ensure_future(one.groups.follow([POLICY]))
        await asyncio.sleep(0)
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        assert one.held is not None
        await asyncio.sleep(2)
        assert one.groups.watch.index.known(RED) == 200


@story
async def test_who_leads_no_more_answers_all_and_who_leads_again_holds_again(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.members("red", 2, 2)
        call = one.call("red", 0, 2)
        await asyncio.sleep(0.5)
        assert not call.done()
        one.leads = False
        await asyncio.sleep(2)
        assert isinstance(await call, NotBound)
        assert one.held is None
        one.leads = True
        await asyncio.sleep(2)
        assert one.held is not None
        calls = [one.call("red", number, 2) for number in range(2)]
        assert [*await asyncio.gather(*calls)] == [Bound(None)] * 2


@story
async def test_leadership_that_is_lost_for_less_than_a_look_is_held_with_again(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.leads = False
        assert isinstance(await one.call("red", 0, 2), NotBound)
        one.leads = True
        await asyncio.sleep(2)
        assert one.held is not None
        assert not one.held.is_stopped


@story
async def test_the_drain_answers_all_and_nothing_is_held_after_it(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        call = one.call("red", 0, 2)
        await asyncio.sleep(0.5)
        await one.groups.stop()
        assert isinstance(await call, NotBound)
        await asyncio.sleep(2)
        await one.groups.follow([POLICY])
        assert one.held is None


@story
async def test_a_call_whose_policies_go_is_answered(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.members("red", 2, 2)
        call = one.call("red", 0, 2)
        await asyncio.sleep(0.5)
        await one.groups.follow([])
        assert isinstance(await call, NotBound)


@story
async def test_filter_says_the_same_on_every_replica_once_it_is_published(cluster: FakeCluster) -> None:
    async with replicas(cluster, 2) as (leader, other):
        leader.lead()
        for one in (leader, other):
            await one.groups.follow([POLICY])
            one.members("red", 1, 2)
            assert one.rejection("red", 2) == WAITING
            one.members("red", 2, 2)
            one.members("blue", 2, 2)
            assert (one.rejection("red", 2), one.rejection("blue", 2)) == (None, None)
        await asyncio.sleep(2)
        call = leader.call("red", 0, 2)
        await asyncio.sleep(1)
        for one in (leader, other):
            assert (one.rejection("red", 2), one.rejection("blue", 2)) == (None, PLACING)
        assert isinstance(await call, NotBound)  # no other one came
        await asyncio.sleep(1)
        for one in (leader, other):
            assert one.rejection("red", 2) == RESTING


@story
async def test_wake_ups_come_after_what_they_are_for_is_published(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.members("red", 1, 2)
        await asyncio.sleep(1)
        assert one.wakes == []
        seen: list[str | None] = []
        one.groups.wake = lambda: seen.append(one.rejection("red", 2))
        one.members("red", 2, 2)
        await asyncio.sleep(1)
        assert seen == [None]
        name = turns_name("fairlead")
        assert [key for key in cluster.api.objects if key[3] == name] != []


@story
async def test_a_process_that_is_alone_publishes_nothing_and_wakes_by_itself(cluster: FakeCluster) -> None:
    async with replicas(cluster, namespace=None) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.members("red", 2, 2)
        await asyncio.sleep(1)
        assert len(one.wakes) == 1
        assert one.groups.on_demand == {}
        assert not [key for key in cluster.api.objects if "turns" in key[3]]


class Api:
    """What reads of placed pods show; each read fails so often before."""

    def __init__(self, found: dict[str, Any], fails: int = 0) -> None:
        self.found, self.fails, self.reads = found, fails, 0

    async def read_body(self, _namespace: str, name: str, _timeout_s: float) -> Any:
        self.reads += 1
        if self.reads <= self.fails:
            return Failed("no answer")
        return written(self.found[name]) if name in self.found else Missing()


@story
async def test_held_calls_of_a_group_that_has_started_otherwise_are_released(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.members("red", 3, 3)
        call = one.call("red", 0, 3)
        await asyncio.sleep(0.5)
        alive = pod("p", labels={"job": "red"}, annotations={"size": "3"})
        api = Api({"p": alive}, fails=2)
        one.groups.binds._api = cast("Any", api)
        one.told.node()
        one.told.pod("p", labels={"job": "red"}, annotations={"size": "3"})
        assert await call == Bound(None)
        assert (api.reads, one.groups._reading) == (3, {})


@story
async def test_held_calls_stay_held_while_only_the_mirror_shows_a_placed_pod(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.members("red", 3, 3)
        call = one.call("red", 0, 3)
        await asyncio.sleep(0.5)
        api = Api({})
        one.groups.binds._api = cast("Any", api)
        one.told.node()
        one.told.pod("p", labels={"job": "red"}, annotations={"size": "3"})
        await asyncio.sleep(1)
        assert (api.reads, call.done(), one.groups._reading) == (1, False, {})
        assert isinstance(await call, NotBound)


@story
async def test_members_and_groups_as_preempt_asks_for_them(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        await one.groups.follow([POLICY])
        one.members("red", 1, 2)
        one.told.node()
        one.told.pod("p", labels={"job": "blue"}, annotations={"size": "2"})
        assert (one.groups.is_member("u-red-0"), one.groups.is_member("u-p")) == (True, False)
        assert (one.groups.is_placed(RED), one.groups.is_placed(BLUE)) == (False, True)


@story
async def test_what_is_counted(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        one.lead()
        await one.groups.follow([POLICY])
        await asyncio.sleep(2)
        one.members("red", 2, 2)
        call = one.call("red", 0, 2)
        await asyncio.sleep(0.5)
        assert one.metric("fairlead_held_binds{") == ['fairlead_held_binds{scheduler="fairlead"} 1.0']
        assert [*await asyncio.gather(call, one.call("red", 1, 2))] == [Bound(None)] * 2
        attempts = one.metric("fairlead_group_attempts_total{")
        assert [line for line in attempts if not line.endswith(" 0.0")] == [
            'fairlead_group_attempts_total{result="started",scheduler="fairlead"} 1.0'
        ]
        assert one.metric("fairlead_group_hold_seconds_count{") == [
            'fairlead_group_hold_seconds_count{scheduler="fairlead"} 1.0'
        ]


@story
async def test_the_turns_keep_no_replica_from_being_ready(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        assert (dict(one.groups.on_demand), dict(one.groups.reflectors)) == ({}, {})
        await one.groups.follow([POLICY])
        assert ([*one.groups.on_demand], dict(one.groups.reflectors)) == (["turns"], {})
        assert [*one.groups.missing_permissions()] == []


@story
async def test_a_replica_that_knows_others_passes_calls_on(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        assert one.groups.binds.pass_on is None

        async def context() -> ssl.SSLContext:
            raise AssertionError

        one.groups.pass_on(lambda: "", context, "fairlead.fairlead-system.svc")
        assert one.groups.binds.pass_on is not None


@story
async def test_groups_that_have_waited_for_long_are_reported_by_a_replica_that_does_not_lead(
    cluster: FakeCluster,
) -> None:
    async with replicas(cluster) as (one,):
        before = ReplicaState(policies={"p": PolicyState(uid="u", generation="1", reason="Compiled", hold_s=30)})
        await one.groups.follow([POLICY])
        assert one.groups.report(before) == before
        one.members("red", 1, 2)  # the API's first version of a pod that was created long ago
        waiting = one.groups.report(before).policies["p"].waiting_groups
        assert waiting == WaitingGroups(incomplete=1, longest="ml/red")
