"""Models of the chart's values, from which its schema, values.yaml and the table in its README are generated.

`render/operator_settings` has the values that the operator reads; this module has those that only the chart reads.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import yaml
from pydantic import BeforeValidator, Field, WithJsonSchema

from fairlead.api.params import Listed, Params
from fairlead.api.selectors import LabelSelector
from fairlead.api.values import LabelValue, Name, QualifiedKey, Shape
from fairlead.render.container_resources import ContainerResources
from fairlead.render.operator_settings import (
    AdmissionSettings,
    NetworkPolicySettings,
    OperatorSettings,
    TlsSettings,
)
from fairlead.render.scheduler_settings import PullSecret, SchedulerSettings

RULES: Final = Path(__file__).parents[2] / "charts/fairlead/files/rules.yaml"

Free = dict[str, Any]
"""A part of a Kubernetes object that is passed on unchanged."""
Labels = dict[QualifiedKey, LabelValue]
Annotations = dict[QualifiedKey, str]
_DIGEST = Shape("(sha256:[0-9a-f]{64})?", "write sha256: and 64 hexadecimal digits")
_SECONDS = Shape("[1-9][0-9]*(s|m)", "write a duration such as 30s or 1m")
_HOST = Shape(
    "([a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)?",
    "write a registry, such as mirror.example:5000",
)
_NUMBER_OR_SHARE = Shape("([1-9][0-9]?|100)%|[0-9]{1,9}|", "write a number of pods, or a percentage such as 50%")
_SECONDS_OR_NONE = Shape("([1-9][0-9]*(s|m))?", "write a duration such as 30s or 1m")
_NAME = Shape("([a-z0-9]([-a-z0-9]*[a-z0-9])?)?", "write a name: lower-case letters, digits and '-'")


Port = Annotated[int, Field(ge=1, le=65535)]


def _alerts() -> list[str]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule["alert"] for group in groups for rule in group["rules"]]


Alert = Annotated[str, WithJsonSchema({"type": "string", "enum": _alerts()})]
"""Name of an alert of the chart."""


def _pods(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_PodsInput = Annotated[int, Field(ge=0)] | Annotated[str, _NUMBER_OR_SHARE]
PodCount = Annotated[
    str,
    _NUMBER_OR_SHARE,
    BeforeValidator(_pods, json_schema_input_type=_PodsInput),
]
"""A number of pods, or a percentage of them."""


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


class PortValues(Params):
    """Ports of the operator's pods. Its Services, its NetworkPolicy and its arguments follow."""

    webhook: Port = 8443
    """Port that schedulers call."""
    admission: Port = 9443
    """Port that the API server calls for the check of policies. With 10250 a private GKE cluster needs no firewall rule
    of its own."""
    probes: Port = 8080
    """Port of /livez, /readyz and, without metrics.secure, /metrics."""
    metrics: Port = 8444
    """Port of /metrics with metrics.secure."""


class DisruptionBudgetValues(Params):
    """PodDisruptionBudget of the operator."""

    enabled: bool = True
    """false: none. There is also none with a single replica."""
    min_available: PodCount = ""
    """Pods that must stay available. Empty: maxUnavailable decides."""
    max_unavailable: PodCount = ""
    """Pods that may be unavailable. Empty: 1, unless minAvailable is set."""


class ProbeValues(Params):
    """Timings of a probe."""

    initial_delay_seconds: Annotated[int, Field(ge=0)] = 0
    """Time before the first probe."""
    period_seconds: Annotated[int, Field(ge=1)]
    """Time between two probes."""
    timeout_seconds: Annotated[int, Field(ge=1)]
    """Time within which one must be answered."""
    failure_threshold: Annotated[int, Field(ge=1)]
    """Failures in a row that count."""


