"""Pods that are opted in get published affinity, in whichever order the API server calls admission policies."""

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

import pytest

from fairlead.control.publication.affinity_publisher import ADDED_BY
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.policy.affinity.published_pods import as_created
from support.chart.published_affinity import affinity_added, affinity_of, publish
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, Kubectl

pytestmark = pytest.mark.since("1.36")
REBUILDS: Final = int(os.environ.get("FAIRLEAD_REBUILDS", "1"))
"""How often the API server puts its admission policies into another order; one costs a second."""
TEAM = {
    "name": "team",
    "expression": "node.metadata.labels[?'team'].orValue('') == pod.metadata.labels[?'team'].orValue('')",
}
_OPTED_IN: Final = "opted-in"
_OPT_IN: Final = (
    'optIn=[{"schedulerName":"gpu","namespaceSelector":{"matchLabels":{"opts":"in"}}},'
    '{"schedulerName":"gpu","objectSelector":{"matchLabels":{"opts":"in"}}}]'
)
_TRACE: Final = "calls"
_POLICIES, _BINDINGS = (one.path for one in ADDED_BY)
_OWN: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in ("x", "y")
            ]
        }
    }
}


def _owner(kind: str) -> Object:
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "a", "uid": "u", "controller": True}]}


_PODS: Final[Mapping[str, tuple[str, Object, Object]]] = {
    "of the namespace": (_OPTED_IN, {}, {}),
    "of the namespace, with terms of its own": (_OPTED_IN, _owner("ReplicaSet"), {"affinity": _OWN}),
    "of both entries": (_OPTED_IN, {"labels": {"opts": "in"}} | _owner("ReplicaSet"), {}),
    "by its label": ("default", {"labels": {"opts": "in"}}, {}),
    "that names the scheduler": (_OPTED_IN, {}, {"schedulerName": "gpu"}),
    "that names the scheduler elsewhere": ("default", {}, {"schedulerName": "gpu"}),
    "that is not opted in": ("default", {}, {}),
    "of a DaemonSet": (_OPTED_IN, _owner("DaemonSet"), {}),
    "of another scheduler": (_OPTED_IN, {}, {"schedulerName": "other"}),
}
"""Namespace, metadata and spec of pods."""


@pytest.fixture
def opting_in(control_plane: Cluster, namespace: str, kubectl: Kubectl) -> Iterator[list[Object]]:
    """What the chart makes of publishedAffinity and optIn, and a namespace that it selects; yields the objects."""
    api, path = control_plane.api, f"/api/v1/namespaces/{_OPTED_IN}"
    api.create("/api/v1/namespaces", {"metadata": {"name": _OPTED_IN, "labels": {"opts": "in"}}})
    wait_for("the namespace's account", lambda: api.exists(f"{path}/serviceaccounts/default"))
    try:
        with affinity_added(control_plane, kubectl, namespace, _OPT_IN) as made:
            yield made
    finally:
        api.delete(path)


def _traced(policy: Object, number: int) -> Object:
    """Return an admission policy that also writes its name and a number on each pod that it changes."""
    name = policy["metadata"]["name"].split(".", 2)[2]
    traced = f"object.metadata.annotations['{_TRACE}'] + '{name}#{number} '"
    patch = f"[JSONPatch{{op: 'add', path: '/metadata/annotations/{_TRACE}', value: {traced}}}]"
    mutations = [*policy["spec"]["mutations"], {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
    return {**policy, "spec": {**policy["spec"], "mutations": mutations}}


def _groups(objects: list[Object], kind: str) -> list[list[Object]]:
    """Return the objects of a kind: those of optIn, the one of all schedulers, and those of published opt-in."""
    found = {one["metadata"]["name"].split(".", 2)[2]: one for one in objects if one["kind"] == kind}
    starts = ("opt-in.", "published-affinity", "published-affinity.opt-in")
    return [
        [one for name, one in found.items() if (name == start if at == 1 else name.startswith(start))]
        for at, start in enumerate(starts)
    ]


def test_pods_that_are_opted_in_get_it_whichever_admission_policy_is_called_first(
    control_plane: Cluster, opting_in: list[Object]
) -> None:
    """The API server calls admission policies in an order that depends on which came first, and on chance."""
    api = control_plane.api
    uid = {"uid": "00000000-0000-0000-0000-000000000000", "generation": 1}
    filters = [{"name": "either", "expression": "node.metadata.labels[?'pool'].orValue('') in ['a', 'b']"}, TEAM]
    spec = {"schedulerName": "gpu", "publish": "NodeAffinity", "filters": filters}
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    publish(api, {**kind, "metadata": {"name": "p", **uid}, "spec": spec})
    published = api.get(f"{PUBLISHED_AFFINITIES.path}/gpu")["spec"]
    of_opt_in, *others = _groups(opting_in, "MutatingAdmissionPolicy")
    policies = [*itertools.chain(*others), *of_opt_in]  # once the last was read, all were
    bindings = _groups(opting_in, "MutatingAdmissionPolicyBinding")
    seen = Counter[str]()

    def created(case: str) -> Object:
        namespace, metadata, more = _PODS[case]
        annotated = {"name": "some", "annotations": {_TRACE: ""}, **metadata}
        pod = {"metadata": annotated, "spec": {"containers": [{"name": "a", "image": "a"}], **more}}
        return api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)

    def calls(number: int) -> str | None:
        trace = str(created("of the namespace")["metadata"]["annotations"][_TRACE])
        return trace if f"opt-in.gpu#{number} " in trace else None

    def rebuild(number: int, order: Iterable[list[Object]]) -> None:
        """Have the API server read the policies again, of which the bindings came in this order."""
        for one in itertools.chain(*bindings):
            api.delete(f"{_BINDINGS}/{one['metadata']['name']}")
        for one in itertools.chain(*order):
            api.create(_BINDINGS, one)
        for one in policies:
            api.apply(f"{_POLICIES}/{one['metadata']['name']}", _traced(one, number))
        trace = wait_for("the policies to be read", partial(calls, number))
        seen[trace.replace(f"#{number} ", " ")] += 1

    def check(case: str) -> None:
        namespace, _, more = _PODS[case]
        pod = created(case)
        is_opted_in = case.startswith("of the namespace") or case in ("of both entries", "by its label")
        wanted = "gpu" if is_opted_in else more.get("schedulerName", "default-scheduler")
        trace = pod["metadata"]["annotations"][_TRACE]
        assert pod["spec"]["schedulerName"] == wanted, f"{case}, changed by: {trace}"
        plain = {**pod, "spec": {**pod["spec"], "affinity": more.get("affinity", {})}}
        plain["metadata"] = {**pod["metadata"], "annotations": {_TRACE: trace}}
        labels = {"opts": "in"} if namespace == _OPTED_IN else {}
        expected = as_created(plain, labels, published)
        assert affinity_of(pod) == affinity_of(expected), f"{case}, changed by: {trace}"
        assert pod["metadata"]["annotations"] == expected["metadata"]["annotations"], f"{case}, changed by: {trace}"

    orders = itertools.cycle(itertools.permutations(bindings))
    for number in range(REBUILDS):
        rebuild(number, next(orders))
        for case in _PODS:
            check(case)
    of_opt_in, _, published_opt_in = bindings
    rebuild(REBUILDS, [of_opt_in, published_opt_in])  # as where the one of all schedulers is called first, in vain
    for case in ("of the namespace", "of both entries", "by its label"):
        check(case)
    for trace, count in seen.items():
        print(f"{count} times: {trace}")  # pytest -rP shows it
