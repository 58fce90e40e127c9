"""Nodes, pods and policies to measure with."""

from collections.abc import Mapping, Sequence
from time import monotonic_ns
from typing import Any, Final

import msgspec

from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, policy_model
from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.filter_result import Filtered
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import PlacedPod, placed_pod
from fairlead.policy.views.pod_view import PodView

SCHEDULER: Final = "fairlead"
MODEL: Final = policy_model({}, {})
NOW: Final = 1_800_000_000_000_000_000
NEVER: Final = 1 << 62

SIMPLE: Final = "node.metadata.labels['zone'] == 'z1'"
"""Two fields are read, one map is looked up, one comparison is made."""
FILTERS: Final = (
    "variables.wants == 'any' || node.metadata.labels[?'gpu'].orValue('') == variables.wants",
    "allocatable['cpu'] >= 2.0 && pod.spec.priority > 1",
    "node.metadata.labels['zone'] != 'z9' && !node.spec.unschedulable",
)
SCORES: Final = ("100.0 * requested['cpu'] / allocatable['cpu']",)


def plain(filters: Sequence[str], scores: Sequence[str] = (), conditions: Sequence[str] = ()) -> dict[str, Any]:
    """A policy of such rules, as YAML gives it."""
    spec = {
        "schedulerName": SCHEDULER,
        "match": {"conditions": _named("condition", conditions)},
        "variables": [{"name": "wants", "expression": "pod.metadata.labels[?'gpu'].orValue('any')"}],
        "filters": _named("filter", filters),
        "scores": _named("score", scores),
    }
    about = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "bench"}}
    return {**about, "spec": spec}


def written(obj: dict[str, Any]) -> SchedulerExtenderPolicy:
    """The policy that it is."""
    return parse_policy(obj, MODEL)


def policy(filters: Sequence[str], scores: Sequence[str] = ()) -> CompiledPolicy:
    """The same, compiled."""
    return compile_policy(written(plain(filters, scores)), CompileOptions())


def policies(filters: Sequence[str], scores: Sequence[str] = ()) -> PolicySet:
    """A set of that one."""
    return policy_set([policy(filters, scores)])


def pod(labels: Mapping[str, str] | None = None) -> PodView:
    """A pod that wants a node with a GPU of kind a."""
    metadata = {"name": "pod", "namespace": "default", "labels": {"app": "web", "gpu": "a", **(labels or {})}}
    return PodView(from_json("Pod", {"metadata": metadata, "spec": {"priority": 5}}))


def node(at: int, pods: Sequence[PlacedPod] = ()) -> NodeView:
    """One of many nodes; three in four have the GPU."""
    labels = {f"example.org/label-{number}": str(number) for number in range(20)}
    labels |= {"gpu": "a" if at % 4 else "b", "zone": f"z{at % 3}"}
    made = from_json("Node", {"metadata": {"name": name(at), "labels": labels}, "spec": {}, "status": {}})
    return NodeView(made, pods=pods, allocatable={"cpu": 8.0}, requested={"cpu": 1.0 * (at % 8)})


def name(at: int) -> str:
    """Name of a node: as long as names in clouds are."""
    return f"ip-10-0-{at // 250}-{at % 250}.eu-central-1.compute.internal"


def names(many: int) -> list[str]:
    """The names of the nodes as a request brings them: strings that nobody has seen before."""
    found: list[str] = msgspec.json.decode(msgspec.json.encode([name(at) for at in range(many)]))
    return found


def nodes(many: int, pods: Sequence[PlacedPod] = ()) -> Nodes:
    """So many nodes, each with these pods."""
    made = Nodes()
    for at in range(many):
        made.put(node(at, pods))
    return made


def placed(at: int) -> PlacedPod:
    """A pod on a node."""
    metadata = {"name": f"placed-{at}", "namespace": "default", "labels": {"app": f"app-{at}"}, "uid": f"uid-{at}"}
    return placed_pod({"metadata": metadata, "spec": {"priority": at}, "status": {"phase": "Running"}})


def evaluator(held: Nodes, filters: Sequence[str], scores: Sequence[str] = ()) -> Evaluator:
    """One policy with such rules, asked about these nodes."""
    return Evaluator(policies(filters, scores), held)


def ask(evaluator: Evaluator, pod: PodView, asked: Sequence[str]) -> Filtered:
    """One call of filter."""
    matched = evaluator.matching(pod, SCHEDULER, NOW, clock=monotonic_ns, deadline_ns=NEVER)
    return evaluator.filter(pod, matched, asked, now=NOW, clock=monotonic_ns, deadline_ns=NEVER)


def rate(evaluator: Evaluator, pod: PodView, asked: Sequence[str]) -> list[float]:
    """One call of prioritize."""
    matched = evaluator.matching(pod, SCHEDULER, NOW, clock=monotonic_ns, deadline_ns=NEVER)
    return evaluator.score(pod, matched, asked, now=NOW, clock=monotonic_ns, deadline_ns=NEVER)


def _named(kind: str, expressions: Sequence[str]) -> list[dict[str, str]]:
    return [{"name": f"{kind}-{at}", "expression": text} for at, text in enumerate(expressions)]
