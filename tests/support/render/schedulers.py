"""Schedulers to render. `make crds` writes the golden files anew."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead.api.parse import parse_params
from fairlead.render.cluster_facts import ClusterFacts
from fairlead.render.extenders import Wiring
from fairlead.render.plan import Plan, plan
from fairlead.render.scheduler_settings import SchedulerSettings
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine, written

ENGINE = TemplateEngine(templates())
ALL = Wiring(fails=True, ignores=True, scores=True, binds=True)
GOLDEN = Path(__file__).parents[2] / "data" / "render"
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
LONGEST = "a-scheduler-whose-name-is-as-long-as-the-name-of-a-scheduler-is"

EVERYTHING: dict[str, Any] = {
    "name": "gpu",
    "management": "Managed",
    "replicas": 3,
    "nodeSample": "30%",
    "timeout": "2s",
    "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    "profile": {
        "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}},
        "pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/fpga"]}},
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}},
        ],
    },
    "image": {"repository": "registry.example:5000/mirror/kube-scheduler", "tag": "v1.36.3"},
    "imagePullPolicy": "Always",
    "imagePullSecrets": ["mirror"],
    "placement": {
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                    }
                ]
            }
        },
        "priorityClassName": "system-cluster-critical",
    },
    "podMaxBackoffSeconds": 30,
    "podLabels": {"sidecar.istio.io/inject": "true"},
    "podAnnotations": {"linkerd.io/inject": "enabled"},
    "verbosity": 4,
    "extraArgs": ["--logging-format=json"],
    "featureGates": {"OpportunisticBatching": False},
    "groups": "Auto",
    "parallelism": 32,
    "qps": 200,
    "burst": 300,
    "gogc": 200,
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
}


def facts(**changes: Any) -> ClusterFacts:
    """A cluster, but for what is said of it."""
    known: dict[str, Any] = {
        "namespace": "fairlead-system",
        "url": "https://fairlead.fairlead-system.svc:8443",
        "ca_bundle": CA,
        "server_versions": ("v1.37.1",),
        "nodes": 100,
    }
    return ClusterFacts(**(known | changes))


def settings(**fields: Any) -> SchedulerSettings:
    """Settings as somebody writes them."""
    return parse_params({"name": "fairlead"} | fields, SchedulerSettings)


def planned(wiring: Wiring = ALL, cluster: ClusterFacts | None = None, **fields: Any) -> Plan:
    """The manifests of a scheduler."""
    return plan(ENGINE, settings(**fields), wiring, cluster or facts())


SCENES: dict[str, Plan] = {
    "all-verbs": planned(),
    "groups": planned(replace(ALL, hold_s=60)),
    "no-policies": planned(Wiring()),
    "only-ignore": planned(Wiring(ignores=True, scores=True)),
    "one-replica-of-many-nodes": planned(
        Wiring(fails=True), facts(nodes=5000, server_versions=("v1.37.1", "v1.36.3-gke.100")), replicas=1
    ),
    "every-setting": planned(Wiring(fails=True, scores=True), **EVERYTHING),
    "assigned-user-ids": planned(assignedUserIds=True),
    "longest-name": planned(Wiring(fails=True), facts(namespace=LONGEST), name=LONGEST),
    "config-only": planned(Wiring(fails=True, scores=True), name="default-scheduler", management="ConfigOnly"),
}


def config_of(made: Plan) -> str:
    """The text of the configuration."""
    text: str = named(made, "ConfigMap")["data"]["config.yaml"]
    return text


def named(made: Plan, kind: str) -> dict[str, Any]:
    """The only object of a kind."""
    (found,) = [one for one in made.objects if one["kind"] == kind]
    return found


def write() -> None:
    """Write the golden files anew."""
    for name, scene in SCENES.items():
        (GOLDEN / f"{name}.yaml").write_text(written(scene.objects))
