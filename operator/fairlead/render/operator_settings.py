"""The operator's settings as a whole, read from one YAML document."""

from typing import Annotated, Literal

import yaml
from pydantic import Field

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.names import GROUP
from fairlead.api.params import Listed, Params
from fairlead.api.parse import parse_params
from fairlead.api.values import Shape
from fairlead.render.settings import THE_DEFAULT, SchedulerSettings

_PREFIX = Shape(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[-\w.]*",
    "write the beginning of keys with its '/', such as example.com/",
)


class TlsSettings(Params):
    """Where certificates come from."""

    mode: Literal["SelfManaged", "CertManager", "Provided"] = "SelfManaged"
    """SelfManaged: an authority of the operator's own. Otherwise the Secret fairlead-webhook-tls is there: tls.crt and
    tls.key are what the operator shows, ca.crt is the authority of those who call it."""


class OperatorSettings(Params):
    """What the operator is told."""

    schedulers: Annotated[Listed[SchedulerSettings], Field(max_length=200)] = ()
    """Those that are not listed have the defaults of everything."""
    tls: TlsSettings = TlsSettings()
    """Where certificates come from."""
    annotation_prefixes: Annotated[
        Listed[Annotated[str, Field(max_length=253), _PREFIX]], Field(min_length=1, max_length=16)
    ] = (f"{GROUP}/",)
    """What the keys of annotations begin with that policies may write on pods."""

    def scheduler(self, name: str) -> SchedulerSettings:
        """What is said about a scheduler. Raises InvalidObjectError for one that must be listed and is not."""
        found = next((one for one in self.schedulers if one.name == name), None)
        if found is None and name == THE_DEFAULT:
            why = f"{name} is not listed, and is never managed"
            raise InvalidObjectError([FieldError(("schedulers",), why, "list it with management ConfigOnly")])
        return found or SchedulerSettings(name=name)


def parse_settings(text: str) -> OperatorSettings:
    """From YAML; nothing at all is the defaults. Raises InvalidObjectError."""
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise InvalidObjectError([FieldError((), f"the settings are not one document of YAML: {said}")]) from None
    return parse_params({} if read is None else read, OperatorSettings)
