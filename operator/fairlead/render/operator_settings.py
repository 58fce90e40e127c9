"""The operator's settings as a whole, read from one YAML document."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, GROUP
from fairlead.api.params import Check, Listed, Params
from fairlead.api.parse import parse_params
from fairlead.api.values import Duration, LabelValue, Name, ObjectName, QualifiedKey, Shape, within
from fairlead.pki.parsing import digest

KUBE_SCHEDULER = "registry.k8s.io/kube-scheduler"


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what YAML can say and JSON cannot."""
    failed = [(path, "is no JSON: put it in quotes") for path in _no_json(value)]
    if failed:
        raise PydanticCustomError("failed_checks", "something is no JSON", {"failed": failed})
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
"""Something that Kubernetes knows and we pass on."""

_SAMPLE = Shape("Auto|([1-9][0-9]?|100)%", "write Auto, or a share of the nodes from 1% to 100%")
_REPOSITORY = Shape(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+",
    "write a registry and a path, such as registry.example/kube-scheduler; its tag stands under tag",
)
_TAG = Shape(r"(\w[-\w.]{0,127})?", "write a tag such as v1.37.1")
_DIGEST = Shape("(sha256:[0-9a-f]{64})?", "write sha256: and 64 hexadecimal digits")
_EXTENDED = Shape(
    r"(?!requests\.)(?!([-a-z0-9.]+\.)?kubernetes\.io/)[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?",
    "write an extended resource such as example.com/gpu",
)


class ManagedResource(Params):
    """An extended resource that policies account for, so that the scheduler must not."""

    name: Annotated[str, Field(max_length=240), _EXTENDED]
    """The resource, such as example.com/gpu."""
    ignored_by_scheduler: bool
    """true: the scheduler does not count whether a node has enough of it."""

    @classmethod
    def checks(cls) -> tuple[Check, ...]:
        """The other thing that kube-scheduler does with it would take pods away from policies that match them."""
        message = "must be true: which pods a policy is for is said by its match; leave out a resource that is counted"
        return (_check(lambda self: self.ignored_by_scheduler, message, "ignoredByScheduler"),)


class Image(Params):
    """Where kube-scheduler comes from. A digest wins over a tag."""

    repository: Annotated[str, _REPOSITORY] = KUBE_SCHEDULER
    """Registry and path."""
    tag: Annotated[str, _TAG] = ""
    """The version. Empty: that of the API server, the lowest of several."""
    digest: Annotated[str, _DIGEST] = ""
    """The very image, as sha256:..."""


class Placement(Params):
    """Where the scheduler's own pods run."""

    node_selector: dict[QualifiedKey, LabelValue] = Field(default_factory=dict)
    """Labels of the nodes."""
    tolerations: Listed[_Free] = ()
    """Taints that do not matter, as in a pod."""
    affinity: _Free = Field(default_factory=dict)
    """As in a pod."""
    priority_class_name: Annotated[str, Field(max_length=253)] = ""
    """Such as system-cluster-critical."""


class Resources(Params):
    """What a container of the scheduler asks for."""

    requests: dict[QualifiedKey, str] = Field(default_factory=lambda: {"cpu": "100m", "memory": "128Mi"})
    """What it is given."""
    limits: dict[QualifiedKey, str] = Field(default_factory=dict)
    """What it may not exceed."""


class SchedulerSettings(Params):
    """One scheduler."""

    name: Name
    """What pods put in spec.schedulerName."""
    management: Literal["Managed", "ConfigOnly"] = "Managed"
    """Managed: the operator runs it. ConfigOnly: others do, with the configuration that the operator publishes."""
    replicas: Annotated[int, Field(ge=1, le=10)] = 2
    """How many pods; one of them leads."""
    node_sample: Annotated[str, _SAMPLE] = "Auto"
    """Of how many nodes it asks before it chooses. Auto: all of them up to 1000, above that what it thinks best."""
    timeout: Annotated[Duration, within("1s", "30s")] = Duration("1s")
    """How long it waits for an answer."""
    managed_resources: Annotated[Listed[ManagedResource], Field(max_length=64)] = ()
    """Extended resources that it does not count."""
    profile: _Free = Field(default_factory=dict)
    """A KubeSchedulerProfile, with plugins and pluginConfig."""
    image: Image = Image()
    """Where it comes from."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When the image is fetched."""
    image_pull_secrets: Annotated[Listed[ObjectName], Field(max_length=16)] = ()
    """Secrets of the operator's namespace with which it is fetched."""
    placement: Placement = Placement()
    """Where its pods run."""
    pod_max_backoff_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """The longest that a pod waits after it was refused, while others are in the queue."""
    resources: Resources = Resources()
    """What its pods ask for."""
    assigned_user_ids: bool = False
    """true: its pods name no user, because the cluster assigns one, as OpenShift does. Otherwise they run as 65532:
    the image of kube-scheduler names no user but root."""

    @classmethod
    def checks(cls) -> tuple[Check, ...]:
        """What the cluster has already is never taken over, and what a profile is called is said once."""
        return (
            _check(
                lambda self: (self.name, self.management) != (CLUSTERS_OWN_SCHEDULER, "Managed"),
                f"{CLUSTERS_OWN_SCHEDULER} is the cluster's own and is never managed: set management to ConfigOnly, "
                "or give the scheduler another name",
                "management",
            ),
            _check(
                lambda self: "schedulerName" not in self.profile,
                "is the name of this entry: leave it out",
                "profile.schedulerName",
            ),
        )


def _check(holds: Callable[[Any], bool], message: str, field: str) -> Check:
    """Nobody but us reads settings: there is no rule for the API server."""
    return Check("", holds, message, field)


