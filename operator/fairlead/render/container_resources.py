"""Requests and limits of a container, as settings give them."""

import re
from decimal import Decimal
from typing import Annotated, Final

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


_MEMORY: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,2})|([KMGTPE]i|[mkMGTPE]))?")
_FACTORS: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_SOFT: Final = Decimal("0.9")
"""Share of the limit that Go's heap may take: its stacks, and memory that is not Go's, need the rest."""


class ContainerResources(Params):
    """Resources of a container."""

    requests: dict[QualifiedKey, _Amount] = Field(default_factory=lambda: {"cpu": "100m", "memory": "128Mi"})
    """Requests, as in a container."""
    limits: dict[QualifiedKey, _Amount] = Field(default_factory=dict)
    """Limits, as in a container."""

    @property
    def soft_memory_limit(self) -> int | None:
        """Return the bytes from which on Go collects garbage earlier; None without a limit that can be read."""
        found = _MEMORY.fullmatch(self.limits.get("memory", ""))
        if found is None:
            return None
        number, exponent, suffix = found.groups()
        factor = Decimal(10) ** int(exponent) if exponent else _FACTORS[suffix or ""]
        return int(Decimal(number) * factor * _SOFT) or None
