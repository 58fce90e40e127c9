"""What the operator's account may change of the ValidatingWebhookConfiguration: who is believed, and nothing else."""

import asyncio
import base64
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.control.certificates.ca_bundle import CONFIGURATIONS, patch_ca_bundle
from fairlead.kube.errors import ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.render.rbac import ADMISSION, ROLE
from support.chart.chart import CHART, NAMESPACE
from support.kube.service_account import access_of
from testbed.api import ApiError, Object
from testbed.fixtures import Cluster, Kubectl

_NAME = ADMISSION.format(namespace=NAMESPACE)
_AT = ObjectRef(CONFIGURATIONS, "", _NAME)
_PATH = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{_NAME}"
_OWNER = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "x"}
_DENIED = "ValidatingAdmissionPolicy .* denied request: the operator may change nothing of"
Change = Callable[[Object], Any]


def _hook(**fields: Any) -> Change:
    return lambda body: body["webhooks"][0].update(fields)


def _meta(**fields: Any) -> Change:
    return lambda body: body["metadata"].update(fields)


def _called(**fields: Any) -> Change:
    return lambda body: body["webhooks"][0].update(clientConfig=fields)


_SERVICE = {"name": "fairlead", "namespace": NAMESPACE, "path": "/validate", "port": 9443}
_ANY = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"], "scope": "*"}
REFUSED: dict[str, Change] = {
    "all objects": _hook(rules=[_ANY]),
    "one more rule": lambda body: body["webhooks"][0]["rules"].append(_ANY),
    "other resources": lambda body: body["webhooks"][0]["rules"][0].update(resources=["secrets"]),
    "other operations": lambda body: body["webhooks"][0]["rules"][0].update(operations=["DELETE"]),
    "another scope": lambda body: body["webhooks"][0]["rules"][0].update(scope="*"),
    "no rules": _hook(rules=[]),
    "failurePolicy": _hook(failurePolicy="Fail"),
    "matchPolicy": _hook(matchPolicy="Exact"),
    "namespaceSelector": _hook(namespaceSelector={"matchLabels": {"a": "b"}}),
    "objectSelector": _hook(objectSelector={"matchLabels": {"a": "b"}}),
    "sideEffects": _hook(sideEffects="NoneOnDryRun"),
    "timeoutSeconds": _hook(timeoutSeconds=30),
    "admissionReviewVersions": _hook(admissionReviewVersions=["v1", "v1beta1"]),
    "matchConditions": _hook(matchConditions=[{"name": "never", "expression": "false"}]),
    "another name": _hook(name="another.fairlead.dev"),
    "a URL": _called(url="https://elsewhere.example/"),
    "another service": _called(service={**_SERVICE, "name": "another"}),
    "another namespace": _called(service={**_SERVICE, "namespace": "default"}),
    "another path": _called(service={**_SERVICE, "path": "/other"}),
    "another port": _called(service={**_SERVICE, "port": 443}),
    "one more webhook": lambda body: body["webhooks"].append({**body["webhooks"][0], "name": "b.fairlead.dev"}),
    "one more, first": lambda body: body["webhooks"].insert(0, {**body["webhooks"][0], "name": "b.fairlead.dev"}),
    "no webhook": lambda body: body.update(webhooks=[]),
    "a label": lambda body: body["metadata"]["labels"].update(a="b"),
    "no labels": _meta(labels=None),
    "an annotation": _meta(annotations={"a": "b"}),
    "an owner": _meta(ownerReferences=[_OWNER]),
    "a finalizer": _meta(finalizers=["example.com/stays"]),
}


@pytest.mark.usefixtures("installed")
def test_whom_the_operator_gives_its_rights_may_change_no_more(control_plane: Cluster, tmp_path: Path) -> None:
    """An administrator may: that is another account than the one that is looked for."""
    before = control_plane.api.get(_PATH)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE.format(namespace=NAMESPACE)}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "handed-on"},
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": "default"}],
    }

    async def tried() -> None:
        async with Client(access_of(control_plane, NAMESPACE, "fairlead", tmp_path)) as client:
            await _guarded(client)
        async with Client(access_of(control_plane, NAMESPACE, "default", tmp_path)) as client:
            for change in REFUSED.values():
                with pytest.raises(ForbiddenError, match=_DENIED):
                    await client.merge(_AT, _changed(before, change), bytes)
            await patch_ca_bundle(client, NAMESPACE, b"whose service it is, answers")

    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    control_plane.api.create(path, binding)
    try:
        asyncio.run(tried())
    finally:
        control_plane.api.delete(f"{path}/handed-on")
    assert control_plane.api.get(_PATH)["webhooks"][0]["rules"] == before["webhooks"][0]["rules"]


@pytest.mark.usefixtures("installed")
def test_the_operator_may_say_whom_to_believe_and_change_nothing_else(
    control_plane: Cluster, helm: Kubectl, tmp_path: Path
) -> None:
    before = control_plane.api.get(_PATH)

    async def tried() -> None:
        async with Client(access_of(control_plane, NAMESPACE, "fairlead", tmp_path)) as client:
            await _guarded(client)
            for change in REFUSED.values():
                with pytest.raises(ForbiddenError, match=_DENIED):
                    await client.merge(_AT, _changed(before, change), bytes)
            hook = {"name": before["webhooks"][0]["name"], "failurePolicy": "Fail"}
            body = {"metadata": {"name": _NAME}, "webhooks": [hook]}
            body |= {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
            with pytest.raises(ForbiddenError, match=_DENIED):  # as the operator itself writes
                await client.apply(_AT, body, bytes, manager="fairlead-admission", force=True)
            await patch_ca_bundle(client, NAMESPACE, b"an authority")
            await patch_ca_bundle(client, NAMESPACE, b"another authority")

    asyncio.run(tried())
    after = control_plane.api.get(_PATH)
    config = after["webhooks"][0]["clientConfig"]
    assert base64.b64decode(config.pop("caBundle")) == b"another authority"
    assert after["webhooks"] == before["webhooks"]

    helm("upgrade", "fairlead", str(CHART), "--namespace", NAMESPACE)
    for what, change in REFUSED.items():
        try:
            control_plane.api.patch(f"{_PATH}?dryRun=All", _changed(before, change))
        except ApiError as error:
            pytest.fail(f"an administrator may not change {what}: {error}")


def _changed(before: Object, change: Change) -> Object:
    """What is sent to have it another way: lists are replaced as a whole."""
    body: Object = copy.deepcopy({"metadata": {"labels": before["metadata"]["labels"]}, "webhooks": before["webhooks"]})
    change(body)
    return body


async def _guarded(client: Client) -> None:
    """The API server hears of a new ValidatingAdmissionPolicy after a while."""

    async def refused(number: int) -> bool:
        try:
            await client.merge(_AT, {"metadata": {"annotations": {"example.com/asked": f"{number}"}}}, bytes)
        except ForbiddenError as error:
            return "ValidatingAdmissionPolicy" in str(error)
        return False

    for number in range(1200):
        if await refused(number):
            return
        await asyncio.sleep(0.1)
    pytest.fail("it is never refused")
