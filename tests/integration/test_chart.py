"""What helm makes of the chart, and what the API server makes of that."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from write_crds import FILE as CRD

from chartkit import CASES, CHART, GOLDEN, NAMESPACE, ChartError, golden, helm, template
from fairlead.render.engine import written
from fairlead.render.operator_settings import parse_settings
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl

_OTHERS = {"Certificate", "ServiceMonitor", "PrometheusRule"}
"""Kinds whose CustomResourceDefinitions are not ours."""


def the(objects: list[Object], kind: str, name: str = "") -> Object:
    (found,) = [one for one in objects if one["kind"] == kind and name in ("", one["metadata"]["name"])]
    return found


def test_helm_has_nothing_to_say_against_it() -> None:
    for values in CASES.values():
        helm("lint", "--strict", "--quiet", str(CHART), f"--values={values}")


@pytest.mark.parametrize("case", CASES)
def test_a_case_renders_to_its_golden_file(case: str) -> None:
    assert golden(case) == (GOLDEN / f"{case}.yaml").read_text(), "if this is meant, run `python tests/chartkit.py`"


def test_each_golden_file_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*CASES}


def test_the_resource_is_the_one_of_the_models_and_stays() -> None:
    made = the(template(), "CustomResourceDefinition")
    annotations = made["metadata"]["annotations"]
    assert annotations.pop("helm.sh/resource-policy") == "keep"
    assert made["metadata"].pop("labels")["app.kubernetes.io/managed-by"] == "Helm"
    assert made == yaml.safe_load(CRD.read_text())


@pytest.mark.parametrize("case", CASES)
def test_the_operator_can_read_its_settings(case: str) -> None:
    values = yaml.safe_load(CASES[case].read_text())
    made = parse_settings(the(template(CASES[case]), "ConfigMap", f"{_name(values)}-settings")["data"]["settings.yaml"])
    told = parse_settings(
        yaml.safe_dump({key: values[key] for key in ("schedulers", "annotationPrefixes") if key in values})
    )
    assert (made.schedulers, made.annotation_prefixes) == (told.schedulers, told.annotation_prefixes)
    assert made.tls.mode == values.get("tls", {}).get("mode", "SelfManaged")


def _name(values: Object) -> str:
    return str(values.get("fullnameOverride", "fairlead"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('replica=1', "'replica' not allowed"),
        ("replicas=0", "replicas"),
        ("replicas=1.5", "replicas"),
        ('replicas="two"', "replicas"),
        ('image.tags="v1"', "'tags' not allowed"),
        ('image.digest="sha256:12"', "digest"),
        ('image.pullPolicy="Sometimes"', "pullPolicy"),
        ('logLevel="info"', "logLevel"),
        ('tls.mode="selfManaged"', "mode"),
        ('tls.mod="SelfManaged"', "'mod' not allowed"),
        ('annotationPrefixes=[]', "annotationPrefixes"),
        ('annotationPrefixes=["example.com"]', "annotationPrefixes"),
        ('schedulers=[{"nam":"a"}]', "schedulers"),
        ('schedulers=[{"name":"A"}]', "schedulers"),
        ('schedulers=[{"name":"a","management":"managed"}]', "management"),
        ('schedulers=[{"name":"a","nodeSample":"101%"}]', "nodeSample"),
        ('schedulers=[{"name":"a","timeout":"1 s"}]', "timeout"),
        ('schedulers=[{"name":"a","replicas":11}]', "replicas"),
        ('schedulers=[{"name":"a","image":{"tag":":v1"}}]', "tag"),
        ('schedulers=[{"name":"a","placement":{"nodeSelectors":{}}}]', "'nodeSelectors' not allowed"),
        ('nodeSelector={"a":1}', "nodeSelector"),
        ('commonLabels={"a b":"c"}', "at '/commonLabels': additional properties 'a b' not allowed"),
        ('resources.requests.cpu=1', "cpu"),
        ('fullnameOverride="a.b"', "fullnameOverride"),
        ('uninstall.within="5"', "within"),
        ('metrics.serviceMonitor.enabled="yes"', "enabled"),
        ('schedulers=[{"name":"a"},{"name":"b"},{"name":"a"}]', "schedulers[2] (a): this name is there already"),
        ('schedulers=[{"name":"default-scheduler"}]', "set management to ConfigOnly"),
        ('schedulers=[{"name":"a","profile":{"schedulerName":"b"}}]', "schedulers[0] (a).profile.schedulerName"),
        ('tls.mode="CertManager"', "tls.issuerRef.name: is missing"),
        ('tls.issuerRef.name="ca"', "tls.issuerRef.name: is for tls.mode CertManager"),
        ('tls.mode="Provided"', "tls.caBundle: is missing"),
        ('tls.caBundle="x"', "tls.caBundle: is for tls.mode Provided"),
        ('serviceAccount.create=false', "serviceAccount.name: is missing"),
        ('podLabels={"app.kubernetes.io/name":"x"}', "podLabels[app.kubernetes.io/name]"),
        ('commonLabels={"helm.sh/chart":"x"}', "commonLabels[helm.sh/chart]"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_meant_are_refused(given: str, said: str) -> None:
    with pytest.raises(ChartError) as refused:
        template(given)
    assert said in str(refused.value)


def test_names_of_schedulers_that_no_certificate_can_have_are_refused() -> None:
    mode, issuer = 'tls.mode="CertManager"', 'tls.issuerRef.name="ca"'
    template(mode, issuer, f'schedulers=[{{"name":"{"a" * 45}"}}]')
    with pytest.raises(ChartError, match="at most 45 characters"):
        template(mode, issuer, f'schedulers=[{{"name":"{"a" * 46}"}}]')


def test_two_releases_meet_nowhere() -> None:
    def names(objects: list[Object]) -> set[tuple[str, str, str]]:
        return {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in objects}

    one, other = template("crds.enabled=false"), template("crds.enabled=false", namespace="other")
    assert names(one) & names(other) == set()
    assert len(names(one)) == len(one)


@pytest.fixture
def system(control_plane: Cluster) -> Iterator[str]:
    """The namespace of the chart; its pods may do little."""
    api, labels = control_plane.api, {"pod-security.kubernetes.io/enforce": "restricted"}
    api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: api.exists(account))
    yield NAMESPACE
    api.delete(f"/api/v1/namespaces/{NAMESPACE}")
    wait_for("the namespace to go", lambda: not api.exists(f"/api/v1/namespaces/{NAMESPACE}"))


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_takes_every_object_as_it_is(
    case: str, control_plane: Cluster, system: str, kubectl: Kubectl
) -> None:
    objects = [one for one in template(CASES[case]) if one["kind"] not in _OTHERS]
    text = written(objects)
    kubectl("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", "-", stdin=text)
    for one in objects:
        if one["kind"] in ("Deployment", "Job"):
            _may_run(control_plane, one)


def test_a_pod_that_its_namespace_refuses_would_be_seen(control_plane: Cluster, system: str) -> None:
    deployment = the(template(), "Deployment")
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
