"""Workloads and their pods, as the API server stores them."""

from typing import Any

from support.simulation.snapshot import Object, pod

_GROUPS = {"Job": "batch/v1", "CronJob": "batch/v1"}


def workload(kind: str = "Deployment", name: str = "web", *, namespace: str = "ml", **spec: Any) -> Object:
    """A workload whose pods want two CPUs of a t4."""
    made = pod(labels={"gpu": "t4"}, asks={"cpu": "2"})
    template = {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}"}
    whole = {"template": template, **spec}
    if kind == "CronJob":
        whole = {"jobTemplate": {"spec": whole}}
    return {"apiVersion": _GROUPS.get(kind, "apps/v1"), "kind": kind, "metadata": metadata, "spec": whole}


def owned(made: Object, kind: str, name: str, **labels: str) -> Object:
    """A pod that a workload has created."""
    owner = {"apiVersion": _GROUPS.get(kind, "apps/v1"), "kind": kind, "name": name, "uid": "o", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    more = {key.replace("_", "-"): value for key, value in labels.items()}
    made["metadata"]["labels"] = made["metadata"].get("labels", {}) | more
    return made
