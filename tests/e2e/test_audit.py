"""What the operator asks of the API server, by the log of that: no more than it has to, and all that it may."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from extender import Stage
from fairlead.api.names import GROUP, PLURAL
from fairlead.cli.inputs.operator_survey import Survey, survey
from fairlead.control.reconcile.object_client import ref_of
from fairlead.kube.access.login import log_in
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.pki.identities import REPLICAS
from fairlead.pki.rotation import ROTATE
from fairlead.render.rbac import CLAIM, OPERATOR, ApiRequest, RoleGrant, named
from fairlead.render.scheduler_bindings import SCHEDULER_BINDINGS
from fairlead.render.uninstall_rbac import UNINSTALL
from support.chart.chart import NAMESPACE, can_opt_in, template
from support.chart.release import DEPLOYMENT, SCHEDULER, Release, document, pods_of_one_test, released
from support.chart.scraping import READERS, scrapes
from support.kube import audit
from support.kube.audit import AnsweredRequest
from support.kube.crd import POLICIES
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster

LOG = logging.getLogger(__name__)
_ROUNDS = 12
_ACCOUNTS = {audit.account(NAMESPACE, name): name for name in ("fairlead", "fairlead-uninstall")}
_OPERATOR, _UNINSTALL = _ACCOUNTS
_CLAIM = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{CLAIM}"
_ITS_LEASES = {"leases fairlead", f"leases {CLAIM}"}
_NAMESPACE = f"/api/v1/namespaces/{NAMESPACE}"
_APP = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fairlead"
_AUTHORITY = f"{_NAMESPACE}/secrets/fairlead-ca"
_STATE = f"{_NAMESPACE}/configmaps/kube-scheduler-fairlead.state"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GRANTS = tuple(f"{_RBAC}/namespaces/{NAMESPACE}/{one}" for one in ("roles", "rolebindings"))
_OUTSIDE = {"clusterrolebindings": "", "rolebindings": "kube-system"}
_SPEC: dict[str, Any] = {
    "publish": "NodeAffinity",
    "filters": [{"name": "pool", "expression": "node.metadata.labels[?'pool'].orValue('') == 'a'"}],
    "scores": [{"name": "points", "weight": 20, "expression": "double(node.metadata.labels['points'])"}],
}
_BINDING = {"annotations": [{"key": "fairlead.dev/class", "expression": "'x'"}]}
_NEVER_USED: dict[ApiRequest, str] = {
    ApiRequest("list", "metrics.k8s.io", "nodes", "cluster"): "no policy here has nodeMetrics",
    ApiRequest("update", "", "configmaps", "own"): "no policy here learns",
    ApiRequest("list", "coordination.k8s.io", "leases", "cluster", CLAIM): "the claim is in kube-system here",
    ApiRequest("patch", GROUP, PLURAL, "cluster"): "an uninstall takes off the finalizer of a version before",
    **{
        ApiRequest("delete", rule.group, plural, grant.place, name): "who sets a guarded owner must hold it"
        for grant in named(OPERATOR, NAMESPACE)
        for rule in grant.rules
        for plural in rule.resources
        for name in rule.names
        if plural.endswith("rolebindings")
    },
}
"""Rights that no test needs, each with the reason why it is held all the same."""


@pytest.fixture(scope="module")
def begun() -> datetime:
    """Of these tests."""
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def release(cluster: Cluster, operator_image_tag: str, scheduler_image_tag: str, begun: datetime) -> Iterator[Release]:
    """Installed, without any policy."""
    with released(cluster, operator_image_tag, 4) as made:
        cluster.api.delete(_CLAIM)
        made.own_values = {"metrics": {"secure": True, "readers": READERS}}
        if can_opt_in(cluster.kubernetes):
            made.own_values["publishedAffinity"] = {"enabled": True}
        made.install()
        yield made


@pytest.fixture
def pods(release: Release, namespace: str) -> Iterator[Stage]:
    """Pods of this test alone, whose policies go with them."""
    with pods_of_one_test(release, namespace) as stage:
        yield stage


def _asked(release: Release) -> list[AnsweredRequest]:
    return [*audit.answered_requests(audit.lines(release.cluster.audit_log))]


def _written(release: Release, since: datetime) -> list[str]:
    """By the operator, but for its Leases."""
    found = audit.by(_asked(release), _OPERATOR, since=since)
    return [str(one) for one in audit.writes(found, but=_ITS_LEASES)]


def _server_side(release: Release, manager: str, text: str, *more: str) -> Callable[[], object]:
    given = ("apply", "--server-side", f"--field-manager={manager}", "--force-conflicts", "-f", "-", *more)
    return lambda: release.kubectl(*given, stdin=text)


def _of_the_policy(release: Release, text: str) -> Sequence[Callable[[], object]]:
    """The ways in which it comes again."""
    kubectl, flux, argo = release.kubectl, "kustomize-controller", "argocd-controller"
    return [
        lambda: kubectl("apply", "-f", "-", stdin=text),
        _server_side(release, "kubectl", text),
        _server_side(release, flux, text, "--dry-run=server"),  # as Flux finds drift
        _server_side(release, flux, text),
        lambda: kubectl("annotate", "sep", "same", "--overwrite", "argocd.argoproj.io/tracking-id=a:b/c:d/same"),
        _server_side(release, argo, text),
    ]


def _of_the_chart(release: Release) -> Sequence[Callable[[], object]]:
    """The same of all that helm has installed."""
    return [_server_side(release, one, release.manifests()) for one in ("kustomize-controller", "argocd-controller")]


def _nothing_is_written(release: Release, ways: Sequence[Callable[[], object]], rounds: int) -> None:
    """Neither by the operator, nor does anything become another."""
    for apply in ways:  # each may take fields, and annotate, once
        apply()
    paths = (f"{POLICIES}/same", DEPLOYMENT, _APP)
    before = [release.api.get(path)["metadata"]["generation"] for path in paths]
    looked = datetime.now(UTC)

    def quiet() -> bool:
        nonlocal looked
        since, looked = looked, datetime.now(UTC)
        return not _written(release, since)

    wait_for("nothing to be written for a while", quiet, every_s=3)
    since = datetime.now(UTC)
    for number in range(rounds):
        for apply in ways:
            apply()
        release.api.patch(
            _STATE, {"metadata": {"annotations": {"example.com/touched": str(number)}}}
        )  # it is looked at
    lasted = (datetime.now(UTC) - since).total_seconds()
    assert _written(release, since) == []
    assert [release.api.get(path)["metadata"]["generation"] for path in paths] == before
    LOG.info("applied %d times in %.0f s", rounds * len(ways), lasted)

    def renewed() -> bool:
        """The log goes on, and the operator lives: that it holds no other write says something."""
        beats = [one for one in audit.by(_asked(release), _OPERATOR, since=since) if one.is_write]
        return {f"{one.resource} {one.name}" for one in beats} >= _ITS_LEASES

    wait_for("both Leases to be renewed", renewed)
    assert _written(release, since) == []


@pytest.mark.usefixtures("pods")
def test_what_is_applied_again_and_again_is_written_once(release: Release) -> None:
    release.put("same", **_SPEC)
    release.ready("same", within="180s")
    drifted = _drifts(release)
    _nothing_is_written(release, _of_the_policy(release, document("same", **_SPEC)), _ROUNDS)
    _nothing_is_written(release, [release.install], 3)
    _nothing_is_written(release, _of_the_chart(release), 5)  # helm, which now shares its fields, would be refused
    assert _drifts(release) == drifted
    assert release.events("same", "DriftCorrected") == []


@pytest.mark.usefixtures("prometheus_program", "pods")
def test_a_prometheus_scrapes_with_a_token_and_is_refused_without_one(release: Release, tmp_path: Path) -> None:
    """The operator, whose certificate it verifies, and its scheduler."""
    release.put("scraped", **_SPEC)
    release.ready("scraped", within="180s")
    values = ("metrics.secure=true", *(f"metrics.{one}serviceMonitor.enabled=true" for one in ("", "schedulers.")))
    monitors = [one for one in template(*values) if one["kind"] == "ServiceMonitor"]
    authority = release.api.get(f"{_NAMESPACE}/configmaps/fairlead-ca")["data"]["ca.crt"]
    files = {"fairlead-ca/ca.crt": authority}
    selectors = {"fairlead": REPLICAS, "fairlead-schedulers": SCHEDULER}
    statuses = {"fairlead": "401 Unauthorized", "fairlead-schedulers": "403 Forbidden"}
    with scrapes(release.cluster, tmp_path, monitors, files) as scraped:
        for job, selector in selectors.items():
            pods = {one["metadata"]["name"] for one in release.pods(selector)}
            assert len(pods) == 2
            wait_for(f"{job} to be scraped", lambda job=job, pods=pods: scraped.are(job, pods, "up", ""))  # type: ignore[misc]
            error = f"server returned HTTP status {statuses[job]}"
            wait_for(
                f"{job} to be refused",
                lambda job=job, pods=pods, error=error: scraped.are(f"{job} without", pods, "down", error),  # type: ignore[misc]
            )
        assert scraped.series("fairlead_leader==1")
        (series,) = {one["scheduler"] for one in scraped.series('scheduler_pending_pods{queue="active"}')}
        assert series == "fairlead"


def _drifts(release: Release) -> list[str]:
    """Return what the replicas say of corrected drift, to `fairlead status`."""

    async def read() -> Survey:
        async with Client(log_in(release.cluster.kubeconfig)) as client:
            return await survey(client, NAMESPACE)

    read_now = asyncio.run(read())
    assert read_now.unread == []
    assert len(read_now.metrics) == 2
    lines = [line for page in read_now.metrics.values() for line in page.splitlines()]
    return sorted(line for line in lines if line.startswith("fairlead_drift_corrected_total"))


def test_it_was_denied_nothing_and_has_no_right_that_it_does_not_need(
    release: Release, pods: Stage, begun: datetime
) -> None:
    _live_and_let_go(release, pods)
    release.put("again", **_SPEC)
    wait_for("a scheduler to take away", lambda: release.api.exists(DEPLOYMENT))
    is_published = can_opt_in(release.cluster.kubernetes)
    wait_for(
        "published affinity", lambda: not is_published or release.api.exists(f"{PUBLISHED_AFFINITIES.path}/fairlead")
    )
    wait_for("what was granted", lambda: all(_ours(release, path) for path in _GRANTS))
    bound = wait_for("all to be bound", lambda: _bound(release))
    ours = [one for path in _GRANTS for one in _ours(release, path)]
    granted = [*audit.granted((*ours, *bound), NAMESPACE)]
    _as_earlier_versions_bound(release)
    LOG.info("%s", release.uninstall())

    found = _asked(release)
    everybody = audit.by(found, audit.account(NAMESPACE, "*"))
    LOG.info("%d requests by service accounts of %s", len(everybody), NAMESPACE)
    assert [str(one) for one in audit.denied(everybody)] == []
    unused = set[ApiRequest]()
    for user, grants, also in ((_OPERATOR, OPERATOR, granted), (_UNINSTALL, UNINSTALL, [])):
        roles = _with(named(grants, NAMESPACE), is_published=is_published)
        asked = audit.by(everybody, user, since=begun)
        taken = audit.used(roles, [*audit.needed(asked, NAMESPACE), *also])
        unused |= {one for one in audit.rights(roles) - taken if one not in _NEVER_USED}
    assert sorted(map(str, unused)) == []
    assert _NEVER_USED.keys() <= audit.rights(named((*OPERATOR, *UNINSTALL), NAMESPACE))


def _with(grants: Sequence[RoleGrant], *, is_published: bool) -> Sequence[RoleGrant]:
    """Return the permissions of an installation that publishes node affinity, or of one that does not."""
    return [
        replace(one, rules=tuple(rule for rule in one.rules if is_published or not rule.published_affinity))
        for one in grants
    ]


def _live_and_let_go(release: Release, pods: Stage) -> None:
    """All that happens to a scheduler, once."""
    api = release.api
    release.put("rights", **_SPEC)
    release.ready("rights", within="180s")
    pods.make_pods(["early"], scheduler="fairlead")
    assert pods.placed("early") == release.nodes[2]

    release.put("rights", **_SPEC, binding=_BINDING)  # another wiring
    api.patch(DEPLOYMENT, {"spec": {"replicas": 1}})
    release.ready("rights", within="180s")
    pods.make_pods(["bound"], scheduler="fairlead")
    assert pods.placed("bound") == release.nodes[2]
    assert pods.pod("bound")["metadata"]["annotations"]["fairlead.dev/class"] == "x"
    assert api.get(DEPLOYMENT)["spec"]["replicas"] == 2

    before = api.get(_AUTHORITY)["data"]["tls.crt"]
    api.patch(_AUTHORITY, {"metadata": {"annotations": {ROTATE: "now"}}})
    wait_for("another authority to be introduced", lambda: "next.crt" in api.get(_AUTHORITY)["data"])
    release.remove(["rights"])
    begun = time.monotonic()
    text = wait_for("a pass without any policy", lambda: _without(api.get(_STATE)["data"]["state.json"]))
    api.patch(_STATE, {"data": {"state.json": text}})
    wait_for("the scheduler to go", lambda: not api.exists(_STATE), timeout_s=120)
    LOG.info("the scheduler went in %.1f s", time.monotonic() - begun)
    assert not [one for path in _GRANTS for one in _ours(release, path)]

    def rotated() -> bool:
        data = api.get(_AUTHORITY)["data"]
        return {*data} == {"tls.crt", "tls.key"} and data["tls.crt"] != before

    wait_for("the new authority alone", rotated, timeout_s=120)


def _without(state: str) -> str | None:
    """As if it had been so for as long as a scheduler outlives its policies."""
    remembered = json.loads(state)
    if remembered["retention"].get("empty_since") is None:
        return None
    remembered["retention"]["empty_since"] = 1.0
    return json.dumps(remembered)


def _bound(release: Release) -> list[Object]:
    """The chart's bindings of schedulers, once each has a subject."""
    found = [release.api.get(ref_of(one.body(NAMESPACE)).path) for one in SCHEDULER_BINDINGS]
    return found if all(one.get("subjects") for one in found) else []


def _as_earlier_versions_bound(release: Release) -> None:
    """Bindings of one scheduler outside the namespace, which an uninstall deletes."""
    labels = {"app.kubernetes.io/managed-by": "fairlead", "fairlead.dev/scheduler": "fairlead"}
    for plural, place in _OUTSIDE.items():
        where = f"{_RBAC}/namespaces/{place}/{plural}" if place else f"{_RBAC}/{plural}"
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        metadata = {"name": f"fairlead.{NAMESPACE}.fairlead.before", "labels": labels}
        release.api.create(where, {"metadata": metadata, "roleRef": role})


def _ours(release: Release, path: str) -> list[Object]:
    return release.api.items(path, labelSelector="app.kubernetes.io/managed-by=fairlead,fairlead.dev/scheduler")
