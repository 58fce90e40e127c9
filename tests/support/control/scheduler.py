"""Objects of a scheduler that the leader made on a real API server, and a node that would run it."""

from typing import Any

from fairlead.render.object_names import ObjectNames
from support.control.leader import LeaderSetup
from support.kube.crd import POLICIES
from testbed.api import Object, wait_for

FILTER = [{"name": "f", "expression": "true"}]
SCORE = [{"name": "s", "expression": "1.0"}]
HASH = "fairlead.dev/config-hash"


def child(ground: LeaderSetup, plural: str, name: str = "kube-scheduler-s", group: str = "apis/apps/v1") -> str:
    return f"/{group}/namespaces/{ground.namespace}/{plural}/{name}"


def pods_of(ground: LeaderSetup, scheduler: str, config: str) -> tuple[list[Object], list[Object]]:
    """All of them, and those with this configuration."""
    path = f"/api/v1/namespaces/{ground.namespace}/pods"
    pods = ground.cluster.api.items(path, labelSelector=f"fairlead.dev/scheduler={scheduler}")
    return pods, [one for one in pods if one["metadata"]["annotations"].get(HASH) == config]


def config_of(ground: LeaderSetup, scheduler: str = "s") -> str:
    """Configuration that its Deployment is to run; empty if there is none."""
    at = child(ground, "deployments", ObjectNames(scheduler, ground.namespace).object_name)
    api = ground.cluster.api
    return str(api.get(at)["metadata"]["annotations"][HASH]) if api.exists(at) else ""


def rolled(ground: LeaderSetup, scheduler: str = "s") -> bool:
    """Do what a node would: have the pods of the newest ReplicaSet run, and one of them take the Lease."""
    api, name = ground.cluster.api, ObjectNames(scheduler, ground.namespace).object_name
    there = api.get(child(ground, "deployments", name))
    pods, new = pods_of(ground, scheduler, there["metadata"]["annotations"][HASH])
    for pod in pods:
        path = f"/api/v1/namespaces/{ground.namespace}/pods/{pod['metadata']['name']}"
        if "deletionTimestamp" in pod["metadata"]:
            api.delete(path, gracePeriodSeconds="0")
        elif pod in new and pod["status"].get("phase") != "Running":
            ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
            api.patch(f"{path}/status", {"status": {"phase": "Running", "podIP": "10.0.0.9", "conditions": ready}})
    status = there.get("status", {})
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    done = status.get("observedGeneration") == there["metadata"]["generation"] and counts == [2, 2, 2]
    if done and new:
        lease = child(ground, "leases", name, "apis/coordination.k8s.io/v1")
        api.patch(lease, {"spec": {"holderIdentity": f"{new[0]['metadata']['name']}_x"}})
    return done


def run_pods(ground: LeaderSetup, scheduler: str = "s") -> None:
    wait_for("the pods of the scheduler", lambda: rolled(ground, scheduler))


def run_until_ready(ground: LeaderSetup, policy: str = "p", scheduler: str = "s") -> None:
    wait_for("Ready", lambda: rolled(ground, scheduler) and ground.condition(policy) == ("True", "Ready"))


def message(ground: LeaderSetup, name: str, kind: str) -> str:
    """Of a condition."""
    found = ground.cluster.api.get(f"{POLICIES}/{name}").get("status", {}).get("conditions", [])
    return next((str(one["message"]) for one in found if one["type"] == kind), "")


def gates(ground: LeaderSetup, scheduler: str = "s") -> list[str]:
    """The feature gates that its container is started with."""
    there = ground.cluster.api.get(child(ground, "deployments", ObjectNames(scheduler, ground.namespace).object_name))
    (container,) = there["spec"]["template"]["spec"]["containers"]
    return [one for one in container["args"] if one.startswith("--feature-gates=")]


def groups(ground: LeaderSetup, policy: str) -> tuple[str, str]:
    """Return what its status says of Kubernetes' own groups; empty before it says something."""
    said = ground.cluster.api.get(f"{POLICIES}/{policy}").get("status", {}).get("scheduler", {})
    return said.get("groups", ""), said.get("groupsMessage", "")


def versions(ground: LeaderSetup, scheduler: str = "s") -> dict[str, Any]:
    """Of all that a scheduler is made of; what is remembered of it says when what was."""
    api = ground.cluster.api
    kinds = {"apis/apps/v1": ["deployments"], "api/v1": ["configmaps", "secrets", "serviceaccounts"]}
    return {
        one["metadata"]["name"] + plural: one["metadata"]["resourceVersion"]
        for group, plurals in kinds.items()
        for plural in plurals
        for one in api.items(
            f"/{group}/namespaces/{ground.namespace}/{plural}", labelSelector=f"fairlead.dev/scheduler={scheduler}"
        )
        if not one["metadata"]["name"].endswith(".state")
    }


def state_of(ground: LeaderSetup) -> str:
    """State that the leader has stored."""
    found = ground.cluster.api.get(child(ground, "configmaps", "kube-scheduler-s.state", "api/v1"))
    return str(found["data"]["state.json"])


def event_reasons(ground: LeaderSetup, name: str) -> list[str]:
    """The reasons of the events about a policy."""
    uid = ground.cluster.api.get(f"{POLICIES}/{name}")["metadata"]["uid"]
    found = ground.cluster.api.items("/apis/events.k8s.io/v1/namespaces/default/events")
    ours = [one for one in found if one["regarding"].get("uid") == uid]
    return [one["reason"] for one in sorted(ours, key=lambda one: one["eventTime"])]
