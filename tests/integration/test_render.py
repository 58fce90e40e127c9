"""What is rendered, on a real API server and with the real scheduler."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.stage import Stage
from fairlead.render.extenders import Wiring
from fairlead.render.plan import Plan
from fairlead.render.templates import read, written
from support.kube.service_account import kubeconfig_of, may
from support.render.scheduler_bindings import bound_in
from support.render.schedulers import ALL, EVERYTHING, SCENES, config_of, facts, named, planned
from testbed import build
from testbed.api import Api, Object, wait_for
from testbed.certs import Authority
from testbed.fixtures import Cluster, Kubectl, MakeNodes, StartScheduler
from testbed.versions import program

_NOBODY = "https://127.0.0.1:1"


@pytest.mark.parametrize("scene", SCENES)
def test_the_scheduler_accepts_each_configuration(scene: str, kubernetes_version: str, tmp_path: Path) -> None:
    config = _here(SCENES[scene], tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    command = [
        str(build.build([program("kube-scheduler", kubernetes_version)])["kube-scheduler"]),
        f"--config={tmp_path}/config.yaml",
        f"--write-config-to={tmp_path}/written.yaml",
        f"--cert-dir={tmp_path}",
        "--master=http://127.0.0.1:1",
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    understood = yaml.safe_load((tmp_path / "written.yaml").read_text())
    for entry, meant in zip(understood["extenders"], config["extenders"], strict=True):
        timeouts = _seconds(meant["httpTimeout"]), _seconds(entry["httpTimeout"])
        assert timeouts[0] == timeouts[1]
        assert (meant | {"httpTimeout": entry["httpTimeout"]}).items() <= entry.items()
        assert entry["nodeCacheCapable"] is True
    (profile,), (wanted,) = understood["profiles"], config["profiles"]
    assert profile["schedulerName"] == wanted["schedulerName"]
    assert understood.get("percentageOfNodesToScore", 0) == config.get("percentageOfNodesToScore", 0)
    if scene == "every-setting":
        (fit,) = [one["args"] for one in profile["pluginConfig"] if one["name"] == "NodeResourcesFit"]
        assert fit["ignoredResources"] == ["example.com/fpga", "example.com/gpu"]


def _seconds(duration: str) -> float:
    """Return a duration as Go writes it."""
    minutes, _, seconds = duration.removesuffix("s").rpartition("m")
    return 60 * float(minutes or 0) + float(seconds)


@pytest.fixture
def of_their_own(control_plane: Cluster, namespace: str) -> Iterator[str]:
    """A namespace; what is made outside of it for its schedulers goes with it."""
    api = control_plane.api
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: api.exists(path))
    with bound_in(api, namespace, "fairlead", "gpu", "x" * 63, namespace):
        yield namespace


def test_the_api_server_accepts_all_objects_and_the_same_again_changes_nothing(
    control_plane: Cluster, of_their_own: str, kubectl: Kubectl
) -> None:
    _restricted(control_plane.api, of_their_own)
    cluster = facts(namespace=of_their_own)
    for made in (
        planned(ALL, cluster),
        planned(ALL, cluster, **EVERYTHING),
        planned(Wiring(), cluster, name="default-scheduler", management="ConfigOnly"),
        planned(Wiring(), cluster, name="x" * 63),
    ):
        text = written(made.objects)
        _apply(kubectl, text, "--dry-run=server")
        _apply(kubectl, text)
        before = _versions(kubectl, text)
        _apply(kubectl, text)
        assert _versions(kubectl, text) == before
        assert len(before) == len(made.objects)
        if made.names.scheduler != "default-scheduler":
            _pod_is_allowed(control_plane.api, made)


def test_a_pod_that_breaks_the_rules_of_its_namespace_would_be_seen(control_plane: Cluster, of_their_own: str) -> None:
    _restricted(control_plane.api, of_their_own)
    made = planned(ALL, facts(namespace=of_their_own))
    control_plane.api.apply(_path(made, "serviceaccounts"), named(made, "ServiceAccount"))
    named(made, "Deployment")["spec"]["template"]["spec"]["containers"][0]["securityContext"].pop("capabilities")
    with pytest.raises(Exception, match="unrestricted capabilities"):
        _pod_is_allowed(control_plane.api, made)


def test_it_may_do_what_the_scheduler_needs_and_write_no_other_lease(
    control_plane: Cluster, of_their_own: str, kubectl: Kubectl
) -> None:
    made = planned(ALL, facts(namespace=of_their_own))
    _apply(kubectl, written(made.objects))
    authorities = {"resource": "configmaps", "name": "extension-apiserver-authentication"}
    lease = {"group": "coordination.k8s.io", "resource": "leases", "namespace": of_their_own}
    may = [
        authorities | {"verb": "get", "namespace": "kube-system"},
        lease | {"verb": "update", "name": made.names.object_name},
        lease | {"verb": "create"},  # by the built-in role: our own Role need not say so
        {"verb": "create", "resource": "pods", "subresource": "binding", "namespace": "default"},
        {"verb": "create", "group": "authentication.k8s.io", "resource": "tokenreviews"},
        {"verb": "update", "resource": "persistentvolumeclaims", "namespace": "default"},
    ]
    may_not = [
        lease | {"verb": "update", "name": "fairlead"},
        lease | {"verb": "delete", "name": made.names.object_name},
        {"verb": "get", "resource": "secrets", "namespace": of_their_own},
    ]
    wait_for("its roles to be known", lambda: all(_may(control_plane, made, one) for one in may))
    assert [one for one in may_not if _may(control_plane, made, one)] == []


@pytest.mark.parametrize("waits", [False, True], ids=["nobody wants pods to wait", "a policy wants pods to wait"])
def test_pods_while_nobody_answers(
    waits: bool,
    control_plane: Cluster,
    of_their_own: str,
    kubectl: Kubectl,
    scheduler: StartScheduler,
    kwok_nodes: MakeNodes,
    tmp_path: Path,
) -> None:
    """With the rights that are rendered, and the Lease."""
    api = control_plane.api
    wiring = Wiring(fails=waits, ignores=True, scores=True)
    made = planned(wiring, facts(namespace=of_their_own, url=_NOBODY), name=of_their_own)
    _apply(kubectl, written([one for one in made.objects if one["kind"] != "Deployment"]))
    kwok_nodes(3)
    config = _here(made, tmp_path)
    config["clientConnection"]["kubeconfig"] = str(
        kubeconfig_of(control_plane, of_their_own, made.names.object_name, tmp_path)
    )
    stage = Stage(api=api, name=of_their_own, start_scheduler=lambda wanted: scheduler(wanted).says)
    stage.log = stage.start_scheduler(config)

    def leads() -> Any:
        lease = api.get(_path(made, "leases", "/apis/coordination.k8s.io/v1"))
        return lease if lease["spec"].get("holderIdentity") else None

    lease = wait_for("the scheduler to lead", leads)
    assert lease["metadata"]["labels"] == named(made, "Lease")["metadata"]["labels"]
    stage.make_pod("some")
    if waits:
        assert "connection refused" in stage.refusal("some", "SchedulerError")
    else:
        assert stage.placed("some")


def _here(made: Plan, folder: Path) -> Any:
    """The configuration, with files of this machine."""
    authority = Authority(folder / "keys")
    pair = authority.issue("scheduler", "scheduler")
    files = {"ca.crt": authority.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    config = read(config_of(made))
    for entry in config["extenders"]:
        entry["tlsConfig"] = {key: str(files[Path(path).name]) for key, path in entry["tlsConfig"].items()}
    return config


def _apply(kubectl: Kubectl, text: str, *more: str) -> None:
    kubectl("apply", "--server-side", "--field-manager=fairlead", "--validate=strict", *more, "-f", "-", stdin=text)


def _versions(kubectl: Kubectl, text: str) -> list[object]:
    """What becomes another when somebody writes; controllers write the status of what has a generation."""
    there = json.loads(kubectl("get", "-f", "-", "-o", "json", stdin=text))["items"]
    return [one["metadata"].get("generation") or one["metadata"]["resourceVersion"] for one in there]


def _restricted(api: Api, namespace: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})


def _pod_is_allowed(api: Api, made: Plan) -> None:
    template: Object = named(made, "Deployment")["spec"]["template"]
    pod = {"metadata": {**template["metadata"], "generateName": "some-"}, "spec": template["spec"]}
    api.create(f"/api/v1/namespaces/{made.names.namespace}/pods?dryRun=All&fieldValidation=Strict", pod)


def _path(made: Plan, resource: str, group: str = "/api/v1") -> str:
    return f"{group}/namespaces/{made.names.namespace}/{resource}/{made.names.object_name}"


def _may(cluster: Cluster, made: Plan, asked: dict[str, str]) -> bool:
    return may(cluster, made.names.namespace, made.names.object_name, asked)
