"""Objects of the API, and what they become as policies, pods and nodes."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from fairlead import strategies
from fairlead.api.parse import parse_policy
from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import PlacedPod, placed_pod
from fairlead.policy.views.pod_usage import NO_USAGE
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.registry import policy_with

SECOND: Final = 1_000_000_000
NOW: Final = 1_800_000_000 * SECOND
INSTALLED: Final = {one.name: one for one in strategies.installed()}
MODEL: Final = policy_with(INSTALLED.values())

Words = Mapping[str, "str | Mapping[str, Any]"]
"""Rules by their names: an expression, or the whole rule without the name."""


def obj(name: str = "p", *, generation: int = 1, uid: str = "", **spec: Any) -> dict[str, Any]:
    """Return a policy as the API returns it; lists of rules may be maps from names to expressions."""
    written = {field: _listed(field, value) for field, value in spec.items()}
    if isinstance(match := written.get("match"), dict) and "conditions" in match:
        written["match"] = match | {"conditions": _listed("conditions", match["conditions"])}
    if "protect" in written:
        written["preemption"] = {"protect": written.pop("protect")}
    if "annotations" in written:
        written["binding"] = {"annotations": written.pop("annotations")}
    metadata = {"name": name, "uid": uid or f"u-{name}", "generation": generation}
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    return kind | {"metadata": metadata, "spec": written}


def _listed(field: str, value: Any) -> Any:
    if field not in ("filters", "scores", "variables", "conditions", "protect", "annotations", "data"):
        return value
    if not isinstance(value, Mapping):
        return value
    key = "key" if field == "annotations" else "name"
    return [{key: name} | ({"expression": one} if isinstance(one, str) else one) for name, one in value.items()]


def policy(name: str = "p", *, rules: CompileOptions | None = None, **spec: Any) -> CompiledPolicy:
    return compile_policy(parse_policy(obj(name, **spec), MODEL), rules or CompileOptions(INSTALLED))


def faults(rules: CompileOptions | None = None, **spec: Any) -> dict[str, str]:
    """Return the faults of a policy, by field."""
    try:
        policy(rules=rules, **spec)
    except PolicyError as error:
        return {str(fault).partition(": ")[0]: str(fault).partition(": ")[2] for fault in error.faults}
    return {}


def pod(
    name: str = "x",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = "ml",
    of_namespace: Mapping[str, Any] | None = None,
    request: Mapping[str, float] | None = None,
    **spec: Any,
) -> PodView:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"u-{name}"}
    metadata |= {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
    holder = None if of_namespace is None else ns(namespace, of_namespace)
    return PodView(from_json("Pod", {"metadata": metadata, "spec": spec}), holder, request or {})


def ns(name: str = "ml", labels: Mapping[str, Any] | None = None) -> Any:
    return from_json("Namespace", {"metadata": {"name": name, "labels": dict(labels or {})}})


def node(
    name: str = "n",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conditions: Mapping[str, tuple[str, str]] | None = None,
    pods: Sequence[PlacedPod] = (),
    cpu: float = 8.0,
    used: float = 0.0,
    created: str = "2026-01-01T00:00:00Z",
    uid: str = "",
    **spec: Any,
) -> NodeView:
    """Return a node; conditions are given as status and transition time, by type."""
    listed = [{"type": kind, "status": one, "lastTransitionTime": at} for kind, (one, at) in (conditions or {}).items()]
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": created} | ({"uid": uid} if uid else {})
    if labels is not None:
        metadata["labels"] = dict(labels)
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    whole = {"metadata": metadata, "spec": spec} | ({"status": {"conditions": listed}} if listed else {})
    return NodeView(from_json("Node", whole), pods=pods, allocatable={"cpu": cpu}, requested={"cpu": used})


def placed(
    name: str = "q",
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "ml",
    phase: str = "Running",
    **spec: Any,
) -> PlacedPod:
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}", "labels": dict(labels or {})}
    return placed_pod({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def on_node(name: str, at: int) -> Any:
    """Return what a node keeps of a pod that was placed at a time and requests a core."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp_to_string(at)}
    whole = {"metadata": {"name": name, "uid": name}, "spec": {}, "status": {"conditions": [condition]}}
    return SimpleNamespace(pod=placed_pod(whole), request=SimpleNamespace(amounts={"cpu": 1.0}, usage=NO_USAGE))
