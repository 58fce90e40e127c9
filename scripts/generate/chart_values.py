"""Models of the chart's values, from which its schema, values.yaml and the table in its README are generated.

`render/operator_settings` has the values that the operator reads; this module has those that only the chart reads.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from fairlead.api.params import Listed, Params
from fairlead.api.values import LabelValue, ObjectName, QualifiedKey, Shape
from fairlead.render.container_resources import ContainerResources
from fairlead.render.operator_settings import (
    AdmissionSettings,
    OperatorSettings,
    SchedulerSettings,
    TlsSettings,
)

Free = dict[str, Any]
"""A part of a Kubernetes object that is passed on unchanged."""
Labels = dict[QualifiedKey, LabelValue]
Annotations = dict[QualifiedKey, str]
_DIGEST = Shape("(sha256:[0-9a-f]{64})?", "write sha256: and 64 hexadecimal digits")
_SECONDS = Shape("[1-9][0-9]*(s|m)", "write a duration such as 30s or 1m")
_NAME = Shape("([a-z0-9]([-a-z0-9]*[a-z0-9])?)?", "write a name: lower-case letters, digits and '-'")


class IssuerRef(Params):
    """Issuer of cert-manager."""

    name: Annotated[str, Field(max_length=253)] = ""
    """Name of the issuer."""
    kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"
    """Kind of the issuer."""
    group: Annotated[str, Field(max_length=253)] = "cert-manager.io"
    """API group of the issuer."""


class TlsValues(TlsSettings):
    """Source of certificates."""

    issuer_ref: IssuerRef = IssuerRef()
    """For CertManager: issuer of the certificates of the operator and the schedulers. It must be a CA issuer: ACME does
    not issue client certificates."""
    ca_bundle: Annotated[str, Field(max_length=65536)] = ""
    """For Provided: authority of the operator's certificate, in PEM, with which the API server verifies the admission
    check."""


class ImageValues(Params):
    """Image of the operator."""

    registry: Annotated[str, Field(max_length=253)] = "ghcr.io"
    """Registry; empty if the repository includes it."""
    repository: Annotated[str, Field(min_length=1, max_length=253)] = "fairlead-dev/fairlead"
    """Repository."""
    tag: Annotated[str, Field(max_length=128)] = ""
    """Tag. Empty: the chart's appVersion."""
    digest: Annotated[str, _DIGEST] = ""
    """Digest, as sha256:...; it takes precedence over the tag."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """Pull policy."""


class ServiceAccountValues(Params):
    """ServiceAccount of the operator."""

    create: bool = True
    """false: use the existing one that `name` names."""
    name: Annotated[str, Field(max_length=63), _NAME] = ""
    """Name. Empty: the name of the release."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the one that is created."""


class ServiceValues(Params):
    """Services of the operator."""

    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] = "PreferDualStack"
    """ipFamilyPolicy of its Services."""


class NetworkPolicyValues(Params):
    """NetworkPolicy of the operator. The admission port stays open: no policy can select the API server."""

    enabled: bool = True
    """false: no NetworkPolicy is created."""
    webhook_from: Listed[Free] = ()
    """Peers, as in a NetworkPolicy, that may call in addition to the schedulers of this namespace: those with
    management ConfigOnly."""
    metrics_from: Listed[Free] = ()
    """Peers that may scrape metrics. Empty: all."""


class AdmissionValues(AdmissionSettings):
    """Check of policies at `kubectl apply`. While it is unavailable nothing is blocked: its failurePolicy is Ignore."""

    enabled: bool = True
    """false: only the status shows what is wrong with a policy, and port 9443 is closed."""


class CrdValues(Params):
    """CustomResourceDefinition. It is upgraded with the chart, and stays when the chart is uninstalled."""

    enabled: bool = True
    """false: you apply `crds/` yourself, before the chart and at each upgrade. The chart takes over one that was
    applied so only with `helm install --take-ownership`."""


class ExplainRoleValues(Params):
    """ClusterRole for people who run `fairlead explain` and `status`."""

    aggregate_to: Annotated[Listed[Literal["view", "edit", "admin"]], Field(max_length=3)] = ()
    """Roles of Kubernetes that include it. Only those who have one of them in the whole cluster may read nodes then."""


class UninstallValues(Params):
    """Clean-up before the chart is uninstalled: `fairlead uninstall`, as a hook."""

    enabled: bool = True
    """false: schedulers keep running without an operator after the chart is uninstalled."""
    within: Annotated[str, _SECONDS] = "240s"
    """Deadline; it must be less than helm's --timeout."""


class ServiceMonitorValues(Params):
    """ServiceMonitor for the Prometheus operator."""

    enabled: bool = False
    """Requires the CustomResourceDefinitions of the Prometheus operator."""
    interval: Annotated[str, _SECONDS] = "30s"
    """Scrape interval."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which your Prometheus selects it."""


