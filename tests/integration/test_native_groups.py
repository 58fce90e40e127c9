"""The leader on an API server with Kubernetes' own groups of pods, and on one from which they are taken away."""

from collections.abc import Callable, Iterator

import pytest

from support.control.leader import LeaderSetup
from support.control.scheduler import FILTER, gates, groups, run_pods, run_until_ready
from support.kube.api_restart import start_api
from support.kube.crd import POLICIES
from testbed.api import wait_for
from testbed.fixtures import Cluster, raised_with_groups

GANG = {"name": "jobs", "group": "pod.metadata.labels[?'job'].orValue('')", "size": "2"}


@pytest.fixture(scope="module")
def control_plane(this_run: str, kubernetes_version: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster that serves PodGroups."""
    with raised_with_groups(f"test-groups-{this_run}", kubernetes_version, pytestconfig) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.control.loop.pod_groups_discovery._LOOK_S", 0.5)


def warnings(ground: LeaderSetup, policy: str) -> list[str]:
    return [one["reason"] for one in ground.cluster.api.get(f"{POLICIES}/{policy}")["status"].get("warnings", ())]


def test_a_scheduler_gets_the_gate_while_the_api_is_there(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work("schedulers: [{name: s, groups: Auto}, {name: mine, management: ConfigOnly, groups: Auto}]")
    ground.apply("p", schedulerName="s", filters=FILTER)
    ground.apply("q", schedulerName="s", binding={"gang": [GANG]})
    ground.apply("r", schedulerName="mine", binding={"gang": [GANG]})
    run_until_ready(ground)
    assert gates(ground) == ["--feature-gates=GenericWorkload=true"]
    assert groups(ground, "p") == ("Native", "it runs with --feature-gates=GenericWorkload=true")
    assert (warnings(ground, "p"), warnings(ground, "q")) == ([], ["NativeGroups"])
    config_only = wait_for("the status", lambda: found if (found := groups(ground, "r"))[0] else None)
    assert config_only[0] == "Off"
    assert "you run it: start it with --feature-gates=GenericWorkload=true" in config_only[1]
    assert warnings(ground, "r") == ["NativeGroups"], "you may have done so"

    start_api(ground.cluster, with_groups=False)
    wait_for("the gate to go", lambda: not gates(ground) or None)
    run_pods(ground)
    wait_for("the status to say so", lambda: groups(ground, "p")[0] == "Off" or None)
    assert "the API server does not serve podgroups of scheduling.k8s.io/v1beta1" in groups(ground, "p")[1]
    wait_for("the warnings to go", lambda: not (warnings(ground, "q") or warnings(ground, "r")) or None)
