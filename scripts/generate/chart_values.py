"""The chart's values, as models: its schema, values.yaml and the table in its README are made of them.

What the operator is told stands in `render/operator_settings`; here is what only the chart has to know.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from fairlead.api.params import Listed, Params
from fairlead.api.values import LabelValue, ObjectName, QualifiedKey, Shape
from fairlead.render.operator_settings import (
    AdmissionSettings,
    OperatorSettings,
    Resources,
    SchedulerSettings,
    TlsSettings,
)

Free = dict[str, Any]
"""Something that Kubernetes knows and the chart passes on."""
Labels = dict[QualifiedKey, LabelValue]
Annotations = dict[QualifiedKey, str]
_DIGEST = Shape("(sha256:[0-9a-f]{64})?", "write sha256: and 64 hexadecimal digits")
_SECONDS = Shape("[1-9][0-9]*(s|m)", "write a duration such as 30s or 1m")
_NAME = Shape("([a-z0-9]([-a-z0-9]*[a-z0-9])?)?", "write a name: lower-case letters, digits and '-'")


class IssuerRef(Params):
    """Who signs."""

    name: Annotated[str, Field(max_length=253)] = ""
    """Its name."""
    kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"
    """Of the namespace, or of the cluster."""
    group: Annotated[str, Field(max_length=253)] = "cert-manager.io"
    """Of its API."""


class TlsValues(TlsSettings):
    """Where certificates come from."""

    issuer_ref: IssuerRef = IssuerRef()
    """For CertManager: who signs the operator and the schedulers; it has to be an authority, not ACME."""
    ca_bundle: Annotated[str, Field(max_length=65536)] = ""
    """For Provided: the authority of the operator's certificate, as PEM, for the API server's admission check."""


class ImageValues(Params):
    """The operator's image."""

    registry: Annotated[str, Field(max_length=253)] = "ghcr.io"
    """Where it is; empty: the repository says it."""
    repository: Annotated[str, Field(min_length=1, max_length=253)] = "fairlead-dev/fairlead"
    """Its path."""
    tag: Annotated[str, Field(max_length=128)] = ""
    """Empty: the chart's appVersion."""
    digest: Annotated[str, _DIGEST] = ""
    """The very image, as sha256:...; it wins over the tag."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When it is fetched."""


class ServiceAccountValues(Params):
    """Who the operator is."""

    create: bool = True
    """false: there is one already, and `name` says which."""
    name: Annotated[str, Field(max_length=63), _NAME] = ""
    """Empty: as the release."""
    annotations: Annotations = Field(default_factory=dict)
    """On the one that is made."""


class ServiceValues(Params):
    """How the operator is reached."""

    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] = "PreferDualStack"
    """Of its Services."""


class NetworkPolicyValues(Params):
    """Who may reach the operator. The admission port is open: where the API server is, no policy can say."""

    enabled: bool = True
    """false: nothing is limited."""
    webhook_from: Listed[Free] = ()
    """Peers, as in a NetworkPolicy, that may call besides the schedulers of this namespace: those of ConfigOnly."""
    metrics_from: Listed[Free] = ()
    """Peers that may read metrics; empty: everybody."""


class AdmissionValues(AdmissionSettings):
    """What is wrong with a policy, said at `kubectl apply`. It is never in the way: failurePolicy is Ignore."""

    enabled: bool = True
    """false: the status alone says it, and port 9443 is closed."""


class CrdValues(Params):
    """The CustomResourceDefinition. It is upgraded with the chart, and stays when the chart goes."""

    enabled: bool = True
    """false: you apply `crds/` yourself, before the chart and at each upgrade. The chart takes over one that was
    applied so only with `helm install --take-ownership`."""


class UninstallValues(Params):
    """What happens before the chart goes: `fairlead uninstall`, as a hook."""

    enabled: bool = True
    """false: schedulers go on running when the chart has gone, and nobody answers them."""
    within: Annotated[str, _SECONDS] = "240s"
    """How long it may take; less than helm's --timeout."""


class ServiceMonitorValues(Params):
    """For the Prometheus operator: where metrics are."""

    enabled: bool = False
    """Needs its CustomResourceDefinitions."""
    interval: Annotated[str, _SECONDS] = "30s"
    """How often they are read."""
    labels: Labels = Field(default_factory=dict)
    """By which your Prometheus finds it."""


