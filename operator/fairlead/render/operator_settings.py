"""Settings of the operator, read from one YAML document. The docstrings of fields are the documentation of values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, GROUP, LATE_LABELS
from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.parse import parse_params
from fairlead.api.values import Shape
from fairlead.plain_data import document
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.render.scheduler_bindings import KUBE_SYSTEM
from fairlead.render.scheduler_settings import KUBE_SCHEDULER, Free, PullSecret, SchedulerDefaults, SchedulerSettings

VALUES_MAX: Final = 100_000
"""Greatest number of values in the settings, aliases expanded."""
OPERATOR_NAME: Final = "fairlead"
"""Name of its objects if the release has the name that the chart's README uses."""
WEBHOOK_PORT: Final = 8443
"""Port at which schedulers call the operator."""
CHART_ONLY: Final = frozenset(
    {
        *(
            "affinity",
            "commonLabels",
            "crds",
            "decisions",
            "deploymentAnnotations",
            "dnsPolicy",
            "drainSeconds",
            "explainRole",
        ),
        *("extraArgs", "extraEnv", "extraObjects", "extraVolumeMounts", "extraVolumes", "fullnameOverride", "global"),
        *("hostNetwork", "image", "imagePullSecrets", "livenessProbe", "logLevel", "metrics", "nameOverride"),
        *("nodeSelector", "optIn", "podAnnotations", "podDisruptionBudget", "podLabels", "podSecurityContext", "ports"),
        *("priorityClassName", "rbac", "readinessProbe", "replicas", "resources", "revisionHistoryLimit"),
        *("securityContext", "service", "serviceAccount", "startupProbe", "strategy", "tolerations"),
        *("topologySpreadConstraints", "uninstall"),
    }
)
"""Values that only the chart reads: they configure the operator itself."""
CHART_ONLY_OF: Final = {
    "admission": frozenset({"enabled", "timeoutSeconds"}),
    "networkPolicy": frozenset({"enabled", "webhookFrom"}),
    "tls": frozenset({"caBundle", "issuerRef"}),
}
_PREFIX = Shape(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[-\w.]*",
    "write the prefix of the keys including '/', such as example.com/",
)


_LABEL_PREFIX = Shape(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-\w.]*", "write the prefix of the keys including '/', such as nvidia.com/"
)


class TlsSettings(Params):
    """Source of certificates."""

    mode: Literal["SelfManaged", "CertManager", "Provided"] = "SelfManaged"
    """SelfManaged: the operator has its own certificate authority. CertManager: cert-manager issues the certificates.
    Provided: you create the Secrets. With the last two, the Secret fairlead-webhook-tls must exist: tls.crt and tls.key
    are the server certificate, ca.crt is the authority of its callers."""


def _authorities(pem: str) -> str:
    if pem:
        from fairlead.pki.parsing import digest  # with cryptography, which a command pays for that reads no certificate

        try:
            digest(pem.encode())
        except ValueError:
            raise PydanticCustomError(
                "shape", "{message}", {"message": "write certificates in PEM, or leave it empty"}
            ) from None
    return pem


class AdmissionSettings(Params):
    """Check of policies at `kubectl apply`. While it is unavailable nothing is blocked: its failurePolicy is Ignore."""

    client_ca: Annotated[str, Field(max_length=65536, alias="clientCA"), AfterValidator(_authorities)] = ""
    """Authority, in PEM, of the client certificate that the API server shows (--admission-control-config-file). Callers
    without such a certificate are refused. Empty: no client certificate is required, and every pod may call."""


class NetworkPolicySettings(Params):
    """NetworkPolicies of the operator and of schedulers."""

    metrics_from: Listed[Free] = ()
    """Peers, as in a NetworkPolicy, that may scrape the metrics of the operator and of schedulers. Empty: all."""


class PublishedAffinitySettings(Params):
    """Node affinity that pods get as they are created, where their policies say `publish: NodeAffinity`."""

    enabled: bool = False
    """true: an admission policy of the chart adds it to pods. It needs Kubernetes 1.36."""
    late_labels: Annotated[Listed[Annotated[str, Field(max_length=317), _LABEL_PREFIX]], Field(max_length=64)] = (
        LATE_LABELS
    )
    """Prefixes of labels that are not published, because nodes get them only after they have joined: autoscalers do not
    see them in the template of a node."""


