"""Values of the chart: those that are refused, and what names, tags and labels become."""

import re

import pytest
import yaml

from fairlead.pki.identities import scheduler_identity
from fairlead.render.object_names import ObjectNames
from fairlead.render.operator_settings import parse_settings, parse_values
from support.chart.chart import CASES, CHART, NAMESPACE, ChartError, helm, template
from support.chart.objects import labels_of, options_of, service_of, the_one
from testbed.api import Object


@pytest.mark.parametrize("case", CASES)
def test_the_operator_can_read_its_settings(case: str) -> None:
    values = yaml.safe_load(CASES[case].read_text())
    made = parse_settings(
        the_one(template(CASES[case]), "ConfigMap", f"{_name(values)}-settings")["data"]["settings.yaml"]
    )
    told = parse_values(CASES[case].read_text()).settings
    assert (made.schedulers, made.annotation_prefixes) == (told.schedulers, told.annotation_prefixes)
    assert made.scheduler_defaults == told.scheduler_defaults
    assert made.network_policy == told.network_policy
    assert made.prometheus == told.prometheus
    assert made.tls.mode == values.get("tls", {}).get("mode", "SelfManaged")
    assert made.admission.client_ca == values.get("admission", {}).get("clientCA", "")


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
        ('ports.probes=8081', "ports.probes: 8081 is the port of decisions"),
        ('decisions.log="Some"', "decisions/log"),
        ('dnsPolicy="None"', "dnsPolicy"),
        ('admission.timeoutSeconds=31', "timeoutSeconds"),
        ('podDisruptionBudget={"minAvailable":1,"maxUnavailable":"50%"}', "exclude each other"),
        ('podDisruptionBudget.minAvailable="half"', "minAvailable"),
        ('metrics.prometheusRule.disabled=["FairleadGone"]', "disabled"),
        ('metrics.secure=true,ports.metrics=8080', "ports.metrics: 8080 is another port of the operator"),
        (
            'metrics={"secure":true,"serviceMonitor":{"enabled":true,"namespace":"monitoring"}}',
            "metrics.serviceMonitor.tlsConfig: is missing: in the namespace monitoring there is no authority",
        ),
        ('metrics.readers=[{"namespace":"a"}]', "name"),
        ('metrics.readers=[{"name":"a"}]', "metrics.readers[0] (a).namespace: is missing"),
        ('metrics.readers=[{"kind":"Group","name":"a","namespace":"b"}]', "(a).namespace: a Group has none"),
        ('metrics.readers=[{"kind":"Role","name":"a"}]', "kind"),
        ('metrics.schedulers.serviceMonitor.tls={}', "'tls' not allowed"),
        ('readinessProbe.periodSecond=1', "'periodSecond' not allowed"),
        ('commonLabels={"helm.sh/chart":"x"}', "commonLabels[helm.sh/chart]"),
        ('optIn=[{"objectSelector":{}}]', "schedulerName"),
        ('optIn=[{"schedulerName":"A","objectSelector":{}}]', "schedulerName"),
        ('optIn=[{"schedulerName":"a","podSelector":{}}]', "'podSelector' not allowed"),
        ('optIn=[{"schedulerName":"a","objectSelector":{}}]', "optIn[0] (a): would select all pods of the cluster"),
        (
            'optIn=[{"schedulerName":"default-scheduler","objectSelector":{"matchLabels":{"a":"b"}}}]',
            "optIn[0] (default-scheduler): pods without a scheduler have this one anyway",
        ),
    ],
)  # fmt: skip
def test_values_that_cannot_be_meant_are_refused(given: str, said: str) -> None:
    with pytest.raises(ChartError) as refused:
        template(given)
    assert said in str(refused.value)


def test_ports_are_compared_as_numbers_however_they_are_given() -> None:
    given = ("template", "fairlead", str(CHART), "--set=ports.probes=18080,metrics.secure=true,ports.metrics=18444")
    assert "--probes=:18080" in helm(*given)
    with pytest.raises(ChartError, match="8443, 9443 and 8443 must differ"):
        helm("template", "fairlead", str(CHART), "--set=ports.probes=8443")


def test_decisions_are_served_where_the_pod_has_an_address_of_its_own() -> None:
    for given, is_served in (
        ("decisions.enabled=true", True),
        ("decisions.enabled=false", False),
        ("hostNetwork=true", False),
    ):
        made = template(given)
        [deployment] = [one for one in made if one["kind"] == "Deployment"]
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert ("--decisions=127.0.0.1:8081" in arguments) == is_served
        assert any(one["metadata"]["name"] == "fairlead-decisions" for one in made) == is_served


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
    assert service_of(made)["metadata"]["name"] == name
    for one in made:
        metadata = one["metadata"]
        assert metadata.get("namespace", namespace) in (namespace, "kube-system", "default")
        assert all(isinstance(value, str) and len(value) <= 63 for value in metadata["labels"].values())
    deployment, accounts = the_one(made, "Deployment"), [one for one in made if one["kind"] == "ServiceAccount"]
    assert labels_of(options_of(deployment).selector) == deployment["spec"]["selector"]["matchLabels"]
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
    pod = the_one(made, "Deployment")["spec"]["template"]["metadata"]
    monitor = the_one(made, "ServiceMonitor")["metadata"]
    for labels in (pod["labels"], monitor["labels"]):
        assert (labels["team"], labels["app.kubernetes.io/part-of"]) == ("a", "b")
    assert pod["annotations"].pop("checksum/settings") != "x"
    assert pod["annotations"] == {"kubectl.kubernetes.io/default-container": "other"}


@pytest.mark.parametrize("tag", ["1.0", "_x", "a" * 70, "a" * 62 + "-b", "a" * 61 + "_.b"])
def test_any_tag_can_be_a_label(tag: str) -> None:
    labels = the_one(template(f'image.tag="{tag}"'), "Deployment")["metadata"]["labels"]
    assert re.fullmatch("[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?", labels["app.kubernetes.io/version"])


@pytest.mark.parametrize("namespace", ["other", "default", "kube-system"])
def test_two_releases_meet_nowhere(namespace: str) -> None:
    def names(objects: list[Object]) -> set[tuple[str, str, str]]:
        return {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in objects}

    one, other = template("crds.enabled=false"), template("crds.enabled=false", namespace=namespace)
    assert names(one) & names(other) == set()
    assert len(names(other)) == len(other) == len(one)
