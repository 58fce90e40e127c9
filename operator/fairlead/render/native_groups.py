"""Kubernetes' own groups of pods (PodGroup): whether a scheduler gets them, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.render.cluster_facts import ClusterFacts, minor_version
from fairlead.render.scheduler_settings import SchedulerSettings

GATE: Final = "GenericWorkload"
"""Feature gate of kube-scheduler, of the API server and of the controller manager."""
GROUP_VERSION: Final = "scheduling.k8s.io/v1beta1"
RESOURCE: Final = "podgroups"
NOT_ASKED: Final = "its setting groups is Off"
"""Message about a scheduler for which they were not asked for."""
FLAG: Final = f"--feature-gates={GATE}=true"
_FLAGS: Final = "--feature-gates="
_SERVED_WITH: Final = f"{FLAG} and --runtime-config={GROUP_VERSION}=true"
_FIRST: Final = (1, 37)


@dataclass(frozen=True, slots=True)
class NativeGroups:
    """Decision whether a scheduler places Kubernetes' own groups, and why."""

    is_on: bool
    message: str
    is_rendered: bool = False
    """Whether the operator sets the gate, not the setting `featureGates`."""
    may_be_on: bool = False
    """True if all is there and others run the scheduler, so that it does if they set the gate."""


def native_groups(settings: SchedulerSettings, facts: ClusterFacts) -> NativeGroups:
    """Return whether a scheduler places Kubernetes' own groups.

    With the gate and without the API, or with an older kube-scheduler, it would place nothing at all.
    """
    chosen = settings.feature_gates.get(GATE) if settings.management == "Managed" else None
    if chosen is not None:
        return NativeGroups(chosen, f"its setting featureGates has {GATE}: {str(chosen).lower()}")
    missing = _missing(settings, facts)
    may_be_on = settings.management == "ConfigOnly" and not missing
    if settings.groups == "Off":
        return NativeGroups(is_on=False, message=NOT_ASKED, may_be_on=may_be_on)
    if missing:
        return NativeGroups(is_on=False, message=missing)
    if may_be_on:
        message = f"you run it: start it with {FLAG}, which needs kube-scheduler 1.37"
        return NativeGroups(is_on=False, message=message, may_be_on=True)
    return NativeGroups(is_on=True, message=f"it runs with {FLAG}", is_rendered=True)


def groups_of_pods(pod: Mapping[str, Any], wanted: NativeGroups) -> NativeGroups:
    """Return whether the pods of an earlier configuration place Kubernetes' own groups."""
    flags = [
        one.partition("=")[2] for each in pod["spec"]["containers"] for one in each["args"] if one.startswith(_FLAGS)
    ]
    is_on = any(f"{GATE}=true" in gates.split(",") for gates in flags)
    if is_on == wanted.is_on:
        return wanted
    return NativeGroups(is_on, f"it was rolled back to pods {'with' if is_on else 'without'} {FLAG}")


def _missing(settings: SchedulerSettings, facts: ClusterFacts) -> str:
    """Return what is missing; "" if nothing is."""
    image = settings.image
    if settings.management == "Managed" and (image.tag or image.digest):
        if not image.tag:
            return "its image has a digest and no tag, so its version is not known: set image.tag, too"
        version = minor_version(image.tag)
        if version is None:
            return f"its image has the tag {image.tag}, which names no version: set a tag that begins with one"
        if version < _FIRST:
            return f"its image is {image.tag}, and Kubernetes has them from 1.37 on"
    if older := _older(facts.server_versions):
        return f"an API server is {older}, and Kubernetes has them from 1.37 on"
    if not facts.pod_groups:
        return f"the API server does not serve {RESOURCE} of {GROUP_VERSION}: start each with {_SERVED_WITH}"
    return ""


def _older(versions: Iterable[str]) -> str:
    """Return a version that is too old, or cannot be read; "" if none is."""
    return next((one for one in versions if (minor_version(one) or (0, 0)) < _FIRST), "")