class OperatorSettings(Params):
    """Settings of the operator."""

    schedulers: Annotated[Listed[SchedulerSettings], Field(max_length=200)] = ()
    """Settings per scheduler. What one does not set is taken from schedulerDefaults."""
    scheduler_defaults: SchedulerDefaults = SchedulerDefaults()
    """Settings of all schedulers, listed or not."""
    unlisted_schedulers: Literal["Allow", "Deny"] = "Allow"
    """Whether policies may name schedulers that are not listed. Deny: such policies are not accepted, and a scheduler
    that runs for them is deleted after 10 minutes."""
    max_unlisted_schedulers: Annotated[int, Field(ge=0, le=200)] = 10
    """Maximum number of schedulers that are not listed. None that runs is stopped; new ones start in the order of their
    oldest policies."""
    max_policies: Annotated[int, Field(ge=1, le=5_000)] = 500
    """Maximum number of policies that serve. The oldest serve; for pods of newer ones, their failurePolicy decides."""
    assigned_user_ids: bool = False
    """true: the pods of schedulers do not set a user, because the cluster assigns one. The chart detects OpenShift."""
    tls: TlsSettings = TlsSettings()
    """Source of certificates."""
    admission: AdmissionSettings = AdmissionSettings()
    """Check of policies at `kubectl apply`."""
    claim_namespace: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = KUBE_SYSTEM
    """Namespace of the Lease by which one operator manages the policies of the cluster; it must exist. With another
    one than kube-system, such as the release's own, nothing is written in kube-system: set it where that is denied, as
    on GKE Autopilot. Anyone who may write Leases in it can keep the operator from leading."""
    network_policy: NetworkPolicySettings = NetworkPolicySettings()
    """NetworkPolicies of the operator and of schedulers."""
    annotation_prefixes: Annotated[
        Listed[Annotated[str, Field(max_length=253), _PREFIX]], Field(min_length=1, max_length=16)
    ] = (f"{GROUP}/",)
    """Prefixes of the annotation keys that policies may set on pods."""
    published_affinity: PublishedAffinitySettings = PublishedAffinitySettings()
    """Node affinity that pods get as they are created, where their policies say `publish: NodeAffinity`."""
    prometheus: Annotated[Listed[PrometheusServer], Field(max_length=16)] = ()
    """Prometheus servers that policies may take values from. Their Secrets and ConfigMaps are in this namespace. What
    changes in them is used from the next poll on."""

    def lists(self, name: str) -> bool:
        """Return whether a scheduler is listed."""
        return any(one.name == name for one in self.schedulers)

    def has_room(self, existing: Iterable[str]) -> bool:
        """Return whether one more unlisted scheduler may exist beside these."""
        unlisted = sum(not self.lists(one) for one in existing)
        return self.unlisted_schedulers == "Allow" and unlisted < self.max_unlisted_schedulers

    def scheduler(self, name: str) -> SchedulerSettings:
        """Return the settings of a scheduler. Raises InvalidObjectError for one that must be listed and is not."""
        found = next((one for one in self.schedulers if one.name == name), None)
        if found is None and name == CLUSTERS_OWN_SCHEDULER:
            why = f"{name} is not listed, and is never managed"
            raise InvalidObjectError([FieldError(("schedulers",), why, "list it with management ConfigOnly")])
        found = (found or SchedulerSettings(name=name)).over(self.scheduler_defaults)
        return found.model_copy(update={"assigned_user_ids": True}) if self.assigned_user_ids else found

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the check that the cluster's own scheduler is never managed."""

        def managed(self: "OperatorSettings") -> int | None:
            names = [one.name for one in self.schedulers]
            index = names.index(CLUSTERS_OWN_SCHEDULER) if CLUSTERS_OWN_SCHEDULER in names else None
            return None if index is None or self.scheduler(names[index]).management != "Managed" else index

        message = (
            f"{CLUSTERS_OWN_SCHEDULER} is the cluster's own scheduler and is never managed: set management to "
            "ConfigOnly, or give the scheduler another name"
        )
        return (
            FieldCheck(
                "",
                lambda self: managed(self) is None,
                message,
                "schedulers",
                below=lambda self: (managed(self) or 0, "management"),
            ),
        )


def parse_settings(text: str) -> OperatorSettings:
    """Return the settings in a YAML text; an empty text means all defaults. Raises InvalidObjectError."""
    return parse_params(_read(text), OperatorSettings)


