"""The pods that are rendered run on a real node, are rolled, refused, and put back."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.render.extenders import Wiring
from fairlead.render.object_names import CONFIG_HASH
from fairlead.render.plan import Plan
from fairlead.render.templates import written
from support.render.scheduler_bindings import bound_in
from support.render.schedulers import facts, named, planned
from testbed.api import wait_for
from testbed.certs import Authority
from testbed.fixtures import Cluster, Kubectl

_PLACED = {"nodeSelector": {"fairlead.dev/testbed": "real"}}


@pytest.fixture
def restricted(cluster: Cluster, namespace: str, scheduler_image_tag: str) -> Iterator[str]:
    """A namespace whose pods may do little, on a node that has the scheduler's image."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    with bound_in(cluster.api, namespace, namespace):
        yield namespace


def test_pods_are_rolled_refused_and_put_back(
    cluster: Cluster, restricted: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    api = cluster.api
    authority = Authority(tmp_path / "keys")
    pair = authority.issue("scheduler", "scheduler")
    known = facts(
        namespace=restricted, ca_bundle=authority.certificate.read_text(), server_versions=(f"v{cluster.kubernetes}",)
    )

    def made(**fields: Any) -> Plan:
        return planned(Wiring(fails=True), known, name=restricted, placement=_PLACED, **fields)

    def run(wanted: Plan) -> None:
        text = written(wanted.objects)
        kubectl("apply", "--server-side", "--field-manager=fairlead", "--validate=strict", "-f", "-", stdin=text)

    first = made()
    secret = {name: b64encode(file.read_bytes()).decode() for name, file in _files(pair.certificate, pair.key)}
    api.create(
        f"/api/v1/namespaces/{restricted}/secrets",
        {"metadata": {"name": first.names.certificate}, "type": "kubernetes.io/tls", "data": secret},
    )
    deployment = f"/apis/apps/v1/namespaces/{restricted}/deployments/{first.names.object_name}"
    pods = f"/api/v1/namespaces/{restricted}/pods"

    def rolled() -> Any:
        seen = api.get(deployment)
        status, replicas = seen.get("status", {}), seen["spec"]["replicas"]
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        return status.get("observedGeneration") == seen["metadata"]["generation"] and counts == [replicas] * 3

    def ready() -> set[str]:
        found = [one for one in api.items(pods) if "deletionTimestamp" not in one["metadata"]]
        return {
            one["metadata"]["annotations"][CONFIG_HASH]
            for one in found
            if any(c["type"] == "Ready" and c["status"] == "True" for c in one["status"].get("conditions", ()))
        }

    run(first)
    wait_for("the first roll", rolled)
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{restricted}/leases/{first.names.object_name}"
    wait_for("one of them to lead", lambda: api.get(lease)["spec"].get("holderIdentity"))

    second = made(timeout="2s")
    run(second)
    wait_for("the second roll", rolled)
    assert ready() == {second.config_hash}

    bad = made(profile={"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignored": ["cpu"]}}]})
    run(bad)

    def last_words() -> str | None:
        for one in api.items(pods):
            for container in one["status"].get("initContainerStatuses", ()):
                ended = container["state"].get("terminated") or container["lastState"].get("terminated") or {}
                if ended.get("exitCode"):
                    return str(ended["message"])
        return None

    said = wait_for("the configuration to be refused", last_words)
    assert 'unknown field \\"ignored\\"' in said.splitlines()[-1]
    assert ready() == {second.config_hash}

    there = api.get(f"/api/v1/namespaces/{restricted}/configmaps/{named(second, 'ConfigMap')['metadata']['name']}")
    run(bad.rolled_back_to(there))
    wait_for("the last good ones to be back", rolled)
    assert ready() == {second.config_hash}


def _files(certificate: Path, key: Path) -> tuple[tuple[str, Path], ...]:
    return ("tls.crt", certificate), ("tls.key", key)
