"""Settings of schedulers. The docstrings of fields are the documentation of values."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fairlead.api.errors import FieldPath
from fairlead.api.names import GROUP
from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.values import Duration, LabelValue, Name, ObjectName, QualifiedKey, Shape, within
from fairlead.render.container_resources import ContainerResources
from fairlead.render.prometheus_settings import offline_check

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


Free = Annotated[dict[str, Any], AfterValidator(_plain)]
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

    node_selector: dict[QualifiedKey, LabelValue] = Field(default_factory=lambda: {"kubernetes.io/os": "linux"})
    """Labels that their nodes must have."""
    tolerations: Listed[Free] = ()
    """Tolerations, as in a pod."""
    affinity: Free = Field(default_factory=dict)
    """Affinity, as in a pod."""
    priority_class_name: Annotated[str, Field(max_length=253)] = ""
    """Priority class, such as system-cluster-critical."""


class _SecretReference(Params):
    """Reference to a Secret, as in a pod."""

    name: ObjectName
    """Name of the Secret."""


def _name_of(secret: object) -> object:
    """Return the name of a reference such as {name: mirror}; anything else as it is."""
    return secret["name"] if isinstance(secret, dict) and secret.keys() == {"name"} else secret


PullSecret = Annotated[ObjectName, BeforeValidator(_name_of, json_schema_input_type=ObjectName | _SecretReference)]
"""Name of a Secret, also written as a pod does, {name: ...}."""

_FLAG = Shape("--[a-z][-a-z0-9]*(=.*)?", "write one argument with its value, such as --logging-format=json")
_GATE = Shape("[A-Z][A-Za-z0-9]{0,99}", "write the name of a feature gate, such as OpportunisticBatching")
_OURS: Final = "is set by the operator: leave it out"
_IGNORED: Final = "is ignored beside --config: leave it out"
_OWN_FLAGS: Final = {
    "authorization-always-allow-paths": _OURS,
    "bind-address": _OURS,
    "config": "is set by the operator: leave it out, and use profile",
    "contention-profiling": _IGNORED,
    "feature-gates": "has a field: set featureGates",
    "kube-api-burst": "is ignored beside --config: set burst",
    "kube-api-content-type": _IGNORED,
    "kube-api-qps": "is ignored beside --config: set qps",
    "kubeconfig": _IGNORED,
    "leader-elect": _OURS,
    "profiling": _IGNORED,
    "secure-port": _OURS,
    "v": "has a field: set verbosity",
    "write-config-to": "would end the scheduler: leave it out",
}
_OWN_LABELS: Final = ("app.kubernetes.io/", f"{GROUP}/")
_OWN_ANNOTATIONS: Final = (f"{GROUP}/",)


def _own_flags(settings: "SchedulerDefaults") -> list[tuple[int, str]]:
    """Return the places of arguments that must not be given, each with the reason."""
    flags = [argument.removeprefix("--").partition("=")[0] for argument in settings.extra_args]
    whys = [_OWN_FLAGS.get("leader-elect" if flag.startswith("leader-elect-") else flag) for flag in flags]
    return [(index, f"--{flags[index]} {why}") for index, why in enumerate(whys) if why]


def _own_keys(field: str, of: Callable[[Any], Mapping[str, str]], prefixes: tuple[str, ...]) -> FieldCheck:
    """Return a check that no key is one of those that the operator writes."""

    def first(self: object) -> str:
        return next((key for key in of(self) if key.startswith(prefixes)), "")

    message = "the operator sets such keys itself: use another one"
    return FieldCheck("", lambda self: not first(self), message, field, below=lambda self: (first(self),))


class SchedulerDefaults(Params):
    """Settings that every scheduler has, unless its entry in `schedulers` sets them."""

    management: Literal["Managed", "ConfigOnly"] = "Managed"
    """Managed: the operator runs the scheduler. ConfigOnly: you run it, with the configuration that the operator
    publishes."""
    replicas: Annotated[int, Field(ge=1, le=10)] = 2
    """Number of pods; one of them leads."""
    node_sample: Annotated[str, _SAMPLE] = "Auto"
    """Share of the nodes that it asks about before it chooses (percentageOfNodesToScore). Auto: all nodes in clusters
    of up to 1000 nodes, the scheduler's own choice in larger ones; always all nodes if a policy has a filter
    topology."""
    timeout: Annotated[Duration, within("1s", "30s")] = Duration("1s")
    """Time that it waits for an answer of the operator."""
    managed_resources: Annotated[Listed[ManagedResource], Field(max_length=64)] = ()
    """Extended resources that the scheduler does not count."""
    profile: Free = Field(default_factory=dict)
    """A KubeSchedulerProfile, with plugins and pluginConfig."""
    image: Image = Image()
    """Image of kube-scheduler."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """Pull policy of the image."""
    image_pull_secrets: Annotated[Listed[PullSecret], Field(max_length=16)] = ()
    """Pull Secrets of the image, in the operator's namespace: names, or objects with a name."""
    placement: PodPlacement = PodPlacement()
    """Placement of its pods."""
    pod_labels: dict[QualifiedKey, LabelValue] = Field(default_factory=dict)
    """Additional labels of its pods, such as those that a service mesh reads."""
    pod_annotations: dict[QualifiedKey, str] = Field(default_factory=dict)
    """Additional annotations of its pods."""
    pod_max_backoff_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Maximum back-off of a pod that was rejected, while other pods are in the queue."""
    resources: ContainerResources = ContainerResources()
    """Resources of its container."""
    assigned_user_ids: bool = False
    """true: its pods do not set a user, because the cluster assigns one, as OpenShift does. false: they run as 65532,
    because the image of kube-scheduler would run as root."""
    verbosity: Annotated[int, Field(ge=0, le=10)] = 0
    """Level of its log (--v). 10 logs each node of each pod."""
    extra_args: Annotated[Listed[Annotated[str, Field(max_length=4096), _FLAG]], Field(max_length=64)] = ()
    """Additional arguments of kube-scheduler, such as --logging-format=json."""
    feature_gates: Annotated[dict[Annotated[str, _GATE], bool], Field(max_length=64)] = Field(default_factory=dict)
    """Feature gates of kube-scheduler. One that it does not know keeps it from starting."""
    groups: Literal["Auto", "Off"] = "Off"
    """Kubernetes' own groups of pods (PodGroup). Auto: the scheduler places them where it and all API servers are 1.37
    or newer and the API is served (feature gate GenericWorkload); the status of policies says whether, and why.
    "Off" needs its quotes in YAML."""
    parallelism: Annotated[int, Field(ge=1, le=1024)] = 16
    """Number of nodes that it looks at in parallel for a pod."""
    qps: Annotated[int, Field(ge=1, le=100_000)] = 500
    """Requests to the API server per second. Each pod needs two: with kube-scheduler's own 50 it places 25 a second."""
    burst: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Requests to the API server at once, before `qps` limits them."""
    gogc: Annotated[int, Field(ge=25, le=10_000)] = 400
    """Growth of its heap, in percent, after which it collects garbage (GOGC). The calls of any extender make garbage:
    with Go's own 100 it collects four times as often. Near its memory limit it collects earlier (GOMEMLIMIT)."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the checks: what the operator sets itself is not set a second time."""
        return (
            offline_check(
                lambda self: "schedulerName" not in self.profile,
                "is the name of the scheduler: leave it out",
                "profile.schedulerName",
            ),
            FieldCheck(
                "",
                lambda self: not _own_flags(self),
                "",
                "extraArgs",
                message_of=lambda self: _own_flags(self)[0][1],
                below=lambda self: (_own_flags(self)[0][0],),
            ),
            _own_keys("podLabels", lambda self: self.pod_labels, _OWN_LABELS),
            _own_keys("podAnnotations", lambda self: self.pod_annotations, _OWN_ANNOTATIONS),
        )


class _Named(Params):
    name: Name
    """Name that pods set in spec.schedulerName."""


class SchedulerSettings(SchedulerDefaults, _Named):
    """Settings of one scheduler."""

    def over(self, defaults: SchedulerDefaults) -> "SchedulerSettings":
        """Return the settings with what they do not set taken from the defaults."""
        return _over(defaults, self)


P = TypeVar("P", bound=Params)


def _over(defaults: Params, own: P) -> P:
    """Return what was set over the defaults, field by field; lists, and maps whose keys people choose, are whole."""
    taken: dict[str, Any] = {}
    for name in type(defaults).model_fields:
        default = getattr(defaults, name)
        if name not in own.model_fields_set:
            taken[name] = default
        elif isinstance(default, Params):
            taken[name] = _over(default, getattr(own, name))
    return own.model_copy(update=taken)
