"""The leader on an API server without Kubernetes' own groups of pods, of whichever version the cluster has."""

from collections.abc import Callable

from support.control.leader import LeaderSetup
from support.control.scheduler import FILTER, gates, groups
from testbed.api import wait_for


def test_no_scheduler_gets_the_gate_and_the_status_says_why(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work("schedulers: [{name: s, groups: Auto}, {name: mine, management: ConfigOnly, groups: Auto}]")
    schedulers = {"p": "s", "q": "other", "r": "mine"}
    for policy, scheduler in schedulers.items():
        ground.apply(policy, schedulerName=scheduler, filters=FILTER)
    wait_for("each status", lambda: all(groups(ground, one)[0] for one in schedulers))
    said = {one: groups(ground, one) for one in schedulers}
    version = ground.cluster.kubernetes
    why = f"an API server is v{version}, and Kubernetes has them from 1.37 on"
    if tuple(map(int, version.split("."))) >= (1, 37):
        why = (
            "the API server does not serve podgroups of scheduling.k8s.io/v1beta1: start each with "
            "--feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1beta1=true"
        )
    assert said == {"p": ("Off", why), "q": ("Off", "its setting groups is Off"), "r": ("Off", why)}
    assert (gates(ground), gates(ground, "other")) == ([], [])
