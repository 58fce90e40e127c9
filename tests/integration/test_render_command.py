"""What the operator applies on a real API server is what `fairlead render` prints, with its placeholders filled."""

import io
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.control.decide.drift import APPLIED, includes, to_apply
from fairlead.control.reconcile.object_client import KINDS
from fairlead.render.object_names import SCHEDULER_LABEL
from fairlead.render.operator_settings import parse_settings
from fairlead.render.templates import read, written
from support.control.leader import SERVICE, LeaderSetup, ground
from support.kube.crd import policies_served
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl

SETTINGS = """
schedulers:
- {name: gpu, replicas: 3, nodeSample: 30%, timeout: 2s}
- {name: published, management: ConfigOnly}
"""
SPECS: dict[str, dict[str, Any]] = {
    "ready-nodes": {"schedulerName": "plain", "filters": [{"name": "f", "expression": "true"}]},
    "gpu-class": {
        "schedulerName": "gpu",
        "failurePolicy": "Ignore",
        "filters": [{"name": "f", "expression": "true"}],
        "scores": [{"name": "s", "expression": "1.0"}],
    },
    "gpu-mark": {
        "schedulerName": "gpu",
        "binding": {"annotations": [{"key": "fairlead.dev/class", "expression": "'a'"}]},
    },
    "elsewhere": {"schedulerName": "published", "scores": [{"name": "s", "expression": "1.0"}]},
}
SCHEDULERS = ("gpu", "plain", "published")


@pytest.fixture
def policies(control_plane: Cluster, kubectl: Kubectl, tmp_path: Path) -> Iterator[Path]:
    """They are there before the leader is: it never sees only some of them."""
    head = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    file = tmp_path / "policies.yaml"
    file.write_text(
        yaml.safe_dump_all([{**head, "metadata": {"name": name}, "spec": spec} for name, spec in SPECS.items()])
    )
    with policies_served(control_plane.api):
        kubectl("apply", "-f", str(file))
        yield file


@pytest.fixture
def at_work(control_plane: Cluster, namespace: str, policies: Path) -> Iterator[LeaderSetup]:
    url = f"https://{SERVICE}.{namespace}.svc:8443"
    with ground(control_plane, namespace, parse_settings(SETTINGS), url=url) as made:
        yield made


def test_what_is_applied_is_what_is_rendered(
    at_work: LeaderSetup, policies: Path, kubectl: Kubectl, tmp_path: Path
) -> None:
    api, namespace = at_work.cluster.api, at_work.namespace
    (tmp_path / "values.yaml").write_text(SETTINGS)
    given = [str(policies), "--settings", str(tmp_path / "values.yaml"), "--namespace", namespace]
    wait_for("what is applied last", lambda: [_applied(at_work, one) for one in SCHEDULERS] == [True] * 3)

    there = {_key(one): one for one in _there(at_work) if not one["metadata"]["name"].endswith(".state")}
    ca = b64decode(api.get(f"/api/v1/namespaces/{namespace}/secrets/fairlead-ca")["data"]["tls.crt"]).decode()
    version = str(api.get("/version")["gitVersion"])
    bare = _filled(_rendered(*given), there, ca, version)
    (tmp_path / "ca.crt").write_text(ca)
    told = _rendered(*given, "--ca", str(tmp_path / "ca.crt"), "--kubernetes-version", version)
    full = _filled(told, there, ca, version)

    for found in (bare, full):
        assert {_key(one) for one in found} == {*there}
        for one in found:
            live = there[_key(one)]
            parts = {key: (one[key], live.get(key)) for key in one if not includes(one[key], live.get(key), key)}
            assert parts == {}
            assert one["metadata"]["labels"] == live["metadata"]["labels"]
    assert [one for one in bare if one["kind"] != "Secret"] == [one for one in full if one["kind"] != "Secret"]
    text = written([one for one in full if one["kind"] != "Secret"])  # which are created, not applied
    before = {key: one["metadata"]["managedFields"] for key, one in there.items() if key[0] != "Secret"}
    kubectl("apply", "--server-side", "--field-manager=fairlead", "--validate=strict", "-f", "-", stdin=text)
    after = {_key(one): one["metadata"]["managedFields"] for one in _there(at_work)}
    assert {key: _owned(one) for key, one in before.items()} == {key: _owned(after[key]) for key in before}


