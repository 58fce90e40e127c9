"""Clusters for `fairlead status`, scene by scene. `make crds` writes the golden files anew."""

import io
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairlead.cli.main import main
from fairlead.control.status.uninstalled import uninstalled_status
from fairlead.render.native_groups import FLAG, NOT_ASKED
from support.cli.status_api import Answers, api_server, items
from support.kube.crd import POLICIES

DATA = Path(__file__).parents[2] / "data" / "status"
NS = "fairlead-system"
_OWN = f"/api/v1/namespaces/{NS}"
_APPS = f"/apis/apps/v1/namespaces/{NS}"
DEPLOYMENTS, CONFIG_MAPS = f"{_APPS}/deployments", f"{_OWN}/configmaps"

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases"
ALL_PODS, PODS = "/api/v1/pods", f"{_OWN}/pods"
Object = dict[str, Any]


def policy(name: str, *, reason: str = "Ready", message: str = "its rules serve", **more: Any) -> Object:
    """A policy with its status; `more` goes into that."""
    ready = {"type": "Ready", "status": "True" if reason == "Ready" else "False", "reason": reason, "message": message}
    rule = {"kind": "Filter", "name": "class", "evaluation": "ByteCode"}
    status = {"observedGeneration": 4, "servingGeneration": 4, "conditions": [ready], "rules": [rule], **more}
    return {
        "metadata": {"name": name, "generation": 4, "uid": name},
        "spec": {"schedulerName": "gpu"},
        "status": status,
    }


