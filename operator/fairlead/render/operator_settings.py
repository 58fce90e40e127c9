"""Settings of the operator, read from one YAML document. The docstrings of fields are the documentation of values."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, GROUP
from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.parse import parse_params
from fairlead.api.values import Duration, LabelValue, Name, ObjectName, QualifiedKey, Shape, within
from fairlead.pki.parsing import digest
from fairlead.plain_data import document
from fairlead.render.container_resources import ContainerResources
from fairlead.render.prometheus_settings import PrometheusServer, offline_check

VALUES_MAX: Final = 100_000
"""Greatest number of values in the settings, aliases expanded."""
KUBE_SCHEDULER = "registry.k8s.io/kube-scheduler"


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return the value; raise for what YAML can express and JSON cannot."""
    failed = [(path, "is not JSON: put it in quotes") for path in _no_json(value)]
    if failed:
        raise PydanticCustomError("failed_checks", "a value is not JSON", {"failed": failed})
    return value


def _no_json(value: object, path: FieldPath = ()) -> Iterator[FieldPath]:
    match value:
        case dict():
            for key, one in value.items():
                yield from _no_json(one, (*path, str(key))) if _is_text(key) else [(*path, ascii(key))]
        case list():
            for index, one in enumerate(value):
                yield from _no_json(one, (*path, index))
        case None | bool() | int():
            pass
        case float() if math.isfinite(value):
            pass
        case _ if not _is_text(value):
            yield path


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


_Free = Annotated[dict[str, Any], AfterValidator(_plain)]
"""A part of a Kubernetes object that is passed on unchanged."""

_SAMPLE = Shape("Auto|([1-9][0-9]?|100)%", "write Auto, or a percentage from 1% to 100%")
_REPOSITORY = Shape(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+",
    "write a registry and a path, such as registry.example/kube-scheduler; the tag belongs under tag",
)
_TAG = Shape(r"(\w[-\w.]{0,127})?", "write a tag such as v1.37.1")
_DIGEST = Shape("(sha256:[0-9a-f]{64})?", "write sha256: and 64 hexadecimal digits")
_EXTENDED = Shape(
    r"(?!requests\.)(?!([-a-z0-9.]+\.)?kubernetes\.io/)[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?",
    "write an extended resource such as example.com/gpu",
)


class ManagedResource(Params):
    """An extended resource that policies account for instead of the scheduler."""

    name: Annotated[str, Field(max_length=240), _EXTENDED]
    """The resource, such as example.com/gpu."""
    ignored_by_scheduler: bool
    """true: the scheduler does not check whether a node has enough of it."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the check that it is true: otherwise kube-scheduler sends us only pods that request the resource."""
        message = "must be true: a policy selects pods by its match; leave out a resource that the scheduler counts"
        return (offline_check(lambda self: self.ignored_by_scheduler, message, "ignoredByScheduler"),)


class Image(Params):
    """Image of kube-scheduler. A digest takes precedence over a tag."""

    repository: Annotated[str, _REPOSITORY] = KUBE_SCHEDULER
    """Registry and path."""
    tag: Annotated[str, _TAG] = ""
    """Version. Empty: the version of the API server, the lowest one if several differ."""
    digest: Annotated[str, _DIGEST] = ""
    """Digest of the image, as sha256:..."""


class PodPlacement(Params):
    """Placement of the scheduler's own pods."""

    node_selector: dict[QualifiedKey, LabelValue] = Field(default_factory=dict)
    """Labels that their nodes must have."""
    tolerations: Listed[_Free] = ()
    """Tolerations, as in a pod."""
    affinity: _Free = Field(default_factory=dict)
    """Affinity, as in a pod."""
    priority_class_name: Annotated[str, Field(max_length=253)] = ""
    """Priority class, such as system-cluster-critical."""


class SchedulerSettings(Params):
    """Settings of one scheduler."""

    name: Name
    """Name that pods set in spec.schedulerName."""
    management: Literal["Managed", "ConfigOnly"] = "Managed"
    """Managed: the operator runs the scheduler. ConfigOnly: you run it, with the configuration that the operator
    publishes."""
    replicas: Annotated[int, Field(ge=1, le=10)] = 2
    """Number of pods; one of them leads."""
    node_sample: Annotated[str, _SAMPLE] = "Auto"
    """Share of the nodes that it asks about before it chooses (percentageOfNodesToScore). Auto: all nodes in clusters
    of up to 1000 nodes, the scheduler's own choice in larger ones."""
    timeout: Annotated[Duration, within("1s", "30s")] = Duration("1s")
    """How long it waits for an answer of the operator."""
    managed_resources: Annotated[Listed[ManagedResource], Field(max_length=64)] = ()
    """Extended resources that the scheduler does not count."""
    profile: _Free = Field(default_factory=dict)
    """A KubeSchedulerProfile, with plugins and pluginConfig."""
    image: Image = Image()
    """Image of kube-scheduler."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """Pull policy of the image."""
    image_pull_secrets: Annotated[Listed[ObjectName], Field(max_length=16)] = ()
    """Pull Secrets of the image, in the operator's namespace."""
    placement: PodPlacement = PodPlacement()
    """Placement of its pods."""
    pod_max_backoff_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Maximum back-off of a pod that was rejected, while other pods are in the queue."""
    resources: ContainerResources = ContainerResources()
    """Resources of its container."""
    assigned_user_ids: bool = False
    """true: its pods do not set a user, because the cluster assigns one, as OpenShift does. false: they run as 65532,
    because the image of kube-scheduler would run as root."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the checks: the cluster's own scheduler is never managed, and a profile is named only once."""
        return (
            offline_check(
                lambda self: (self.name, self.management) != (CLUSTERS_OWN_SCHEDULER, "Managed"),
                f"{CLUSTERS_OWN_SCHEDULER} is the cluster's own scheduler and is never managed: set management to "
                "ConfigOnly, or give the scheduler another name",
                "management",
            ),
            offline_check(
                lambda self: "schedulerName" not in self.profile,
                "is the name of this entry: leave it out",
                "profile.schedulerName",
            ),
        )