class ServiceValues(Params):
    """Services of the operator."""

    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the Service that schedulers and the API server call."""
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] = "PreferDualStack"
    """ipFamilyPolicy of its Services."""


class NetworkPolicyValues(NetworkPolicySettings):
    """NetworkPolicy of the operator. The admission port stays open: no policy can select the API server."""

    enabled: bool = True
    """false: no NetworkPolicy is created."""
    webhook_from: Listed[Free] = ()
    """Peers, as in a NetworkPolicy, that may call in addition to the schedulers of this namespace: those with
    management ConfigOnly."""


class AdmissionValues(AdmissionSettings):
    """Check of policies at `kubectl apply`. While it is unavailable nothing is blocked: its failurePolicy is Ignore."""

    enabled: bool = True
    """false: only the status shows what is wrong with a policy, and the port is closed."""
    timeout_seconds: Annotated[int, Field(ge=1, le=30)] = 10
    """Seconds that the API server waits for the check. It then stores the policy unchecked."""


class CrdValues(Params):
    """CustomResourceDefinition. It is upgraded with the chart, and stays when the chart is uninstalled."""

    enabled: bool = True
    """false: you apply `crds/` yourself, before the chart and at each upgrade. The chart takes over one that was
    applied so only with `helm install --take-ownership`, of Helm 4 with `--force-conflicts` too."""
    keep: bool = True
    """false: uninstalling the chart deletes it, and with it every policy."""


class RbacValues(Params):
    """Roles of people."""

    aggregate_to_edit: bool = True
    """false: the built-in roles edit and admin do not include writing policies, which affect the whole cluster."""


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
    scrape_timeout: Annotated[str, _SECONDS_OR_NONE] = ""
    """Timeout of a scrape. Empty: that of your Prometheus."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which your Prometheus selects it."""
    namespace: Annotated[str, Field(max_length=63), _NAME] = ""
    """Namespace in which it is created. Empty: that of the release."""
    honor_labels: bool = False
    """true: labels of the metrics take precedence over those of the scrape."""
    relabelings: Listed[Free] = ()
    """Relabelings of targets, as in a ServiceMonitor."""
    metric_relabelings: Listed[Free] = ()
    """Relabelings of metrics, as in a ServiceMonitor."""
    authorization: Free = Field(default_factory=dict)
    """Credentials of a scrape that needs a token, as in a ServiceMonitor. Empty: the token of Prometheus's own
    ServiceAccount. Whose it is must be in metrics.readers."""
    tls_config: Free = Field(default_factory=dict)
    """TLS of a scrape with metrics.secure, as in a ServiceMonitor. Empty: verified with the operator's authority, which
    is in the namespace of the release."""


class SchedulerMonitorValues(ServiceMonitorValues):
    """ServiceMonitor of the schedulers, which answer only callers that may read `/metrics`."""

    tls_config: Free = Field(default_factory=lambda: {"insecureSkipVerify": True})
    """TLS of a scrape, as in a ServiceMonitor. Nothing can verify kube-scheduler's certificate: it signs a new one
    itself at each start."""


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
    disabled: Annotated[Listed[Alert], Field(max_length=64)] = ()
    """ObjectNames of alerts that are left out."""


class DashboardValues(Params):
    """ConfigMap with a dashboard for Grafana."""

    enabled: bool = False
    """true: create it, for Grafana's sidecar."""
    labels: Labels = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """Labels by which the sidecar selects it."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the ConfigMap, such as the folder that the sidecar puts it in."""


class MetricsServiceValues(Params):
    """Service by which Prometheus finds the replicas."""

    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the Service for metrics."""


class MetricsReaderValues(Params):
    """Subject of a binding."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    kind: Literal["ServiceAccount", "User", "Group"] = "ServiceAccount"
    """Kind."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name."""
    namespace: Annotated[str, Field(max_length=63), _NAME] = ""
    """Namespace of a ServiceAccount."""


class SchedulerMetricsValues(Params):
    """Metrics of managed schedulers."""

    service: MetricsServiceValues = MetricsServiceValues()
    """Service by which Prometheus finds the pods of all managed schedulers."""
    service_monitor: SchedulerMonitorValues = SchedulerMonitorValues()
    """ServiceMonitor for the Prometheus operator."""


