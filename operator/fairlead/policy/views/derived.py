"""Values that are computed from a node and its pods on first access."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.policy.views.pod_usage import PlacedEntry
    from fairlead.strategies.facts import Amounts, ControllerRef


class Derived:
    """Values of a node, which do not depend on data or a victim."""

    __slots__ = ("capacity", "controlled", "free", "limits", "timed")

    def __init__(self) -> None:
        self.free: Amounts | None = None
        self.capacity: Amounts | None = None
        self.controlled: dict[tuple[str, ControllerRef], list[Any]] | None = None
        self.limits: tuple[Amounts, Mapping[str, int]] | None = None
        self.timed: Sequence[tuple[int, PlacedEntry]] | None = None
