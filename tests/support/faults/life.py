"""The life of a scheduler in stages, each with what somebody does and what it comes to in the end."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec

from fairlead.pki import parsing
from fairlead.pki.authority import Phase
from fairlead.pki.rotation import ROTATE
from fairlead.render.object_names import SCHEDULER_LABEL
from support.faults.api import Key, Object
from support.faults.cluster import AUTHORITY, BINDING, DEPLOYMENT, HASH, NAMESPACE, PLACED, SCHEDULER, FakeCluster

POLICY: Key = ("fairlead.dev", "schedulerextenderpolicies", "", "p")
CERTIFICATE: Key = ("", "secrets", NAMESPACE, "kube-scheduler-s-tls")
FILTER = [{"name": "f", "expression": "true"}]
SCORES = [{"name": "s", "expression": "1.0"}]
_KIND = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
ANNOTATION = {"annotations": [{"key": "fairlead.dev/a", "expression": "'x'"}]}


@dataclass(frozen=True)
class Stage:
    """One of them."""

    act: Callable[[FakeCluster], Any]
    done: Callable[[FakeCluster], bool]


def _spec(**rules: Any) -> Callable[[FakeCluster], Any]:
    def act(cluster: FakeCluster) -> None:
        spec = {"schedulerName": SCHEDULER, **rules}
        there = cluster.api.objects.get(
            POLICY, {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
        )
        cluster.api.put(POLICY, {**there, "spec": spec})

    return act


def condition(cluster: FakeCluster, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of this generation."""
    policy = cluster.api.objects.get(POLICY, {})
    for one in policy.get("status", {}).get("conditions", ()):
        if one["type"] == kind and one["observedGeneration"] == policy["metadata"]["generation"]:
            return one["status"], one["reason"], one["message"]
    return "", "", ""


def _is_ready(cluster: FakeCluster) -> bool:
    return condition(cluster, "Ready")[:2] == ("True", "Ready")


def _authority(cluster: FakeCluster) -> Phase | None:
    return cluster.authority.phase if cluster.authority is not None else None


def _renewed(cluster: FakeCluster) -> bool:
    leaf = msgspec.convert(cluster.api.objects[CERTIFICATE]["data"]["tls.crt"], bytes)
    return parsing.read_certificate(leaf).ends > cluster.now() + timedelta(days=25)


def _rotated(cluster: FakeCluster) -> bool:
    wants = ROTATE in cluster.api.objects[AUTHORITY]["metadata"].get("annotations", {})
    return not wants and _authority(cluster) is Phase.STABLE


def _rotate(cluster: FakeCluster) -> None:
    cluster.api.edit(AUTHORITY, metadata={"annotations": {ROTATE: "now"}})


def _refuse(cluster: FakeCluster) -> None:
    cluster.bad.add("bindVerb")
    _spec(filters=FILTER, scores=SCORES, binding=ANNOTATION)(cluster)


def _is_rolled_back(cluster: FakeCluster) -> bool:
    _, reason, message = condition(cluster, "Ready")
    return reason == "ConfigurationRejected" and "; rolled back to the last good one" in message


def _mend(cluster: FakeCluster) -> None:
    cluster.bad.clear()
    _spec(filters=[{"name": "g", "expression": "1 < 2"}], scores=SCORES, binding=ANNOTATION)(cluster)


def _late(cluster: FakeCluster) -> None:
    cluster.epoch += timedelta(days=21)
    cluster.api.edit(POLICY, metadata={"annotations": {"look": "again"}})


def _damage(cluster: FakeCluster) -> None:
    api = cluster.api
    api.edit(DEPLOYMENT, spec={"replicas": 5})
    api.edit(BINDING, subjects=[])
    api.delete(("networking.k8s.io", "networkpolicies", NAMESPACE, "kube-scheduler-s"))


def _is_whole(cluster: FakeCluster) -> bool:
    is_bound = bool(cluster.api.objects[BINDING]["subjects"])
    return (
        is_bound
        and any(created_objects(cluster, "networkpolicies"))
        and cluster.api.objects[DEPLOYMENT]["spec"]["replicas"] == 2
    )


def created_objects(cluster: FakeCluster, plural: str = "") -> list[Key]:
    """Objects of a kind that were made for the scheduler."""
    return [
        key
        for key, one in cluster.api.objects.items()
        if SCHEDULER_LABEL in one["metadata"].get("labels", {}) and plural in ("", key[1])
    ]


def _is_gone(cluster: FakeCluster) -> bool:
    return POLICY not in cluster.api.objects and not created_objects(cluster)


STAGES: Mapping[str, Stage] = {
    "the first policy": Stage(_spec(filters=FILTER), _is_ready),
    "a wiring change": Stage(_spec(filters=FILTER, scores=SCORES), _is_ready),
    "damage": Stage(_damage, _is_whole),
    "a certificate's renewal": Stage(_late, _renewed),
    "the authority's rotation": Stage(_rotate, lambda cluster: _rotated(cluster) and _is_ready(cluster)),
    "a configuration that is refused": Stage(_refuse, _is_rolled_back),
    "its repair": Stage(_mend, _is_ready),
    "the last policy's end": Stage(lambda cluster: cluster.api.delete(POLICY), _is_gone),
    "a rotation without any scheduler": Stage(_rotate, _rotated),
}

_TIMES = re.compile(r'"(since|narrower_since|empty_since)":[0-9.]+')


def picture(cluster: FakeCluster) -> dict[str, Object]:
    """All that there is, without what is another each time: times, versions and keys."""
    return {
        " ".join(key): _plain(key, msgspec.json.decode(msgspec.json.encode(one)))
        for key, one in sorted(cluster.api.objects.items())
        if key[1] not in ("events", "csistoragecapacities") and key != PLACED  # pods are woken only where some wait
    }


def _plain(key: Key, obj: Object) -> Object:
    meta = obj["metadata"]
    obj["metadata"] = {name: meta[name] for name in ("labels", "annotations", "finalizers") if meta.get(name)}
    if key[1] == "secrets" and key != AUTHORITY:
        data = msgspec.convert(obj["data"], dict[str, bytes])
        said = {name: parsing.read_certificate(one).name for name, one in data.items() if name.endswith(".crt")}
        obj["data"] = said | ({"ca.crt": data["ca.crt"]} if "ca.crt" in data else {})
    if key[3] == "fairlead-schedulers":
        obj["data"] = [*obj["data"]]
    if "state.json" in obj.get("data", {}):
        obj["data"] = _TIMES.sub(r'"\1":0', obj["data"]["state.json"])
        obj["metadata"]["annotations"] = {}  # a hash with those times
    for one in obj.get("status", {}).get("conditions", ()):
        one.pop("lastTransitionTime", None)
    return obj


def config_of(cluster: FakeCluster) -> str:
    """Configuration that the Deployment is to run."""
    found: str = cluster.api.objects[DEPLOYMENT]["metadata"]["annotations"][HASH]
    return found
