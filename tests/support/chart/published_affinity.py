"""Admission policies of published affinity in a cluster without an operator, and objects as a leader writes them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairlead.api.parse import parse_policy
from fairlead.control.decide.desired_affinity import desired_affinities
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.render.templates import written
from fairlead.replica_state import PolicyState, ReplicaState
from fairlead.strategies.registry import installed_policy
from fairlead.webhook.publication.publications import Publications
from support.chart.chart import template
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster, Kubectl

_ON = 'publishedAffinity={"enabled":true}'


@contextmanager
def affinity_added(cluster: Cluster, kubectl: Kubectl, namespace: str, *values: str) -> Iterator[list[Object]]:
    """Add to pods what is published, as the chart of an operator in this namespace does; yield its objects."""
    made = [one for one in template(_ON, *values, namespace=namespace) if _is_of_it(one)]
    text = written(made)
    kubectl("apply", "--server-side", "-f", "-", stdin=text)
    wait_for("the kind", lambda: cluster.api.exists(PUBLISHED_AFFINITIES.path))
    yield made
    kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)
    wait_for("the kind to go", lambda: not cluster.api.exists(PUBLISHED_AFFINITIES.path))


def publish(api: Api, policy: Object) -> str:
    """Write what a policy alone publishes, as the leader does; return its hash."""
    state = state_of(policy)
    replica = ReplicaState(policies={policy["metadata"]["name"]: state})
    (obj,) = desired_affinities([policy], {"replica": replica}, {}, "none").values()
    api.apply(PUBLISHED_AFFINITIES.named("", obj["metadata"]["name"]).path, dict(obj))
    return str(obj["spec"]["hash"])


def compiled(policy: Object) -> CompiledPolicy:
    """Return a policy as a replica has it."""
    return compile_policy(parse_policy(policy, installed_policy()), CompileOptions())


def state_of(policy: Object) -> PolicyState:
    """Return what a replica that serves a policy would report of it."""
    made, metadata = Publications(), policy["metadata"]
    asyncio.run(made.follow([compiled(policy)]))
    state = PolicyState(uid=metadata["uid"], generation="", serving=str(metadata["generation"]), reason="Compiled")
    return made.report(ReplicaState(policies={"p": state})).policies["p"]


def affinity_of(pod: Object) -> Any:
    """Return the node affinity that a pod requires."""
    return pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")


def _is_of_it(obj: Object) -> bool:
    metadata = obj["metadata"]
    is_hook = "helm.sh/hook" in metadata.get("annotations", {})
    return not is_hook and (obj["kind"].startswith("Mutating") or "published" in metadata["name"])