class AlertValues(Params):
    """Thresholds of the alerts."""

    no_leader_for: Annotated[str, _SECONDS] = "300s"
    """Time without a leader."""
    policy_not_ready_for: Annotated[str, _SECONDS] = "900s"
    """Time for which a policy is not Ready."""
    reconcile_errors: Annotated[int, Field(ge=0)] = 5
    """Failed reconciles of a scheduler within 15 minutes."""
    watch_failures: Annotated[int, Field(ge=0)] = 5
    """Failed watches of a kind within 15 minutes."""
    mirror_stale_seconds: Annotated[int, Field(ge=1)] = 120
    """Staleness of a replica's cache of the cluster."""
    slow_call_seconds: Annotated[float, Field(gt=0)] = 0.5
    """99th percentile of the duration of schedulers' calls."""
    refused_calls: Annotated[int, Field(ge=0)] = 10
    """Refused connections and calls within 10 minutes."""
    certificate_expires_days: Annotated[int, Field(ge=1)] = 5
    """Days until a certificate expires."""


class PrometheusRuleValues(Params):
    """Alerts for the Prometheus operator."""

    enabled: bool = False
    """Requires the CustomResourceDefinitions of the Prometheus operator."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which your Prometheus selects it."""
    runbook_url: Annotated[str, Field(max_length=500)] = (
        "https://github.com/fairlead-dev/fairlead/blob/main/docs/guide/troubleshooting.md"
    )
    """URL of the page that documents the alerts."""
    thresholds: AlertValues = AlertValues()
    """Thresholds of the alerts."""


class DashboardValues(Params):
    """ConfigMap with a dashboard for Grafana."""

    enabled: bool = False
    """true: create it, for Grafana's sidecar."""
    labels: Labels = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """Labels by which the sidecar selects it."""


class MetricsValues(Params):
    """Consumers of the metrics, which are always served on port 8080."""

    service_monitor: ServiceMonitorValues = ServiceMonitorValues()
    """ServiceMonitor for the Prometheus operator."""
    prometheus_rule: PrometheusRuleValues = PrometheusRuleValues()
    """Alerts for the Prometheus operator."""
    dashboard: DashboardValues = DashboardValues()
    """ConfigMap with a dashboard for Grafana."""


class Values(OperatorSettings):
    """Values of the chart."""

    schedulers: Annotated[Listed[SchedulerSettings], Field(max_length=200)] = ()
    """Settings per scheduler. A listed scheduler always exists. One that is not listed exists while policies name it,
    with all defaults, and is deleted 10 minutes after its last policy."""
    tls: TlsValues = TlsValues()
    """Source of certificates."""
    replicas: Annotated[int, Field(ge=1, le=20)] = 2
    """Number of pods. All of them answer schedulers; one of them leads."""
    image: ImageValues = ImageValues()
    """Image of the operator."""
    image_pull_secrets: Annotated[Listed[ObjectName], Field(max_length=16)] = ()
    """Pull Secrets of the image, in this namespace."""
    resources: ContainerResources = ContainerResources(
        requests={"cpu": "100m", "memory": "192Mi"}, limits={"memory": "2Gi"}
    )
    """Resources of a pod. For 5,000 nodes and 150,000 pods it needs 1 Gi. A CPU limit delays the placement of pods."""
    log_level: Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Level of the log."""
    priority_class_name: Annotated[str, Field(max_length=253)] = ""
    """Priority class, such as system-cluster-critical: while the operator is unavailable, pods of policies with
    failurePolicy Fail wait."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels that its nodes must have."""
    tolerations: Listed[Free] = ()
    """Tolerations, as in a pod."""
    affinity: Free = Field(default_factory=dict)
    """Affinity, as in a pod."""
    topology_spread_constraints: Listed[Free] = ()
    """Topology spread constraints, as in a pod, with a labelSelector. Empty: over hosts and zones, if possible."""
    drain_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    """How long a terminating pod keeps answering callers that still have its address. It then has 20 s more to stop."""
    pod_labels: Labels = Field(default_factory=dict)
    """Labels of the pods."""
    pod_annotations: Annotations = Field(default_factory=dict)
    """Annotations of the pods."""
    extra_args: Listed[str] = ()
    """Additional arguments of `fairlead operate`."""
    extra_env: Listed[Free] = ()
    """Additional environment variables, as in a container."""
    extra_volumes: Listed[Free] = ()
    """Additional volumes, as in a pod."""
    extra_volume_mounts: Listed[Free] = ()
    """Additional volume mounts, as in a container."""
    common_labels: Labels = Field(default_factory=dict)
    """Labels of every object of the chart."""
    fullname_override: Annotated[str, Field(max_length=40), _NAME] = ""
    """Name of the objects. Empty: the name of the release."""
    service_account: ServiceAccountValues = ServiceAccountValues()
    """ServiceAccount of the operator."""
    service: ServiceValues = ServiceValues()
    """Services of the operator."""
    network_policy: NetworkPolicyValues = NetworkPolicyValues()
    """NetworkPolicy of the operator."""
    admission: AdmissionValues = AdmissionValues()
    """Check of policies at `kubectl apply`."""
    crds: CrdValues = CrdValues()
    """CustomResourceDefinition."""
    explain_role: ExplainRoleValues = ExplainRoleValues()
    """ClusterRole for people who run `fairlead explain`: bind it, or include it in other roles."""
    uninstall: UninstallValues = UninstallValues()
    """Clean-up before the chart is uninstalled."""
    metrics: MetricsValues = MetricsValues()
    """Consumers of the metrics."""
    global_: Free = Field(default_factory=dict, alias="global")
    """Values of a parent chart; not used here."""
