"""Of how many nodes a scheduler asks before it chooses: design decision 14."""

from collections.abc import Mapping
from typing import Any, Final

ALL_UP_TO: Final = 1000
ALL_AGAIN_UP_TO: Final = 800
"""A change rolls the scheduler: a cluster that breathes around a thousand nodes must not cause one each time."""


def percentage(wanted: str, nodes: int | None, before: bool | None) -> int | None:  # noqa: FBT001 - a state, not a switch
    """The percentageOfNodesToScore for a setting; None: what the scheduler thinks best. `before` is of `asked_all`."""
    if wanted != "Auto":
        return int(wanted.removesuffix("%"))
    if nodes is None:
        return None if before is False else 100
    return 100 if nodes <= (ALL_AGAIN_UP_TO if before is False else ALL_UP_TO) else None


def asked_all(config: Mapping[str, Any] | None) -> bool | None:
    """Whether a scheduler that has this configuration asks all nodes; None where `Auto` has not decided yet."""
    if config is None:
        return None
    return {100: True, None: False}.get(config.get("percentageOfNodesToScore"))
