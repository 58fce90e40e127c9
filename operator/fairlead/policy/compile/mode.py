"""Mode of a policy, read from its object alone: it counts whether or not anything else in the object can be read.

The mode of the newest object decides how much of any generation is in force. So `mode: Disabled` turns a policy off
also where the rules of the same edit do not compile.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from fairlead.policy.compile.model import CompiledPolicy

Mode = Literal["Enforce", "Disabled"]


def mode_of(obj: Mapping[str, Any]) -> Mode | None:
    """Return the mode of a policy; None if it cannot be read, which changes nothing."""
    spec = obj.get("spec")
    mode = spec.get("mode") if isinstance(spec, Mapping) else ""
    if mode is False:  # `off` is what YAML reads as false
        return "Disabled"
    if mode is None:
        return "Enforce"
    return cast("Mode", mode) if isinstance(mode, str) and mode in ("Enforce", "Disabled") else None


def in_mode(policy: CompiledPolicy, mode: Mode) -> CompiledPolicy:
    """Return a generation as it is in force under this mode, whatever its own is."""
    enforced = mode == "Enforce"
    return policy if policy.enforced == enforced else replace(policy, enforced=enforced)