@dataclass(frozen=True, slots=True)
class ChartValues:
    """Values of the chart that decide the objects of schedulers."""

    settings: OperatorSettings
    fullname: str = OPERATOR_NAME
    """Name of the operator's objects, and of the Service that schedulers call."""
    port: int = WEBHOOK_PORT
    """Port at which schedulers call it."""


def parse_values(text: str) -> ChartValues:
    """Return what matters of a values file of the chart, or of the settings that the chart makes of it.

    Values that only the chart reads are ignored. Raises InvalidObjectError for a value that does not exist.
    """
    read = _read(text)
    if not isinstance(read, dict):
        return ChartValues(parse_params(read, OperatorSettings))
    fields: dict[str, Any] = {key: value for key, value in read.items() if key not in CHART_ONLY}
    for part, chart_only in CHART_ONLY_OF.items():
        if isinstance(message := fields.get(part), dict):
            fields[part] = {key: value for key, value in message.items() if key not in chart_only}
    if isinstance(given := fields.get("schedulerDefaults"), dict):
        fields["schedulerDefaults"] = _over(SchedulerDefaults().model_dump(mode="json", by_alias=True), given)
    fields |= _with_opted_in(read.get("optIn"), fields.get("schedulers"))
    shared = parse_params(read.get("global") or {}, _Shared, ("global",))
    ports = parse_params(read.get("ports") or {}, _Ports, ("ports",))
    if not isinstance(fullname := read.get("fullnameOverride") or OPERATOR_NAME, str):
        raise InvalidObjectError([FieldError(("fullnameOverride",), "must be a string")])
    return ChartValues(_with_shared(parse_params(fields, OperatorSettings), shared), fullname, ports.webhook)


def _with_opted_in(opt_in: object, schedulers: object) -> dict[str, Any]:
    """Return the schedulers with those that pods are given by optIn: the chart lists them."""
    if not isinstance(opt_in, list) or not isinstance(schedulers or [], list):
        return {}
    listed = schedulers if isinstance(schedulers, list) else []
    names = [one.get("schedulerName") for one in opt_in if isinstance(one, dict)]
    known = [one.get("name") for one in listed if isinstance(one, dict)]
    return {"schedulers": [*listed, *({"name": name} for name in dict.fromkeys(names) if name not in known)]}


def _over(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values over the chart's, as Helm merges them: maps by key, and null removes one."""
    both = {**defaults, **values}
    merged = {
        key: _over(defaults[key], value) if isinstance(value, dict) and isinstance(defaults.get(key), dict) else value
        for key, value in both.items()
    }
    return {key: value for key, value in merged.items() if value is not None}


class _Ports(Params):
    """Ports of the operator's pods, of which schedulers call one."""

    webhook: int = WEBHOOK_PORT
    admission: int = 0
    probes: int = 0
    metrics: int = 0


class _Shared(Params):
    """Values of a parent chart, as the chart's models have them."""

    image_registry: str = ""
    image_pull_secrets: Listed[PullSecret] = ()


def _with_shared(settings: OperatorSettings, shared: _Shared) -> OperatorSettings:
    """Return the settings with the registry and the pull Secrets of a parent chart, as templates/settings.yaml does."""
    defaults = settings.scheduler_defaults
    image, more = defaults.image, shared.image_pull_secrets
    if shared.image_registry and image.repository == KUBE_SCHEDULER:
        mirror = f"{shared.image_registry}/{KUBE_SCHEDULER.partition('/')[2]}"
        image = image.model_copy(update={"repository": mirror})
    schedulers = [
        one.model_copy(update={"image_pull_secrets": _union(one.image_pull_secrets, more)})
        if one.image_pull_secrets
        else one
        for one in settings.schedulers
    ]
    secrets = _union(defaults.image_pull_secrets, more)
    changed = defaults.model_copy(update={"image": image, "image_pull_secrets": secrets})
    return settings.model_copy(update={"scheduler_defaults": changed, "schedulers": tuple(schedulers)})


def _union(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*some, *more)))


def _read(text: str) -> Any:
    try:
        read = document(text.encode(errors="surrogatepass"), VALUES_MAX)
    except ValueError as error:
        raise InvalidObjectError([FieldError((), f"the settings are not one YAML document: {error}")]) from None
    return {} if read is None else read
