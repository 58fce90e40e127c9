"""Templates of kwok nodes, and nodes made from them: pure, and the same for the same seed."""

import copy
import ipaddress
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.api import Object
from testbed.kwok import LABEL
from testbed.versions import KWOK

_ADDRESSES = ipaddress.IPv4Address("10.192.0.1")  # the first; beside what pods and Services have theirs from
_PODS = "110"
_IDS = uuid.UUID("6f2b8a5e-9d0f-4a57-8c3c-0f5a1c1d7e42")


@dataclass(frozen=True, slots=True)
class Alternative:
    """A part of a Node that some nodes have."""

    node: Object
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Pool:
    """A kind of nodes: what all of them have, and the choices that are made for each."""

    name: str
    node: Object
    vary: Sequence[Sequence[Alternative]] = ()
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Template:
    """Template that nodes are made from."""

    pools: Sequence[Pool]
    name: str = field(default="kwok")


def equal(
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: int = 110,
    name: str = "kwok",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    extended: Mapping[str, str] | None = None,
) -> Template:
    """Nodes that differ in nothing but their names: all that they have is to be had."""
    capacity = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extended or {})}
    spec = {"taints": [dict(taint) for taint in taints]} if taints else {}
    return Template(
        [Pool("equal", {"metadata": {"labels": dict(labels or {})}, "spec": spec, "status": {"capacity": capacity}})],
        name,
    )


def make(count: int, template: Template, *, seed: int = 0) -> list[Object]:
    """The first nodes of the endless row that a template and a seed stand for."""
    return [_make_one(index, template, seed) for index in range(count)]


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Object:
    """Lay one part of an object over another: maps are merged, everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        there = merged.get(key)
        merged[key] = merge(there, value) if isinstance(there, Mapping) and isinstance(value, Mapping) else value
    return merged


def _make_one(index: int, template: Template, seed: int) -> Object:
    randomly = random.Random(f"{seed}/{index}")  # noqa: S311  of its own, so that no node depends on how many there are
    pool = randomly.choices(template.pools, [pool.weight for pool in template.pools])[0]
    node = pool.node
    for alternatives in pool.vary:
        drawn = randomly.choices(alternatives, [alternative.weight for alternative in alternatives])[0]
        node = merge(node, drawn.node)
    return _complete(copy.deepcopy(node), f"{template.name}-{index:05d}", str(_ADDRESSES + index))


def _complete(node: Object, name: str, address: str) -> Object:
    status = node.get("status", {})
    capacity = {"pods": _PODS} | status.get("capacity", {})
    ids = {kind: str(uuid.uuid5(_IDS, f"{name}/{kind}")) for kind in ("machineID", "systemUUID", "bootID")}
    versions = {
        "kubeletVersion": f"kwok-v{KWOK}",
        "kubeProxyVersion": f"kwok-v{KWOK}",
        "containerRuntimeVersion": f"kwok://{KWOK}",
        "kernelVersion": "",
        "osImage": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
    own = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL[0]: LABEL[1]}},
        "status": {
            "capacity": capacity,
            "allocatable": capacity | status.get("allocatable", {}),
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "nodeInfo": ids | versions | status.get("nodeInfo", {}),
        },
    }
    return merge(merge({"metadata": {"labels": {"kubernetes.io/hostname": name}}}, node), own)