class DecisionsValues(Params):
    """Decisions that replicas keep and log."""

    enabled: bool = True
    """true: each replica keeps decisions, in at most 8 MiB, and serves them at 127.0.0.1:8081 in its pod, to those who
    may forward a port of it: bind the Role of the release whose name ends in -decisions to them. With hostNetwork they
    are not served, because every process of the node could read them."""
    log: Literal["None", "Waiting", "All"] = "None"
    """Decisions that are logged, without nodes and points, at most 50 a second: None, Waiting (those that leave a pod
    without a node) or All."""


class MetricsValues(Params):
    """Consumers of the metrics, which are always served."""

    secure: bool = False
    """true: metrics of the operator are served at ports.metrics with TLS, and only to those whose token may get
    /metrics, as the API server says (TokenReview and SubjectAccessReview)."""
    readers: Annotated[Listed[MetricsReaderValues], Field(max_length=32)] = ()
    """Accounts that may read the metrics of schedulers and, with metrics.secure, of the operator, such as that of
    Prometheus: they are bound to the ClusterRole fairlead.NAMESPACE.metrics-reader."""
    service: MetricsServiceValues = MetricsServiceValues()
    """Service by which Prometheus finds the replicas."""
    service_monitor: ServiceMonitorValues = ServiceMonitorValues()
    """ServiceMonitor for the Prometheus operator."""
    schedulers: SchedulerMetricsValues = SchedulerMetricsValues()
    """Metrics of the managed schedulers: kube-scheduler's own, at port 10259 with TLS."""
    prometheus_rule: PrometheusRuleValues = PrometheusRuleValues()
    """Alerts for the Prometheus operator."""
    dashboard: DashboardValues = DashboardValues()
    """ConfigMap with a dashboard for Grafana."""


class GlobalValues(Params):
    """Values that a parent chart gives to all its charts."""

    image_registry: Annotated[str, Field(max_length=253), _HOST] = ""
    """Registry of all images: of the operator instead of image.registry, and of kube-scheduler where its repository is
    the default one. Empty: as those say."""
    image_pull_secrets: Annotated[Listed[PullSecret], Field(max_length=16)] = ()
    """Pull Secrets of all images, in this namespace, beside the others."""


