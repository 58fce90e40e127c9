"""Published affinity with a real kube-scheduler: what it asks about, evictions, and edits under a stream of pods."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from extender import Recorder, Stage
from support.chart.published_affinity import affinity_added, affinity_of, publish
from support.kube.crd import let_all_go, policies_served
from support.process.operating import Operating
from support.process.serving import Serving
from support.stream import Follow, Stream, table
from testbed import tables
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster, Kubectl, MakeNodes, StartScheduler
from testbed.node_template import equal

NODES: Final = int(os.environ.get("FAIRLEAD_PUBLISHED_NODES", "30"))
"""Of more than 100 the scheduler asks about a part: of 210 about 102."""
pytestmark = pytest.mark.since("1.36")
STREAM_S: Final = int(os.environ.get("FAIRLEAD_PUBLISHED_S", "0"))
"""Seconds of the stream after each edit."""
_ALLOWED: Final = 10
_BAD: Final = [{"name": "pool", "expression": "node.metadata.lables['pool'] == 'a'"}]
_PASSES: Final = "passes"
_UID: Final = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def adds(ground: Cluster, namespace: str, kubectl: Kubectl) -> Iterator[Cluster]:
    """A cluster with what the chart of an operator in this namespace makes of publishedAffinity."""
    with affinity_added(ground, kubectl, f"{namespace}-system"):
        yield ground


def _values(api: Api, pods: str, scheduler: str) -> Sequence[str]:
    """Return the values that a new pod requires of its node's label; none if it requires nothing."""
    spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "main"}]}
    found = affinity_of(api.create(f"{pods}?dryRun=All", {"metadata": {"name": "new"}, "spec": spec}))
    if found is None:
        return ()
    ((requirement,),) = [term["matchExpressions"] for term in found["nodeSelectorTerms"]]
    assert (requirement["key"], requirement["operator"]) == ("pool", "In")
    return tuple(requirement["values"])


def _pools(*pools: str) -> list[Object]:
    return [{"name": "pool", "expression": f"node.metadata.labels[?'pool'].orValue('') in {[*pools]}"}]


def test_the_scheduler_asks_about_selected_nodes_only_and_evicts_on_no_other(
    adds: Cluster, stage: Stage, serving: Serving, kwok_nodes: MakeNodes, tmp_path: Path
) -> None:
    nodes = kwok_nodes(NODES, equal(labels={"pool": "theirs"}))
    ours, theirs = nodes[:_ALLOWED], nodes[_ALLOWED:]
    for node in ours:
        stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"pool": "ours"}}})
    spec = {"schedulerName": stage.name, "publish": "NodeAffinity", "filters": _pools("ours")}
    serving.put("pool", **spec)
    serving.start()
    with Recorder(tmp_path / "keys") as recorder:
        first = recorder.entry("first", "filter", "preempt")
        stage.start(first, *serving.entries(), percentageOfNodesToScore=0)

        def called(pod: str, verb: str = "filter") -> list[int]:
            return [len(call.nodes) for call in recorder.of(f"first/{verb}", pod=pod)]

        stage.make_pod("before")
        assert stage.placed("before") in ours
        stage.make_pod("nowhere-before", selector={"pool": "theirs"})
        stage.refusal("nowhere-before")
        print(f"before: {called('before')} names, and {called('nowhere-before')} for a pod without a node")
        assert min(called("before")) >= min(NODES, 100)
        assert called("nowhere-before"), "it is asked about although no node is left"

        kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
        publish(stage.api, {**kind, "metadata": {"name": "pool", "uid": _UID, "generation": 1}, "spec": spec})
        wait_for("new pods to have it", lambda: _values(stage.api, stage.path, stage.name) == ("ours",))
        stage.make_pod("after")
        assert stage.placed("after") in ours
        assert called("after") == [_ALLOWED]
        stage.make_pod("nowhere-after", selector={"pool": "theirs"})
        assert "didn't match Pod's node affinity/selector" in stage.refusal("nowhere-after")

        for node in theirs[:5]:
            stage.make_pod(f"small-{node}", on=node, cpu="8")
        for node in ours:
            stage.make_pod(f"large-{node}", on=node, cpu="8", urgent=True)
        before = stage.living()
        stage.make_pod("urgent", cpu="8", urgent=True)
        assert "preemption: " in stage.refusal("urgent")
        assert stage.living() == before | {"urgent"}
        assert called("urgent") == called("urgent", "preempt") == []
        assert called("nowhere-after") == []


