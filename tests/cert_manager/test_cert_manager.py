"""The chart with `tls.mode` CertManager beside cert-manager's controllers: installed, renewed under load, upgraded.

`make test-cert-manager` runs this: cert-manager takes minutes to build, so that `make test` does not build it.
"""

import base64
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from cryptography import x509

from fairlead.pki.identities import OPERATOR as LEADER
from fairlead.pki.identities import scheduler_identity
from fairlead.render.plan import TLS_FOLDER
from support.chart.chart import NAMESPACE
from support.chart.release import HOOKS, OPERATOR, PODS, SCHEDULER, Release, document, processes, refused, released
from support.stream import Follow, Stream, table
from testbed import tables
from testbed.api import Api, wait_for
from testbed.cert_manager import CERTIFICATES, ISSUER, CertManager, is_ready
from testbed.fixtures import Cluster

LOG = logging.getLogger(__name__)
_STREAM = "stream"
_LABEL = "node.metadata.labels[?'pool'].orValue('')"
_FILTERS = [{"name": "pool", "expression": f"{_LABEL} == pod.metadata.labels['pool']", "reason": "another pool"}]
_BAD = [{"name": "pool", "expression": "node.metadata.nam == 'a'"}]
_OF_CHART = CERTIFICATES.format(namespace=NAMESPACE)
_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
_SERVER, _LEADER, _SCHEDULER = "fairlead-webhook-tls", "fairlead-operator-tls", "kube-scheduler-fairlead-tls"
_NAMES = {
    _SERVER: "fairlead:webhook",
    _LEADER: LEADER,
    _SCHEDULER: scheduler_identity("fairlead"),
}
"""Common names by Secret."""
_REFUSED = re.compile(r'^fairlead_webhook_refused_total\{(?!reason="admission: )(.*)\} (?!0\.0$)(\S+)$', re.MULTILINE)
"""Without those of the check of policies: the API server does not trust it before its authority is injected."""
_SERVED = re.compile(r'^fairlead_webhook_request_duration_seconds_count\{.*verb="filter".*\} [1-9]', re.MULTILINE)
_ENDS = re.compile(r'^fairlead_certificate_expiration_timestamp_seconds\{certificate="server"\} (\S+)$', re.MULTILINE)
_SEEN_WITHIN_S = 180
"""The kubelet looks for changed Secrets every minute or two."""


@pytest.fixture(scope="module")
def release(
    cluster: Cluster, cert_manager: CertManager, operator_image_tag: str, scheduler_image_tag: str
) -> Iterator[Release]:
    """Installed with certificates of the issuer."""
    with released(cluster, operator_image_tag, 20) as made:
        issuer = {"name": ISSUER, "kind": "ClusterIssuer"}
        made.own_values = {"tls": {"mode": "CertManager", "issuerRef": issuer}, "drainSeconds": 5}
        made.install({"name": "fairlead"})
        yield made


def test_the_issuer_signs_what_the_chart_asks_for(release: Release) -> None:
    wait_for("all certificates", lambda: all(is_ready(one) for one in release.api.items(_OF_CHART)), timeout_s=60)
    found = {name: _certificate(release, name) for name in _NAMES}
    assert {name: _common_name(one) for name, one in found.items()} == _NAMES
    assert {_common_name(one, of_issuer=True) for one in found.values()} == {"cluster-authority"}


def test_the_api_server_trusts_the_check_by_the_injected_authority(release: Release) -> None:
    release.runs(2)
    wait_for("the injected authority", lambda: _bundles(release) == {_authority(release)})
    said = wait_for("the check to be asked", lambda: _refusal(release, _BAD) or None)
    assert "spec.filters[0].expression" in said
    assert _refusal(release, _FILTERS) == ""


@pytest.fixture(scope="module")
def stream(release: Release, pytestconfig: pytest.Config) -> Iterator[Stream]:
    """Pods all the time, each for the nodes of one pool."""
    release.put("pools", filters=_FILTERS)
    release.ready("pools", within="240s")
    api, path = Api(release.cluster.kubeconfig), f"/api/v1/namespaces/{_STREAM}"
    api.create("/api/v1/namespaces", {"metadata": {"name": _STREAM}})
    wait_for("its service account", lambda: api.exists(f"{path}/serviceaccounts/default"))
    with closing(api), closing(Follow(release.cluster.audit_log)) as log:
        made = Stream(
            api=api,
            namespace=_STREAM,
            log=log,
            nodes={node: "ab"[number % 2] for number, node in enumerate(release.nodes)},
            schedulers={"fairlead": {"a": "a", "b": "b"}},
        )
        made.begin()
        yield made
        made.end()
        tables.leave(pytestconfig, "certificates of cert-manager", table([*made.rows, made.total()]))
        api.delete(path)


