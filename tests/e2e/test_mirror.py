"""A cluster behind a mirror of images whose API server reaches only the nodes' own network, and guards kube-system."""

import copy
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from release.project import semver

from extender import Stage
from fairlead.cli.main import main
from fairlead.control.status.unreviewed import SETTLED_S
from release import chart, image
from support.chart.chart import NAMESPACE, can_opt_in
from support.chart.release import (
    DEPLOYMENT,
    HOOKS,
    LEASE,
    OPERATOR,
    PODS,
    Release,
    document,
    pods_of_one_test,
    refused,
    released,
)
from support.kube.crd import POLICIES
from support.kube.registry import Mirror, mirrored
from testbed import build, images, operator_image
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster
from testbed.versions import program

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_CLAIM = "schedulerextenderpolicies.fairlead.dev"
_GUARD = "kube-system-is-managed"
_BY_OTHERS = """
!request.userInfo.username.startsWith('system:kube-') && !request.userInfo.username.startsWith('system:node:')
&& !request.userInfo.username.startsWith('system:serviceaccount:kube-system:')
&& request.userInfo.username != 'system:apiserver'
"""
ADMISSION, PROBES = 10270, 18080  # the kubelet has 10250 here
_LEADS_S = 20.0
"""Time from the operator's Lease to its first poll of replicas, which the claim of the cluster delays."""
_FILTERS = [{"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}]


@pytest.fixture(scope="module")
def mirror(
    cluster: Cluster, built_image: operator_image.Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mirror]:
    """A registry with chart and image as they are published, and the scheduler's; no other can be reached."""
    folder = tmp_path_factory.mktemp("mirror")
    foreign = operator_image.build(architecture="arm64", labels=image.labels())
    platforms = {"amd64": built_image.archive, "arm64": foreign.archive}
    name = f"kube-scheduler:v{cluster.kubernetes}"
    archive = folder / "scheduler.tar"
    program_ = build.build([program("kube-scheduler", cluster.kubernetes)])["kube-scheduler"]
    archive.write_bytes(images.of_kubernetes(f"any/{name}", program_))
    with mirrored(cluster, folder, chart.package(folder / "chart"), platforms, {name: archive}) as made:
        yield made
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def guarded(cluster: Cluster) -> Iterator[None]:
    """A cluster that denies writes in kube-system to all but its own programs, as GKE Autopilot does."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "scope": "Namespaced"}
    policy: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "resourceRules": [rule],
        },
        "matchConditions": [{"name": "by-others", "expression": _BY_OTHERS}],
        "validations": [{"expression": "false", "message": "kube-system is managed"}],
    }
    binding: Object = {"policyName": _GUARD, "validationActions": ["Deny"]}
    specs = {"validatingadmissionpolicies": policy, "validatingadmissionpolicybindings": binding}
    try:
        for plural, spec in specs.items():
            cluster.api.create(f"{_ADMISSION}/{plural}", {"metadata": {"name": _GUARD}, "spec": spec})
        wait_for("writes to be denied", lambda: "kube-system is managed" in refused(lambda: _write(cluster)))
        yield
    finally:
        for plural in specs:
            cluster.api.delete(f"{_ADMISSION}/{plural}/{_GUARD}")
        wait_for("writes to be allowed again", lambda: not refused(lambda: _write(cluster)))


def _write(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps?dryRun=All"
    cluster.api.create(path, {"metadata": {"name": "some"}})


@pytest.fixture(scope="module")
def release(cluster: Cluster, built_image: operator_image.Image, mirror: Mirror, guarded: None) -> Iterator[Release]:
    """Installed from the mirror, chart and image by their digests, in the node's network, and without kube-system."""
    published = mirror.published
    everything: Object = {"global": {"imageRegistry": mirror.address}}
    if can_opt_in(cluster.kubernetes):
        everything["optIn"] = [{"schedulerName": "fairlead", "objectSelector": {"matchLabels": {"opted": "in"}}}]
    with released(cluster, built_image.tag, 2) as made:
        made.inside = mirror.inside
        made.install(
            chart=f"{published.chart}@{published.chart_digest}",
            image={
                "registry": "ghcr.io",
                "repository": "fairlead-dev/fairlead",
                "digest": published.image_digest,
                "pullPolicy": "Always",
            },
            schedulerDefaults={"imagePullPolicy": "Always", "replicas": 1, "verbosity": 2},
            hostNetwork=True,
            ports={"admission": ADMISSION, "probes": PROBES},
            replicas=1,
            claimNamespace=NAMESPACE,
            **everything,
        )
        yield made


@pytest.fixture
def pods(release: Release, namespace: str) -> Iterator[Stage]:
    """Pods of this test alone, whose policies go with them."""
    with pods_of_one_test(release, namespace) as stage:
        yield stage


def test_chart_and_image_are_those_of_the_digests(release: Release, mirror: Mirror) -> None:
    """An index of two platforms, of which the node's container runtime takes its own."""
    (pod,) = release.pods(OPERATOR)
    (container,), (status,) = pod["spec"]["containers"], pod["status"]["containerStatuses"]
    published = mirror.published
    assert container["image"] == f"{mirror.address}/fairlead-dev/fairlead@{published.image_digest}"
    assert status["imageID"].endswith(f"@{published.image_digest}")
    assert mirror.asked_for(f"/v2/fairlead-dev/fairlead/manifests/{published.image_digest}")
    assert mirror.asked_for(f"/v2/fairlead-dev/charts/fairlead/manifests/{published.chart_digest}")
    (listed,) = json.loads(release.helm("list", f"--namespace={NAMESPACE}", "--output=json"))
    assert listed["chart"] == f"fairlead-{semver()}"


def test_a_policy_for_a_scheduler_that_is_not_listed_becomes_ready(
    release: Release, pods: Stage, mirror: Mirror
) -> None:
    release.put("pools", filters=_FILTERS)
    release.ready("pools", within="180s")
    pods.make_pods(["a"], scheduler="fairlead")
    assert pods.placed("a") == release.nodes[0]
    spec = release.api.get(DEPLOYMENT)["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert container["image"] == f"{mirror.address}/kube-scheduler:v{release.cluster.kubernetes}"
    assert (container["imagePullPolicy"], spec["replicas"], "--v=2" in container["args"]) == ("Always", 1, True)
    claims = release.api.items("/apis/coordination.k8s.io/v1/leases", fieldSelector=f"metadata.name={_CLAIM}")
    assert [one["metadata"]["namespace"] for one in claims] == [NAMESPACE]


def test_helm_test_says_that_all_is_well(release: Release, pods: Stage) -> None:
    release.put("pools", filters=_FILTERS)
    release.ready("pools", within="180s")
    said = release.helm("test", "fairlead", f"--namespace={NAMESPACE}", "--timeout=120s", aside=True)
    for line in ("a good policy is accepted", "a wrong policy is denied", "READY: "):
        assert line in said, said
    assert "test" not in {one["metadata"]["labels"].get("app.kubernetes.io/component") for one in release.pods("")}


def test_a_plain_deployment_that_is_opted_in_is_placed_by_the_policy(release: Release, pods: Stage) -> None:
    if not can_opt_in(release.cluster.kubernetes):
        assert not release.api.exists(f"{_ADMISSION}/mutatingadmissionpolicies")
        return
    release.put("pools", filters=_FILTERS)
    release.ready("pools", within="180s")
    tolerations = [{"operator": "Exists"}]
    for name, labels in (("opted", {"app": "opted", "opted": "in"}), ("other", {"app": "other"})):
        container = {"name": "a", "image": "example.com/a"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "tolerations": tolerations}}
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": template}
        path = f"/apis/apps/v1/namespaces/{pods.name}/deployments"
        release.api.create(path, {"metadata": {"name": name}, "spec": spec})
    opted = wait_for("pods that are opted in to be placed", lambda: _placed(pods, "opted"))
    assert {*opted} == {("fairlead", release.nodes[0])}
    other = wait_for("pods that are not to be placed", lambda: _placed(pods, "other"))
    assert {scheduler for scheduler, _ in other} == {"default-scheduler"}


def _placed(pods: Stage, app: str) -> list[tuple[str, str]] | None:
    """Scheduler and node of each pod, once all have one."""
    items = pods.api.items(f"/api/v1/namespaces/{pods.name}/pods", labelSelector=f"app={app}")
    found = [(one["spec"]["schedulerName"], one["spec"].get("nodeName", "")) for one in items]
    return found if len(found) == 3 and all(node for _, node in found) else None


def test_policies_are_checked_at_the_port_of_the_nodes_network(release: Release, pods: Stage) -> None:
    (pod,) = release.pods(OPERATOR)
    assert pod["status"]["podIP"] == pod["status"]["hostIP"]
    assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    (hook,) = release.api.items(HOOKS)
    assert [one["clientConfig"]["service"]["port"] for one in hook["webhooks"]] == [ADMISSION]
    bad = document("bad", filters=[{"name": "pool", "expression": "node.metadata.nam == 'a'"}])
    said = refused(lambda: release.kubectl("apply", "--dry-run=server", "-f", "-", stdin=bad))
    assert "spec.filters[0].expression" in said
    listening = {port["name"]: port["hostPort"] for port in pod["spec"]["containers"][0]["ports"]}
    assert listening == {"webhook": 8443, "admission": ADMISSION, "probes": PROBES}
    assert release.api.text(f"{PODS}/{pod['metadata']['name']}:{PROBES}/proxy/readyz")


def test_a_check_that_the_api_server_does_not_reach_is_not_silent(
    release: Release, pods: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    (hook,) = release.api.items(HOOKS)
    configuration, before = f"{HOOKS}/{hook['metadata']['name']}", hook["webhooks"]
    blocked = copy.deepcopy(before)
    blocked[0]["clientConfig"]["service"]["port"] = 9  # nothing is there
    path = f"{POLICIES}/bad"
    bad = document("bad", filters=[{"name": "pool", "expression": "node.metadata.nam == 'a'"}])
    wait_for("a leader that knows who reviews", lambda: _leads_for_a_while(release))
    release.api.patch(configuration, {"webhooks": blocked})
    try:
        wait_for("the port to be blocked", lambda: not refused(lambda: _apply(release, bad, "--dry-run=server")))
        _apply(release, bad)
        (message,) = wait_for("a warning", lambda: _unreviewed(release.api.get(path)) or None, timeout_s=60)
        assert f"let it reach port {ADMISSION}" in message
        assert "hostNetwork: true" in message
        (pod,) = release.pods(OPERATOR)
        metrics = release.api.text(f"{PODS}/{pod['metadata']['name']}:{PROBES}/proxy/metrics")
        assert 'fairlead_policy_unreviewed{policy="bad"} 1' in metrics
        assert main(["status", "--kubeconfig", str(release.cluster.kubeconfig), "-o", "json"]) == 1
        (problem,) = [one for one in json.loads(capsys.readouterr().out)["wrong"] if one["reason"] == "NotReviewed"]
        assert problem["message"].endswith("so policies were not reviewed: bad")
        assert all(cure in problem["cure"] for cure in ("ports.admission", "hostNetwork"))
    finally:
        release.api.patch(configuration, {"webhooks": before})
    new = bad.replace("bad", "new")  # nothing is sent for one that is there as it is
    wait_for("the port to be open", lambda: bool(refused(lambda: _apply(release, new, "--dry-run=server"))))
    release.put("bad", filters=_FILTERS)
    wait_for("the warning to go", lambda: not _unreviewed(release.api.get(path)), timeout_s=60)


def _leads_for_a_while(release: Release) -> bool:
    """What is stored earlier may have been reviewed by replicas that it has not heard of yet."""
    acquired = datetime.fromisoformat(release.api.get(LEASE)["spec"]["acquireTime"])
    return datetime.now(UTC) - acquired > timedelta(seconds=SETTLED_S + _LEADS_S)


def _apply(release: Release, policy: str, *more: str) -> str:
    return release.kubectl("apply", "-f", "-", *more, stdin=policy)


def _unreviewed(policy: Object) -> list[str]:
    warnings = policy.get("status", {}).get("warnings", ())
    return [one["message"] for one in warnings if one["reason"] == "NotReviewed"]