class OptInValues(Params):
    """Pods that get a scheduler without being edited."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    scheduler_name: Name
    """Scheduler that they get. It always exists then, as if it were listed."""
    namespace_selector: LabelSelector = LabelSelector()
    """Label selector of their namespaces. Empty: all, but never kube-system and this one."""
    object_selector: LabelSelector = LabelSelector()
    """Label selector of the pods. Empty: all."""


class Values(OperatorSettings):
    """Values of the chart."""

    schedulers: Annotated[Listed[SchedulerSettings], Field(max_length=200)] = ()
    """Settings per scheduler: `name`, and every field of schedulerDefaults. A listed scheduler always exists. One that
    is not listed exists while policies name it, and is deleted 10 minutes after its last policy."""
    opt_in: Annotated[Listed[OptInValues], Field(max_length=64)] = ()
    """Pods that get a scheduler as they are created, because they name none: schedulerName, and namespaceSelector,
    objectSelector or both, which must all match. It needs Kubernetes 1.36. Pods of DaemonSets are left alone."""
    tls: TlsValues = TlsValues()
    """Source of certificates."""
    replicas: Annotated[int, Field(ge=1, le=20)] = 2
    """Number of pods. All of them answer schedulers; one of them leads."""
    image: ImageValues = ImageValues()
    """Image of the operator."""
    image_pull_secrets: Annotated[Listed[PullSecret], Field(max_length=16)] = ()
    """Pull Secrets of the image, in this namespace: names, or objects with a name."""
    resources: ContainerResources = ContainerResources(
        requests={"cpu": "100m", "memory": "192Mi"}, limits={"memory": "2Gi"}
    )
    """Resources of a pod. For 5,000 nodes and 150,000 pods it needs 1 Gi. A CPU limit delays the placement of pods."""
    log_level: Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Level of the log."""
    priority_class_name: Annotated[str, Field(max_length=253)] = ""
    """Priority class, such as system-cluster-critical: while the operator is unavailable, pods of policies with
    failurePolicy Fail wait."""
    node_selector: Labels = Field(default_factory=lambda: {"kubernetes.io/os": "linux"})
    """Labels that its nodes must have."""
    tolerations: Listed[Free] = ()
    """Tolerations, as in a pod."""
    affinity: Free = Field(default_factory=dict)
    """Affinity, as in a pod."""
    topology_spread_constraints: Listed[Free] = ()
    """Topology spread constraints, as in a pod, with a labelSelector. Empty: over hosts and zones, if possible."""
    pod_security_context: Free = Field(default_factory=dict)
    """Security context of the pods, merged over the chart's own, which the standard `restricted` admits."""
    security_context: Free = Field(default_factory=dict)
    """Security context of the containers, merged over the chart's own."""
    host_network: bool = False
    """true: the pods have their node's network, so that an API server outside an overlay network reaches the check of
    policies. No NetworkPolicy applies to them then, and their ports must be free on the node: see `ports`."""
    dns_policy: Literal["", "ClusterFirst", "ClusterFirstWithHostNet", "Default"] = ""
    """DNS policy of the pods. Empty: ClusterFirst, or ClusterFirstWithHostNet with hostNetwork."""
    ports: PortValues = PortValues()
    """Ports of the pods. Its Services, its NetworkPolicy and its arguments follow."""
    strategy: Free = Field(default_factory=dict)
    """Strategy of the Deployment. Empty: a new pod is ready before an old one ends; with hostNetwork, whose ports the
    old one holds, one pod after the other."""
    revision_history_limit: Annotated[int, Field(ge=0)] = 3
    """Number of old ReplicaSets that stay."""
    pod_disruption_budget: DisruptionBudgetValues = DisruptionBudgetValues()
    """PodDisruptionBudget of the pods."""
    startup_probe: ProbeValues = ProbeValues(period_seconds=1, timeout_seconds=5, failure_threshold=120)
    """Timings of the startup probe. Everything is listed meanwhile, which takes a while in a large cluster."""
    readiness_probe: ProbeValues = ProbeValues(period_seconds=2, timeout_seconds=5, failure_threshold=2)
    """Timings of the readiness probe."""
    liveness_probe: ProbeValues = ProbeValues(period_seconds=10, timeout_seconds=10, failure_threshold=6)
    """Timings of the liveness probe."""
    drain_seconds: Annotated[int, Field(ge=1, le=600)] = 10
    """How long a terminating pod keeps answering callers that still have its address. It then has 20 s more to stop."""
    deployment_annotations: Annotations = Field(default_factory=dict)
    """Annotations of the Deployment."""
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
    extra_objects: Listed[Free | str] = ()
    """Additional objects, as maps or as strings. Templates in them are rendered."""
    name_override: Annotated[str, Field(max_length=40), _NAME] = ""
    """Name of the objects after that of the release, instead of the chart's. The label app.kubernetes.io/name stays
    `fairlead`, by which `fairlead status` finds the operator."""
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
    rbac: RbacValues = RbacValues()
    """Roles of people who write policies."""
    explain_role: ExplainRoleValues = ExplainRoleValues()
    """ClusterRole for people who run `fairlead explain`: bind it, or include it in other roles."""
    uninstall: UninstallValues = UninstallValues()
    """Clean-up before the chart is uninstalled."""
    decisions: DecisionsValues = DecisionsValues()
    """Decisions: the last calls of schedulers about pods and what came of them, for `fairlead decisions`."""
    metrics: MetricsValues = MetricsValues()
    """Consumers of the metrics."""
    global_: GlobalValues = Field(default=GlobalValues(), alias="global")
    """Values that a parent chart gives to all its charts."""
