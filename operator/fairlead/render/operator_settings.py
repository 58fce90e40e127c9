"""The operator's settings as a whole, read from one YAML document."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, GROUP
from fairlead.api.params import Listed, Params
from fairlead.api.parse import parse_params
from fairlead.api.values import Shape
from fairlead.pem import digest
from fairlead.render.settings import SchedulerSettings

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
        return found or SchedulerSettings(name=name)


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
