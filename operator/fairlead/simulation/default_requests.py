"""Requests that the API server adds to a pod before anybody sees it; a pod in a file that a person wrote lacks them."""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]


def with_default_requests(pod: Object) -> Object:
    """Return a pod of which each container requests at least what it limits."""
    spec = pod.get("spec")
    if not isinstance(spec, Mapping):
        return pod
    fields = (name for name in ("initContainers", "containers") if isinstance(spec.get(name), list))
    return {**pod, "spec": {**spec, **{name: [_container(one) for one in spec[name]] for name in fields}}}


def _container(one: Any) -> Any:
    resources = one.get("resources") if isinstance(one, Mapping) else None
    if not isinstance(resources, Mapping):
        return one
    limits, requests = resources.get("limits"), resources.get("requests")
    if not isinstance(limits, Mapping) or not isinstance(requests, Mapping | None):
        return one
    return {**one, "resources": {**resources, "requests": {**limits, **(requests or {})}}}
