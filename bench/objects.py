"""Nodes and pods as the API server writes them: some five kilobytes for a pod, most of which nobody here reads."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from bench.cluster import name

PAGE: Final = 250
OF_AN_OWNER: Final = 30
_NODES: Final = 5000


def pages(items: Iterator[bytes]) -> Iterator[bytes]:
    """The bodies of a list, page by page; each is made when it is asked for."""
    while page := b",".join(islice(items, PAGE)):
        yield b'{"apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[%b]}' % page


def pods(many: int, nodes: int = _NODES, annotation: int = 0, version: int = 1) -> Iterator[bytes]:
    """Pods on nodes, some of each owner, in the order in which they are listed; with an annotation of that length."""
    for first in range(0, many, OF_AN_OWNER):
        written = json.dumps(_pod(first // OF_AN_OWNER, annotation), separators=(",", ":")).encode()
        for at in range(first, min(many, first + OF_AN_OWNER)):
            moment = f"2026-05-{1 + at % 28:02}T{at // 3600 % 24:02}:{at // 60 % 60:02}:"
            yield (
                written.replace(b"@at", b"%08x" % at)
                .replace(b"@node", name(at % nodes).encode())
                .replace(b"@version", b"%d" % (1_000_000 * version + at))
                .replace(b"@moment", moment.encode())
            )


def nodes(many: int, version: int = 1) -> Iterator[bytes]:
    """Nodes with twenty labels, five conditions and fifty images."""
    for at in range(many):
        yield json.dumps(_node(at, version), separators=(",", ":")).encode()


def _pod(owner: int, annotation: int) -> dict[str, Any]:
    replica_set = f"app-{owner}-7d9f8b6c5d"
    uid = f"{owner:08x}-0000-4000-8000-000000000000"
    owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": uid, "controller": True}
    requests = {"cpu": f"{100 + 50 * (owner % 20)}m", "memory": f"{128 * (1 + owner % 16)}Mi"}
    resources = {"requests": requests, "limits": {"memory": requests["memory"]}}
    image = f"registry.example.org/team/app-{owner}:v1.2.3"
    token = {"name": "kube-api-access-@at", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    container = {
        "name": "main",
        "image": image,
        "env": [{"name": f"V{number}", "value": f"value-{number}"} for number in range(8)],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": resources,
        "volumeMounts": [token],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"allowPrivilegeEscalation": False, "runAsNonRoot": True},
    }
    fields: dict[str, Any] = {f"f:field-{number}": {".": {}, "f:name": {}, "f:value": {}} for number in range(30)}
    managed = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    status = {
        "name": "main",
        "state": {"running": {"startedAt": "@moment05Z"}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": image,
        "imageID": f"registry.example.org/team/app@sha256:{owner:064x}",
        "containerID": "containerd://@at",
        "allocatedResources": requests,
        "resources": resources,
    }
    return {
        "metadata": {
            "name": f"{replica_set}-@at",
            "generateName": f"{replica_set}-",
            "namespace": f"team-{owner % 100}",
            "uid": "@at-0000-4000-8000-000000000001",
            "resourceVersion": "@version",
            "creationTimestamp": "@moment00Z",
            "labels": {"app": f"app-{owner}", "part-of": "shop", "pod-template-hash": "7d9f8b6c5d", "tier": "web"},
            "annotations": {"checksum": f"{owner:064x}"} | ({"large": "x" * annotation} if annotation else {}),
            "ownerReferences": [owned],
            "managedFields": [managed, managed],
        },
        "spec": {
            "containers": [container],
            "nodeName": "@node",
            "priority": 0,
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in ("a", "b")],
            "volumes": [{"name": "kube-api-access-@at", "projected": {"sources": [], "defaultMode": 420}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": f"@moment0{second}Z"}
                for second, kind in enumerate(kinds)
            ],
            "podIP": "10.1.2.3",
            "startTime": "@moment00Z",
            "containerStatuses": [status],
            "qosClass": "Burstable",
        },
    }


def _node(at: int, version: int) -> Mapping[str, Any]:
    labels = {f"example.org/label-{number}": f"{number}-{at % 7}" for number in range(20)}
    capacity = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "900Gi", "pods": "250"}
    images = [
        {"names": [f"registry.example.org/team/app-{one}@sha256:{one:064x}"], "sizeBytes": one << 20}
        for one in ((at * 7 + number) % 900 for number in range(50))
    ]
    kinds = ("NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "lastHeartbeatTime": f"2026-05-02T00:{version % 60:02}:00Z",
            "lastTransitionTime": "2026-05-01T00:00:00Z",
            "reason": f"KubeletHas{kind}",
            "message": f"kubelet says that it has {kind}",
        }
        for kind in kinds
    ]
    return {
        "metadata": {
            "name": name(at),
            "uid": f"{at:08x}-0000-4000-8000-000000000002",
            "resourceVersion": str(1_000_000 * version + at),
            "creationTimestamp": "2026-05-01T00:00:00Z",
            "labels": labels,
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"providerID": f"cloud:///{at}"},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": conditions, "images": images},
    }
