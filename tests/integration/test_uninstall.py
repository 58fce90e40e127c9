"""`fairlead uninstall` against a real API server: where nothing is installed, when it asks, what it leaves."""

import io
import json
import re
import sys
from collections.abc import Iterator

import pytest

from fairlead.cli.main import main
from fairlead.learned.published import LearningRule, config_map
from fairlead.render.object_names import STATUS_MANAGER
from support.chart.chart import NAMESPACE
from support.chart.release import refused
from support.kube.crd import POLICIES
from testbed.fixtures import Cluster, Kubectl

OPERATOR = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fairlead"
SCHEDULER = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kube-scheduler-s"
LEARNED = f"/api/v1/namespaces/{NAMESPACE}/configmaps/fairlead-learned-p-works-7"
LABELS = {"app.kubernetes.io/managed-by": "fairlead", "fairlead.dev/scheduler": "s"}


class Terminal(io.StringIO):
    """Standard input of somebody who sits there."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def there(control_plane: Cluster, installed: str, kubectl: Kubectl) -> Iterator[list[str]]:
    """An operator with a scheduler, and a policy that is Ready; the command without its options."""
    api, container = control_plane.api, {"name": "c", "image": "none.example/none"}
    pods = {"metadata": {"labels": LABELS}, "spec": {"containers": [container], "schedulerName": "nobody"}}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": pods}
    api.create(SCHEDULER.rpartition("/")[0], {"metadata": {"name": "kube-scheduler-s", "labels": LABELS}, "spec": spec})
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "p"}}
    filters = [{"name": "f", "expression": "true"}]
    api.create(POLICIES, {**kind, "spec": {"schedulerName": "s", "filters": filters}})
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1}
    status = {"conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}], "servingGeneration": 1}
    body = json.dumps({**kind, "status": status})
    kubectl(
        "apply", "--server-side", "--subresource=status", f"--field-manager={STATUS_MANAGER}", "-f", "-", stdin=body
    )
    yield ["uninstall", "--kubeconfig", str(control_plane.kubeconfig)]
    api.delete(f"{POLICIES}/p")


def test_in_a_namespace_without_an_operator_it_says_where_one_is(
    there: list[str], control_plane: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ([], ["--namespace", "nope"], ["-n", "nope", "--yes"], ["-n", "nope", "--dry-run"]):
        namespace = "nope" if options else "default"
        assert main([*there, *options]) == 1
        out, err = capsys.readouterr()
        want = (
            f"Fairlead is not installed in the namespace {namespace}; it is in {NAMESPACE}: add --namespace {NAMESPACE}"
        )
        assert (out, err) == ("", f"fairlead uninstall: {want}\n")
    assert main([*there, "-n", "nope", "--ignore-not-found"]) == 0
    for path in (OPERATOR, SCHEDULER):
        assert "deletionTimestamp" not in control_plane.api.get(path)["metadata"]
    assert _ready(control_plane) == ("True", "Ready")


def test_a_dry_run_names_what_would_be_deleted_and_whoever_sits_at_a_terminal_is_asked(
    there: list[str],
    control_plane: Cluster,
    kubectl: Kubectl,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = [*there, "-n", NAMESPACE]
    uid = control_plane.api.get(f"{POLICIES}/p")["metadata"]["uid"]
    learned = config_map(LearningRule("p", uid, "works", "meaning", 1), "fairlead-learned-p-works-7", {})
    control_plane.api.create(LEARNED.rpartition("/")[0], learned)
    assert main([*here, "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [
        f"would delete Deployment kube-scheduler-s in {NAMESPACE}",
        f"would delete Deployment fairlead in {NAMESPACE}",
    ]
    assert said[-1] == "1 policy and the CustomResourceDefinition would remain"

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert main(here) == 1
    asked = f"This deletes the operator in {NAMESPACE} and 1 scheduler (s): pods that name it wait. Continue? [y/N] "
    assert capsys.readouterr() == ("", f"{asked}fairlead uninstall: nothing was deleted\n")
    for path in (OPERATOR, SCHEDULER):
        assert "deletionTimestamp" not in control_plane.api.get(path)["metadata"]

    assert main([*here, "--yes"]) == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[-1], err) == ("done; 1 policy and the CustomResourceDefinition remain", "")
    assert not control_plane.api.exists(OPERATOR)
    assert not control_plane.api.exists(SCHEDULER)
    assert not control_plane.api.exists(LEARNED)
    assert _ready(control_plane) == ("False", "Uninstalled")
    assert "servingGeneration" not in control_plane.api.get(f"{POLICIES}/p")["status"]
    events = re.split(r"\s{2,}", kubectl("describe", "sep", "p").strip().splitlines()[-1].strip())
    assert events[:2] == ["Warning", "Uninstalled"]
    assert events[-1] == "the operator was uninstalled: nothing enforces this policy until it is installed again"
    assert main(["status", "--kubeconfig", str(control_plane.kubeconfig)]) == 1
    assert capsys.readouterr().out.startswith("NOT READY: the operator was uninstalled, ")
    assert "timed out" in refused(lambda: kubectl("wait", "sep/p", "--for=condition=Ready", "--timeout=1s"))

    assert main([*here, "--yes"]) == 1
    assert f"not installed in the namespace {NAMESPACE}; nor was it found elsewhere" in capsys.readouterr().err


def test_what_helm_leaves_without_its_hooks_is_uninstalled_afterwards(
    there: list[str], control_plane: Cluster, helm: Kubectl, capsys: pytest.CaptureFixture[str]
) -> None:
    helm("uninstall", "fairlead", "--namespace", NAMESPACE, "--no-hooks")
    assert not control_plane.api.exists(OPERATOR)
    assert control_plane.api.exists(SCHEDULER)
    assert _ready(control_plane) == ("True", "Ready"), "as the guide says"

    assert main([*there, "-n", NAMESPACE, "--yes"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "done; 1 policy and the CustomResourceDefinition remain"
    assert not control_plane.api.exists(SCHEDULER)
    assert _ready(control_plane) == ("False", "Uninstalled")


def _ready(cluster: Cluster) -> tuple[str, str]:
    (one,) = cluster.api.get(f"{POLICIES}/p")["status"]["conditions"]
    return one["status"], one["reason"]
