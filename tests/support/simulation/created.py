"""Pods that were created with published affinity, and policies that publish."""

from typing import Any, Final

from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, REQUIRED
from policies.good import policy
from support.simulation.snapshot import Object, pod
from support.simulation.workloads import owned

L: Final = "node.metadata.labels"
OF_POOL: Final = {"name": "pool", "expression": f"{L}[?'pool'].orValue('') == 'a'", "reason": "wrong pool"}
OF_ALL: Final = OF_POOL | {"expression": f"{L}[?'pool'].orValue('') in ['a', 'b']"}
OLDER: Final = "0123456789ab"
POOL: Final = {"key": "pool", "operator": "In", "values": ["a"]}


def publishing(name: str = "pool", *filters: Object, publish: str = "NodeAffinity", **spec: Any) -> Object:
    """Return a policy that publishes what its filters imply."""
    return policy(publish=publish, filters=[*(filters or (OF_POOL,))], **spec) | {"metadata": {"name": name}}


def created(name: str, *terms: Object, hash_: str = OLDER, **more: Any) -> Object:
    """Return a pod of a controller with these terms and the annotation of what was published."""
    made = owned(pod(name, **more), "ReplicaSet", "r")
    made["metadata"].setdefault("annotations", {})[PUBLISHED_ANNOTATION] = hash_
    required = {"nodeSelectorTerms": [*terms] or [{"matchExpressions": [POOL]}]}
    made["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: required}}
    return made
