"""Requests and limits of a container, as settings give them."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from fairlead.api.params import Params
from fairlead.api.values import QualifiedKey


def _as_text(value: object) -> object:
    """Return a number as the text of a quantity, as the API server reads `cpu: 1`; anything else as it is."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, bool) or not isinstance(value, int | float) else str(value)


_Amount = Annotated[str, BeforeValidator(_as_text, json_schema_input_type=str | float)]
"""A quantity such as 500m, "2" or 2."""


class ContainerResources(Params):
    """Resources of a container."""

    requests: dict[QualifiedKey, _Amount] = Field(default_factory=lambda: {"cpu": "100m", "memory": "128Mi"})
    """Requests, as in a container."""
    limits: dict[QualifiedKey, _Amount] = Field(default_factory=dict)
    """Limits, as in a container."""
