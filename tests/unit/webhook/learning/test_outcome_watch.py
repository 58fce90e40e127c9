"""The replica that leads watches outcomes and publishes them; every replica answers from what is published."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import Any, Final

from msgspec import structs

from fairlead.kube.http.client import Client
from fairlead.learned.pair import LearnedOutcomes
from fairlead.metrics import Metrics
from fairlead.mirror import decode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import in_mode
from fairlead.replica_state import PolicyState, ReplicaState
from fairlead.webhook.learning.learning import Learning
from support.faults import virtual
from support.faults.api import Key
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import Wire
from support.mirror import FedMirror, node, pod, written
from support.policy import policy

PREFIX: Final = "fairlead-learned-p-works-"
END: Final = "2026-11-21T00:00:01Z"


def learns(**params: Any) -> CompiledPolicy:
    return policy(schedulerName="s", scores={"works": {"kubeRL": params}})


def failed(name: str, *, on: str = "n1", scheduler: str = "s") -> dict[str, Any]:
    """Return a pod whose container failed at once."""
    terminated = {"exitCode": 1, "startedAt": END, "finishedAt": END, "containerID": f"id-{name}"}
    status = {"name": "main", "restartCount": 0, "state": {"terminated": terminated}}
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"nodeName": on, "schedulerName": scheduler, "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def at(name: str) -> Key:
    return "", "pods", "ml", name


class Replica:
    """A replica of the operator: what it has learned, and its task while it leads."""

    def __init__(self, cluster: FakeCluster, client: Client, namespace: str | None = NAMESPACE) -> None:
        self.cluster = cluster
        self.mirror = FedMirror().mirror
        for name in ("n1", "n2"):
            self.mirror.node_sink.put(decode.node(written(node(name))))
        self.learning = Learning(client, self.mirror, namespace, self._now, lambda _: True)
        self.tasks: list[asyncio.Task[None]] = [asyncio.ensure_future(self.learning.run())]
        self.leads: asyncio.Task[None] | None = None
        self.shown: dict[str, float] = {}

    def _now(self) -> int:
        return int(self.cluster.now().timestamp() * 10**9)

    def lead(self) -> None:
        self.leads = asyncio.ensure_future(self.learning.lead(lambda: True))

    async def stop_leading(self, *, is_killed: bool = False) -> None:
        assert self.leads
        if is_killed:
            self.learning._watch.learners.clear()
        self.leads.cancel()
        with suppress(asyncio.CancelledError):
            await self.leads

    def weight(self, name: str = "n1") -> float:
        """What it answers from: the weight of the outcomes of a type on a node."""
        view = self.mirror.nodes.view_of(name)
        assert view is not None
        table = next(iter(self.mirror.nodes.learned.tables.values()))  # of the rule that serves
        learned = table.learned("ml/web", view)
        return learned.sums.weight if isinstance(learned, LearnedOutcomes) else -1.0

    def metric(self, name: str) -> dict[Any, float]:
        metrics = Metrics()
        self.learning.register(metrics)
        for line in metrics.exposition().decode().splitlines():
            if line.startswith(name):
                self.shown[line.partition("{")[2].partition("}")[0]] = float(line.rpartition(" ")[2])
        return self.shown


@asynccontextmanager
async def replicas(
    cluster: FakeCluster, number: int = 1, namespace: str | None = NAMESPACE
) -> AsyncIterator[list[Replica]]:
    async with Wire(cluster.api).client() as client:
        made = [Replica(cluster, client, namespace) for _ in range(number)]
        try:
            yield made
        finally:
            for one in made:
                for task in [*one.tasks, *([one.leads] if one.leads else [])]:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task


def published(cluster: FakeCluster) -> dict[str, Any]:
    return {key[3]: obj for key, obj in cluster.api.objects.items() if key[3].startswith(PREFIX)}


def story(test: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time, in a cluster of its own."""

    @wraps(test)
    def run() -> None:
        virtual.run(test(FakeCluster()))

    del run.__wrapped__  # pytest would ask for the cluster
    return run


