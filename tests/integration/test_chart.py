"""What helm makes of the chart, and what the API server makes of that."""

import copy
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from generate.crds import FILE as CRD

from fairlead.cli.console.options import seconds
from fairlead.cli.main import main
from fairlead.pki.identities import AUTHORITY_CONFIG_MAP
from fairlead.process.settings import Address
from fairlead.render.object_names import ObjectNames
from fairlead.render.operator_settings import parse_settings
from fairlead.render.rbac import ADMISSION
from fairlead.render.templates import written
from fairlead.webhook.admission.admission_server import PATH
from support.chart.chart import (
    CASES,
    CHART,
    GOLDEN,
    NAMESPACE,
    NOTES,
    ChartError,
    can_opt_in,
    golden,
    helm,
    notes,
    template,
)
from support.chart.objects import labels_of, options_of, service_of, the_one
from support.render.schedulers import named, planned
from testbed.api import Object
from testbed.fixtures import Cluster, Kubectl
from testbed.versions import HELM, HELM_3, KUBERNETES

_OTHERS = {"Certificate", "ServiceMonitor", "PrometheusRule"}
"""Kinds whose CustomResourceDefinitions are not ours."""


@pytest.mark.parametrize(("by", "version"), [("helm", f"v{HELM}"), ("helm-3", f"v{HELM_3}")])
def test_helm_has_nothing_to_say_against_it(by: str, version: str) -> None:
    assert helm("version", "--template={{.Version}}", by=by) == version
    for values in CASES.values():
        helm("lint", "--strict", "--quiet", str(CHART), f"--values={values}", by=by)


@pytest.mark.parametrize("by", ["helm", "helm-3"])
@pytest.mark.parametrize("case", CASES)
def test_a_case_renders_to_its_golden_file(case: str, by: str) -> None:
    assert golden(case, by) == (GOLDEN / f"{case}.yaml").read_text(), "if this is meant, run `make crds`"


def test_notes_are_as_in_their_golden_file() -> None:
    assert notes(KUBERNETES[0]) == NOTES.read_text(), "if this is meant, run `make crds`"


_TESTED = ", ".join(sorted(one.rpartition(".")[0] for one in KUBERNETES))
_VERSIONS = {
    KUBERNETES[-1]: f"v{KUBERNETES[-1]}: this version of Fairlead is tested on {KUBERNETES[-1].rpartition('.')[0]}.",
    "v1.36.6-eks-abc": "v1.36.6-eks-abc: this version of Fairlead is tested on 1.36.",
    "1.99.2-gke.5": f"v1.99.2-gke.5: this version of Fairlead is not tested on 1.99, only on {_TESTED}.",
    "1.3601.0": f"v1.3601.0: this version of Fairlead is not tested on 1.3601, only on {_TESTED}.",
}


@pytest.mark.parametrize(("version", "said"), _VERSIONS.items(), ids=_VERSIONS)
def test_notes_say_that_the_version_of_the_cluster_is_tested_or_not(version: str, said: str) -> None:
    assert f"This cluster runs Kubernetes {said}" in notes(version).splitlines()


def test_a_version_older_than_all_that_are_tested_is_refused() -> None:
    oldest = int(KUBERNETES[-1].split(".")[1])
    with pytest.raises(ChartError, match=rf"requires kubeVersion: >=1\.{oldest}\.0-0"):
        helm("template", "fairlead", str(CHART), f"--kube-version=1.{oldest - 1}.99")
    helm("template", "fairlead", str(CHART), f"--kube-version=1.{oldest}.0-some.1")


def test_each_golden_file_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*CASES}


def test_the_resource_is_the_one_of_the_models_and_stays() -> None:
    made = the_one(template(), "CustomResourceDefinition")
    annotations = made["metadata"]["annotations"]
    assert annotations.pop("helm.sh/resource-policy") == "keep"
    assert made["metadata"].pop("labels")["app.kubernetes.io/managed-by"] == "Helm"
    assert made == yaml.safe_load(CRD.read_text())


