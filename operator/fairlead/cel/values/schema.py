"""Schema of the rule language: the fields of every message, with their types.

`kubernetes.json` is generated from the models of the `kubernetes` client
(`scripts/generate/language_types.py`). A type is `string`, `bool`, `int`, `double`, `timestamp`, `dyn` (a number or a
text), `list<T>`, `map<T>` (its keys are strings), or the name of a message.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

PACKAGE: Final = "kubernetes"
POD: Final = "Pod"
NODE: Final = "Node"
NAMESPACE: Final = "Namespace"
PLACED_POD: Final = "PlacedPod"  # an entry of `pods`, and `victim`

Fields = Mapping[str, str]

# The fields of placed pods that a mirror of 100,000 pods can afford to store.
_PLACED: Final[Mapping[str, Fields]] = {
    "PlacedPod": {"metadata": "PlacedPodMeta", "spec": "PlacedPodSpec", "status": "PlacedPodStatus"},
    "PlacedPodMeta": {
        "annotations": "map<string>",
        "creationTimestamp": "timestamp",
        "deletionTimestamp": "timestamp",
        "labels": "map<string>",
        "name": "string",
        "namespace": "string",
        "ownerReferences": "list<OwnerReference>",
        "uid": "string",
    },
    "PlacedPodSpec": {
        "containers": "list<PlacedContainer>",
        "initContainers": "list<PlacedContainer>",
        "nodeName": "string",
        "priority": "int",
        "schedulingGroup": "PodSchedulingGroup",
    },
    "PlacedContainer": {
        "image": "string",
        "name": "string",
        "ports": "list<ContainerPort>",
        "resources": "ResourceRequirements",
    },
    "PlacedPodStatus": {"conditions": "list<PodCondition>", "phase": "string"},
}


@cache
def messages() -> Mapping[str, Fields]:
    """Return all messages by name."""
    generated: dict[str, Fields] = json.loads(resources.files(__package__).joinpath("kubernetes.json").read_text())
    return {**generated, **_PLACED}


def element(type_: str) -> str | None:
    """Return the type of the elements of a list or the values of a map; None for other types."""
    head, _, rest = type_.partition("<")
    return rest[:-1] if head in ("list", "map") and rest else None
