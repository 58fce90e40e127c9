"""What helm makes of the chart, and what the API server makes of that."""

import argparse
import copy
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from generate.crds import FILE as CRD

from fairlead.cli.commands import operate, uninstall
from fairlead.cli.console.options import seconds
from fairlead.cli.main import main
from fairlead.kube.errors import AccessError
from fairlead.pki.identities import scheduler_identity
from fairlead.pki.issuing import create_authority, issue_leaf
from fairlead.process.settings import Address
from fairlead.render.object_names import ObjectNames
from fairlead.render.operator_settings import parse_settings, parse_values
from fairlead.render.rbac import ADMISSION
from fairlead.render.templates import written
from fairlead.webhook.admission.admission_server import PATH
from fairlead.webhook.data_sources.server_access import FOLDER, ServerAccess
from support.chart.chart import CASES, CHART, GOLDEN, NAMESPACE, ChartError, golden, helm, template
from support.webhook.tls import NOW, YEAR
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
    assert golden(case) == (GOLDEN / f"{case}.yaml").read_text(), "if this is meant, run `make crds`"


def test_each_golden_file_has_a_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*CASES}


def test_the_resource_is_the_one_of_the_models_and_stays() -> None:
    made = the(template(), "CustomResourceDefinition")
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
def test_the_operator_can_read_its_settings(case: str) -> None:
    values = yaml.safe_load(CASES[case].read_text())
    made = parse_settings(the(template(CASES[case]), "ConfigMap", f"{_name(values)}-settings")["data"]["settings.yaml"])
    told = parse_values(CASES[case].read_text()).settings
    assert (made.schedulers, made.annotation_prefixes) == (told.schedulers, told.annotation_prefixes)
    assert made.scheduler_defaults == told.scheduler_defaults
    assert made.network_policy == told.network_policy
    assert made.prometheus == told.prometheus
    assert made.tls.mode == values.get("tls", {}).get("mode", "SelfManaged")
    assert made.admission.client_ca == values.get("admission", {}).get("clientCA", "")


def _name(values: Object) -> str:
    return str(values.get("fullnameOverride", "fairlead"))


