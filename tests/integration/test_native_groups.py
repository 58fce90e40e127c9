"""The leader on an API server with Kubernetes' own groups of pods, and on one from which they are taken away."""

import dataclasses
from collections.abc import Callable, Iterator

import pytest

from support.control.leader import LeaderSetup
from support.control.scheduler import FILTER, child, run_pods, run_until_ready
from support.kube.crd import POLICIES
from testbed import build, layout, process
from testbed import control_plane as parts
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster, raised_with_groups
from testbed.supervisor import Supervisor
from testbed.versions import program

GANG = {"name": "jobs", "group": "pod.metadata.labels[?'job'].orValue('')", "size": "2"}


@pytest.fixture(scope="module")
def control_plane(this_run: str, kubernetes_version: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster that serves PodGroups."""
    with raised_with_groups(f"test-groups-{this_run}", kubernetes_version, pytestconfig) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.control.loop.pod_groups_discovery._LOOK_S", 0.5)


def gates(ground: LeaderSetup) -> list[str]:
    """Return the feature gates that the scheduler's container is started with."""
    spec = ground.cluster.api.get(child(ground, "deployments"))["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return [one for one in container["args"] if one.startswith("--feature-gates=")]


def said(ground: LeaderSetup, policy: str = "p") -> tuple[str, str]:
    """Return what its status says of the groups of its scheduler."""
    status = ground.cluster.api.get(f"{POLICIES}/{policy}").get("status", {})
    return status["scheduler"].get("groups", ""), status["scheduler"].get("groupsMessage", "")


def warnings(ground: LeaderSetup, policy: str) -> list[str]:
    return [one["reason"] for one in ground.cluster.api.get(f"{POLICIES}/{policy}")["status"].get("warnings", ())]


def start_api(cluster: Cluster, *, with_groups: bool) -> None:
    """Start the API server of a cluster again, with or without groups."""
    known = layout.load(cluster.provider.cluster)
    assert known is not None
    at = dataclasses.replace(known, gates=with_groups)
    process.kill(one for one in [process.find(cluster.folder, "kube-apiserver")] if one)
    component = parts.apiserver(at, build.build([program("kube-apiserver", at.kubernetes)]), parts.make_keys(at))
    api = Api(at.kubeconfig)
    Supervisor(cluster.folder, list).ensure(component, lambda: api.text("/readyz") == "ok", within_s=60)
    api.close()


def test_a_scheduler_gets_the_gate_while_the_api_is_there(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work("schedulers: [{name: s, groups: Auto}, {name: mine, management: ConfigOnly, groups: Auto}]")
    ground.apply("p", schedulerName="s", filters=FILTER)
    ground.apply("q", schedulerName="s", binding={"gang": [GANG]})
    ground.apply("r", schedulerName="mine", filters=FILTER)
    run_until_ready(ground)
    assert gates(ground) == ["--feature-gates=GenericWorkload=true"]
    assert said(ground) == ("Native", "it runs with --feature-gates=GenericWorkload=true")
    assert (warnings(ground, "p"), warnings(ground, "q")) == ([], ["NativeGroups"])
    config_only = wait_for("the status", lambda: found if (found := said(ground, "r"))[0] else None)
    assert config_only[0] == "Off"
    assert "you run it: start it with --feature-gates=GenericWorkload=true" in config_only[1]

    start_api(ground.cluster, with_groups=False)
    wait_for("the gate to go", lambda: not gates(ground) or None)
    run_pods(ground)
    wait_for("the status to say so", lambda: said(ground)[0] == "Off" or None)
    assert "the API server does not serve podgroups of scheduling.k8s.io/v1beta1" in said(ground)[1]
    wait_for("the warning to go", lambda: not warnings(ground, "q") or None)


@pytest.mark.usefixtures("control_plane")
def test_a_scheduler_that_did_not_ask_for_it_has_no_gate(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("a Deployment", lambda: ground.cluster.api.exists(child(ground, "deployments")))
    assert gates(ground) == []
    found = wait_for("the status", lambda: found if (found := _said(ground))[0] else None)
    assert found == ("Off", "its setting groups is Off")


def _said(ground: LeaderSetup) -> tuple[str, str]:
    status: Object = ground.cluster.api.get(f"{POLICIES}/p").get("status", {})
    return said(ground) if "scheduler" in status else ("", "")
