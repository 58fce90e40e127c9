"""Workloads: pods of their templates, and which pods are theirs."""

import json
from typing import Any

import pytest

from fairlead.cli.inputs.simulation_inputs import pods_of
from fairlead.simulation.snapshot_error import SnapshotError
from fairlead.simulation.workloads import KINDS, kind_spelt
from support.simulation.snapshot import Object, pod, snapshot
from support.simulation.workloads import owned, workload


def names(*objects: Object) -> list[str]:
    return [one.key[1] for one in pods_of(snapshot(*objects), "a.json")]


TEMPLATES: dict[str, tuple[list[Object], list[str]]] = {
    "as many as its replicas": ([workload(replicas=3)], ["web-0", "web-1", "web-2"]),
    "one by default": ([workload()], ["web-0"]),
    "a Job's parallelism": ([workload("Job", parallelism=2)], ["web-0", "web-1"]),
    "no more than its completions": ([workload("Job", parallelism=5, completions=2)], ["web-0", "web-1"]),
    "one at a time": ([workload("Job", completions=9)], ["web-0"]),
    "a CronJob": ([workload("CronJob", parallelism=2)], ["web-0", "web-1"]),
    "a DaemonSet, of which the nodes decide": ([workload("DaemonSet")], ["web-0"]),
    "pods beside it": ([workload(replicas=2), pod("x")], ["x", "web-0", "web-1"]),
    "none of one whose pods are there": (
        [workload(replicas=2), owned(pod("web-a-x"), "ReplicaSet", "web-a", pod_template_hash="a")],
        ["web-a-x"],
    ),
    "none of one that another has created": (
        [workload(replicas=1), owned(workload("ReplicaSet", "web-a", replicas=1), "Deployment", "web")],
        ["web-0"],
    ),
}


@pytest.mark.parametrize(("objects", "want"), TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_counts_as_its_replicas(objects: list[Object], want: list[str]) -> None:
    assert names(*objects) == want


def test_a_pod_of_a_template_is_what_the_api_server_would_store() -> None:
    [one] = pods_of(snapshot(workload("StatefulSet", "db")), "a.json")
    made: Any = json.loads(bytes(one.raw))
    assert (one.key, one.scheduler, one.waits) == (("ml", "db-0"), "fairlead", True)
    assert made["metadata"]["labels"] == {
        "gpu": "t4",
        "apps.kubernetes.io/pod-index": "0",
        "statefulset.kubernetes.io/pod-name": "db-0",
    }
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("StatefulSet", "db", True)
    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}


@pytest.mark.parametrize("replicas", [-1, "3", True, 10**9, 1.5])
def test_a_number_of_pods_that_is_none_is_refused(replicas: object) -> None:
    with pytest.raises(SnapshotError, match=r"a\.json: deployment ml/web: the number of its pods is not one from 0 to"):
        names(workload(replicas=replicas))


def test_a_template_that_is_missing_is_named() -> None:
    with pytest.raises(SnapshotError, match=r"a\.json: job ml/web: has no spec\.template with a spec"):
        names(workload("Job", template=None))


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.kind)
def test_kubectl_spells_kinds_in_many_ways(kind: Any) -> None:
    group = kind.group
    for name in (kind.short, kind.plural, kind.noun, kind.kind, f"{kind.plural}.{group}", f"{kind.noun}.v1.{group}"):
        assert kind_spelt(name) is kind
    assert [kind_spelt(one) for one in ("", "web", f"{kind.plural}.example.com", "pod")] == [None] * 4


def test_a_pod_of_another_namespace_or_a_longer_name_is_none_of_its() -> None:
    elsewhere = owned(pod("x", namespace="web"), "ReplicaSet", "web-a", pod_template_hash="a")
    longer = owned(pod("y"), "ReplicaSet", "web-api-a", pod_template_hash="a")
    assert names(workload(replicas=1), elsewhere, longer) == ["x", "y", "web-0"]


def test_the_newest_time_of_a_snapshot_is_that_of_what_kubelets_wrote_last() -> None:
    one, other = pod("a"), pod("b", status={"conditions": [{"lastTransitionTime": "2026-03-01T10:05:00Z"}]})
    one["metadata"]["creationTimestamp"] = "2026-03-01T10:00:00Z"
    one["metadata"]["annotations"] = {"load": "0.4,2026-03-01T10:06:00Z", "until": "2030-01-01T00:00:00Z"}
    assert snapshot(one, other).newest_time() == "2026-03-01T10:06:00Z"
    assert snapshot(pod("a")).newest_time() is None
