"""Status of a policy after the operator was uninstalled; pure.

Nothing writes statuses then, and one that says Ready would be believed, also by those who wait for it after the next
install.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from fairlead.api.names import scheduler_of
from fairlead.control.status.conditions import Condition, ConditionValue, condition_of

Obj = Mapping[str, Any]
_MESSAGE: Final = "the operator was uninstalled: nothing enforces this policy until it is installed again"
_SHOWN: Final = 20
_IN_EFFECT: Final = ConditionValue("False", "Uninstalled", _MESSAGE)
_VALUES: Final[Mapping[str, ConditionValue]] = {
    "Programmed": _IN_EFFECT,
    "DataReady": ConditionValue("Unknown", "Uninstalled", _MESSAGE),
    "Published": ConditionValue("False", "Uninstalled", _MESSAGE),
    "LearnedStateUnreadable": ConditionValue("False", "Uninstalled", _MESSAGE),
    "Ready": _IN_EFFECT,
    "Reconciling": ConditionValue("False", "Uninstalled"),
    "Stalled": ConditionValue("False", "Uninstalled"),
}
"""Conditions that are true no longer. Those about the policy itself stay as they are."""


def uninstalled_status(policy: Obj, now: datetime) -> dict[str, Any] | None:
    """Return the status; None if it needs no change, because it says so already or says nothing."""
    before = policy.get("status", {})
    conditions = [_after(one, now) for one in before.get("conditions", ())]
    if conditions == [*before.get("conditions", ())]:
        return None
    generation = policy["metadata"]["generation"]
    return {
        "observedGeneration": before.get("observedGeneration", generation),
        "conditions": conditions,
        "scheduler": {"name": scheduler_of(policy)},
    }


def pods_left(scheduler: str, pods: Sequence[Obj]) -> Iterator[str]:
    """Yield the pods that name a scheduler, as text: those that wait first."""
    if pods:
        pending = sum(not one["spec"].get("nodeName") for one in pods)
        yield f"pods that name the scheduler {scheduler}: {len(pods)}, pending: {pending}"
    for one in sorted(pods, key=lambda one: bool(one["spec"].get("nodeName")))[:_SHOWN]:
        where = one["spec"].get("nodeName")
        yield f"  {one['metadata']['namespace']}/{one['metadata']['name']}{f' (on {where})' if where else ''}"
    if len(pods) > _SHOWN:
        yield f"  ...and {len(pods) - _SHOWN} more"


def _after(condition: Condition, now: datetime) -> Condition:
    value = _VALUES.get(condition["type"])
    if value is None:
        return condition
    generation = condition.get("observedGeneration", 0)
    return condition_of(condition["type"], value, generation, condition, now.strftime("%Y-%m-%dT%H:%M:%SZ"))