def _given(workload: Object) -> argparse.Namespace:
    """What the command makes of its arguments."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for command in (operate, uninstall):
        command.add_to(commands)
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return parser.parse_args(container["args"])


def _labels(selector: str) -> dict[str, str]:
    return {key: value for key, _, value in (one.partition("=") for one in selector.split(","))}


@pytest.mark.parametrize("case", CASES)
def test_the_operator_is_told_where_it_stands(case: str) -> None:
    objects = template(CASES[case])
    deployment, service = the(objects, "Deployment"), _called(objects)
    given, pod = _given(deployment), deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounted = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}

    assert given.service == service["metadata"]["name"]
    assert _labels(given.selector) == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    listens = {port["name"]: port["containerPort"] for port in container["ports"]}
    told = {"webhook": given.listen, "admission": given.admission, "probes": given.probes}
    assert listens == {name: Address.read(address).port for name, address in told.items() if address}
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == {
        name: port for name, port in listens.items() if name != "probes"
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


def _mounted(case: str) -> dict[str, str]:
    """Files of the operator beside its settings, and where each comes from."""
    (volume,) = [
        one
        for one in the(template(CASES[case]), "Deployment")["spec"]["template"]["spec"]["volumes"]
        if one["name"] == "settings"
    ]
    found = dict[str, str]()
    for source in volume["projected"]["sources"][1:]:
        ((kind, one),) = source.items()
        if kind == "serviceAccountToken":
            found[one["path"]] = f"{kind} {one.get('audience', '')}"
            continue
        assert one["optional"], "an operator without it starts, and says so"
        for item in one["items"]:
            found[item["path"]] = f"{kind} {one['name']} {item['key']}"
    return found


def test_credentials_for_prometheus_are_mounted_beside_the_settings() -> None:
    assert _mounted("default") == {}
    assert _mounted("everything") == {
        "prometheus/default/ca.crt": "configMap service-ca service-ca.crt",
        "prometheus/default/token": "serviceAccountToken ",
        "prometheus/ops/ca.crt": "secret mimir-ca ca.crt",
        "prometheus/ops/username": "secret mimir-login username",
        "prometheus/ops/password": "secret mimir-login password",
        "prometheus/ops/tls.crt": "secret mimir-client tls.crt",
        "prometheus/ops/tls.key": "secret mimir-client tls.key",
        "prometheus/thanos/token": "secret thanos-token my-token",
        "prometheus/other/token": "serviceAccountToken prometheus",
    }


def test_what_is_mounted_for_prometheus_is_what_is_read(tmp_path: Path) -> None:
    ca = create_authority("ca", NOW, YEAR)
    client = issue_leaf(ca, "client", "client", NOW, YEAR)
    contents = {"ca.crt": ca.certificate, "tls.crt": client.certificate, "tls.key": client.key}
    files = [tmp_path / path for path in _mounted("everything")]
    settings = parse_settings(CASES["everything"].read_text().partition("replicas: 3\nimage:")[0]).prometheus

    def read() -> None:
        for server in settings:
            access = ServerAccess(server, tmp_path / FOLDER / server.name)
            credential = access.credential()
            if access.trust is not None:
                access.trust.context(credential)

    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents.get(file.name, b"x"))
    read()
    for file in files:
        held = file.read_bytes()
        file.unlink()
        with pytest.raises(AccessError, match=str(file)):
            read()
        file.write_bytes(held)


def test_who_installs_it_is_told_whom_prometheus_must_let_in() -> None:
    said = helm("install", "fairlead", str(CHART), "--dry-run=client", f"--values={CASES['everything']}")
    assert "\n  ops: https://mimir.example.com/prometheus\n" in said
    said = said.partition("one more peer under `from`:")[2]
    (peer,) = yaml.safe_load(textwrap.dedent(said.strip("\n").partition("\n\n")[0]))
    deployment = the(template(CASES["everything"]), "Deployment")
    assert peer["podSelector"] == deployment["spec"]["selector"]
    assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    assert "Prometheus" not in helm("install", "fairlead", str(CHART), "--dry-run=client").partition("NOTES:")[2]


def test_the_secret_that_is_mounted_is_the_one_that_is_issued() -> None:
    made = [one["spec"] for one in template(CASES["cert-manager"]) if one["kind"] == "Certificate"]
    (server,) = [one for one in made if one["secretName"] == "fairlead-webhook-tls"]
    assert server["dnsNames"] == [f"fairlead.{NAMESPACE}.svc", f"fairlead.{NAMESPACE}.svc.cluster.local"]
    assert server["usages"] == ["server auth"]


def _called(objects: list[Object]) -> Object:
    (found,) = [one for one in objects if one["kind"] == "Service" and one["spec"].get("clusterIP") != "None"]
    return found


def test_the_api_server_asks_for_nothing_but_our_kind_where_it_is_answered() -> None:
    objects = template()
    made = the(objects, "ValidatingWebhookConfiguration", ADMISSION.format(namespace=NAMESPACE))
    (webhook,) = made["webhooks"]
    (rule,) = webhook["rules"]
    asks = (rule["apiGroups"], rule["resources"], webhook["failurePolicy"], webhook["timeoutSeconds"])
    assert asks == (["fairlead.dev"], ["schedulerextenderpolicies"], "Ignore", 10)
    called, service = webhook["clientConfig"]["service"], _called(objects)
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    name = service["metadata"]["name"]
    assert called == {"name": name, "namespace": NAMESPACE, "path": PATH, "port": ports["admission"]}


def test_without_the_check_nothing_listens_for_it() -> None:
    objects = template("admission.enabled=false", "crds.enabled=false")
    assert [one for one in objects if one["kind"] == "ValidatingWebhookConfiguration"] == []
    assert _given(the(objects, "Deployment")).admission == ""
    left = written([one for one in objects if one["kind"] in ("Deployment", "Service", "NetworkPolicy")])
    assert "9443" not in left
    assert [line for line in left.splitlines() if "admission" in line] == ["        - --admission="]
    policy = the(objects, "NetworkPolicy")["spec"]
    assert [port["port"] for rule in policy["ingress"] for port in rule["ports"]] == ["webhook", "probes"]


def test_a_pod_has_a_limit_of_memory_and_none_of_cpu() -> None:
    (container,) = the(template(), "Deployment")["spec"]["template"]["spec"]["containers"]
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
    account = the(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    (condition,) = policy["spec"]["matchConditions"]
    by_the_operator = f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{account}' || "
    assert condition["expression"].startswith(by_the_operator)


def test_schedulers_may_call_and_nobody_else() -> None:
    policy = the(template(), "NetworkPolicy")["spec"]
    (schedulers, replicas) = policy["ingress"][0]["from"]
    labels = ObjectNames("gpu", NAMESPACE).selector
    assert schedulers["podSelector"]["matchLabels"].items() <= labels.items()
    assert {one["key"] for one in schedulers["podSelector"]["matchExpressions"]} <= labels.keys()
    assert replicas["podSelector"] == policy["podSelector"]
    assert [port["port"] for rule in policy["ingress"] for port in rule["ports"]] == ["webhook", "admission", "probes"]


def test_the_first_policy_of_all_is_a_good_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, rest = (CHART / "templates" / "NOTES.txt").read_text().partition("<<'POLICY'\n")
    file = tmp_path / "first.yaml"
    file.write_text(textwrap.dedent(rest.partition("     POLICY")[0]))
    assert "kind: SchedulerExtenderPolicy" in file.read_text()
    assert main(["lint", str(file)]) == 0, capsys.readouterr()


@pytest.mark.parametrize("within", ["240s", "1m", "20m", "3000s"])
def test_what_goes_first_finds_the_operator_and_ends_before_its_job(within: str) -> None:
    objects = template(f'uninstall.within="{within}"')
    job, deployment = the(objects, "Job", "fairlead-uninstall"), the(objects, "Deployment")
    given = _given(job)
    assert given.namespace == NAMESPACE
    sought = _labels(given.operator)
    assert sought == deployment["spec"]["selector"]["matchLabels"]
    assert sought.items() <= deployment["metadata"]["labels"].items()
    assert seconds("--within", given.within) < job["spec"]["activeDeadlineSeconds"]


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
        ('drainSeconds=0', "drainSeconds"),
        ('drainSeconds="10s"', "drainSeconds"),
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
        ('resources.requests.cpu=true', "cpu"),
        ('fullnameOverride="a.b"', "fullnameOverride"),
        ('uninstall.within="5"', "within"),
        ('metrics.serviceMonitor.enabled="yes"', "enabled"),
        ('schedulers=[{"name":"a"},{"name":"b"},{"name":"a"}]', "schedulers[2] (a): is listed twice"),
        ('schedulers=[{"name":"default-scheduler"}]', "set management to ConfigOnly"),
        ('schedulers=[{"name":"a","profile":{"schedulerName":"b"}}]', "schedulers[0] (a).profile.schedulerName"),
        ('tls.mode="CertManager"', "tls.issuerRef.name: is missing"),
        ('tls.issuerRef.name="ca"', "tls.issuerRef.name: is for tls.mode CertManager"),
        ('tls.mode="Provided"', "tls.caBundle: is missing"),
        ("schedulerDefaults=null", "upgrade with --reset-then-reuse-values"),
        ('tls.caBundle="x"', "tls.caBundle: is for tls.mode Provided"),
        ('admission={"enabled":false,"clientCA":"x"}', "admission.clientCA: applies to the admission check only"),
        ('admission.clientCa="x"', "'clientCa' not allowed"),
        ('fullnameOverride="1a"', "fullnameOverride: the name of a Service must begin with a letter"),
        ('fullnameOverride="kube-scheduler-a"', "fullnameOverride: names of schedulers begin with kube-scheduler-"),
        ('prometheus=[{"name":"a"}]', "prometheus"),
        ('prometheus=[{"name":"a","url":"http://a","insecureSkipVerify":true}]', "'insecureSkipVerify' not allowed"),
        ('prometheus=[{"name":"a","url":"http://me:x@a"}]', "url"),
        ('prometheus=[{"name":"a","url":"http://a?b"}]', "url"),
        ('prometheus=[{"name":"a","url":"https://a","ca":{"secret":"b"}}]', "ca"),
        ('prometheus=[{"name":"a","url":"https://a","ca":{"secret":"b","key":"c","x":"d"}}]', "'x' not allowed"),
        ('prometheus=[{"name":"a","url":"https://a","timeout":"1 s"}]', "timeout"),
        ('prometheus=[{"name":"a","url":"https://a","maxEntries":1000}]', "maxEntries"),
        ('prometheus=[{"name":"a","url":"http://a"},{"name":"a","url":"http://b"}]', "prometheus[1] (a): is listed"),
        (
            'prometheus=[{"name":"a","url":"http://a","serviceAccount":{},"basicAuth":{"secret":"b"}}]',
            "prometheus[0] (a): bearerToken, serviceAccount and basicAuth exclude each other: give one of them",
        ),
        ('prometheus=[{"name":"a","url":"https://a","ca":{"key":"c"}}]', "prometheus[0] (a).ca: give exactly one of"),
        (
            'prometheus=[{"name":"a","url":"https://a","ca":{"key":"c","secret":"d","configMap":"e"}}]',
            "prometheus[0] (a).ca: give exactly one of secret, configMap",
        ),
        ('prometheus=[{"name":"a","url":"http://a","serverName":"b"}]', "prometheus[0] (a).serverName: is for https"),
        (
            'prometheus=[{"name":"a","url":"http://a","headers":[{"name":"AUTHORIZATION","value":"b"}]}]',
            "prometheus[0] (a).headers (AUTHORIZATION): must not hold credentials",
        ),
        (
            'prometheus=[{"name":"a","url":"http://a","headers":[{"name":"Host","value":"b"}]}]',
            "prometheus[0] (a).headers (Host): is set by the operator: leave it out",
        ),
        ('unlistedSchedulers="Some"', "/unlistedSchedulers"),
        ('maxUnlistedSchedulers=-1', "/maxUnlistedSchedulers"),
        ('serviceAccount.create=false', "serviceAccount.name: is missing"),
        ('podLabels={"app.kubernetes.io/name":"x"}', "podLabels[app.kubernetes.io/name]"),
        ('schedulerDefaults={"name":"a"}', "'name' not allowed"),
        ('schedulerDefaults.image.repositories="a"', "'repositories' not allowed"),
        ('schedulerDefaults.extraArgs=["-v=4"]', "extraArgs"),
        ('schedulerDefaults.qps=0', "qps"),
        ('schedulerDefaults.profile={"schedulerName":"a"}', "schedulerDefaults.profile.schedulerName: is the name"),
        ('imagePullSecrets=[{"names":"a"}]', "imagePullSecrets"),
        ('imagePullSecrets=[1]', "imagePullSecrets"),
        ('global={"imageRegistries":"a"}', "'imageRegistries' not allowed"),
        ('global.imageRegistry="https://a"', "imageRegistry"),
        ('ports.admission=70000', "admission"),
        ('ports.admission=8443', "ports: 8443, 8443 and 8080 must differ"),
        ('dnsPolicy="None"', "dnsPolicy"),
        ('admission.timeoutSeconds=31', "timeoutSeconds"),
        ('podDisruptionBudget={"minAvailable":1,"maxUnavailable":"50%"}', "exclude each other"),
        ('podDisruptionBudget.minAvailable="half"', "minAvailable"),
        ('metrics.prometheusRule.disabled=["FairleadGone"]', "disabled"),
        ('readinessProbe.periodSecond=1', "'periodSecond' not allowed"),
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


@pytest.mark.parametrize("name", ["a" * 30, "a" * 31, "a-" * 22 + "b"])
def test_each_scheduler_is_given_the_certificate_that_the_operator_looks_for(name: str) -> None:
    made = template('tls.mode="CertManager"', 'tls.issuerRef.name="ca"', f'schedulers=[{{"name":"{name}"}}]')
    (found,) = [
        one["spec"] for one in made if one["kind"] == "Certificate" and one["spec"]["commonName"].endswith(name)
    ]
    assert found["secretName"] == ObjectNames(name, NAMESPACE).certificate
    assert found["commonName"] == scheduler_identity(name)


@pytest.mark.parametrize(
    ("release", "namespace", "name"),
    [
        ("fairlead", "2026", "fairlead"),
        ("my.fairlead", "ns", "my-fairlead"),
        ("a" * 53, "n" * 63, "a" * 40),
        ("a." * 26 + "b", "true", ("a-" * 20).rstrip("-")),
        ("1e3", "1e3", "placing"),
    ],
)
def test_whatever_a_release_and_its_namespace_are_called(release: str, namespace: str, name: str) -> None:
    override = '"placing"' if name == "placing" else '""'
    made = template(f"fullnameOverride={override}", release=release, namespace=namespace)
    assert _called(made)["metadata"]["name"] == name
    for one in made:
        metadata = one["metadata"]
        assert metadata.get("namespace", namespace) in (namespace, "kube-system", "default")
        assert all(isinstance(value, str) and len(value) <= 63 for value in metadata["labels"].values())
    deployment, accounts = the(made, "Deployment"), [one for one in made if one["kind"] == "ServiceAccount"]
    assert _labels(_given(deployment).selector) == deployment["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] in {one["metadata"]["name"] for one in accounts}
    for subject in (one["subjects"][0] for one in made if "subjects" in one):
        assert subject["namespace"] == namespace


def test_a_key_that_is_said_twice_stands_there_once() -> None:
    twice = '{"team":"a","app.kubernetes.io/part-of":"b"}'
    made = template(
        'commonLabels={"team":"c"}',
        f"podLabels={twice}",
        'podAnnotations={"kubectl.kubernetes.io/default-container":"other","checksum/settings":"x"}',
        *(f'metrics.{one}={{"enabled":true,"labels":{twice}}}' for one in ("serviceMonitor", "prometheusRule")),
        f'metrics.dashboard={{"enabled":true,"labels":{twice}}}',
    )
    pod = the(made, "Deployment")["spec"]["template"]["metadata"]
    monitor = the(made, "ServiceMonitor")["metadata"]
    for labels in (pod["labels"], monitor["labels"]):
        assert (labels["team"], labels["app.kubernetes.io/part-of"]) == ("a", "b")
    assert pod["annotations"].pop("checksum/settings") != "x"
    assert pod["annotations"] == {"kubectl.kubernetes.io/default-container": "other"}


@pytest.mark.parametrize("tag", ["1.0", "_x", "a" * 70, "a" * 62 + "-b", "a" * 61 + "_.b"])
def test_any_tag_can_be_a_label(tag: str) -> None:
    labels = the(template(f'image.tag="{tag}"'), "Deployment")["metadata"]["labels"]
    assert re.fullmatch("[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?", labels["app.kubernetes.io/version"])


@pytest.mark.parametrize("namespace", ["other", "default", "kube-system"])
def test_two_releases_meet_nowhere(namespace: str) -> None:
    def names(objects: list[Object]) -> set[tuple[str, str, str]]:
        return {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in objects}

    one, other = template("crds.enabled=false"), template("crds.enabled=false", namespace=namespace)
    assert names(one) & names(other) == set()
    assert len(names(other)) == len(other) == len(one)


@pytest.fixture
def system(control_plane: Cluster) -> Iterator[str]:
    """The namespace of the chart; its pods may do little."""
    api, labels = control_plane.api, {"pod-security.kubernetes.io/enforce": "restricted"}
    api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
    try:
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        wait_for("the namespace's service account", lambda: api.exists(account))
        yield NAMESPACE
    finally:
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