def test_on_openshift_no_pod_of_schedulers_names_a_user() -> None:
    asked = ("template", "fairlead", str(CHART), "--show-only=templates/settings.yaml")
    for more, assigned in (((), False), (("--api-versions=security.openshift.io/v1",), True)):
        text = yaml.safe_load(helm(*asked, *more))["data"]["settings.yaml"]
        assert parse_settings(text).scheduler("any").assigned_user_ids is assigned


@pytest.mark.parametrize("case", CASES)
def test_the_operator_is_told_where_it_stands(case: str) -> None:
    objects = template(CASES[case])
    deployment, service = the_one(objects, "Deployment"), service_of(objects)
    given, pod = options_of(deployment), deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounted = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}

    assert given.service == service["metadata"]["name"]
    assert labels_of(given.selector) == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    listens = {port["name"]: port["containerPort"] for port in container["ports"]}
    told = {
        "webhook": given.listen,
        "admission": given.admission,
        "probes": given.probes,
        "metrics": given.metrics,
    }
    assert listens == {name: Address.read(address).port for name, address in told.items() if address}
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == {
        name: port for name, port in listens.items() if name not in ("probes", "metrics")
    }
    (source, *_) = volumes[mounted[str(given.settings.parent)]]["projected"]["sources"]
    assert source["configMap"]["name"].endswith("-settings")
    assert pod["terminationGracePeriodSeconds"] == seconds("--drain", given.drain) + 20
    told = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"] if "valueFrom" in one}
    assert told == {
        "POD_NAME": "metadata.name",
        "POD_UID": "metadata.uid",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    files = (given.tls_cert, given.tls_key, given.client_ca)
    if case in ("cert-manager", "provided"):
        (folder,) = {file.parent for file in files}
        assert [file.name for file in files] == ["tls.crt", "tls.key", "ca.crt"]
        assert volumes[mounted[str(folder)]]["secret"]["secretName"] == "fairlead-webhook-tls"
    else:
        assert files == (None, None, None)


def test_the_secret_that_is_mounted_is_the_one_that_is_issued() -> None:
    made = [one["spec"] for one in template(CASES["cert-manager"]) if one["kind"] == "Certificate"]
    (server,) = [one for one in made if one["secretName"] == "fairlead-webhook-tls"]
    assert server["dnsNames"] == [f"fairlead.{NAMESPACE}.svc", f"fairlead.{NAMESPACE}.svc.cluster.local"]
    assert server["usages"] == ["server auth"]


def test_the_api_server_asks_for_nothing_but_our_kind_where_it_is_answered() -> None:
    objects = template()
    made = the_one(objects, "ValidatingWebhookConfiguration", ADMISSION.format(namespace=NAMESPACE))
    (webhook,) = made["webhooks"]
    (rule,) = webhook["rules"]
    asks = (rule["apiGroups"], rule["resources"], webhook["failurePolicy"], webhook["timeoutSeconds"])
    assert asks == (["fairlead.dev"], ["schedulerextenderpolicies"], "Ignore", 10)
    called, service = webhook["clientConfig"]["service"], service_of(objects)
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    name = service["metadata"]["name"]
    assert called == {"name": name, "namespace": NAMESPACE, "path": PATH, "port": ports["admission"]}


def test_without_the_check_nothing_listens_for_it() -> None:
    objects = template("admission.enabled=false", "crds.enabled=false")
    assert [one for one in objects if one["kind"] == "ValidatingWebhookConfiguration"] == []
    assert options_of(the_one(objects, "Deployment")).admission == ""
    left = written([one for one in objects if one["kind"] in ("Deployment", "Service", "NetworkPolicy")])
    assert "9443" not in left
    assert [line for line in left.splitlines() if "admission" in line] == ["        - --admission="]
    policy = the_one(objects, "NetworkPolicy")["spec"]
    assert [port["port"] for rule in policy["ingress"] for port in rule["ports"]] == ["webhook", "probes"]


def test_a_pod_has_a_limit_of_memory_and_none_of_cpu() -> None:
    (container,) = the_one(template(), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "2Gi"}


@pytest.mark.parametrize(
    ("values", "guarded"),
    [
        ((), True),
        (("serviceAccount.create=false", 'serviceAccount.name="other"'), True),
        (("admission.enabled=false",), False),
        ((CASES["cert-manager"],), False),  # the operator may not write there at all
    ],
)
def test_where_the_operator_says_whom_to_believe_it_may_change_nothing_else(
    values: tuple[str | Path, ...], *, guarded: bool
) -> None:
    objects = template(*values)
    name = f"fairlead.{NAMESPACE}"
    kind = "ValidatingAdmissionPolicy"
    found = [one for one in objects if one["kind"].startswith(kind) and one["metadata"]["name"] == name]
    assert [one["kind"] for one in found] == guarded * ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    if not found:
        return
    policy, binding = found
    assert (binding["spec"]["policyName"], binding["spec"]["validationActions"]) == (
        policy["metadata"]["name"],
        ["Deny"],
    )
    assert policy["spec"]["failurePolicy"] == "Fail"
    account = the_one(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    (condition,) = policy["spec"]["matchConditions"]
    by_the_operator = f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{account}' || "
    assert condition["expression"].startswith(by_the_operator)


def test_schedulers_may_call_and_nobody_else() -> None:
    policy = the_one(template(), "NetworkPolicy")["spec"]
    (schedulers, replicas) = policy["ingress"][0]["from"]
    labels = ObjectNames("gpu", NAMESPACE).selector
    assert schedulers["podSelector"]["matchLabels"].items() <= labels.items()
    assert {one["key"] for one in schedulers["podSelector"]["matchExpressions"]} <= labels.keys()
    assert replicas["podSelector"] == policy["podSelector"]
    assert [port["port"] for rule in policy["ingress"] for port in rule["ports"]] == ["webhook", "admission", "probes"]


@pytest.mark.parametrize("mode", ["SelfManaged", "CertManager", "Provided"])
def test_secure_metrics_are_scraped_where_they_are_served_and_verified_with_the_authority(mode: str) -> None:
    case = {"SelfManaged": "default", "CertManager": "cert-manager", "Provided": "provided"}[mode]
    objects = template(CASES[case], "metrics.secure=true", "metrics.serviceMonitor.enabled=true", "ports.metrics=9999")
    deployment, service = the_one(objects, "Deployment"), the_one(objects, "Service", "fairlead-metrics")
    assert options_of(deployment).metrics == ":9999"
    (scraped,) = service["spec"]["ports"]
    assert (scraped["name"], scraped["port"], scraped["targetPort"]) == ("metrics", 9999, "metrics")
    rule = the_one(objects, "NetworkPolicy")["spec"]["ingress"][-1]
    assert [port["port"] for port in rule["ports"]] == ["probes", "metrics"]
    (endpoint,) = the_one(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
    assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"
    assert endpoint["tlsConfig"]["serverName"] == f"{options_of(deployment).service}.{NAMESPACE}.svc"
    ((kind, authority),) = endpoint["tlsConfig"]["ca"].items()
    named = [one for one in objects if one["kind"] == "ConfigMap" and one["metadata"]["name"] == AUTHORITY_CONFIG_MAP]
    if mode == "CertManager":
        (server,) = [one for one in objects if one["kind"] == "Certificate" and "server auth" in one["spec"]["usages"]]
        assert (kind, authority) == ("secret", {"name": server["spec"]["secretName"], "key": "ca.crt"})
        assert named == []
        return
    assert (kind, authority) == ("configMap", {"name": AUTHORITY_CONFIG_MAP, "key": "ca.crt"})
    bundle = yaml.safe_load(CASES["provided"].read_text())["tls"]["caBundle"]
    # of its own authority nothing is rendered, or Helm would take it from the operator
    assert [one.get("data") for one in named] == [{"ca.crt": bundle} if mode == "Provided" else None]


def test_without_secure_metrics_nothing_of_them_is_there() -> None:
    objects = template(CASES["metrics"])
    assert options_of(the_one(objects, "Deployment")).metrics == ""
    assert [one for one in objects if one["metadata"]["name"] == AUTHORITY_CONFIG_MAP] == []
    (endpoint,) = the_one(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert not {"scheme", "tlsConfig", "bearerTokenFile", "authorization"} & endpoint.keys()
    text = written(objects)
    assert "tokenreviews" not in text
    assert "8444" not in text


def test_one_service_finds_the_pods_of_all_schedulers_and_no_others() -> None:
    objects = template()
    service = the_one(objects, "Service", "fairlead-schedulers")["spec"]
    names = ObjectNames("gpu", NAMESPACE)
    assert service["selector"].items() <= names.labels.items()
    assert not service["selector"].items() <= the_one(objects, "Deployment")["metadata"]["labels"].items()
    (port,) = service["ports"]
    deployment = named(planned(), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (port["name"], port["targetPort"]) == ("https-metrics", container["ports"][0]["name"])
    assert port["port"] == container["ports"][0]["containerPort"]


def test_the_first_policy_of_all_is_a_good_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, rest = (CHART / "templates" / "NOTES.txt").read_text().partition("<<'POLICY'\n")
    file = tmp_path / "first.yaml"
    file.write_text(textwrap.dedent(rest.partition("     POLICY")[0]))
    assert "kind: SchedulerExtenderPolicy" in file.read_text()
    assert main(["lint", str(file)]) == 0, capsys.readouterr()


@pytest.mark.parametrize("within", ["240s", "1m", "20m", "3000s"])
def test_what_goes_first_finds_the_operator_and_ends_before_its_job(within: str) -> None:
    objects = template(f'uninstall.within="{within}"')
    job, deployment = the_one(objects, "Job", "fairlead-uninstall"), the_one(objects, "Deployment")
    given = options_of(job)
    assert given.namespace == NAMESPACE
    sought = labels_of(given.operator)
    assert sought == deployment["spec"]["selector"]["matchLabels"]
    assert sought.items() <= deployment["metadata"]["labels"].items()
    assert seconds("--within", given.within) < job["spec"]["activeDeadlineSeconds"]


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_takes_every_object_as_it_is(
    case: str, control_plane: Cluster, system: str, kubectl: Kubectl
) -> None:
    version = control_plane.kubernetes
    if case == "opt-in" and not can_opt_in(version):
        with pytest.raises(ChartError, match=r"needs MutatingAdmissionPolicy"):
            helm("template", "fairlead", str(CHART), f"--kube-version={version}", f"--values={CASES[case]}")
        return
    objects = [one for one in template(CASES[case]) if one["kind"] not in _OTHERS]
    if not can_opt_in(version):  # helm leaves these hooks out there
        objects = [one for one in objects if not one["kind"].startswith("MutatingAdmission")]
    for one in objects:
        if one["kind"] == "Pod":  # its account has to be there
            account = {"metadata": {"name": one["spec"]["serviceAccountName"]}}
            control_plane.api.create(f"/api/v1/namespaces/{system}/serviceaccounts", account)
    text = written(objects)
    kubectl("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", "-", stdin=text)
    for one in objects:
        if one["kind"] in ("Deployment", "Job"):
            pod = one["spec"]["template"]["spec"]
            if pod.pop("hostNetwork", False):  # nothing else of a pod that asks for it is refused
                with pytest.raises(Exception, match=r"host namespaces \(hostNetwork=true\)"):
                    _may_run(control_plane, _with_host_network(one))
            _may_run(control_plane, one)


def _with_host_network(workload: Object) -> Object:
    changed = copy.deepcopy(workload)
    changed["spec"]["template"]["spec"]["hostNetwork"] = True
    return changed


def test_a_pod_that_its_namespace_refuses_would_be_seen(control_plane: Cluster, system: str) -> None:
    deployment = the_one(template(), "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["securityContext"].pop("capabilities")
    with pytest.raises(Exception, match="unrestricted capabilities"):
        _may_run(control_plane, deployment)


def _may_run(cluster: Cluster, workload: Object) -> None:
    """Its pods, in a namespace that is restricted; the service account need not be there."""
    template: dict[str, Any] = workload["spec"]["template"]
    spec = {
        key: value for key, value in template["spec"].items() if key not in ("serviceAccountName", "priorityClassName")
    }
    pod = {"metadata": {**template["metadata"], "generateName": "some-"}, "spec": spec}
    cluster.api.create(f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All&fieldValidation=Strict", pod)
