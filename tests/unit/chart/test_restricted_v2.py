"""Pods of the chart and of schedulers are such that OpenShift's restricted-v2 admits them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from support.chart.chart import CASES
from support.chart.chart import GOLDEN as OF_CHART
from support.chart.restricted_v2 import pods, violations
from support.render.schedulers import GOLDEN as OF_SCHEDULERS
from support.render.schedulers import SCENES

_IDS = [f"securityContext.{name}: the cluster assigns it" for name in ("runAsUser", "runAsGroup", "fsGroup")]
_ON_REQUEST = {"everything": {"Deployment/placing": ["hostNetwork: is not allowed"]}}
"""What a case asks for, although it is refused: nothing else may be."""


@pytest.mark.parametrize("case", CASES)
def test_every_pod_of_the_chart_is_admitted(case: str) -> None:
    found = pods([*yaml.safe_load_all((OF_CHART / f"{case}.yaml").read_text())])
    assert f"Deployment/{'placing' if case == 'everything' else 'fairlead'}" in found
    refused = {name: said for name, spec in found.items() if (said := violations(spec))}
    assert refused == _ON_REQUEST.get(case, {})


@pytest.mark.parametrize("scene", SCENES)
def test_every_scheduler_is_admitted_where_the_cluster_assigns_ids_and_else_lacks_nothing_but_that(scene: str) -> None:
    found = pods([*yaml.safe_load_all((OF_SCHEDULERS / f"{scene}.yaml").read_text())])
    assert len(found) == (scene != "config-only")
    for spec in found.values():
        assert violations(spec) == ([] if scene == "assigned-user-ids" else _IDS)


def test_the_pod_that_a_scheduler_is_rolled_back_to_names_no_user_either() -> None:
    objects = [*yaml.safe_load_all((OF_SCHEDULERS / "assigned-user-ids.yaml").read_text())]
    (kept,) = [yaml.safe_load(one["data"]["pod.yaml"]) for one in objects if one["kind"] == "ConfigMap"]
    assert violations(kept["spec"]) == []


def _container(spec: dict[str, Any]) -> dict[str, Any]:
    context: dict[str, Any] = spec["containers"][0]["securityContext"]
    return context


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a user": (lambda spec: spec["securityContext"].update(runAsUser=65532), "securityContext.runAsUser: the c"),
    "a group": (lambda spec: spec["securityContext"].update(runAsGroup=0), "securityContext.runAsGroup: the cluster"),
    "a group of files": (lambda spec: spec["securityContext"].update(fsGroup=1), "securityContext.fsGroup: the cl"),
    "more groups": (
        lambda spec: spec["securityContext"].update(supplementalGroups=[1]),
        "securityContext.supplementalGroups: the cluster assigns it",
    ),
    "a label": (
        lambda spec: spec["securityContext"].update(seLinuxOptions={"level": "s0"}),
        "securityContext.seLinuxOptions: the cluster assigns it",
    ),
    "a sysctl": (lambda spec: spec["securityContext"].update(sysctls=[{}]), "securityContext.sysctls: are not allowed"),
    "a user of a container": (
        lambda spec: _container(spec).update(runAsUser=1),
        "containers[fairlead].securityContext.runAsUser: the cluster assigns it",
    ),
    "a label of a container": (
        lambda spec: _container(spec).update(seLinuxOptions={}),
        "containers[fairlead].securityContext.seLinuxOptions: the cluster assigns it",
    ),
    "a folder of the node": (
        lambda spec: spec["volumes"].append({"name": "x", "hostPath": {"path": "/"}}),
        "volumes[x]: hostPath is not allowed",
    ),
    "a volume of old": (lambda spec: spec["volumes"].append({"name": "x", "nfs": {}}), "volumes[x]: nfs is not allow"),
    "capabilities that stay": (
        lambda spec: _container(spec).pop("capabilities"),
        "containers[fairlead].securityContext.capabilities.drop: must have ALL",
    ),
    "one more capability": (
        lambda spec: _container(spec)["capabilities"].update(add=["NET_BIND_SERVICE", "SYS_TIME"]),
        "containers[fairlead].securityContext.capabilities.add: SYS_TIME is not allowed",
    ),
    "the node's network": (lambda spec: spec.update(hostNetwork=True), "hostNetwork: is not allowed"),
    "the node's processes": (lambda spec: spec.update(hostPID=True), "hostPID: is not allowed"),
    "the node's memory": (lambda spec: spec.update(hostIPC=True), "hostIPC: is not allowed"),
    "a port of the node": (
        lambda spec: spec["containers"][0]["ports"][0].update(hostPort=8443),
        "containers[fairlead].ports: a hostPort is not allowed",
    ),
    "privilege escalation": (
        lambda spec: _container(spec).pop("allowPrivilegeEscalation"),
        "containers[fairlead].securityContext.allowPrivilegeEscalation: must be false",
    ),
    "privileges": (
        lambda spec: _container(spec).update(privileged=True),
        "containers[fairlead].securityContext.privileged: is not allowed",
    ),
    "no seccomp": (
        lambda spec: spec["securityContext"].pop("seccompProfile"),
        "containers[fairlead].securityContext.seccompProfile: must be RuntimeDefault",
    ),
    "seccomp of a container": (
        lambda spec: _container(spec).update(seccompProfile={"type": "Unconfined"}),
        "containers[fairlead].securityContext.seccompProfile: must be RuntimeDefault",
    ),
    "root": (
        lambda spec: spec["securityContext"].pop("runAsNonRoot"),
        "containers[fairlead].securityContext.runAsNonRoot: must be true",
    ),
    "all of /proc": (
        lambda spec: _container(spec).update(procMount="Unmasked"),
        "containers[fairlead].securityContext.procMount: must be Default",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_pod_that_breaks_one_rule_is_refused_for_that_one(rule: str) -> None:
    change, said = BROKEN[rule]
    objects = [*yaml.safe_load_all((OF_CHART / "default.yaml").read_text())]
    spec: dict[str, Any] = copy.deepcopy(dict(pods(objects)["Deployment/fairlead"]))
    change(spec)
    (found,) = violations(spec)
    assert found.startswith(said)


def test_an_init_container_is_looked_at_too() -> None:
    spec = {"initContainers": [{"name": "a", "securityContext": {"privileged": True}}], "containers": []}
    assert [one.partition(":")[0] for one in violations(spec)] == [
        f"initContainers[a].securityContext.{field}"
        for field in (
            *("allowPrivilegeEscalation", "privileged", "capabilities.drop", "runAsNonRoot", "seccompProfile"),
        )
    ]
