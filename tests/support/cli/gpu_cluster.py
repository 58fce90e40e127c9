"""A cluster of nodes with GPUs, of any size and always the same, with pods that run and workloads that wait."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

GPUS: Final = "nvidia.com/gpu"
CLASS: Final = "example.com/gpu"
_CLASSES: Final = ("a100", "a100", "a100", "a100", "a100", "h100", "h100", "h100", "b200")
_EXAMPLES: Final = Path(__file__).parents[3] / "examples"
IN_SHADOW: Final = f"""# In shadow: pods that ask for fewer than eight GPUs keep off nodes of eight that are whole.
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata:
  name: whole-nodes
spec:
  mode: Shadow
  match:
    conditions:
    - name: asks-for-gpus
      expression: pod.spec.containers.exists(one, '{GPUS}' in one.resources.limits)
  filters:
  - name: not-a-whole-node
    expression: |-
      request['{GPUS}'] >= 8.0
      || allocatable[?'{GPUS}'].orValue(0.0) < 8.0
      || free[?'{GPUS}'].orValue(0.0) < 8.0
    reason: the node is kept whole for pods of eight GPUs
"""


class Wanted(NamedTuple):
    """A workload that waits."""

    name: str
    gpu_class: str
    gpus: int
    pods: int
    cpu: str = "4"


WAITING: Final = (
    Wanted("train-llm", "h100", 8, 12),
    Wanted("eval", "a100", 1, 8),
    Wanted("new-model", "b300", 1, 6),
    Wanted("sweep", "any", 2, 10),
    Wanted("big-memory", "h100", 8, 3, cpu="90"),
    Wanted("notebook", "a100", 1, 1),
)


def objects(nodes: int, ours: int) -> list[dict[str, Any]]:
    """Nodes, pods that run, and those that wait; so many of the pods are for the scheduler of the policies."""
    chance = random.Random(7)  # noqa: S311 - no secret
    made = [_node(at, chance) for at in range(nodes)]
    free = {node["metadata"]["name"]: 8 for node in made if GPUS in node["status"]["allocatable"]}
    running = [*_running(max(nodes * 2, ours * 6 // 5), free, chance)]
    waiting = [*_waiting()]
    every = max(1, len(running) // max(1, ours - len(waiting)))
    for at, pod in enumerate(running):
        if at % every == 0 and at // every < ours - len(waiting):
            pod["spec"]["schedulerName"] = "fairlead"
    return [*made, *running, *waiting]


def write(folder: Path, nodes: int, ours: int) -> tuple[Path, list[Path]]:
    """Write such a cluster, and its policies; return the snapshot and the files of the policies."""
    snapshot, shadow = folder / "cluster.json", folder / "whole-nodes.yaml"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects(nodes, ours)}))
    shadow.write_text(IN_SHADOW)
    return snapshot, [_EXAMPLES / "gpu-class.yaml", shadow]


def _node(at: int, chance: random.Random) -> dict[str, Any]:
    name, gpu_class = f"gpu-{at:04d}", chance.choice(_CLASSES) if at % 10 else ""
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{at % 3}"}
    allocatable = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    if gpu_class:
        labels[CLASS] = gpu_class
        allocatable[GPUS] = "8"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"n{at}", "labels": labels},
        "spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]} if at % 29 == 0 else {},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _running(count: int, free: dict[str, int], chance: random.Random) -> Iterator[dict[str, Any]]:
    names = [*free]
    for at in range(count):
        name, gpus = chance.choice(names), chance.choice([1, 1, 2, 4])
        if free[name] >= gpus:
            free[name] -= gpus
            pod = _pod(f"run-{at}", f"team-{at % 5}", "any", gpus, f"job-{at // 20}")
            pod["spec"] |= {"schedulerName": "default-scheduler", "nodeName": name}
            conditions = [{"type": "PodScheduled", "status": "True"}]
            yield pod | {"status": {"phase": "Running", "conditions": conditions}}


def _waiting() -> Iterator[dict[str, Any]]:
    for one in WAITING:
        for at in range(one.pods):
            yield _pod(f"{one.name}-{at}", "team-1", one.gpu_class, one.gpus, one.name, cpu=one.cpu)


def _pod(name: str, namespace: str, gpu_class: str, gpus: int, job: str, *, cpu: str = "4") -> dict[str, Any]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    resources = {"limits": {GPUS: str(gpus)}, "requests": {GPUS: str(gpus), "cpu": cpu}}
    labels = {CLASS: gpu_class}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {"schedulerName": "fairlead", "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Pending"},
    }
