"""Pods that get a scheduler as they are created: what the chart makes of optIn, and the API server of that."""

from collections.abc import Iterator

import pytest

from fairlead.pki.identities import scheduler_identity
from fairlead.render.operator_settings import parse_settings
from fairlead.render.templates import written
from support.chart.chart import CHART, NAMESPACE, ChartError, can_opt_in, helm, template
from support.chart.objects import the_one
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl

_OPT_IN = 'optIn=[{"schedulerName":"gpu","namespaceSelector":{"matchLabels":{"a":"b"}}}]'


@pytest.mark.parametrize(
    "version", ["1.33.13", "1.34.11", "1.35.4", "v1.35.9-eks-0123456", "v1.36.0", "v1.36.0-gke.1", "1.37.1"]
)
def test_a_cluster_that_cannot_opt_in_pods_is_told_why(version: str) -> None:
    asked = ("template", "fairlead", str(CHART), f"--kube-version={version}", f"--set-json={_OPT_IN}")
    if can_opt_in(version):
        assert "kind: MutatingAdmissionPolicyBinding" in helm(*asked)
        return
    with pytest.raises(ChartError) as refused:
        helm(*asked)
    assert "optIn[0] (gpu): needs MutatingAdmissionPolicy, which Kubernetes has from 1.36 on" in str(refused.value)
    assert f"this cluster is v{version.removeprefix('v')}" in str(refused.value)


def test_a_scheduler_that_pods_are_given_always_exists() -> None:
    """If it were not listed, it would go with its last policy, and its pods would wait."""
    values = ('tls.mode="CertManager"', 'tls.issuerRef.name="ca"', 'schedulers=[{"name":"a","replicas":3}]', _OPT_IN)
    made = template(*values)
    settings = parse_settings(the_one(made, "ConfigMap", "fairlead-settings")["data"]["settings.yaml"])
    assert [(one.name, settings.scheduler(one.name).replicas) for one in settings.schedulers] == [("a", 3), ("gpu", 2)]
    given = [one["spec"]["commonName"] for one in made if one["kind"] == "Certificate"]
    assert scheduler_identity("gpu") in given


@pytest.fixture
def opting_in(control_plane: Cluster, system: str, kubectl: Kubectl) -> Iterator[Cluster]:
    """A cluster that has what the chart makes of optIn, and a namespace that it selects."""
    values = (
        'optIn=[{"schedulerName":"gpu","namespaceSelector":{"matchLabels":{"a":"b"}}},'
        '{"schedulerName":"fpga","objectSelector":{"matchLabels":{"card":"fpga"}}}]'
    )
    text = written([one for one in template(values) if one["kind"].startswith("Mutating") and _is_kept(one)])
    api = control_plane.api
    labels = {"metadata": {"labels": {"a": "b"}}}
    try:
        kubectl("apply", "--server-side", "-f", "-", stdin=text)
        for name in (system, "kube-system", "opted-in"):
            if not api.exists(f"/api/v1/namespaces/{name}"):
                api.create("/api/v1/namespaces", {"metadata": {"name": name}})
            api.patch(f"/api/v1/namespaces/{name}", labels)
        wait_for("the namespace's account", lambda: api.exists("/api/v1/namespaces/opted-in/serviceaccounts/default"))
        wait_for("pods to be changed", lambda: _scheduler(control_plane, "opted-in") == "gpu")
        yield control_plane
    finally:
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)
        api.patch("/api/v1/namespaces/kube-system", {"metadata": {"labels": {"a": None}}})
        api.delete("/api/v1/namespaces/opted-in")


def _is_kept(obj: Object) -> bool:
    return "helm.sh/hook" not in obj["metadata"].get("annotations", {})


def _scheduler(cluster: Cluster, namespace: str, *, metadata: Object | None = None, **spec: str) -> str:
    """Which scheduler a pod would have; it is not created."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "a", "image": "a", "securityContext": security}
    pod = {"metadata": {"name": "some", **(metadata or {})}, "spec": {"containers": [container], **spec}}
    made = cluster.api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    return str(made["spec"]["schedulerName"])


def test_pods_are_opted_in_as_they_are_created(control_plane: Cluster, request: pytest.FixtureRequest) -> None:
    if not can_opt_in(control_plane.kubernetes):
        assert not control_plane.api.exists("/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies")
        return
    opting_in: Cluster = request.getfixturevalue("opting_in")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "u", "controller": True}
    fpga = {"labels": {"card": "fpga"}}
    assert _scheduler(opting_in, "opted-in") == "gpu"
    assert _scheduler(opting_in, "default", metadata=fpga) == "fpga"
    assert _scheduler(opting_in, "default") == "default-scheduler"
    assert _scheduler(opting_in, "opted-in", schedulerName="own") == "own"
    assert _scheduler(opting_in, "opted-in", nodeName="n") == "default-scheduler"
    assert _scheduler(opting_in, "opted-in", metadata={"ownerReferences": [owner]}) == "default-scheduler"
    for never in ("kube-system", NAMESPACE):
        assert _scheduler(opting_in, never) == "default-scheduler"
        assert _scheduler(opting_in, never, metadata=fpga) == "default-scheduler"
