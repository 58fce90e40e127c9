"""Published affinity, installed as the chart does it: what is published, what adds it to pods, and new pods."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from bench.cluster import MODEL
from fairlead.api.parse import parse_policy
from fairlead.control.publication.affinity_publisher import ADDED_BY
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.published_policies import affinities
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from testbed import build
from testbed.api import Api, Object, wait_for
from testbed.versions import program

CHART: Final = Path(__file__).parents[1] / "charts" / "fairlead"
_PATHS: Final = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "MutatingAdmissionPolicy": ADDED_BY[0].path,
    "MutatingAdmissionPolicyBinding": ADDED_BY[1].path,
}
_VARIABLES: Final = [{"name": f"VARIABLE_{number}", "value": f"value-{number}"} for number in range(20)]


def install(api: Api, namespace: str) -> None:
    """Add to pods what is published, as the chart of an operator in this namespace does."""
    command = [build.build([program("helm")])["helm"], "template", "fairlead", CHART, f"--namespace={namespace}"]
    command += ['--set-json=publishedAffinity={"enabled":true}']
    made = subprocess.run([str(one) for one in command], check=True, stdout=subprocess.PIPE).stdout
    for one in yaml.safe_load_all(made):
        if one is not None and one["kind"] in _PATHS and "published" in (name := one["metadata"]["name"]):
            api.apply(f"{_PATHS[one['kind']]}/{name}", one)
    wait_for("the kind", lambda: api.exists(PUBLISHED_AFFINITIES.path))


def policy(name: str, scheduler: str, label: str, value: str, **spec: Any) -> Object:
    """Return a policy whose filter says which value a label of the node has to have."""
    rule = {"name": "pool", "expression": f"node.metadata.labels[?'{label}'].orValue('') == '{value}'"}
    about = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": name}}
    return {**about, "spec": {"schedulerName": scheduler, "publish": "NodeAffinity", "filters": [rule], **spec}}


def publish(api: Api, scheduler: str, policies: Sequence[Object]) -> str:
    """Write what these policies publish, as the leader does, and return its hash."""
    compiled = [compile_policy(parse_policy(one, MODEL), CompileOptions()) for one in policies]
    spec = affinities(compiled, Vocabulary())[scheduler]
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PublishedAffinity", "metadata": {"name": scheduler}}
    api.apply(PUBLISHED_AFFINITIES.named("", scheduler).path, {**kind, "spec": json.loads(json.dumps(spec))})
    return spec["hash"]


def unpublish(api: Api, scheduler: str) -> None:
    """Delete what is published for a scheduler."""
    api.delete(PUBLISHED_AFFINITIES.named("", scheduler).path)


def pod(scheduler: str) -> Object:
    """Return a pod of the size that pods have."""
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    container = {"name": "main", "image": "main", "env": _VARIABLES, "resources": resources}
    spec = {"schedulerName": scheduler, "automountServiceAccountToken": False, "containers": [container]}
    return {"metadata": {"name": "new", "labels": {"app": "web"}}, "spec": spec}


def values_of(created: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that a created pod requires of labels of its node."""
    affinity = created["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": ()})
    for term in required["nodeSelectorTerms"]:
        for requirement in term["matchExpressions"]:
            yield from requirement["values"]
