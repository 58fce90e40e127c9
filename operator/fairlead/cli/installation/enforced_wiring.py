"""Verbs that a scheduler would call in addition if what is in shadow of a policy were enforced. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from fairlead.api.errors import InvalidObjectError
from fairlead.api.mode import decides_nothing
from fairlead.api.names import scheduler_of
from fairlead.api.parse import parse_policy
from fairlead.api.rules import Annotation, FilterSpec, Protection, ScoreSpec
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, Spec
from fairlead.render.extenders import Wiring, wire

Obj = Mapping[str, Any]
R = TypeVar("R", FilterSpec, ScoreSpec, Protection, Annotation)
_PARTS: Final[Mapping[str, str]] = {
    "fails": "its pods wait while no replica of the operator answers",
    "ignores": "it calls filter and preempt for policies with failurePolicy Ignore",
    "scores": "it calls prioritize",
    "binds": "it calls bind",
    "hold_s": "it waits longer for answers to bind",
    "asks_all": "it asks about all nodes instead of a sample",
}
"""Meaning of each part of a wiring for the scheduler."""


def wiring_added(policies: Iterable[Obj], name: str, model: type[SchedulerExtenderPolicy]) -> Sequence[str] | None:
    """Return what the scheduler of a policy would do in addition; none: its pods would not be rolled.

    None if the policy cannot be read. Other policies of the scheduler that cannot be read count as they do for the
    operator.
    """
    of = {str(one["metadata"]["name"]): one for one in policies}
    scheduler = scheduler_of(of[name])
    rest = Wiring()
    for other, obj in of.items():
        if other != name and scheduler_of(obj) == scheduler and "deletionTimestamp" not in obj["metadata"]:
            rest |= _wiring(obj, model)
    try:
        policy = parse_policy(of[name], model)
    except InvalidObjectError:
        return None
    enforced = policy.model_copy(update={"spec": _enforced(policy.spec)})
    before, after = rest | wire([policy]), rest | wire([enforced])
    if (before.entries, before.asks_all) == (after.entries, after.asks_all):
        return ()
    return [meaning for part, meaning in _PARTS.items() if getattr(before, part) != getattr(after, part)]


def _wiring(obj: Obj, model: type[SchedulerExtenderPolicy]) -> Wiring:
    try:
        policy = parse_policy(obj, model)
    except InvalidObjectError:
        return Wiring(fails=not decides_nothing(obj))
    return wire([policy])


def _enforced(spec: Spec) -> Spec:
    """Return a spec as if all that is in shadow were enforced."""
    cleared = _with_rules(spec, lambda rules: tuple([one.model_copy(update={"mode": None}) for one in rules]))
    return cleared.model_copy(update={"mode": "Enforce" if spec.mode == "Shadow" else spec.mode})


def _with_rules(spec: Spec, change: Any) -> Spec:
    binding = spec.binding
    return spec.model_copy(
        update={
            "filters": change(spec.filters),
            "scores": change(spec.scores),
            "preemption": spec.preemption.model_copy(update={"protect": change(spec.preemption.protect)}),
            "binding": binding and binding.model_copy(update={"annotations": change(binding.annotations)}),
        }
    )