def _rendered(*arguments: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["render", *arguments]) == 0
    return out.getvalue()


def _filled(text: str, there: dict[tuple[str, str], Object], ca: str, version: str) -> list[Object]:
    """The objects with what the cluster knows in place of each placeholder; none may be left over."""
    known = {"<ca.crt: of the Secret fairlead-ca>": ca, "<version: of the API server>": version}
    for (kind, name), one in there.items():
        annotations = one["metadata"].get("annotations", {})
        scheduler = one["metadata"]["labels"][SCHEDULER_LABEL]
        if kind == "Secret":
            known |= {f"<{key}: of the Secret {name}>": value for key, value in one["data"].items()}
        if "fairlead.dev/config-hash" in annotations:
            known[f"<config-hash of {scheduler}>"] = annotations["fairlead.dev/config-hash"]
        if "fairlead.dev/ca-hash" in annotations:
            known["<ca-hash>"] = annotations["fairlead.dev/ca-hash"]
    found = [_with(one, known) for one in yaml.safe_load_all(text)]
    for one in found:
        if one["metadata"].get("annotations", {}).get(APPLIED) == "<applied-hash>":
            del one["metadata"]["annotations"][APPLIED]
            if not one["metadata"]["annotations"]:
                del one["metadata"]["annotations"]
            one["metadata"] = to_apply(one)["metadata"]
        assert re.findall(r"<[^<>]*>", written([one])) == []
    return found


def _with(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        made = {key: _with(one, known) for key, one in value.items()}
        if "pod.yaml" in made:  # a text in which a hash may need quotes
            made["pod.yaml"] = written([_with(read(value["pod.yaml"]), known)])
        return {key: made[key] for key in value}
    if isinstance(value, list):
        return [_with(one, known) for one in value]
    if isinstance(value, str):
        for mark, text in known.items():
            value = value.replace(mark, text)
    return value


def _there(ground: LeaderSetup) -> list[Object]:
    """All of our schedulers, wherever it is."""
    found = []
    for kind, (version, plural) in KINDS.items():
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for one in ground.cluster.api.items(f"{group}/{plural}", labelSelector=SCHEDULER_LABEL):
            metadata = one["metadata"]
            if metadata.get("namespace") == ground.namespace or f".{ground.namespace}." in metadata["name"]:
                found.append({**one, "kind": kind, "apiVersion": version})
    return found


def _key(one: Object) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


def _applied(ground: LeaderSetup, scheduler: str) -> bool:
    name, namespace = f"kube-scheduler-{scheduler}", ground.namespace
    published = scheduler == "published"
    path = (
        f"/api/v1/namespaces/{namespace}/configmaps"
        if published
        else f"/apis/apps/v1/namespaces/{namespace}/deployments"
    )
    return ground.cluster.api.exists(f"{path}/{name}")


def _owned(fields: list[Object]) -> list[Object]:
    """Which fields the operator owns: exactly those that it has applied."""
    return [one["fieldsV1"] for one in fields if (one["manager"], one["operation"]) == ("fairlead", "Apply")]


def test_kubectl_reads_every_text_as_it_was_written(control_plane: Cluster, namespace: str, kubectl: Kubectl) -> None:
    texts = [
        *"yYnN",
        "12e3",
        "123456e78901",
        "0891234567",
        "0o17",
        "0x1f",
        "1_000",
        ".5",
        "1:30",
        "~",
        "null",
        "a\nb\n",
    ]
    data = {f"text-{at}": text for at, text in enumerate(texts)}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts", "annotations": data}, "data": data}
    kubectl("apply", "--server-side", "--validate=strict", "-n", namespace, "-f", "-", stdin=written([obj]))
    stored = control_plane.api.get(f"/api/v1/namespaces/{namespace}/configmaps/texts")
    assert stored["data"] == stored["metadata"]["annotations"] == data
