"""Pods by chance that ask for nodes themselves, and publications by chance, which the API server adds to them."""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from fairlead.policy.affinity.published_pods import REQUIRED
from fairlead.policy.affinity.published_policies import AffinityOfScheduler, PublishedPolicy
from support.policy.affinities import pods

A: Final[Any] = {"key": "a", "operator": "In", "values": ["x"]}
B: Final[Any] = {"key": "b", "operator": "Exists"}
N: Final[Any] = {"key": "n", "operator": "Gt", "values": ["3"]}


def term_of(*requirements: Any) -> dict[str, Any]:
    """Return a term with these requirements."""
    return {"matchExpressions": list(requirements)}


def affinity(*policies: Any, version: str = "4f") -> AffinityOfScheduler:
    """Return what policies publish, each given by its terms."""
    listed: list[PublishedPolicy] = [
        {"name": f"p{at}", "uid": "u", "generation": 1, "when": [], "terms": terms} for at, terms in enumerate(policies)
    ]
    return {"schedulerName": "fairlead", "hash": version, "policies": listed}


def pod(*terms: Any, **metadata: Any) -> dict[str, Any]:
    """Return a pod of a controller, with terms of its own if any are given."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    spec: dict[str, Any] = {"schedulerName": "fairlead", "containers": [{"name": "c"}]}
    if terms:
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}
    return {"metadata": {"name": "pod", "namespace": "ml", "ownerReferences": [owner]} | metadata, "spec": spec}


_GUARDS: Final[list[Any]] = [
    {"label": "p", "default": "", "operator": "In", "values": ["", "x"]},
    {"label": "p", "default": "y", "operator": "NotIn", "values": ["x"]},
    {"annotation": "q", "operator": "Exists"},
    {"namespaceLabel": "t", "operator": "DoesNotExist"},
    {"namespace": True, "operator": "In", "values": ["x"]},
    {"resource": "example.com/gpu", "operator": "Exists"},
]
_REQUIREMENTS: Final[list[Any]] = [
    A,
    B,
    N,
    {"key": "n", "operator": "Lt", "values": ["5"]},
    {"key": "a", "operator": "NotIn", "values": ["", "y"]},
    {"key": "b", "operator": "DoesNotExist"},
    {"key": "a", "operator": "In", "annotation": "q", "default": "x"},
    {"key": "b", "operator": "NotIn", "namespaceLabel": "t", "default": "y"},
    {"key": "b", "operator": "In", "namespace": True},
]
_OWN: Final[list[Any]] = [
    {},
    term_of(A),
    term_of(B, N),
    term_of(_REQUIREMENTS[4], _REQUIREMENTS[5]),
    {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n3"]}]},
]


def some_publication(random: Random, version: str = "4f") -> AffinityOfScheduler:
    """Return what one to four policies publish."""
    policies = []
    for _ in range(random.randrange(1, 5)):
        terms = []
        for _ in range(random.randrange(1, 4)):
            when = {"when": random.sample(_GUARDS, random.randrange(3))}
            terms.append(when | term_of(*random.sample(_REQUIREMENTS, random.randrange(1, 4))))
        policies.append(terms)
    return affinity(*policies, version=version)


def some_pod(random: Random) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return a pod with up to five terms of its own, and the labels of its namespace."""
    _, manifest, labels = random.choice(pods())
    given = pod(*random.sample(_OWN, random.randrange(len(_OWN) + 1)))
    given["metadata"] |= manifest["metadata"]
    given["spec"]["containers"] = manifest["spec"]["containers"]
    return given, labels
