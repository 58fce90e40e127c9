"""Causes for which a pod waits: `fairlead explain`, the scheduler's own message and `fairlead status` say the same."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from demo.measured import LoadBeside
from extender import Stage
from extender.stage import URGENT
from fairlead.cli.main import main
from support.chart.chart import NAMESPACE
from support.chart.release import OPERATOR, Release, pods_of_one_test, released
from testbed import layout
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster

_POOL = "node.metadata.labels[?'pool'].orValue('') == pod.metadata.labels[?'pool'].orValue('')"
_FIRST, _SECOND = "of the first generation", "of the second generation"
_COUNTED = re.compile(r"0/\d+ nodes are available: (.*?)\.( |$)")


@dataclass(frozen=True, slots=True)
class Cause:
    """A pod that waits, as three programs tell it."""

    event: str
    """Reason and message of its condition PodScheduled."""
    explained: Mapping[str, Any]
    text: str
    status: Mapping[str, Any]

    @property
    def verdicts(self) -> set[str]:
        """The verdicts of all nodes."""
        return {node["verdict"] for node in self.explained["nodes"]}

    def agrees(self) -> None:
        """Each node is refused for what the scheduler counted, and the message stands above the table."""
        found = _COUNTED.search(self.event)
        assert found is not None, self.event
        parts = [one.partition(" ") for one in found[1].split(", ")]
        said = Counter({reason: int(count) for count, _, reason in parts})
        assert Counter(_first(node) for node in self.explained["nodes"]) == said
        assert self.verdicts <= {"Rejected", "DoesNotFit"}
        assert self.explained["preferred"] == []
        assert self.text.index(self.event) < self.text.index("VERDICT")
        assert "UNSCHEDULABLE: none of " in self.text


def _first(node: Mapping[str, Any]) -> str:
    """What the scheduler counts a node for: its own filters come before the extender."""
    unfit = [str(one["what"]) for one in node["unfit"]]
    return unfit[0] if unfit else str(node["rejectedBy"][0]["reason"])


@pytest.fixture(scope="module")
def release(
    cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str, prometheus_program: object
) -> Iterator[Release]:
    """Installed, with a Prometheus that measures all nodes as hot."""
    with released(cluster, operator_image_tag, 4) as made:
        found = layout.load(cluster.folder.name)
        assert found is not None
        load = LoadBeside(found)
        names = [one["metadata"]["name"] for one in cluster.api.items("/api/v1/nodes")]
        load.up(dict.fromkeys(names, 0.95))
        made.install(prometheus=[{"name": "default", "url": load.url}])
        yield made


@pytest.fixture
def pods(release: Release, namespace: str) -> Iterator[Stage]:
    """Pods of this test alone, whose policies go with them."""
    with pods_of_one_test(release, namespace) as stage:
        yield stage


@dataclass(frozen=True, slots=True)
class Asking:
    """The three programs."""

    release: Release
    stage: Stage
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a command prints."""
        self.capsys.readouterr()
        assert main([*arguments, "--kubeconfig", str(self.release.cluster.kubeconfig)]) == code
        return self.capsys.readouterr().out

    def about(self, name: str, *, tried: bool = True) -> Cause:
        """What is said of a pod, once its scheduler has tried it."""

        def event() -> str | None:
            conditions = self.stage.pod(name).get("status", {}).get("conditions", [])
            found = [one for one in conditions if one["type"] == "PodScheduled"]
            return found[0]["message"] if found else None

        said = wait_for(f"{name} to be tried", event, timeout_s=120) if tried else ""
        asked = (f"pod/{name}", "-n", self.stage.name)
        text, explained = self.run("explain", *asked), json.loads(self.run("explain", *asked, "-o", "json"))
        self.capsys.readouterr()
        main(["status", "-o", "json", "--kubeconfig", str(self.release.cluster.kubeconfig)])
        return Cause(event() or said if tried else "", explained, text, json.loads(self.capsys.readouterr().out))


@pytest.fixture
def asking(release: Release, pods: Stage, capsys: pytest.CaptureFixture[str]) -> Asking:
    return Asking(release, pods, capsys)


def _filter(reason: str, expression: str = _POOL) -> list[Object]:
    return [{"name": "pool", "expression": expression, "reason": reason}]


def _applied(release: Release, name: str = "pools", **spec: object) -> None:
    release.put(name, **(spec or {"filters": _filter(_FIRST)}))
    release.ready(name, within="180s")


def test_a_rule_rejects(release: Release, asking: Asking) -> None:
    _applied(release)
    asking.stage.make_pods(["p"], labels={"pool": "c"}, scheduler="fairlead")
    found = asking.about("p")
    found.agrees()
    assert f"nodes are available: 5 {_FIRST}" in found.event
    assert "operator: 2 of 2 replicas ready" in found.text
    assert (found.status["ready"], found.status["strays"]) == (True, [])