def test_pods_are_placed_as_a_policy_says(release: Release, stream: Stream) -> None:
    with stream.through("pods placed with certificates of cert-manager"):
        stream.flow(5)
    assert _refused_calls(release) == {}


def test_certificates_are_renewed_without_a_failed_call(
    release: Release, stream: Stream, cert_manager: CertManager
) -> None:
    rolled = release.rolled()
    with stream.through("every certificate renewed by cert-manager"):
        _renew(release, cert_manager)
        stream.flow(5)
    assert release.rolled() == rolled, "the same authority signs: no scheduler rolls"
    release.ready("pools")
    assert _refusal(release, _BAD), "the API server trusts the new certificate, too"
    assert _refused_calls(release) == {}


def test_an_upgrade_leaves_the_injected_authority(release: Release, stream: Stream) -> None:
    rolled, old = release.rolled(), release.uids(OPERATOR)
    with stream.through("an upgrade: every replica anew, called with the new certificates"):
        release.install({"name": "fairlead"}, podAnnotations={"upgraded": "yes"})
        release.runs(2, but=old)
        release.ready("pools")
        stream.flow(5)
    assert release.rolled() == rolled
    assert _bundles(release) == {_authority(release)}
    assert _refusal(release, _BAD)
    assert _refused_calls(release) == {}


def _renew(release: Release, cert_manager: CertManager) -> None:
    """Have all certificates issued anew, and wait until each side shows its new one."""
    begun, before = time.monotonic(), {name: _pem(release, name) for name in _NAMES}
    for name in _NAMES:
        cert_manager.renew(NAMESPACE, name)
    wait_for("new ones", lambda: all(_pem(release, name) != before[name] for name in _NAMES), timeout_s=60)
    LOG.info("issued anew after %.1f s", time.monotonic() - begun)
    pods = [*release.pods(OPERATOR), *release.pods(SCHEDULER)]
    for pod in pods:  # the kubelet looks at pods that change at once, at others within a minute or two
        release.api.patch(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"annotations": {"look": "now"}}})
    new = _pem(release, _SCHEDULER)
    files = [
        Path(f"/proc/{one.pid}/root{TLS_FOLDER}/tls.crt")
        for pod in release.pods(SCHEDULER)
        for one in processes(pod["status"]["podIP"], variable="POD_IP")
    ]
    wait_for("schedulers to have it", lambda: {one.read_bytes() for one in files} == {new}, timeout_s=_SEEN_WITHIN_S)
    ends = _certificate(release, _SERVER).not_valid_after_utc.timestamp()
    wait_for("replicas to use theirs", lambda: _ends(release) == {ends}, timeout_s=_SEEN_WITHIN_S)
    LOG.info("in use after %.1f s", time.monotonic() - begun)


def _ends(release: Release) -> set[float]:
    """Times at which the certificates end that replicas show to callers."""
    return {float(at) for page in _pages(release).values() for at in _ENDS.findall(page)}


def _pem(release: Release, secret: str) -> bytes:
    return base64.b64decode(release.api.get(f"{_SECRETS}/{secret}")["data"]["tls.crt"])


def _certificate(release: Release, secret: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(_pem(release, secret))


def _common_name(one: x509.Certificate, *, of_issuer: bool = False) -> str:
    name = one.issuer if of_issuer else one.subject
    return str(name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)


def _authority(release: Release) -> str:
    """The issuer's certificate, as it stands in a Secret."""
    found: str = release.api.get(f"{_SECRETS}/{_SERVER}")["data"]["ca.crt"]
    return found


def _bundles(release: Release) -> set[str]:
    """Authorities by which the API server trusts the check."""
    hooks = [one for one in release.api.items(HOOKS) if one["metadata"]["name"].startswith("fairlead")]
    return {one["clientConfig"].get("caBundle", "") for hook in hooks for one in hook["webhooks"]}


def _refusal(release: Release, filters: object) -> str:
    """Text that a policy would be refused with; empty if it would be stored."""
    text = document("tried", filters=filters)
    return refused(lambda: release.kubectl("create", "--dry-run=server", "-f", "-", stdin=text))


def _pages(release: Release) -> Mapping[str, str]:
    """Metrics of each replica."""
    names = [pod["metadata"]["name"] for pod in release.pods(OPERATOR)]
    return {name: release.api.text(f"{PODS}/{name}:8080/proxy/metrics") for name in names}


def _refused_calls(release: Release) -> Mapping[str, str]:
    """Calls and connections that replicas have refused; some are served."""
    pages = _pages(release)
    assert any(map(_SERVED.search, pages.values())), "a scheduler calls them"
    return {f"{name}: {labels}": count for name, page in pages.items() for labels, count in _REFUSED.findall(page)}
