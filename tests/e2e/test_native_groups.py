"""With the real operator and the scheduler that it renders, Kubernetes' own groups are placed together."""

import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender import Stage
from fairlead.render.object_names import ObjectNames
from fairlead.render.plan import CONFIG_FOLDER, TLS_FOLDER
from support.kube.api_restart import start_api
from support.kube.crd import POLICIES, let_all_go, policies_served
from support.process.operating import Operating
from testbed import process
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes, Scheduler, StartScheduler, raised_with_groups
from testbed.node_template import equal

_JOB = "example.org/job"
_GANG: dict[str, Any] = {"name": "jobs", "group": f"pod.metadata.labels[?'{_JOB}'].orValue('')", "size": "8"}
"""By which there would have to be eight."""
_GATE = "--feature-gates=GenericWorkload=true"


@pytest.fixture(scope="module")
def control_plane(this_run: str, kubernetes_version: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster that serves PodGroups."""
    with raised_with_groups(f"test-natively-{this_run}", kubernetes_version, pytestconfig) as cluster:
        yield cluster


class Rendered:
    """The scheduler that the operator renders, whose pods no node runs: it runs here, as they say."""

    def __init__(self, operating: Operating, name: str, start: StartScheduler) -> None:
        self._operating, self._start = operating, start
        self._names = ObjectNames(name, operating.namespace)
        self._running: list[Scheduler] = []

    def gates(self) -> list[str]:
        """Return the feature gates of its container; not there yet: an error."""
        (container,) = self._pod()["containers"]
        return [one for one in container["args"] if one.startswith("--feature-gates=")]

    def roll(self) -> None:
        """Have it run with the newest configuration, and with nothing else."""
        for one in self._running:
            process.kill(found for found in [process.find(self._operating.cluster.folder, one.process)] if found)
        volumes = {one["name"]: one for one in self._pod()["volumes"]}
        files = self._object("configmaps", volumes["config"]["configMap"]["name"])["data"]
        secret = self._object("secrets", volumes["tls"]["secret"]["secretName"])["data"]
        folder = self._operating.folder
        (folder / "ca.crt").write_text(files["ca.crt"])
        for file in ("tls.crt", "tls.key"):
            (folder / file).write_bytes(b64decode(secret[file]))
        text = files["config.yaml"].replace(CONFIG_FOLDER, str(folder)).replace(TLS_FOLDER, str(folder))
        service = f"https://fairlead.{self._operating.namespace}.svc:{self._operating.ports[0]}"
        assert service in text
        config = yaml.safe_load(text.replace(service, f"https://{self._operating.host}:{self._operating.ports[0]}"))
        # It reads the cluster of this machine, and has no other replica.
        kept = {key: config[key] for key in config if key not in ("clientConnection", "leaderElection")}
        self._running = [self._start(kept, self.gates())]

    def _pod(self) -> Object:
        spec: Object = self._object("deployments", self._names.object_name, "apis/apps/v1")["spec"]["template"]["spec"]
        return spec

    def _object(self, plural: str, name: str, group: str = "api/v1") -> Object:
        return self._operating.cluster.api.get(f"/{group}/namespaces/{self._operating.namespace}/{plural}/{name}")


@pytest.fixture
def operating(control_plane: Cluster, namespace: str, tmp_path: Path) -> Iterator[Operating]:
    """The operator, in a namespace of its own: a scheduler that it manages leaves the pods in there alone."""
    own = f"{namespace}-operator"
    control_plane.api.create("/api/v1/namespaces", {"metadata": {"name": own}})
    with policies_served(control_plane.api):
        made = Operating(control_plane, own, tmp_path)
        make_replica(control_plane, made)
        yield made
        made.kill()
        let_all_go(control_plane.api)
    control_plane.api.delete(f"/api/v1/namespaces/{own}")


def make_replica(cluster: Cluster, operating: Operating) -> None:
    """Make the pod whose process it is, as those that the leader asks are found: its answers wake refused pods."""
    path = f"/api/v1/namespaces/{operating.namespace}/pods"
    labels = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "operator"}
    spec = {"containers": [{"name": "main", "image": "none"}], "schedulerName": "none"}
    account = f"/api/v1/namespaces/{operating.namespace}/serviceaccounts/default"
    wait_for("the namespace's service account", lambda: cluster.api.exists(account))
    cluster.api.create(path, {"metadata": {"name": operating.name, "labels": labels}, "spec": spec})
    ready = [{"type": "Ready", "status": "True"}]
    status = {
        "phase": "Running",
        "podIP": operating.host,
        "podIPs": [{"ip": operating.host}],
        "conditions": ready,
    }
    cluster.api.patch(f"{path}/{operating.name}/status", {"status": status})


def settings(stage: Stage, groups: str) -> str:
    # No node has that label, so that its pods take no room.
    return f"schedulers: [{{name: {stage.name}, groups: '{groups}', placement: {{nodeSelector: {{nowhere: at-all}}}}}}]"


def make_members(stage: Stage, group: str) -> list[str]:
    """Make four pods that are to start together as Kubernetes has it, and one by one where it does not know that."""
    names = [f"{group}-{number}" for number in range(4)]
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}
    for name in names:
        spec = {
            "schedulerName": stage.name,
            "schedulingGroup": {"podGroupName": group},
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [container],
        }
        stage.api.create(stage.path, {"metadata": {"name": name, "labels": {_JOB: group}}, "spec": spec})
    return names


def make_group(stage: Stage, group: str) -> list[str]:
    body: Object = {"metadata": {"name": group}, "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
    stage.api.create(f"/apis/scheduling.k8s.io/v1beta1/namespaces/{stage.name}/podgroups", body)
    return make_members(stage, group)


def make_room(stage: Stage) -> None:
    stage.api.delete(stage.path)
    wait_for("the pods to be gone", lambda: not stage.places())


def said(stage: Stage, policy: str) -> str:
    return str(stage.api.get(f"{POLICIES}/{policy}").get("status", {}).get("scheduler", {}).get("groups", ""))


def test_the_rendered_scheduler_places_groups_while_the_api_server_serves_them(
    stage: Stage, operating: Operating, scheduler: StartScheduler, kwok_nodes: MakeNodes
) -> None:
    kwok_nodes(3, equal(cpu="1"))
    rendered = Rendered(operating, stage.name, scheduler)
    operating.settings = settings(stage, "Off")
    operating.start()
    operating.put("rules", schedulerName=stage.name, binding={"gang": [_GANG]})
    wait_for("the scheduler", lambda: rendered.gates() == [])
    (operating.folder / "settings.yaml").write_text(settings(stage, "Auto"))
    wait_for("the gate", lambda: rendered.gates() == [_GATE])
    wait_for("the status to say so", lambda: said(stage, "rules") == "Native")

    rendered.roll()
    for name in make_group(stage, "red"):
        assert "waiting for members" not in stage.refusal(name), "gang leaves it alone"
    assert not any(stage.places().values())
    began = time.monotonic()
    *_, last = kwok_nodes(4, equal(cpu="1"))
    ready = time.monotonic()
    stage.all_placed()
    print(f"a fourth node: all 4 placed {time.monotonic() - ready:.2f} s after it was seen to be Ready", end=", ")
    print(f"{time.monotonic() - began:.2f} s after it was made")

    make_room(stage)
    rule = {"name": "only", "expression": f"node.metadata.name != '{last}'", "reason": "kept free"}
    operating.put("rules", schedulerName=stage.name, filters=[rule], binding={"gang": [_GANG]})
    blue = make_group(stage, "blue")
    for name in blue:
        stage.refusal(name)
    assert not any(stage.places().values()), "a rule that rejects a member rejects its group"
    operating.put("rules", schedulerName=stage.name, filters=None, binding={"gang": [_GANG]})
    stage.all_placed()

    make_room(stage)
    start_api(operating.cluster, with_groups=False)
    wait_for("the gate to go", lambda: rendered.gates() == [])
    wait_for("the status to say so", lambda: said(stage, "rules") == "Off")
    rendered.roll()
    stage.make_pod("plain")
    make_members(stage, "green")
    stage.placed("plain")
    # To the API server, they are pods without a group, which are for the rules of the policy to keep together.
    for number in range(4):
        assert "waiting for members" in stage.refusal(f"green-{number}")
    operating.put("rules", schedulerName=stage.name, filters=[{"name": "all", "expression": "true"}], binding=None)
    stage.all_placed()