@story
async def test_outcomes_are_published_and_every_replica_answers_from_them(cluster: FakeCluster) -> None:
    cluster.api.put(at("before"), failed("before"))
    async with replicas(cluster, 2) as (leader, other):
        for one in (leader, other):
            await one.learning.follow([learns()])
        leader.lead()
        await asyncio.sleep(20)
        assert (leader.weight(), other.weight()) == (1.0, 1.0)
        for number in range(5):
            cluster.api.put(at(f"web-{number}"), failed(f"web-{number}", on="n2"))
        cluster.api.put(at("other"), failed("other", scheduler="another"))
        await asyncio.sleep(20)
        assert [(one.weight("n1"), one.weight("n2")) for one in (leader, other)] == [(1.0, 5.0)] * 2
        assert leader.metric("fairlead_learned_observations_total") == {'outcome="failure",policy="p",rule="works"': 5}
        assert other.metric("fairlead_learned_observations_total") == {}
        (config_map, *_) = published(cluster).values()
        assert config_map["metadata"]["ownerReferences"][0]["uid"] == "u-p"


@story
async def test_a_pod_that_is_deleted_between_two_publications_counts(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([learns()])
        leader.lead()
        await asyncio.sleep(5)
        cluster.api.put(at("web"), failed("web"))
        cluster.api.delete(at("web"))
        await asyncio.sleep(20)
        assert leader.weight() == 1.0


@story
async def test_a_leader_that_ends_publishes_what_it_has(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([learns()])
        leader.lead()
        await asyncio.sleep(16)
        cluster.api.put(at("web"), failed("web"))
        await asyncio.sleep(1)
        assert published(cluster) == {}
        await leader.stop_leading()
        await asyncio.sleep(1)
        assert leader.weight() == 1.0


@story
async def test_what_a_killed_leader_did_not_publish_the_next_one_finds_at_its_pod(cluster: FakeCluster) -> None:
    async with replicas(cluster, 2) as (killed, following):
        for one in (killed, following):
            await one.learning.follow([learns()])
        killed.lead()
        cluster.api.put(at("first"), failed("first"))
        await asyncio.sleep(20)
        cluster.api.put(at("second"), failed("second"))
        cluster.api.put(at("gone"), failed("gone"))
        await asyncio.sleep(1)
        cluster.api.delete(at("gone"))
        await killed.stop_leading(is_killed=True)
        following.lead()
        await asyncio.sleep(20)
        assert (killed.weight(), following.weight()) == (2.0, 2.0)


@story
async def test_two_that_believe_to_lead_count_each_outcome_once(cluster: FakeCluster) -> None:
    async with replicas(cluster, 2) as both:
        for one in both:
            await one.learning.follow([learns()])
            one.lead()
        for number in range(10):
            cluster.api.put(at(f"web-{number}"), failed(f"web-{number}"))
            await asyncio.sleep(7)
        await asyncio.sleep(40)
        assert [one.weight() for one in both] == [10.0] * 2
        late = [one.metric("fairlead_learned_late_total") for one in both]
        assert late == [{}, {}]


@story
async def test_no_more_than_one_write_a_shard_in_15_s(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([learns()])
        leader.lead()
        before = cluster.api.version
        for number in range(600):
            cluster.api.put(at(f"web-{number}"), failed(f"web-{number}"))
            await asyncio.sleep(1)
        (shard,) = published(cluster)
        writes = [one for one in cluster.api.history if one.version > before and one.key[3] == shard]
        assert 30 <= len(writes) <= 40, "fewer if the machine is slow: publications pause for as long as they compute"


@story
async def test_an_edit_of_the_weight_keeps_what_was_learned_and_one_of_the_type_begins_anew(
    cluster: FakeCluster,
) -> None:
    cluster.api.put(at("web"), failed("web"))
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([learns()])
        leader.lead()
        await asyncio.sleep(20)
        cluster.api.delete(at("web"))
        await leader.learning.follow([learns(priorPercent=50)])
        cluster.api.put(at("web-2"), failed("web-2"))
        await asyncio.sleep(20)
        assert leader.weight() == 2.0
        await leader.learning.follow([learns(settle="1m")])
        await asyncio.sleep(20)
        assert leader.weight() == 1.0, "the pod that is still there"


@story
async def test_nothing_is_watched_without_a_policy_that_learns(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([policy(schedulerName="s", filters={"f": "true"})])
        leader.lead()
        await asyncio.sleep(5)
        assert not leader.learning.reflectors
        assert not leader.learning._watch.reflectors
        await leader.learning.follow([learns()])
        await asyncio.sleep(5)
        assert [*leader.learning.reflectors] == ["learned state"]
        assert [str(one) for one in leader.learning.remarks()] == ["[+] outcomes: s: 0 pods"]
        await leader.learning.follow([])
        await asyncio.sleep(5)
        assert not leader.learning._watch.reflectors


@story
async def test_a_policy_in_shadow_is_no_part_of_readiness(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (one,):
        for policies in ([in_mode(learns(), "Shadow")], [in_mode(packs(), "Shadow")]):
            await one.learning.follow(policies)
            assert ({*one.learning.reflectors}, {*one.learning.on_demand}) == (set(), {"learned state"})
        await one.learning.follow([learns()])
        assert ({*one.learning.reflectors}, {*one.learning.on_demand}) == ({"learned state"}, set())


@story
async def test_a_policy_that_is_off_keeps_what_it_has_learned_and_learns_nothing(cluster: FakeCluster) -> None:
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([learns()])
        leader.lead()
        await asyncio.sleep(2)
        cluster.api.put(at("web"), failed("web"))
        await asyncio.sleep(20)
        await leader.learning.follow([])
        cluster.api.delete(at("web"))
        cluster.api.put(at("off"), failed("off"))
        await asyncio.sleep(20)
        cluster.api.delete(at("off"))
        await leader.learning.follow([learns()])
        await asyncio.sleep(20)
        assert leader.weight() == 1.0


def packs(**params: Any) -> CompiledPolicy:
    return policy(schedulerName="fairlead", scores={"works": {"pigeon": params}})


def request(one: Replica, of: CompiledPolicy) -> tuple[int, float]:
    """What it answers from: the number of pods, and the mean of their first request."""
    ((name, read),) = of.demanding
    known = one.mirror.nodes.learned_demands(of.uid, name, read)
    return known.number, known.mean[0]


def waits(one: Replica, name: str, cpu: str, created: int) -> None:
    made = pod(name, on="", cpu=cpu)
    made["spec"]["schedulerName"] = "fairlead"
    made["metadata"]["creationTimestamp"] = f"2026-11-21T00:{created // 60:02}:{created % 60:02}Z"
    one.mirror.unplaced_sink.put(decode.pod(written(made)))


@story
async def test_the_newest_requests_of_pods_are_learned_by_two_leaders_once_and_followed(cluster: FakeCluster) -> None:
    rule = packs(samples=3, minSamples=3, resources=["cpu"])
    async with replicas(cluster, 3) as (one, other, follower):
        for each in (one, other, follower):
            await each.learning.follow([rule])
        waits(one, "before", "8", 1)
        for each in (one, other):
            each.lead()
        await asyncio.sleep(5)
        for each in (other, one, one):
            for at, cpu in ((30, "4"), (33, "2"), (31, "500m"), (32, "1")):
                waits(each, f"pod-{at}", cpu, at)
        await asyncio.sleep(60)
        assert [request(each, rule) for each in (one, other, follower)] == [(3, 3.5 / 3)] * 3
        (config_map,) = published(cluster)
        assert config_map == "fairlead-learned-p-works-0"
        assert one.metric("fairlead_learned_entries") == {'policy="p",rule="works"': 3}


@story
async def test_requests_are_learned_in_shadow(cluster: FakeCluster) -> None:
    rule = packs(samples=3, minSamples=1, resources=["cpu"])
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([in_mode(rule, "Shadow")])
        leader.lead()
        await asyncio.sleep(2)
        waits(leader, "pod", "4", 1)
        await asyncio.sleep(20)
        assert request(leader, rule) == (1, 4.0)


@story
async def test_floors_and_samples_are_applied_when_requests_are_read(cluster: FakeCluster) -> None:
    rule = packs(samples=10, minSamples=2, resources=["cpu"])
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([rule])
        leader.lead()
        await asyncio.sleep(2)
        for at in range(4):
            waits(leader, f"pod-{at}", str(at + 1), at)
        await asyncio.sleep(20)
        assert request(leader, rule) == (4, 2.5)
        edited = packs(samples=2, resources=["cpu"], floors=[{"name": "cpu", "quantity": "3500m"}])
        await leader.learning.follow([edited])
        assert request(leader, edited) == (2, 3.75)
        await leader.learning.follow([packs(resources=["memory"])])
        await asyncio.sleep(20)
        assert request(leader, packs(resources=["memory"])) == (4, 0.0), "the pods that still wait"


@story
async def test_a_process_that_is_alone_learns_in_memory(cluster: FakeCluster) -> None:
    async with replicas(cluster, namespace=None) as (alone,):
        await alone.learning.follow([learns()])
        alone.lead()
        cluster.api.put(at("before"), failed("before"))
        await asyncio.sleep(20)
        cluster.api.put(at("web"), failed("web", on="n2"))
        await asyncio.sleep(20)
        assert (alone.weight("n1"), alone.weight("n2")) == (1.0, 1.0)
        assert published(cluster) == {}
        assert not alone.learning.reflectors
        await alone.learning.follow([learns(priorPercent=50)])
        await asyncio.sleep(20)
        assert alone.weight() == 1.0
        await alone.learning.follow([learns(settle="1m")])
        cluster.api.delete(at("web"))
        await asyncio.sleep(20)
        assert (alone.weight("n1"), alone.weight("n2")) == (1.0, 0.0), "the pod that is still there"


@story
async def test_a_process_that_is_alone_learns_requests_and_forgets_those_of_a_policy_that_is_gone(
    cluster: FakeCluster,
) -> None:
    rule = packs(samples=3, minSamples=3, resources=["cpu"])
    async with replicas(cluster, namespace=None) as (alone,):
        await alone.learning.follow([rule])
        alone.lead()
        for created, cpu in ((30, "4"), (33, "2"), (31, "500m"), (32, "1")):
            waits(alone, f"pod-{created}", cpu, created)
        await asyncio.sleep(20)
        assert request(alone, rule) == (3, 3.5 / 3)
        await alone.learning.follow([])
        await alone.learning.follow([])
        assert not alone.learning._sink.states


@story
async def test_what_cannot_be_read_is_reported_with_its_policy_and_left_alone(cluster: FakeCluster) -> None:
    cluster.api.put(at("web"), failed("web"))
    async with replicas(cluster) as (leader,):
        await leader.learning.follow([learns()])
        leader.lead()
        await asyncio.sleep(20)
        (name,) = published(cluster)
        key = "", "configmaps", NAMESPACE, name
        newer = cluster.api.edit(key, data={"pairs": '{"v": 2}'})["data"]
        cluster.api.put(at("next"), failed("next"))
        await asyncio.sleep(40)
        assert cluster.api.objects[key]["data"] == newer
        mine, other = PolicyState(uid="u-p", generation="1", reason="Compiled", mode="Enforce"), "another"
        states = {"p": mine, "q": mine, "off": structs.replace(mine, mode="")}
        reported = leader.learning.report(ReplicaState(policies={**states, other: structs.replace(mine, uid=other)}))
        faults = {policy: state.unreadable for policy, state in reported.policies.items() if state.unreadable}
        assert [*faults] == ["p"]
        assert faults["p"][0].startswith(f"ConfigMap {name}, what a rule has learned, has format '2'")
        cluster.api.delete(key)
        await asyncio.sleep(20)
        assert leader.learning.report(reported) is reported