def pod(name: str, *, ready: bool = True, scheduler: str = "", **status: Any) -> Object:
    """A pod of the operator, or of a scheduler."""
    own = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "operator"}
    labels = {"fairlead.dev/scheduler": scheduler} if scheduler else own
    annotations = {"fairlead.dev/config-hash": "0123456789ab"} if scheduler else {}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    containers = [{"restartCount": 0 if ready else 7, **status}]
    return {
        "metadata": {"name": name, "namespace": NS, "labels": labels, "annotations": annotations},
        "spec": {"containers": [{"ports": [{"name": "probes", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": containers},
    }


def deployment(scheduler: str, ready: int = 2) -> Object:
    """Of a scheduler, with two pods."""
    metadata = {
        "name": f"kube-scheduler-{scheduler}",
        "generation": 1,
        "labels": {"fairlead.dev/scheduler": scheduler},
        "annotations": {"fairlead.dev/config-hash": "0123456789ab"},
    }
    counts = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": ready, "readyReplicas": ready}
    return {"metadata": metadata, "spec": {"replicas": 2}, "status": {"observedGeneration": 1, **counts}}


def lease(name: str, holder: str) -> Object:
    """Lease of the leader."""
    return {"metadata": {"name": name}, "spec": {"holderIdentity": f"{holder}_uid"}}


def metrics(stale: float = 12.0, generation: str = "5f3a") -> str:
    """Metrics of a replica."""
    return (
        f'fairlead_mirror_staleness_seconds{{kind="nodes"}} {stale}\n'
        'fairlead_mirror_staleness_seconds{kind="pods"} 3.5\n'
        f'fairlead_policy_set_info{{hash="{generation}"}} 1.0\n'
        'fairlead_filter_rejected_nodes_total{policy="gpu-class",rule="class"} 21.0\n'
    )


def cluster(**changes: object) -> dict[str, object]:
    """One in which all is well, but for what is said of it; by the names of the constants above."""
    pods = [pod("fairlead-a"), pod("fairlead-b")]
    answers: dict[str, object] = {
        POLICIES: items(policy("gpu-class"), policy("gpu-mark")),
        ALL_PODS: items(*pods),
        PODS: items(*pods),
        DEPLOYMENTS: items(deployment("gpu")),
        CONFIG_MAPS: items(),
        LEASES: items(lease("fairlead", "fairlead-a"), lease("kube-scheduler-gpu", "kube-scheduler-gpu-1")),
        f"{PODS}/fairlead-a:8080/proxy/metrics": metrics(),
        f"{PODS}/fairlead-b:8080/proxy/metrics": metrics(),
    }
    return answers | {globals().get(key, key): value for key, value in changes.items()}


def stray(name: str, scheduler: str, reason: str = "") -> Object:
    """A pod without a node."""
    said = [{"type": "PodScheduled", "status": "False", "reason": reason}] if reason else []
    return {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"schedulerName": scheduler},
        "status": {"conditions": said},
    }


_UNPLACED = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
_ERRORS = {"count": 3, "lastMessage": "no such key: gpu", "lastTime": "2026-11-21T03:00:00Z"}
_WARNING = {
    "reason": "RejectedByThisPolicyOnly",
    "count": 2,
    "message": "pods are pending because this policy, and no other, keeps them from every node",
}
_UNREVIEWED = {
    "reason": "NotReviewed",
    "count": 1,
    "message": "generation 4 was stored without a review",
}
_WAITING: Object = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
_NO_METRICS: Mapping[str, object] = {f"{PODS}/fairlead-{one}:8080/proxy/metrics": 403 for one in "ab"}
_SCHEDULER_PODS = [pod("kube-scheduler-gpu-1", scheduler="gpu"), pod("kube-scheduler-gpu-2", scheduler="gpu")]
_EMPTY: Object = {
    "metadata": {"name": "kube-scheduler-old.state", "labels": {"fairlead.dev/scheduler": "old"}},
    "data": {"state.json": '{"retention": {"empty_since": 1795269600.0}}'},
}
"""State of a scheduler that no policy uses since 2026-11-21T14:00:00Z."""
_WHY = "default-scheduler is the cluster's own scheduler and is never managed"
_NOT_ACCEPTED: Object = {"type": "Accepted", "status": "False", "reason": "SchedulerRefused", "message": _WHY}
_REFUSED = policy("own", reason="SchedulerRefused", message=_WHY) | {"spec": {"schedulerName": "default-scheduler"}}
_REFUSED["status"]["conditions"].append(_NOT_ACCEPTED)
_NO_VALUES: Object = {
    "type": "DataReady",
    "status": "False",
    "reason": "DataMissing",
    "message": "load: of 7 nodes 5 have no value (a100-large, a100-small, common-1, ...)",
}
_UNREADABLE: Object = {
    "type": "LearnedStateUnreadable",
    "status": "True",
    "reason": "LearnedStateUnreadable",
    "message": "ConfigMap fairlead-learned-tried-works-7, what a rule has learned, has format '2', and this version "
    "of Fairlead reads 1 at most; it is left alone: upgrade Fairlead, or delete it, and its rule learns from the "
    "beginning",
}
_SCALED: Object = {
    "metadata": {"name": "fairlead", "namespace": NS, "labels": pod("fairlead-a")["metadata"]["labels"]},
    "spec": {"replicas": 0},
}


def _uninstalled(name: str) -> Object:
    made = policy(name)
    made["status"] = uninstalled_status(made, datetime(2026, 11, 25, 17, tzinfo=UTC))
    return made


def _of(scheduler: str, groups: str, message: str) -> Object:
    """A policy whose scheduler has this state of Kubernetes' own groups."""
    said = {"name": scheduler, "groups": groups, "groupsMessage": message}
    return policy(f"of-{scheduler}", scheduler=said) | {"spec": {"schedulerName": scheduler}}


def _published(scheduler: str) -> Object:
    """The configuration of a scheduler that others run."""
    return {"metadata": {"name": f"kube-scheduler-{scheduler}", "labels": {"fairlead.dev/scheduler": scheduler}}}


TERMINATING = pod("fairlead-a", ready=False)
TERMINATING["metadata"]["deletionTimestamp"] = "2026-07-01T09:00:00Z"
_WELL = items(pod("fairlead-a"), pod("fairlead-b"), *_SCHEDULER_PODS)

SCENES: dict[str, tuple[Answers, int]] = {
    "well": (cluster(PODS=_WELL), 0),
    "just-upgraded": (
        cluster(PODS=items(pod("fairlead-b"), pod("fairlead-c"), TERMINATING, *_SCHEDULER_PODS)),
        0,
    ),
    "three-in-the-morning": (
        cluster(
            POLICIES=items(
                policy("gpu-mark", warnings=[_WARNING]),
                policy(
                    "gpu-class",
                    reason="LastGoodServes",
                    message="generation 3 serves: spec.filters[0].expression: NodeSpec has no field `x`",
                    servingGeneration=3,
                    rules=[{"kind": "Filter", "name": "class", "evaluation": "Engine", "errors": _ERRORS}],
                ),
                policy("new", observedGeneration=3),
            ),
            PODS=items(pod("fairlead-a"), pod("fairlead-b", ready=False, **_WAITING), _SCHEDULER_PODS[0]),
            DEPLOYMENTS=items(deployment("gpu", ready=1)),
        )
        | {f"{PODS}/fairlead-a:8080/proxy/metrics": metrics(stale=300.0)},
        1,
    ),
    "little-may-be-read": (
        {**cluster(ALL_PODS=403, DEPLOYMENTS=403, CONFIG_MAPS=403, LEASES=403), **_NO_METRICS},
        0,
    ),
    "only-policies-may-be-read": (
        cluster(ALL_PODS=403, PODS=403, DEPLOYMENTS=403, CONFIG_MAPS=403, LEASES=403),
        1,
    ),
    "strays": (
        cluster(PODS=_WELL)
        | {
            f"{ALL_PODS}?{_UNPLACED}": items(
                *(stray(f"p-{at}", "qpu") for at in range(3)),
                stray("new", "gpu"),
                stray("own", "default-scheduler"),
                stray("gated", "qpu", "SchedulingGated"),
                stray("tried", "volcano", "Unschedulable"),
                stray("next", "volcano"),
                stray("odd", "zzz"),
            ),
            f"{ALL_PODS}?spec.nodeName!=,spec.schedulerName=qpu": items(),
            f"{ALL_PODS}?spec.nodeName!=,spec.schedulerName=zzz": items(),
            "/apis/coordination.k8s.io/v1/leases": 403,
            **{f"/apis/apps/v1/{plural}": items() for plural in ("deployments", "statefulsets", "daemonsets")},
        },
        0,
    ),
    "values-missing": (
        cluster(
            PODS=_WELL,
            POLICIES=items(
                policy("cool", conditions=[*policy("cool")["status"]["conditions"], _NO_VALUES]), policy("gpu-class")
            ),
        ),
        1,
    ),
    "learned-state-unreadable": (
        cluster(
            PODS=_WELL,
            POLICIES=items(
                policy("tried", conditions=[*policy("tried")["status"]["conditions"], _UNREADABLE]),
                policy("gpu-class"),
            ),
        ),
        1,
    ),
    "not-reviewed": (
        cluster(
            PODS=_WELL,
            POLICIES=items(
                policy("gpu-mark", warnings=[_UNREVIEWED]),
                policy("gpu-class", warnings=[_UNREVIEWED]),
                policy("seen", warnings=[_WARNING]),
            ),
        ),
        1,
    ),
    "scheduler-to-be-deleted": (
        cluster(
            PODS=items(pod("fairlead-a"), pod("fairlead-b"), *_SCHEDULER_PODS),
            DEPLOYMENTS=items(deployment("gpu"), deployment("old", ready=0)),
            CONFIG_MAPS=items(_EMPTY),
        ),
        0,
    ),
    "native-groups": (
        cluster(
            PODS=_WELL,
            POLICIES=items(
                _of("gpu", "Native", f"it runs with {FLAG}"),
                _of("mine", "Off", "an API server is v1.36.3, and Kubernetes has them from 1.37 on"),
                _of("plain", "Off", NOT_ASKED),
                # Its status is still of the scheduler that it was for.
                policy("moved", scheduler={"name": "gpu", "groups": "Off"}) | {"spec": {"schedulerName": "moved"}},
            ),
            CONFIG_MAPS=items(*map(_published, ("mine", "moved", "plain"))),
        ),
        0,
    ),
    "scheduler-refused": (
        cluster(
            PODS=_WELL,
            POLICIES=items(
                policy("gpu-class"),
                _REFUSED,
            ),
        ),
        1,
    ),
    "no-leader-yet": (cluster(PODS=_WELL, LEASES=items(), POLICIES=items(), DEPLOYMENTS=items()), 1),
    "scaled-to-nothing": (
        cluster(
            ALL_PODS=items(),
            PODS=items(*_SCHEDULER_PODS),
            DEPLOYMENTS=items(deployment("gpu"), _SCALED),
        )
        | {"/apis/apps/v1/deployments": items(_SCALED)},
        1,
    ),
    "uninstalled": (
        cluster(
            ALL_PODS=items(),
            PODS=items(),
            DEPLOYMENTS=items(),
            LEASES=items(),
            POLICIES=items(*map(_uninstalled, ("gpu-class", "gpu-mark"))),
        )
        | {"/apis/apps/v1/deployments": items()},
        1,
    ),
    "no-operator": (cluster(ALL_PODS=items(), PODS=items(), DEPLOYMENTS=items(), POLICIES=items()), 1),
}


def write() -> None:
    """Write the golden files anew."""
    for name, (answers, _) in SCENES.items():
        with tempfile.TemporaryDirectory() as folder, api_server(answers, Path(folder)) as file:
            for ending, form in (("txt", "table"), ("json", "json")):
                out = io.StringIO()
                with redirect_stdout(out):
                    main(["status", "--kubeconfig", str(file), "-o", form])
                (DATA / f"{name}.{ending}").write_text(out.getvalue())