class AlertValues(Params):
    """When alerts fire."""

    no_leader_for: Annotated[str, _SECONDS] = "300s"
    """How long no replica may lead."""
    policy_not_ready_for: Annotated[str, _SECONDS] = "900s"
    """How long a policy may be not Ready."""
    reconcile_errors: Annotated[int, Field(ge=0)] = 5
    """Failed reconciles of a scheduler within 15 minutes."""
    watch_failures: Annotated[int, Field(ge=0)] = 5
    """Failed watches of a kind within 15 minutes."""
    mirror_stale_seconds: Annotated[int, Field(ge=1)] = 120
    """Age of what a replica knows of the cluster."""
    slow_call_seconds: Annotated[float, Field(gt=0)] = 0.5
    """The 99th percentile of calls of schedulers."""
    refused_calls: Annotated[int, Field(ge=0)] = 10
    """Refused connections and calls within 10 minutes."""
    certificate_expires_days: Annotated[int, Field(ge=1)] = 5
    """How long before the end of a certificate."""


class PrometheusRuleValues(Params):
    """Alerts, for the Prometheus operator."""

    enabled: bool = False
    """Needs its CustomResourceDefinitions."""
    labels: Labels = Field(default_factory=dict)
    """By which your Prometheus finds it."""
    runbook_url: Annotated[str, Field(max_length=500)] = (
        "https://github.com/fairlead-dev/fairlead/blob/main/docs/guide/troubleshooting.md"
    )
    """The page whose sections the alerts point to."""
    thresholds: AlertValues = AlertValues()
    """When alerts fire."""


class DashboardValues(Params):
    """For Grafana: a ConfigMap with a dashboard."""

    enabled: bool = False
    """Its sidecar reads it."""
    labels: Labels = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """By which the sidecar finds it."""


class MetricsValues(Params):
    """What is done with metrics. They are always there, on port 8080."""

    service_monitor: ServiceMonitorValues = ServiceMonitorValues()
    """For the Prometheus operator: where metrics are."""
    prometheus_rule: PrometheusRuleValues = PrometheusRuleValues()
    """Alerts, for the Prometheus operator."""
    dashboard: DashboardValues = DashboardValues()
    """For Grafana: a ConfigMap with a dashboard."""


class Values(OperatorSettings):
    """All values of the chart."""

    schedulers: Annotated[Listed[SchedulerSettings], Field(max_length=200)] = ()
    """What is deployed for scheduler names. One that policies name and that is not listed is managed with all defaults,
    and goes 10 minutes after its last policy; one that is listed stays."""
    tls: TlsValues = TlsValues()
    """Where certificates come from."""
    replicas: Annotated[int, Field(ge=1, le=20)] = 2
    """How many pods; all of them answer schedulers, one of them writes."""
    image: ImageValues = ImageValues()
    """The operator's image."""
    image_pull_secrets: Annotated[Listed[ObjectName], Field(max_length=16)] = ()
    """Names of Secrets of this namespace with which it is fetched."""
    resources: Resources = Resources(requests={"cpu": "100m", "memory": "192Mi"}, limits={"memory": "2Gi"})
    """What a pod asks for. With 5,000 nodes and 150,000 pods it needs 1 Gi. A limit of cpu delays placing."""
    log_level: Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """What is written to the log."""
    priority_class_name: Annotated[str, Field(max_length=253)] = ""
    """Such as system-cluster-critical: pods of policies with failurePolicy Fail wait while the operator is away."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels of the nodes that it runs on."""
    tolerations: Listed[Free] = ()
    """Taints that do not matter, as in a pod."""
    affinity: Free = Field(default_factory=dict)
    """As in a pod."""
    topology_spread_constraints: Listed[Free] = ()
    """As in a pod, with a labelSelector; empty: over hosts and zones where that can be."""
    drain_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    """How long a pod that is to end still answers those who have not heard of it; it is given 20 s more to end."""
    pod_labels: Labels = Field(default_factory=dict)
    """On the pods."""
    pod_annotations: Annotations = Field(default_factory=dict)
    """On the pods."""
    extra_args: Listed[str] = ()
    """More arguments of `fairlead operate`."""
    extra_env: Listed[Free] = ()
    """More variables, as in a container."""
    extra_volumes: Listed[Free] = ()
    """More volumes, as in a pod."""
    extra_volume_mounts: Listed[Free] = ()
    """Where they are mounted."""
    common_labels: Labels = Field(default_factory=dict)
    """On each object of the chart."""
    fullname_override: Annotated[str, Field(max_length=40), _NAME] = ""
    """What objects are called; empty: as the release."""
    service_account: ServiceAccountValues = ServiceAccountValues()
    """Who the operator is."""
    service: ServiceValues = ServiceValues()
    """How it is reached."""
    network_policy: NetworkPolicyValues = NetworkPolicyValues()
    """Who may reach it."""
    admission: AdmissionValues = AdmissionValues()
    """What is wrong with a policy, said at `kubectl apply`."""
    crds: CrdValues = CrdValues()
    """The CustomResourceDefinition."""
    uninstall: UninstallValues = UninstallValues()
    """What happens before the chart goes."""
    metrics: MetricsValues = MetricsValues()
    """What is done with metrics."""
    global_: Free = Field(default_factory=dict, alias="global")
    """Of a chart that this one is a part of; nothing here reads it."""
