"""What the bodies of the scheduler's requests look like, as far as anybody relies on it."""

import json
from collections.abc import Mapping
from types import NoneType

from testbed.api import Object

_NAMES: Mapping[str, type] = {"Pod": dict, "Nodes": NoneType, "NodeNames": list}
_NODES: Mapping[str, type] = {"Pod": dict, "Nodes": dict, "NodeNames": NoneType}

KEYS: Mapping[str, Mapping[str, type]] = {
    "filter-names": _NAMES,
    "filter-nodes": _NODES,
    "filter-nominated-names": _NAMES,
    "filter-nominated-nodes": _NODES,
    "prioritize-names": _NAMES,
    "prioritize-nodes": _NODES,
    "preempt-names": {"Pod": dict, "NodeNameToVictims": NoneType, "NodeNameToMetaVictims": dict},
    "preempt-nodes": {"Pod": dict, "NodeNameToVictims": dict, "NodeNameToMetaVictims": NoneType},
    "bind": {"PodName": str, "PodNamespace": str, "PodUID": str, "Node": str},
}
"""The keys of each body in their order, and what is in them. A key that holds nothing is there, and null."""


_WITH_MANAGED_FIELDS = ("1.33.", "1.34.", "1.35.")
"""The scheduler drops them from its pods, but the client library of these minors takes that wish away again
(client-go v0.35.4, informers/factory.go: `InformerFor` sets its own transform, which is none). Nodes have them."""


def check(version: str, sample: str, body: bytes) -> None:
    """Assert that a body is what the contract says of it."""
    request = json.loads(body)
    assert [(key, type(value)) for key, value in request.items()] == [*KEYS[sample].items()]
    # what Go writes: no space between tokens, and <, > and & as escapes, so that a copied part needs no second look
    assert json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode() == _unescaped(body)
    if "Pod" in request:
        _check_pod(version, request["Pod"], is_nominated="nominated" in sample)
    if request.get("Nodes"):
        _check_nodes(request["Nodes"])
    if "nominated" in sample:
        names = request["NodeNames"] or [node["metadata"]["name"] for node in request["Nodes"]["items"]]
        assert names == [request["Pod"]["status"]["nominatedNodeName"]]
    for victims in (request.get("NodeNameToMetaVictims") or {}).values():
        assert [*victims] == ["Pods", "NumPDBViolations"]
        assert all([*pod] == ["UID"] for pod in victims["Pods"])
    for victims in (request.get("NodeNameToVictims") or {}).values():
        assert [*victims] == ["Pods", "NumPDBViolations"]
        assert all({*pod} == {"metadata", "spec", "status"} for pod in victims["Pods"])


def _check_pod(version: str, pod: Object, *, is_nominated: bool) -> None:
    assert {*pod} == {"metadata", "spec", "status"}, "neither kind nor apiVersion"
    assert ("managedFields" in pod["metadata"]) == version.startswith(_WITH_MANAGED_FIELDS)
    assert "nodeName" not in pod["spec"]
    assert ("nominatedNodeName" in pod["status"]) == is_nominated


def _check_nodes(nodes: Object) -> None:
    assert {*nodes} == {"metadata", "items"}, "neither kind nor apiVersion"
    assert nodes["metadata"] == {}
    for node in nodes["items"]:
        assert {*node} == {"metadata", "spec", "status"}, "neither kind nor apiVersion"
        assert "managedFields" in node["metadata"]


def _unescaped(body: bytes) -> bytes:
    return body.replace(rb"\u003c", b"<").replace(rb"\u003e", b">").replace(rb"\u0026", b"&")
