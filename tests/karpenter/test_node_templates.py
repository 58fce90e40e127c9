"""What Cluster Autoscaler would see: kube-scheduler's own NodeAffinity plugin over the templates of two node groups.

Cluster Autoscaler itself cannot be built here: its module is not on the proxy that programs are built from. It asks the
scheduler's filter plugins about a node that it makes from the template of each group, and the program `node-affinity`
runs the one that reads affinity. What this does not show: its other plugins, expanders and limits of groups.

`make test-karpenter` runs this.
"""

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.parse import parse_policy
from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.published_pods import REQUIRED, as_created
from fairlead.policy.affinity.published_policies import affinity_of_scheduler, publication_of
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.strategies.registry import installed_policy
from testbed import build
from testbed.api import Object
from testbed.versions import program

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "cpu": {"pool": "cpu", "tier": "1", "example.com/tenant": "red"},
    "memory": {"pool": "memory", "tier": "3"},
}
"""Labels in the template of each group."""
_BOTH = ("cpu", "memory")
_POOL = "node.metadata.labels[?'pool'].orValue('') == 'memory'"
_TENANT = "example.com/tenant"


@dataclass(frozen=True, slots=True)
class _Case:
    """A filter and a pod, and the groups that would be thought to help it."""

    expression: str
    helps: Collection[str]
    """Groups, when what the filter implies is published; without, every group that the pod's own terms select."""
    labels: Mapping[str, str] = field(default_factory=dict)
    own: Sequence[Object] = ()
    helped: Collection[str] = _BOTH
    """Groups when nothing is published."""


_CASES = {
    "a label": _Case(_POOL, ["memory"]),
    "a label, and what no label says": _Case(f"{_POOL} && free['cpu'] > 0.5", ["memory"]),
    "nothing that a label says": _Case("free['cpu'] > 0.5", _BOTH),
    "a label, and the names of nodes": _Case(f"{_POOL} && node.metadata.name != 'n1'", ["memory"]),
    "a label that no template has": _Case("node.metadata.labels[?'pool'].orValue('') == 'arm'", []),
    "a label that a daemon writes later": _Case("'nvidia.com/gpu.product' in node.metadata.labels", _BOTH),
    "several values": _Case("node.metadata.labels[?'pool'].orValue('') in ['memory', 'arm']", ["memory"]),
    "the absence of a label": _Case(f"!('{_TENANT}' in node.metadata.labels)", ["memory"]),
    "a number": _Case("int(node.metadata.labels[?'tier'].orValue('0')) > 2", ["memory"]),
    "a label of the pod": _Case(
        f"node.metadata.labels[?'{_TENANT}'].orValue('') == pod.metadata.labels[?'{_TENANT}'].orValue('')",
        ["cpu"],
        labels={_TENANT: "red"},
    ),
    "a label that the pod has not": _Case(
        f"node.metadata.labels[?'{_TENANT}'].orValue('') == pod.metadata.labels[?'{_TENANT}'].orValue('')",
        ["memory"],
    ),
    "terms of its own": _Case(
        _POOL,
        [],
        own=[{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["cpu"]}]}],
        helped=["cpu"],
    ),
    "one of its own terms": _Case(
        _POOL,
        ["memory"],
        own=[
            {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["cpu"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "Gt", "values": ["2"]}]},
        ],
    ),
}


@pytest.fixture(scope="module")
def plugin() -> Path:
    """The program that runs the plugin of the Kubernetes that clusters of tests have."""
    return build.build([program("node-affinity")])["node-affinity"]


@pytest.mark.parametrize("case", _CASES.values(), ids=_CASES)
def test_the_groups_that_would_help(plugin: Path, case: _Case) -> None:
    pod = _pod(case)
    assert _groups(plugin, pod) == {*case.helped}
    assert _groups(plugin, as_created(pod, {}, _published(case.expression))) == {*case.helps}


def _pod(case: _Case) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [*case.own]}}}
    spec = {"schedulerName": "fairlead", "containers": [{"name": "c"}], **({"affinity": affinity} if case.own else {})}
    metadata = {"name": "pod", "namespace": "ml", "labels": {**case.labels}, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": spec}


def _published(expression: str) -> Any:
    policy = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "rule", "uid": "u", "generation": 1},
        "spec": {"publish": "NodeAffinity", "filters": [{"name": "rule", "expression": expression}]},
    }
    compiled = compile_policy(parse_policy(policy, installed_policy()), CompileOptions())
    said = publication_of(compiled, Vocabulary()).policy
    return affinity_of_scheduler("fairlead", [said] if said else [])


def _groups(plugin: Path, pod: Object) -> set[str]:
    """Groups whose template the plugin lets pass."""
    templates = [{"metadata": {"name": name, "labels": {**labels}}} for name, labels in _GROUPS.items()]
    asked = json.dumps({"pod": pod, "nodes": templates})
    reasons = json.loads(subprocess.run([plugin], input=asked, capture_output=True, text=True, check=True).stdout)
    assert reasons.keys() == _GROUPS.keys()
    return {name for name, reason in reasons.items() if not reason}