OPERATOR_NAME: Final = "fairlead"
"""What its objects are called where the chart is installed by the name that its README gives it."""
CHART_ONLY: Final = frozenset(
    {
        *("affinity", "commonLabels", "crds", "drainSeconds", "extraArgs", "extraEnv", "extraVolumes"),
        *("extraVolumeMounts", "fullnameOverride", "global", "image", "imagePullSecrets", "logLevel", "metrics"),
        *("networkPolicy", "nodeSelector", "podAnnotations", "podLabels", "priorityClassName", "replicas", "resources"),
        *("service", "serviceAccount", "tolerations", "topologySpreadConstraints", "uninstall"),
    }
)
"""The chart's other values: of the operator itself."""
CHART_ONLY_OF: Final = {"admission": frozenset({"enabled"}), "tls": frozenset({"caBundle", "issuerRef"})}
_PREFIX = Shape(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[-\w.]*",
    "write the beginning of keys with its '/', such as example.com/",
)


class TlsSettings(Params):
    """Where certificates come from."""

    mode: Literal["SelfManaged", "CertManager", "Provided"] = "SelfManaged"
    """SelfManaged: an authority of the operator's own. Otherwise the Secret fairlead-webhook-tls is there: tls.crt and
    tls.key are what the operator shows, ca.crt is the authority of those who call it."""


def _authorities(pem: str) -> str:
    if pem:
        try:
            digest(pem.encode())
        except ValueError:
            raise PydanticCustomError(
                "shape", "{message}", {"message": "write certificates as PEM, or nothing"}
            ) from None
    return pem


class AdmissionSettings(Params):
    """What is wrong with a policy, said at `kubectl apply`. It is never in the way: failurePolicy is Ignore."""

    client_ca: Annotated[str, Field(max_length=65536, alias="clientCA"), AfterValidator(_authorities)] = ""
    """The authority, as PEM, of the certificate that the API server shows by its --admission-control-config-file: who
    has none of it is not answered. Empty: the API server need not show one, and every pod may ask."""


class OperatorSettings(Params):
    """What the operator is told."""

    schedulers: Annotated[Listed[SchedulerSettings], Field(max_length=200)] = ()
    """Those that are not listed have the defaults of everything."""
    unlisted_schedulers: Literal["Allow", "Deny"] = "Allow"
    """Whether policies may name schedulers that are not listed. Deny: such policies are refused, and a scheduler that
    runs for them goes 10 minutes later."""
    max_unlisted_schedulers: Annotated[int, Field(ge=0, le=200)] = 10
    """How many that are not listed may be there at once. Nothing that runs is stopped for it; of the others those begin
    first whose oldest policy is oldest."""
    assigned_user_ids: bool = False
    """true: no scheduler's pods name a user, because the cluster assigns one. The chart sees OpenShift by itself."""
    tls: TlsSettings = TlsSettings()
    """Where certificates come from."""
    admission: AdmissionSettings = AdmissionSettings()
    """What is wrong with a policy, said at `kubectl apply`."""
    annotation_prefixes: Annotated[
        Listed[Annotated[str, Field(max_length=253), _PREFIX]], Field(min_length=1, max_length=16)
    ] = (f"{GROUP}/",)
    """What the keys of annotations begin with that policies may write on pods."""

    def lists(self, name: str) -> bool:
        """Whether something is said about a scheduler."""
        return any(one.name == name for one in self.schedulers)

    def has_room(self, there: Iterable[str]) -> bool:
        """Whether another one that is not listed may be beside those that are there."""
        unlisted = sum(not self.lists(one) for one in there)
        return self.unlisted_schedulers == "Allow" and unlisted < self.max_unlisted_schedulers

    def scheduler(self, name: str) -> SchedulerSettings:
        """What is said about a scheduler. Raises InvalidObjectError for one that must be listed and is not."""
        found = next((one for one in self.schedulers if one.name == name), None)
        if found is None and name == CLUSTERS_OWN_SCHEDULER:
            why = f"{name} is not listed, and is never managed"
            raise InvalidObjectError([FieldError(("schedulers",), why, "list it with management ConfigOnly")])
        found = found or SchedulerSettings(name=name)
        return found.model_copy(update={"assigned_user_ids": True}) if self.assigned_user_ids else found


def parse_settings(text: str) -> OperatorSettings:
    """From YAML; nothing at all is the defaults. Raises InvalidObjectError."""
    return parse_params(_read(text), OperatorSettings)


@dataclass(frozen=True, slots=True)
class ChartValues:
    """What of the chart's values decides what schedulers are made of."""

    settings: OperatorSettings
    fullname: str
    """Of the operator, and of the Service that schedulers call."""


def parse_values(text: str) -> ChartValues:
    """From the values that somebody gives the chart, or the settings that it makes of them.

    What only the chart reads is passed over, and what nobody reads is refused. Raises InvalidObjectError.
    """
    read = _read(text)
    if not isinstance(read, dict):
        return ChartValues(parse_params(read, OperatorSettings), OPERATOR_NAME)
    given: dict[str, Any] = {key: value for key, value in read.items() if key not in CHART_ONLY}
    for part, chart_only in CHART_ONLY_OF.items():
        if isinstance(said := given.get(part), dict):
            given[part] = {key: value for key, value in said.items() if key not in chart_only}
    fullname = read.get("fullnameOverride") or OPERATOR_NAME
    if not isinstance(fullname, str):
        raise InvalidObjectError([FieldError(("fullnameOverride",), "must be a string")])
    return ChartValues(parse_params(given, OperatorSettings), fullname)


def _read(text: str) -> Any:
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise InvalidObjectError([FieldError((), f"the settings are not one document of YAML: {said}")]) from None
    except RecursionError:
        raise InvalidObjectError([FieldError((), "the settings are nested too deeply")]) from None
    return {} if read is None else read
