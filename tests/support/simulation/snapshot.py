"""A snapshot in few words, and what policies make of a pod in it."""

import json
from collections.abc import Iterable
from typing import Any, Final

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.simulation.results import PodResult
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Snapshot
from support.policy import NOW

Object = dict[str, Any]
ROOM: Final = {"cpu": "8", "memory": "32Gi", "pods": "110"}


def node(
    name: str = "n1", *, labels: dict[str, str] | None = None, room: dict[str, str] | None = None, **spec: Any
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"u-{name}", "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": ROOM | (room or {})},
    }


def pod(
    name: str = "p",
    *,
    on: str = "",
    namespace: str = "ml",
    labels: dict[str, str] | None = None,
    asks: dict[str, str] | None = None,
    ports: Iterable[Object] = (),
    status: Object | None = None,
    **spec: Any,
) -> Object:
    container = {"name": "main", "resources": {"requests": asks or {}}, "ports": [*ports]}
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}", "labels": labels or {}}
    where = {"nodeName": on} if on else {}
    whole = {"schedulerName": "fairlead", "containers": [container], **where, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole, "status": status or {}}


def namespace(name: str = "ml", **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def listed(*objects: Object) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": [*objects]}


def written(obj: Object) -> bytes:
    return json.dumps(obj).encode()


def snapshot(*objects: Object) -> Snapshot:
    found = Snapshot()
    for one in objects:
        found.put(one, "a.json")
    return found


def simulation(*objects: Object, policies: Iterable[CompiledPolicy] = (), now: int = NOW) -> Simulation:
    return Simulation(policy_set(policies), snapshot(*objects), now)


def judged(asked: Object, *objects: Object, policies: Iterable[CompiledPolicy] = ()) -> PodResult:
    return simulation(*objects, policies=policies).judge(written(asked))


def unfit(asked: Object, *objects: Object) -> dict[str, list[str]]:
    """Return why nodes do not fit a pod, without those that do."""
    return {one.name: [str(why) for why in one.unfit] for one in judged(asked, *objects).nodes if not one.fits}
