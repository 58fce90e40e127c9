"""The API server adds to pods just what the commands say: pods by chance, publications by chance."""

import itertools
import os
from collections.abc import Iterator, Mapping
from functools import partial
from random import Random
from typing import Any, Final

import pytest

from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, as_created
from fairlead.policy.affinity.published_policies import AffinityOfScheduler
from support.chart.published_affinity import affinity_added, affinity_of
from support.policy.created_pods import A, affinity, some_pod, some_publication, term_of
from testbed.api import Api, Object, wait_for
from testbed.fixtures import Cluster, Kubectl

pytestmark = pytest.mark.since("1.36")
_PODS: Final = int(os.environ.get("FAIRLEAD_CREATED_PODS", "100"))
"""Number of pods, each of which is created twice; a hundred cost two seconds."""
_OF_ONE: Final = 20
"""Pods for each publication."""
_NAMESPACES: Final[Mapping[str, Mapping[str, str]]] = {"x": {"t": "x"}, "other": {}, "third": {"t": ""}}
_PROBE: Final = "probe"


@pytest.fixture
def api(control_plane: Cluster, namespace: str, kubectl: Kubectl) -> Iterator[Api]:
    """An API server that adds what is published, with namespaces for pods."""
    made = control_plane.api
    for name, labels in _NAMESPACES.items():
        made.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels)}})
    for name in _NAMESPACES:
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_for("the namespace's account", partial(made.exists, account))
    with affinity_added(control_plane, kubectl, namespace):
        yield made
    for name in _NAMESPACES:
        made.delete(f"/api/v1/namespaces/{name}")


def publish(api: Api, published: AffinityOfScheduler) -> None:
    """Write what is published, and wait until pods get it; those of a scheduler that was written later tell."""
    for scheduler, spec in ((published["schedulerName"], published), (_PROBE, affinity([term_of(A)]))):
        written: Any = {**spec, "schedulerName": scheduler, "hash": published["hash"]}
        obj = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "PublishedAffinity", "metadata": {"name": scheduler}}
        api.apply(f"{PUBLISHED_AFFINITIES.path}/{scheduler}", obj | {"spec": written})
    probe = {
        "metadata": {"name": "probe", "namespace": "other"},
        "spec": {"schedulerName": _PROBE, "containers": [{"name": "c"}]},
    }

    def is_read() -> bool:
        return annotations(created(api, probe)).get(PUBLISHED_ANNOTATION) == published["hash"]

    wait_for("the publication to be read", is_read)


def created(api: Api, pod: Mapping[str, Any]) -> Object:
    """Return a pod as the API server would create it."""
    metadata, spec = pod["metadata"], pod["spec"]
    kept = {key: metadata[key] for key in ("name", "labels", "annotations", "ownerReferences") if key in metadata}
    containers = [{"image": "a", **one} for one in spec["containers"]]
    asked = {key: spec[key] for key in ("schedulerName", "affinity") if key in spec}
    asked |= {"containers": containers, "automountServiceAccountToken": False}
    return api.create(f"/api/v1/namespaces/{metadata['namespace']}/pods?dryRun=All", {"metadata": kept, "spec": asked})


def annotations(pod: Mapping[str, Any]) -> Mapping[str, str]:
    return pod["metadata"].get("annotations") or {}


def test_a_pod_gets_what_the_commands_say_and_a_second_time_nothing_more(api: Api) -> None:
    random, numbers, given = Random("real"), itertools.count(), 0  # noqa: S311
    for number in range(_PODS // _OF_ONE):
        published = some_publication(random, f"{number:012x}")
        publish(api, published)
        for _ in range(_OF_ONE):
            pod, _ = some_pod(random)
            pod["metadata"] |= {"name": f"pod-{next(numbers)}", "namespace": random.choice([*_NAMESPACES])}
            wanted = as_created(pod, _NAMESPACES[pod["metadata"]["namespace"]], published)
            found = created(api, pod)
            assert affinity_of(found) == affinity_of(wanted), (pod, published)
            assert annotations(found) == annotations(wanted), (pod, published)
            again = created(api, found)
            assert affinity_of(again) == affinity_of(found), (pod, published)
            assert annotations(again) == annotations(found), (pod, published)
            given += PUBLISHED_ANNOTATION in annotations(found)
    assert given > _PODS // 4