def test_a_measured_value_rejects_and_the_replicas_are_asked_for_it(release: Release, asking: Asking) -> None:
    _applied(
        release,
        data=[{"name": "load", "prometheus": {"query": "load", "nodeLabel": "node", "interval": "5s"}, "maxAge": "5m"}],
        filters=[
            {"name": "cool", "telemetry": {"rules": [{"value": "load", "operator": "GreaterThan", "target": 0.8}]}}
        ],
    )
    asking.stage.make_pods(["p"], scheduler="fairlead")
    found = asking.about("p")
    found.agrees()
    assert "5 load is too high" in found.event
    assert "value 0.95, operator 'GreaterThan', target 0.8, fires true" in found.text
    assert "Note: prometheus default: load: values of the replica fairlead-" in found.text


def test_the_last_good_generation_rejects(release: Release, asking: Asking) -> None:
    _applied(release)
    release.kubectl("scale", "deployment/fairlead", "-n", NAMESPACE, "--replicas=0")
    wait_for("no replica", lambda: not release.uids(OPERATOR))
    release.put("pools", filters=_filter(_SECOND, "node.metadata.nam == 'a'"))
    release.kubectl("scale", "deployment/fairlead", "-n", NAMESPACE, "--replicas=2")
    release.runs(2)
    release.until("pools", "Compiled", "LastGoodServes")
    asking.stage.make_pods(["p"], labels={"pool": "c"}, scheduler="fairlead")
    found = asking.about("p")
    found.agrees()
    assert f"5 {_FIRST}" in found.event
    assert "Serving: pools: generation 2 does not compile, replicas still serve generation 1" in found.text
    (policy,) = found.status["policies"]
    assert (policy["generation"], policy["serving"], policy["reason"]) == (2, 1, "LastGoodServes")


def test_no_replica_answers(release: Release, asking: Asking) -> None:
    _applied(release)
    release.kubectl("scale", "deployment/fairlead", "-n", NAMESPACE, "--replicas=0")
    wait_for("no replica", lambda: not release.uids(OPERATOR))
    try:
        asking.stage.make_pods(["p"], labels={"pool": "a"}, scheduler="fairlead")
        found = asking.about("p")
    finally:
        release.kubectl("scale", "deployment/fairlead", "-n", NAMESPACE, "--replicas=2")
        release.runs(2)
    assert 'Post "https://fairlead.fairlead-system.svc:8443/filter": ' in found.event
    assert found.event in found.text
    assert found.verdicts == {"NoAnswer"}
    assert (
        "UNSCHEDULABLE: no replica answers scheduler fairlead, and all its pods wait (failurePolicy Fail of pools)"
        in (found.text)
    )
    assert "Serving: pools: generation 1; no replica serves it, as none is ready" in found.text
    assert [one["kind"] for one in found.status["wrong"]][:1] == ["operator"]


def test_no_scheduler_has_that_name(release: Release, asking: Asking) -> None:
    _applied(release)
    asking.stage.make_pods(["p"], labels={"pool": "a"}, scheduler="fairleed")
    found = asking.about("p", tried=False)
    assert "NOT SCHEDULED: there is no scheduler fairleed (did you mean fairlead?)" in found.text
    assert [(one["scheduler"], one["pod"], one["meant"]) for one in found.status["strays"]] == [
        ("fairleed", f"{asking.stage.name}/p", "fairlead")
    ]
    assert found.status["ready"] is True


def test_no_node_has_room(release: Release, asking: Asking) -> None:
    _applied(release)
    asking.stage.make_pods(["p"], labels={"pool": "a"}, cpu="9999", scheduler="fairlead")
    found = asking.about("p")
    found.agrees()
    assert "5 Insufficient cpu" in found.event


def test_a_taint_keeps_it_away(release: Release, asking: Asking) -> None:
    _applied(release)
    spec = {"schedulerName": "fairlead", "containers": [{"name": "c", "image": "none"}]}
    made = {"metadata": {"name": "p", "labels": {"pool": "a"}}, "spec": spec}
    release.api.create(f"/api/v1/namespaces/{asking.stage.name}/pods", made)
    found = asking.about("p")
    found.agrees()
    assert "4 node(s) had untolerated taint(s)" in found.event


def test_a_policy_protects_what_would_have_to_be_evicted(release: Release, asking: Asking) -> None:
    protect = {"protect": [{"name": "kept", "expression": "'keep' in victim.metadata.labels"}]}
    _applied(release, preemption=protect)
    stage, ours = asking.stage, {"kubernetes.io/hostname": release.nodes[0]}
    has = release.api.get(f"/api/v1/nodes/{release.nodes[0]}")["status"]["allocatable"]["cpu"]
    stage.make_pods(["low"], on=release.nodes[0], cpu=has, labels={"keep": ""})
    release.api.patch(f"/api/v1/nodes/{release.nodes[0]}", {"metadata": {"labels": ours}})
    spec = {
        "schedulerName": "fairlead",
        "priorityClassName": URGENT,
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": ours,
        "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
    }
    release.api.create(stage.path, {"metadata": {"name": "p"}, "spec": spec})
    found = asking.about("p")
    assert "1 Insufficient cpu" in found.event
    (one,) = found.explained["evictions"]
    assert (one["node"], one["victims"]) == (release.nodes[0], [f"{stage.name}/low"])
    assert one["protected"] == [{"pod": f"{stage.name}/low", "policy": "pools", "rule": "kept"}]
    assert one["possible"] is False
    assert "given up: pools/kept: a victim is protected" in found.text
    assert "low" in stage.living()
