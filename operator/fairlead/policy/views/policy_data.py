"""Values of a policy's data on one node, as expressions and strategies read them."""

from collections.abc import Mapping

from fairlead.cel.values.errors import CelError, Kind
from fairlead.strategies.facts import Unknown


class MissingDataError(CelError):
    """An entry of data has no usable value."""

    __slots__ = ("unknown",)

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(Kind.MISSING_DATA, str(unknown))
        self.unknown = unknown


class Data(dict[str, float]):
    """A policy's data on one node: a map of the usable values, and a function that says why another is not usable."""

    __slots__ = ("missing", "times")

    def __init__(
        self,
        values: Mapping[str, float] | None = None,
        missing: Mapping[str, Unknown] | None = None,
        times: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(values or {})
        self.missing = missing or {}
        self.times = times or {}

    def __missing__(self, name: str) -> float:
        why = self(name)
        raise MissingDataError(why if isinstance(why, Unknown) else Unknown(f"data {name}", "is missing"))

    def __call__(self, name: str) -> float | Unknown:
        """Return the value of an entry, or why there is none."""
        found = self.get(name)
        if found is not None:
            return found
        return self.missing.get(name) or Unknown(f"data {name}", "is missing")
