"""An install without Helm, one that fails, one that is well, one after an uninstall: what remains, what is believed.

The first one that is well is of Helm 3, and Helm 3 and 4 take turns until Helm 3 uninstalls it.
"""

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from extender import Stage
from fairlead.cli.main import main
from release import manifests
from support.chart.chart import CHART, NAMESPACE, can_opt_in
from support.chart.release import DEPLOYMENT, OPERATOR, PODS, Release, refused, released
from support.kube.crd import POLICIES
from testbed.api import wait_for
from testbed.fixtures import Cluster

LOG = logging.getLogger(__name__)
_OPERATOR = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fairlead"
_URGENT = ("PriorityClass", "<none>", "urgent")  # of these tests
_LEFT = {
    "schedulerextenderpolicies.fairlead.dev",
    "p",
    NAMESPACE,
    "default",
    "kube-root-ca.crt",
}
"""Names of what an uninstall leaves: the definition, a policy, and a namespace."""
_FILTERS = [{"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}]


@pytest.fixture(scope="module")
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str) -> Iterator[Release]:
    """Not installed yet."""
    with released(cluster, operator_image_tag, 2) as made:
        yield made


def test_what_kubectl_applies_places_pods_and_leaves_nothing_when_it_is_deleted(
    release: Release, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    files = {name: tmp_path / name for name in ("install.yaml", "crds.yaml")}
    for name, text in manifests.render(release.values()).items():
        files[name].write_text(text)
    stage = Stage(api=cluster.api, name=namespace, start_scheduler=lambda _: str)
    stage.open()
    try:
        release.kubectl("apply", "--server-side", "-f", str(files["install.yaml"]))
        release.kubectl("rollout", "status", "deployment/fairlead", "--namespace", NAMESPACE, "--timeout=120s")
        release.put("p", filters=_FILTERS)
        release.ready("p", within="180s")
        stage.make_pods(["a"], scheduler="fairlead")
        assert stage.placed("a") == release.nodes[0]
        again = [release.kubectl("apply", "--server-side", "-f", str(one)) for one in files.values()]
        assert [line for text in again for line in text.splitlines() if not line.endswith(" serverside-applied")] == []
        assert main(["uninstall", "--kubeconfig", str(cluster.kubeconfig), "-n", NAMESPACE, "--yes"]) == 0
    finally:
        release.kubectl("delete", "--ignore-not-found", "--timeout=100s", "-f", str(files["install.yaml"]))
    assert stage.places()["a"] == release.nodes[0], "a pod that runs stays"
    assert {one for one in release.everything() - release.before if namespace not in one[1:]} <= {_URGENT}


def test_an_install_whose_image_cannot_be_pulled_is_removed_and_made_again(release: Release, cluster: Cluster) -> None:
    where = (f"--namespace={NAMESPACE}", "--create-namespace")
    knows = can_opt_in(cluster.kubernetes)  # older API servers cannot take the image from a job that has nothing to do
    assert refused(lambda: release.helm("install", "fairlead", str(CHART), *where, "--wait", "--timeout=5s"))
    assert len(_nothing_to_uninstall(release)) == (2 if knows else 0)
    begun = time.monotonic()
    options = () if knows else ("--no-hooks",)
    release.helm("uninstall", "fairlead", f"--namespace={NAMESPACE}", "--wait", "--timeout=40s", *options)
    LOG.info("helm uninstall took %.0f s", time.monotonic() - begun)
    assert not _hooks(release) | _nothing_to_uninstall(release), "the hooks leave nothing"
    release.install(helm=release.helm_3)
    release.runs(2)
    wait_for("a leader to delete what keeps an uninstall from its job", lambda: not _nothing_to_uninstall(release))
    release.install(replicas=2)
    assert not _nothing_to_uninstall(release), "an upgrade does not bring it back"


def test_two_replicas_that_are_installed_warn_of_nothing(release: Release) -> None:
    release.put("p", filters=_FILTERS)
    release.ready("p", within="180s")
    logs = [
        release.kubectl("logs", "--namespace", NAMESPACE, one["metadata"]["name"]) for one in release.pods(OPERATOR)
    ]
    lines = [json.loads(line) for text in logs for line in text.splitlines() if line.startswith("{")]
    assert len(lines) > len(logs)
    assert [one for one in lines if one["level"] not in ("DEBUG", "INFO")] == []


def test_helm_3_and_helm_4_take_turns(release: Release, cluster: Cluster, namespace: str) -> None:
    release.put("p", filters=_FILTERS)
    release.ready("p", within="180s")
    where = f"--namespace={NAMESPACE}"
    again = ("upgrade", "fairlead", str(CHART), where, "--reset-then-reuse-values", "--wait", "--timeout=120s")

    def by() -> str:
        return str(cluster.api.get(_OPERATOR)["metadata"]["annotations"]["by"])

    def by_hand() -> None:
        release.kubectl("annotate", "--overwrite", "deployment/fairlead", where, "by=hand")

    def revision() -> str:
        return str(json.loads(release.helm("get", "metadata", "fairlead", where, "--output=json"))["revision"])

    before = release.uids(OPERATOR)
    release.helm_3(*again, "--set=podAnnotations.by=helm-3,deploymentAnnotations.by=helm-3")
    release.runs(2, but=before)
    stage = Stage(api=cluster.api, name=namespace, start_scheduler=lambda _: str)
    stage.open()
    stage.make_pods(["a"], scheduler="fairlead")
    assert stage.placed("a") == release.nodes[0]
    assert "2 of 2 replicas ready" in release.helm_3("test", "fairlead", where, "--timeout=120s", aside=True)

    pods = release.uids(OPERATOR)
    by_hand()
    release.helm(*again, "--set=deploymentAnnotations.by=helm-4")
    assert by() == "helm-4", "Helm 4 goes on as Helm 3 does, and there is no conflict"
    of_helm_4 = revision()
    by_hand()
    server = (*again, "--server-side=true", "--set=deploymentAnnotations.by=server-side")
    said = refused(lambda: release.helm(*server))
    assert 'conflict with "kubectl-annotate" using apps/v1: .metadata.annotations.by' in said
    release.helm(*server, "--force-conflicts")
    assert by() == "server-side"
    of_server = revision()
    release.helm_3("rollback", "fairlead", of_helm_4, where, "--wait", "--timeout=120s")
    assert by() == "helm-4"
    release.helm("rollback", "fairlead", of_server, where, "--wait", "--timeout=120s")
    assert by() == "server-side"
    assert release.uids(OPERATOR) == pods, "what takes turns restarts nothing"
    assert release.condition("p", "Ready")[0] == "True"
    cluster.api.delete(stage.path)


def test_after_an_uninstall_nothing_is_ready_until_pods_are_placed_again(
    release: Release, cluster: Cluster, namespace: str
) -> None:
    release.put("p", filters=_FILTERS)
    release.ready("p", within="180s")
    release.uninstall(release.helm_3)
    wait_for("what belongs to what has gone to go, too", lambda: _left(release) <= _LEFT)
    assert release.condition("p", "Ready")[:2] == ("False", "Uninstalled")
    assert "servingGeneration" not in cluster.api.get(f"{POLICIES}/p")["status"]
    assert "Uninstalled" in release.kubectl("get", "sep", "p")

    stage = Stage(api=cluster.api, name=namespace, start_scheduler=lambda _: str)
    stage.open()
    stage.make_pods(["waits"], scheduler="fairlead")
    release.install()
    release.ready("p", within="180s")
    assert cluster.api.get(DEPLOYMENT)["status"]["readyReplicas"] == 2
    begun = time.monotonic()
    assert stage.placed("waits") == release.nodes[0]
    LOG.info("placed %.1f s after the policy was ready", time.monotonic() - begun)
    cluster.api.delete(stage.path)


def test_a_policy_that_a_deleted_namespace_left_ready_is_put_right_by_hand_or_by_the_next_leader(
    release: Release, cluster: Cluster
) -> None:
    release.ready("p", within="180s")
    # as in a namespace that goes, no operator is left to see that its permissions go too
    release.kubectl("delete", "deployment", "fairlead", f"--namespace={NAMESPACE}", "--cascade=foreground", "--wait")
    wait_for("the operator to end", lambda: not cluster.api.items(PODS, labelSelector=OPERATOR))
    release.helm("uninstall", "fairlead", f"--namespace={NAMESPACE}", "--no-hooks", "--wait")
    cluster.api.delete(DEPLOYMENT)  # it would go with the namespace, too
    assert release.condition("p", "Ready")[:2] == ("True", "Ready"), "nobody is there to write it"
    release.install()

    def rolls() -> bool:
        return release.condition("p", "Ready")[0] != "True"

    wait_for("the new leader to say that it is not ready", rolls)
    release.ready("p", within="180s")
    assert cluster.api.get(DEPLOYMENT)["status"]["readyReplicas"] == 2


def test_an_uninstall_whose_image_cannot_be_pulled_deletes_nothing_and_is_made_by_hand(
    release: Release, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    release.ready("p", within="180s")
    where = f"--namespace={NAMESPACE}"
    gone = {"registry": "", "repository": "gone.example/fairlead", "tag": "v1"}
    release.helm("upgrade", "fairlead", str(CHART), where, *release.values(image=gone))
    said = refused(lambda: release.helm("uninstall", "fairlead", where, "--wait", "--timeout=10s"))
    assert f"Job/{NAMESPACE}/fairlead-uninstall-image not ready" in said
    assert release.condition("p", "Ready")[0] == "True", "nothing is deleted"

    assert main(["uninstall", "--kubeconfig", str(cluster.kubeconfig), where, "--yes"]) == 0
    assert "done; 1 policy and the CustomResourceDefinition remain" in capsys.readouterr().out
    release.helm("uninstall", "fairlead", where, "--no-hooks", "--wait", "--timeout=60s")
    assert release.condition("p", "Ready")[:2] == ("False", "Uninstalled")
    assert _left(release) == _LEFT


def _left(release: Release) -> set[str]:
    """Names of what there was not before, but in namespaces of pods of tests."""
    found = release.everything() - release.before - {_URGENT}
    return {one[2] for one in found if not any(part.startswith("test-") for part in one[1:])}


def _hooks(release: Release) -> set[tuple[str, ...]]:
    return {one for one in release.everything() - release.before if "-uninstall" in one[2] or ".uninstall" in one[2]}


def _nothing_to_uninstall(release: Release) -> set[tuple[str, ...]]:
    return {one for one in release.everything() - release.before if "nothing-to-uninstall" in one[2]}
