"""Mode of a policy: how much of what it says is in force.

It is read from the object alone, so that it counts whether or not anything else in the object can be read.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

Mode = Literal["Enforce", "Shadow", "Disabled"]
"""Its rules decide; they are evaluated for real calls and decide nothing; or they are not evaluated."""
RuleMode = Literal["Enforce", "Shadow"]
"""Mode of one rule; of it and the mode of its policy, the weaker one holds."""
RULE_LISTS: Final = (("filters",), ("scores",), ("preemption", "protect"), ("binding", "annotations"))
"""Paths in a spec of the lists of rules that have a mode of their own."""
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


def are_all_in_shadow(obj: Mapping[str, Any]) -> bool:
    """Return whether a policy has rules, and each of them says `mode: Shadow`.

    Device shares and gangs have no mode; nor has what cannot be read.
    """
    if not isinstance(spec := obj.get("spec"), Mapping):
        return False
    protect, others = _taken(spec.get("preemption"), "protect")
    annotations, bound = _taken(spec.get("binding"), "annotations")
    written = [one for one in (spec.get("filters"), spec.get("scores"), protect, annotations) if one is not None]
    lists = [one for one in written if isinstance(one, list)]
    if others or bound or len(lists) < len(written):
        return False
    rules = [rule for one in lists for rule in one]
    return bool(rules) and all(isinstance(rule, Mapping) and rule.get("mode") == "Shadow" for rule in rules)


def decides_nothing(obj: Mapping[str, Any]) -> bool:
    """Return whether nothing of a policy decides, by its mode or those of its rules, whatever else it says."""
    return mode_of(obj) in ("Shadow", "Disabled") or are_all_in_shadow(obj)


def _taken(part: object, key: str) -> tuple[object, bool]:
    """Return what a part of a spec has by a key, and whether it says anything else."""
    if not isinstance(part, Mapping):
        return None, part is not None
    return part.get(key), any(value for name, value in part.items() if name != key)


def weaker(first: Mode, second: Mode) -> Mode:
    """Return the one of two modes under which less is in force."""
    return max(first, second, key=MODES.index)
