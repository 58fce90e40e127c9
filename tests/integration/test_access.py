"""The roles of the chart, on a real API server: what the operator needs it has, and it cannot get more."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.names import GROUP
from fairlead.control.loop.controller import now
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulers
from fairlead.control.reconcile.object_client import ObjectClient, ref_of, resource
from fairlead.control.reconcile.observe import observe
from fairlead.kube.errors import ForbiddenError
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.resources import ObjectRef
from fairlead.kube.watch.secrets import Secrets
from fairlead.process.uninstaller import FINALIZER, Uninstaller
from fairlead.render.rbac import OPERATOR, RoleGrant, named
from fairlead.render.scheduler_bindings import SCHEDULER_BINDINGS
from fairlead.render.uninstall_rbac import UNINSTALL
from support.chart.chart import NAMESPACE
from support.kube.crd import POLICIES
from support.kube.service_account import access_of, may
from support.render.schedulers import planned
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl

_RBAC = "rbac.authorization.k8s.io"
_SYSTEM = f"/api/v1/namespaces/{NAMESPACE}"
_OF_CHART = "kube-scheduler|volume-scheduler|authentication-reader"
_OF_OTHER_TESTS = re.compile(rf"fairlead\.(?!{NAMESPACE}\.)[^.]+\.({_OF_CHART})")
"""Bindings of the operators of other tests, which go with their namespaces some time later."""
_BINDINGS = f"/apis/{_RBAC}/v1/clusterrolebindings"
_IN_KUBE_SYSTEM = f"/apis/{_RBAC}/v1/namespaces/kube-system/rolebindings"


@pytest.mark.usefixtures("installed")
def test_each_rule_holds_where_it_is_said_and_nowhere_else(control_plane: Cluster) -> None:
    for account, grants in (("fairlead", OPERATOR), ("fairlead-uninstall", UNINSTALL)):
        given = [*_reviews(named(grants, NAMESPACE))]
        assert [one for one in given if not may(control_plane, NAMESPACE, account, one)] == []
        for place in ("default", "kube-system", "other-system"):
            elsewhere = [{**one, "namespace": place} for one in given if one.get("namespace") == NAMESPACE]
            beyond = [one for one in elsewhere if one not in given and may(control_plane, NAMESPACE, account, one)]
            assert [one for one in beyond if not _everywhere(one, given)] == []
        unnamed = [{**one, "name": "another"} for one in given if one.get("name")]
        assert [one for one in unnamed if may(control_plane, NAMESPACE, account, one)] == []
        never = [
            {"verb": verb, "resource": kind, "namespace": "default"}
            for kind in ("pods", "nodes", "pods/exec")
            for verb in ("create", "patch", "update", "delete")
        ]
        never += [{"verb": verb, "group": _RBAC, "resource": "clusterroles"} for verb in ("escalate", "bind", "create")]
        never += [{"verb": "impersonate", "resource": "users"}, {"verb": "*", "group": "*", "resource": "*"}]
        assert [one for one in never if may(control_plane, NAMESPACE, account, one)] == []


def _reviews(grants: tuple[RoleGrant, ...]) -> Iterator[dict[str, str]]:
    for grant in grants:
        namespace = {"cluster": {}, "own": {"namespace": NAMESPACE}}.get(grant.place, {"namespace": grant.place})
        for rule in grant.rules:
            # the chart leaves them out: the claim is in kube-system here, and nothing is published
            if rule.claimed_elsewhere or rule.published_affinity:
                continue
            for whole in rule.resources:
                kind, _, sub = whole.partition("/")
                for verb in rule.verbs:
                    for name in rule.names or ("",):
                        asked = {"verb": verb, "group": rule.group, "resource": kind, **namespace}
                        yield asked | ({"subresource": sub} if sub else {}) | ({"name": name} if name else {})


def _everywhere(one: dict[str, str], given: list[dict[str, str]]) -> bool:
    return {key: value for key, value in one.items() if key != "namespace"} in given


def _as(cluster: Cluster, account: str, folder: Path, do: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with Client(access_of(cluster, NAMESPACE, account, folder)) as client:
            return await do(client)

    return asyncio.run(run())


async def _made(client: Client) -> None:
    """What the operator makes, as it does, twice over."""
    objects, secrets = ObjectClient(client), Secrets(client, NAMESPACE)
    plan = planned()
    for state in ("missing", ""):
        for one in plan.objects:
            # the garbage collector and the controllers write, too; what is left as it was says nothing
            assert await objects.apply_if_changed(one) in (state, ""), one["metadata"]
    looked = await observe(objects, plan.names, counts=True)
    assert {one["kind"] for one in looked.objects} == {one["kind"] for one in plan.objects}
    await secrets.ensure("fairlead-ca", lambda: {"tls.crt": b"a", "tls.key": b"b"})
    await secrets.ensure(plan.names.certificate, lambda: {"tls.crt": b"a", "tls.key": b"b"}, labels=plan.names.labels)
    await ManagedSchedulers(objects, NAMESPACE).record("fairlead", now())
    lease = ObjectRef(resource("Lease"), NAMESPACE)
    body = {"metadata": {"name": "fairlead", "namespace": NAMESPACE}, "spec": {"holderIdentity": "somebody"}}
    await client.create(lease, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body}, bytes)


@pytest.mark.usefixtures("installed")
def test_it_makes_all_that_it_makes_and_cannot_grant_more(control_plane: Cluster, tmp_path: Path) -> None:
    wait_for(
        "its roles to be known", lambda: may(control_plane, NAMESPACE, "fairlead", {"verb": "list", "resource": "pods"})
    )
    _as(control_plane, "fairlead", tmp_path, _made)

    subject = [{"kind": "ServiceAccount", "name": "fairlead", "namespace": NAMESPACE}]

    def binding(kind: str, role_kind: str, role: str, namespace: str) -> tuple[ObjectRef, Object]:
        metadata = {"name": "more", "namespace": namespace}
        reference = {"apiGroup": _RBAC, "kind": role_kind, "name": role}
        body = {
            "apiVersion": f"{_RBAC}/v1",
            "kind": kind,
            "metadata": metadata,
            "roleRef": reference,
            "subjects": subject,
        }
        return ObjectRef(resource(kind), namespace, "more"), body

    def role(**rule: Any) -> tuple[ObjectRef, Object]:
        metadata = {"name": "more", "namespace": NAMESPACE}
        body = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
        return ObjectRef(resource("Role"), NAMESPACE, "more"), body

    more = [
        binding("RoleBinding", "ClusterRole", "admin", NAMESPACE),
        role(apiGroups=[""], resources=["pods"], verbs=["create"]),
        role(apiGroups=[""], resources=["secrets"], verbs=["patch"]),
        role(apiGroups=["*"], resources=["*"], verbs=["*"]),
    ]

    async def tried(client: Client) -> None:
        for at, body in more:
            with pytest.raises(ForbiddenError, match="attempting to grant RBAC permissions not currently held"):
                await client.apply(at, body, bytes, manager="fairlead")

    _as(control_plane, "fairlead", tmp_path, tried)


@pytest.mark.usefixtures("installed")
def test_it_binds_schedulers_alone_and_may_not_even_read_other_bindings(control_plane: Cluster, tmp_path: Path) -> None:
    ours = {"kind": "ServiceAccount", "name": "fairlead", "namespace": NAMESPACE}
    intruder = {"kind": "User", "name": "intruder", "apiGroup": _RBAC}
    own = f"fairlead.{NAMESPACE}.operator"
    its = [_binding("", own), *(_binding(place, f"{own}-in-{place}") for place in ("default", "kube-system"))]
    schedulers = [ref_of(one.body(NAMESPACE)) for one in SCHEDULER_BINDINGS]
    there = [_binding("", one["metadata"]["name"]) for one in control_plane.api.items(_BINDINGS)]
    there += [_binding("kube-system", one["metadata"]["name"]) for one in control_plane.api.items(_IN_KUBE_SYSTEM)]
    others = [one for one in there if one not in (*its, *schedulers)]
    assert len(others) > 20

    async def tried(client: Client) -> None:
        async with asyncio.timeout(60):  # the API server hears of a new ValidatingAdmissionPolicy after a while
            while not await _is_denied(client, schedulers[0], intruder, "only ServiceAccounts of schedulers"):
                await asyncio.sleep(0.1)
        for at in its:
            assert await _is_denied(client, at, intruder, "the operator may not give its permissions to others")
        for at in schedulers:
            for who in (ours, intruder, {**ours, "name": "kube-scheduler-x", "namespace": "default"}):
                assert await _is_denied(client, at, who, "only ServiceAccounts of schedulers, in the operator's")
        for at in others:
            assert await _is_denied(client, at, ours, "cannot patch resource")

    _as(control_plane, "fairlead", tmp_path, tried)
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
    places = [{}, *({"namespace": place} for place in ("default", "kube-system", "kube-public"))]
    everywhere = [
        {"verb": verb, "group": _RBAC, "resource": "rolebindings" if where else kind, **where}
        for verb in verbs
        for kind in ("clusterrolebindings", "rolebindings")
        for where in places
    ]
    everywhere += [
        {"verb": verb, "group": _RBAC, "resource": at.resource.plural, "name": at.name, "namespace": at.namespace}
        for verb in verbs
        for at in others
    ]
    assert [one for one in everywhere if may(control_plane, NAMESPACE, "fairlead", one)] == []


def _binding(place: str, name: str) -> ObjectRef:
    return ObjectRef(resource("RoleBinding" if place else "ClusterRoleBinding"), place, name)


async def _is_denied(client: Client, at: ObjectRef, who: Object, why: str) -> bool:
    try:
        await client.merge(at, {"subjects": [who]}, bytes)
    except ForbiddenError as error:
        return why in str(error)
    return False


@pytest.mark.usefixtures("installed")
def test_everything_goes_but_the_resource_and_the_policies(
    control_plane: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    api = control_plane.api
    _as(control_plane, "fairlead", tmp_path, _made)
    _beside(control_plane, kubectl)
    said: list[str] = []

    async def uninstall(client: Client) -> None:
        work = Uninstaller(
            objects=ObjectClient(client),
            namespace=NAMESPACE,
            operator="app.kubernetes.io/name=fairlead,app.kubernetes.io/component=operator",
            lasts_s=60,
            clock=Clock(sleep=lambda _: asyncio.sleep(0.05)),
            report=said.append,
        )
        async with asyncio.timeout(60):
            await work.run()

    _as(control_plane, "fairlead-uninstall", tmp_path, uninstall)

    left = {
        one
        for path in _COLLECTIONS
        for one in _names(api.items(path))
        if ("fairlead" in one or "kube-scheduler-" in one) and not _OF_OTHER_TESTS.fullmatch(one)
    }
    # of helm, and of others
    assert left == {
        *(
            f"fairlead{name}"
            for name in ("", "-ca", "-settings", "-metrics", "-schedulers", "-uninstall", "-decisions")
        ),
        *(f"fairlead.{NAMESPACE}.{name}{at}" for name in ("operator", "uninstall") for at in ("", "-in-kube-system")),
        *(f"fairlead.{NAMESPACE}.{one}" for one in ("explain", "kube-scheduler", "volume-scheduler")),
        f"fairlead.{NAMESPACE}.authentication-reader",
        "fairlead.other-system.fairlead.kube-scheduler",
        "fairlead-policy-of-files",
    }
    (policy,) = api.items(POLICIES)
    assert policy["metadata"]["finalizers"] == ["example.com/other"]
    assert said[-3:-1] == ["pods that name the scheduler fairlead: 1, pending: 1", "  default/waits"]
    assert said[-1] == "done; 1 policy and the CustomResourceDefinition remain"
    assert [(one["type"], one["status"]) for one in policy["status"]["conditions"]] == [("Ready", "False")]
    assert "the operator does not write any more" in said

    again = len(said)
    _as(control_plane, "fairlead-uninstall", tmp_path, uninstall)
    assert said[again:] == [
        one for one in said[:again] if not one.startswith(("waiting", "the operator does not write"))
    ]
    api.delete("/api/v1/namespaces/default/pods/waits", gracePeriodSeconds="0")


_COLLECTIONS = [
    *(f"{_SYSTEM}/{kind}" for kind in ("configmaps", "secrets", "serviceaccounts", "pods", "services")),
    *(f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}" for kind in ("deployments", "replicasets", "controllerrevisions")),
    f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
    f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies",
    f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
    f"/apis/storage.k8s.io/v1/namespaces/{NAMESPACE}/csistoragecapacities",
    *(
        f"/apis/{_RBAC}/v1/namespaces/{at}/{kind}"
        for at in (NAMESPACE, "kube-system")
        for kind in ("roles", "rolebindings")
    ),
    _BINDINGS,
]


def _names(items: list[Object]) -> Iterator[str]:
    """Helm keeps its releases in Secrets."""
    names = (str(one["metadata"]["name"]) for one in items)
    return (name for name in names if not name.startswith("sh.helm.release."))


def _beside(cluster: Cluster, kubectl: Kubectl) -> None:
    """A policy that is held, a pod that waits, what the operator keeps, and another operator's binding."""
    api, ours = cluster.api, {"app.kubernetes.io/managed-by": "fairlead"}
    metadata = {"name": "p", "finalizers": [FINALIZER, "example.com/other"]}
    spec = {"filters": [{"name": "f", "expression": "true"}]}
    api.create(
        POLICIES,
        {"apiVersion": f"{GROUP}/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": metadata, "spec": spec},
    )
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1}
    api.patch(
        f"{POLICIES}/p/status",
        {"status": {"conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}},
    )
    for name, source in (("kept", "policies"), ("of-files", "files")):
        body = {
            "metadata": {"name": f"fairlead-policy-{name}", "labels": {"fairlead.dev/last-good": source}},
            "revision": 1,
            "data": {},
        }
        api.create(f"/apis/apps/v1/namespaces/{NAMESPACE}/controllerrevisions", body)
    capacity = {"metadata": {"name": "fairlead-wakes", "labels": ours}, "storageClassName": "fairlead-none"}
    api.create(f"/apis/storage.k8s.io/v1/namespaces/{NAMESPACE}/csistoragecapacities", capacity)
    for namespace in (NAMESPACE, "other-system"):  # as earlier versions bound them
        reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "system:kube-scheduler"}
        named_so = {"name": f"fairlead.{namespace}.fairlead.kube-scheduler", "labels": ours}
        api.create(_BINDINGS, {"metadata": named_so, "roleRef": reference})
    wait_for("a service account", lambda: api.exists("/api/v1/namespaces/default/serviceaccounts/default"))
    containers = [{"name": "c", "image": "none.example/none"}]
    pod = {"metadata": {"name": "waits"}, "spec": {"schedulerName": "fairlead", "containers": containers}}
    api.create("/api/v1/namespaces/default/pods", pod)
