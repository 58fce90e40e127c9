"""Mode of a policy: how much of what it says is in force.

It is read from the object alone, so that it counts whether or not anything else in the object can be read.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

Mode = Literal["Enforce", "Shadow", "Disabled"]
"""Its rules decide; they are evaluated for real calls and decide nothing; or they are not evaluated."""
RuleMode = Literal["Enforce", "Shadow"]
"""Mode of one rule; of it and the mode of its policy, the weaker one holds."""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
"""All modes, the strongest first."""


def mode_of(obj: Mapping[str, Any]) -> Mode | None:
    """Return the mode of a policy; None if it cannot be read, which changes nothing."""
    spec = obj.get("spec")
    mode = spec.get("mode") if isinstance(spec, Mapping) else ""
    if mode is False:  # `off` is what YAML reads as false
        return "Disabled"
    if mode is None:
        return "Enforce"
    return mode if isinstance(mode, str) and mode in MODES else None


def weaker(first: Mode, second: Mode) -> Mode:
    """Return the one of two modes under which less is in force."""
    return max(first, second, key=MODES.index)
