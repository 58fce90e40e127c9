"""Objects that a person wrote into a file, as the API server would store them."""

from collections.abc import Mapping
from typing import Any, Final

Object = dict[str, Any]

AMOUNTS: Final = frozenset({"allocatable", "capacity", "limits", "overhead", "requests"})
"""Fields whose values are quantities."""


def with_text_amounts(value: Any, *, amounts: bool = False) -> Any:
    """Return an object, or a part of one, whose amounts that are numbers are texts."""
    if isinstance(value, Mapping):
        return {key: with_text_amounts(one, amounts=amounts or key in AMOUNTS) for key, one in value.items()}
    if isinstance(value, list):
        return [with_text_amounts(one) for one in value]
    return str(value) if amounts and isinstance(value, int | float) and not isinstance(value, bool) else value


def with_default_requests(pod: Object) -> Object:
    """Return a pod of which each container requests at least what it limits."""
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return pod
    fields = (name for name in ("initContainers", "containers") if isinstance(spec.get(name), list))
    return {**pod, "spec": {**spec, **{name: [_container(one) for one in spec[name]] for name in fields}}}


def _container(value: Any) -> Any:
    resources = value.get("resources") if isinstance(value, Mapping) else None
    if not isinstance(resources, Mapping):
        return value
    limits, requests = resources.get("limits"), resources.get("requests")
    if not isinstance(limits, Mapping) or not isinstance(requests, Mapping | None):
        return value
    return {**value, "resources": {**resources, "requests": {**limits, **(requests or {})}}}