OPERATOR_NAME: Final = "fairlead"
"""Name of its objects if the release has the name that the chart's README uses."""
CHART_ONLY: Final = frozenset(
    {
        *("affinity", "commonLabels", "crds", "drainSeconds", "explainRole", "extraArgs", "extraEnv", "extraVolumes"),
        *("extraVolumeMounts", "fullnameOverride", "global", "image", "imagePullSecrets", "logLevel", "metrics"),
        *("networkPolicy", "nodeSelector", "podAnnotations", "podLabels", "priorityClassName", "replicas", "resources"),
        *("service", "serviceAccount", "tolerations", "topologySpreadConstraints", "uninstall"),
    }
)
"""Values that only the chart reads: they configure the operator itself."""
CHART_ONLY_OF: Final = {"admission": frozenset({"enabled"}), "tls": frozenset({"caBundle", "issuerRef"})}
_PREFIX = Shape(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[-\w.]*",
    "write the prefix of the keys including '/', such as example.com/",
)


class TlsSettings(Params):
    """Source of certificates."""

    mode: Literal["SelfManaged", "CertManager", "Provided"] = "SelfManaged"
    """SelfManaged: the operator has its own certificate authority. CertManager: cert-manager issues the certificates.
    Provided: you create the Secrets. With the last two, the Secret fairlead-webhook-tls must exist: tls.crt and tls.key
    are the server certificate, ca.crt is the authority of its callers."""


def _authorities(pem: str) -> str:
    if pem:
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


class OperatorSettings(Params):
    """Settings of the operator."""

    schedulers: Annotated[Listed[SchedulerSettings], Field(max_length=200)] = ()
    """Settings per scheduler. Schedulers that are not listed have all defaults."""
    unlisted_schedulers: Literal["Allow", "Deny"] = "Allow"
    """Whether policies may name schedulers that are not listed. Deny: such policies are not accepted, and a scheduler
    that runs for them is deleted after 10 minutes."""
    max_unlisted_schedulers: Annotated[int, Field(ge=0, le=200)] = 10
    """Maximum number of schedulers that are not listed. It stops none; new ones start by their oldest policies."""
    max_policies: Annotated[int, Field(ge=1, le=5_000)] = 500
    """Maximum number of policies that serve. The oldest come first; of a newer one, its failurePolicy decides."""
    assigned_user_ids: bool = False
    """true: the pods of schedulers do not set a user, because the cluster assigns one. The chart detects OpenShift."""
    tls: TlsSettings = TlsSettings()
    """Source of certificates."""
    admission: AdmissionSettings = AdmissionSettings()
    """Check of policies at `kubectl apply`."""
    claim_namespace: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = "kube-system"
    """Namespace of the Lease by which one operator manages the policies of the cluster; it must exist. With another
    one than kube-system, such as the release's own, nothing is written in kube-system: set it where that is denied, as
    on GKE Autopilot. Anyone who may write Leases in it can keep the operator from leading."""
    annotation_prefixes: Annotated[
        Listed[Annotated[str, Field(max_length=253), _PREFIX]], Field(min_length=1, max_length=16)
    ] = (f"{GROUP}/",)
    """Prefixes of the annotation keys that policies may set on pods."""
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
        found = found or SchedulerSettings(name=name)
        return found.model_copy(update={"assigned_user_ids": True}) if self.assigned_user_ids else found


def parse_settings(text: str) -> OperatorSettings:
    """Return the settings in a YAML text; an empty text means all defaults. Raises InvalidObjectError."""
    return parse_params(_read(text), OperatorSettings)


@dataclass(frozen=True, slots=True)
class ChartValues:
    """Values of the chart that decide the objects of schedulers."""

    settings: OperatorSettings
    fullname: str
    """Name of the operator's objects, and of the Service that schedulers call."""


def parse_values(text: str) -> ChartValues:
    """Return what matters of a values file of the chart, or of the settings that the chart makes of it.

    Values that only the chart reads are ignored. Raises InvalidObjectError for a value that does not exist.
    """
    read = _read(text)
    if not isinstance(read, dict):
        return ChartValues(parse_params(read, OperatorSettings), OPERATOR_NAME)
    fields: dict[str, Any] = {key: value for key, value in read.items() if key not in CHART_ONLY}
    for part, chart_only in CHART_ONLY_OF.items():
        if isinstance(message := fields.get(part), dict):
            fields[part] = {key: value for key, value in message.items() if key not in chart_only}
    if not isinstance(fullname := read.get("fullnameOverride") or OPERATOR_NAME, str):
        raise InvalidObjectError([FieldError(("fullnameOverride",), "must be a string")])
    return ChartValues(parse_params(fields, OperatorSettings), fullname)


def _read(text: str) -> Any:
    try:
        read = document(text.encode(errors="surrogatepass"), VALUES_MAX)
    except ValueError as error:
        raise InvalidObjectError([FieldError((), f"the settings are not one YAML document: {error}")]) from None
    return {} if read is None else read