@pytest.fixture
def operating(adds: Cluster, namespace: str, tmp_path: Path) -> Iterator[Operating]:
    """The only replica of the operator, which leads and publishes."""
    api, system = adds.api, f"{namespace}-system"
    api.create("/api/v1/namespaces", {"metadata": {"name": system}})
    wait_for("its account", lambda: api.exists(f"/api/v1/namespaces/{system}/serviceaccounts/default"))
    with policies_served(api):
        scheduler = f"{{name: {system}, management: ConfigOnly}}"
        settings = f"publishedAffinity: {{enabled: true}}\nschedulers: [{scheduler}]"
        made = Operating(adds, system, tmp_path, settings=settings)
        made.show_pod()
        made.start()
        yield made
        made.kill()
        let_all_go(api)
    api.delete(f"/api/v1/namespaces/{system}")


@dataclass(frozen=True, slots=True)
class Scene:
    """Twenty pods a second, and a policy about the pools of nodes that they may come to."""

    operating: Operating
    pods: Stream
    pools: Mapping[str, str]
    """The pool of each node."""
    verdicts: dict[str, str]
    """Verdict about each node at the moment, which is all that the stream knows of it."""

    def allow(self, pools: Collection[str]) -> None:
        """From now on a pod may come to nodes of these pools alone."""
        self.verdicts.update({node: _PASSES if pool in pools else "rejected" for node, pool in self.pools.items()})

    def until_published(self, pools: Collection[str]) -> None:
        """Wait until new pods require one of these pools, or nothing."""
        api, scheduler = self.operating.cluster.api, self.operating.namespace
        wait_for(
            f"new pods to require {pools}", lambda: {*_values(api, self.pods.path, scheduler)} == {*pools}, every_s=0.02
        )

    def edit(self, what: str, before: Collection[str], after: Collection[str], published: str, **spec: Any) -> None:
        """Edit the policy. While that comes into force pods come to nodes that pass before or after, then after it."""
        with self.pods.through(what):
            self.allow({*before, *after})
            self.operating.put("pool", **spec)
            self.until_published(published)
            if not {*before} <= {*after}:
                self.pods.flow(1)  # what was decided before is over
            self.allow(after)
            self.pods.flow(STREAM_S)

    def pools_in_use(self) -> set[str]:
        """Return the pools of the nodes that have pods."""
        found = self.operating.cluster.api.items(self.pods.path, fieldSelector="spec.nodeName!=")
        return {self.pools[one["spec"]["nodeName"]] for one in found}


@pytest.fixture
def scene(
    operating: Operating, namespace: str, kwok_nodes: MakeNodes, scheduler: StartScheduler, pytestconfig: pytest.Config
) -> Iterator[Scene]:
    """Fifteen nodes, of three pools."""
    pools = {node: "abc"[number % 3] for number, node in enumerate(kwok_nodes(15))}
    cluster, name = operating.cluster, operating.namespace
    for node, pool in pools.items():
        cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"pool": pool}}})
    verdicts = dict[str, str]()
    with closing(Api(cluster.kubeconfig)) as api, closing(Follow(cluster.audit_log)) as log:
        schedulers: dict[str, Mapping[str, str]] = {name: {"a": _PASSES, "b": _PASSES}}
        pods = Stream(api=api, namespace=namespace, log=log, nodes=verdicts, schedulers=schedulers)
        made = Scene(operating, pods, pools, verdicts)
        operating.put("pool", publish="NodeAffinity", filters=_pools("a", "b"))
        scheduler({"profiles": [{"schedulerName": name}], "extenders": operating.entries(), "podMaxBackoffSeconds": 5})
        made.until_published("ab")
        made.allow("ab")
        pods.begin()
        yield made
        pods.end()
        tables.leave(pytestconfig, "edits of published affinity", table([*pods.rows, pods.total()]))


@pytest.mark.asked_for("FAIRLEAD_PUBLISHED_S")
def test_edits_lose_no_pod_and_place_none_where_a_rule_rejects_it(scene: Scene) -> None:
    scene.edit("loosened", "ab", "abc", "abc", filters=_pools("a", "b", "c"))
    assert scene.pools_in_use() == {*"abc"}
    scene.edit("tightened", "abc", "a", "a", filters=_pools("a"))
    scene.edit("a rule that does not compile", "a", "a", "a", filters=_BAD)
    scene.edit("rolled back to the first", "a", "ab", "ab", filters=_pools("a", "b"))
    scene.edit("not published any more", "ab", "ab", "", publish="None")
