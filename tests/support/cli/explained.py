"""Pods, nodes and policies that `fairlead explain` explains, in files and in a cluster."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fairlead.cli.main import main
from support.cli import status
from support.cli.status_api import api_server, items
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, namespace, node, pod

SPEC = """
spec:
  variables:
  - {name: wants, expression: "pod.metadata.labels[?'gpu'].orValue('any')"}
  filters:
  - name: class
    expression: variables.wants == 'any' || node.metadata.labels[?'gpu'].orValue('') == variables.wants
    reason: wrong class
  - {name: room, expression: "free['cpu'] >= 2.0", reason: too full}
  scores:
  - {name: roomy, weight: 2, expression: "free['cpu'] * 10.0"}
"""
NIGHT = """
spec:
  match: {conditions: [{name: important, expression: pod.spec.priority > 100}]}
  filters: [{name: night, expression: now.getHours() >= 22}]
"""
POLICY = HEAD.replace("some", "gpu") + SPEC.lstrip()
OTHER = HEAD.replace("some", "night") + NIGHT.lstrip()
T4, V100 = {"gpu": "t4"}, {"gpu": "v100"}
NODES = [
    node("t4-1", labels=T4),
    node("t4-2", labels=T4),
    node("v100-1", labels=V100),
    node("v100-2", labels=V100, room={"cpu": "1"}),
    node("w-1", unschedulable=True),
]
WEB = pod("web", on="t4-1", asks={"cpu": "3"})
TRAIN = pod("train", labels=T4, asks={"cpu": "2", "memory": "4Gi"})
LOST = pod("lost", labels={"gpu": "a100"}, asks={"cpu": "2"})
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(f"{POLICY}---\n{OTHER}")
    Path("c.json").write_text(json.dumps(listed(*NODES, WEB, TRAIN, LOST, pod("train", namespace="web"))))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], here: Path) -> Run:
    def run(*asked: str) -> tuple[int, str, str]:
        code = main(["explain", *asked])
        out, err = capsys.readouterr()
        return code, out, err

    return run


FILES = ("--policies", "p.yaml", "--snapshot", "c.json")
PODS, NAMESPACE, LISTED = (
    "/api/v1/pods",
    "/api/v1/namespaces/ml",
    "/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies",
)


def live_policy(text: str = POLICY, *, generation: int = 3, serving: int | None = 3) -> Object:
    made: Object = yaml.safe_load(text)
    made["metadata"] |= {"generation": generation, "uid": "u"}
    return made | {"status": {} if serving is None else {"servingGeneration": serving}}


def without_kind(obj: Object) -> Object:
    """As in a list of the API server."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


SYSTEM = "fairlead-system"
OPERATOR_PODS = f"/api/v1/namespaces/{SYSTEM}/pods"
SCHEDULER = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/kube-scheduler-fairlead"
REVISIONS = f"/apis/apps/v1/namespaces/{SYSTEM}/controllerrevisions"


def scheduler_pod(name: str) -> Object:
    return status.pod(name, scheduler="fairlead")


def cluster_answers(**changes: object) -> dict[str, object]:
    there: dict[str, object] = {
        OPERATOR_PODS: items(status.pod("fairlead-a"), scheduler_pod("s-1"), scheduler_pod("s-2")),
        SCHEDULER: status.deployment("fairlead"),
        f"{status.LEASES}/kube-scheduler-fairlead": status.lease("kube-scheduler-fairlead", "s-1"),
        REVISIONS: items(),
        "/version": {"gitVersion": "v1.37.1"},
        "/api/v1/nodes": items(*map(without_kind, NODES)),
        PODS: items(without_kind(WEB), without_kind(TRAIN), status.pod("fairlead-a")),
        "/api/v1/configmaps": items(),
        f"{NAMESPACE}/pods/train": TRAIN,
        NAMESPACE: namespace("ml", team="x"),
        "/api/v1/namespaces": items(namespace("ml", team="x")),
        LISTED: items(live_policy()),
    }
    return there | {globals()[name]: value for name, value in changes.items()}


@pytest.fixture
def ask(run: Run, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    def ask(answers: dict[str, object], *more: str, pod: str = "train") -> tuple[int, str, str]:
        with api_server(answers, tmp_path) as file:
            return run(pod, "-n", "ml", "--kubeconfig", str(file), *more)

    return ask


Ask = Callable[..., tuple[int, str, str]]
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/5 nodes are available: 5 nope.",
    "lastTransitionTime": "2027-01-15T21:58:00Z",
}
