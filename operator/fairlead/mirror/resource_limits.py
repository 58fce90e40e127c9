"""Limits of pods, counted as the scheduler counts requests, and the usage that their containers let expect."""

from collections.abc import Mapping
from typing import Any

from fairlead.cel.functions.quantity import NANO
from fairlead.mirror.resource_requests import (
    Amounts,
    add_amounts,
    as_amounts,
    combine_containers,
    nano_amounts,
    round_up,
    set_for_pod,
)
from fairlead.policy.views.pod_usage import Usage
from fairlead.strategies.facts import Predicted


def usage_of(pod: Any, request: Amounts) -> Usage:
    """Return the usage of a pod that requests this much. `pod` has the fields of the message `Pod`."""
    spec = pod.spec
    containers = [*spec.containers, *(one for one in spec.initContainers if one.restartPolicy == "Always")]
    of_pod = spec.resources.limits
    limit = combine_containers(spec, lambda container: container.resources.limits)
    limit.update({name: nano for name, nano in nano_amounts(of_pod).items() if set_for_pod(name)})
    overhead = nano_amounts(spec.overhead)
    add_amounts(limit, {name: nano for name, nano in overhead.items() if limit.get(name)})
    named = {name for one in containers for name in (*one.resources.limits, *one.resources.requests)}
    amounts = as_amounts({name: round_up(name, nano) for name, nano in limit.items()})
    return Usage(
        {name: max(amount, request.get(name, 0.0)) for name, amount in amounts.items()},
        frozenset(
            name
            for name in named
            if not (name in of_pod and set_for_pod(name))
            and any(name not in one.resources.limits for one in containers)
        ),
        {name: _predicted(name, containers, overhead) for name in named | overhead.keys()},
        len(containers),
    )


def _predicted(name: str, containers: list[Any], overhead: Mapping[str, int]) -> Predicted:
    limits, requests, unsaid = overhead.get(name, 0), 0, 0
    for one in containers:
        if name in one.resources.limits:
            limits += nano_amounts({name: one.resources.limits[name]})[name]
        elif name in one.resources.requests:
            requests += nano_amounts({name: one.resources.requests[name]})[name]
        else:
            unsaid += 1
    return Predicted(limits / NANO, requests / NANO, unsaid)
