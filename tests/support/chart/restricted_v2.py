"""The rules by which OpenShift's SecurityContextConstraints `restricted-v2`, those of most projects, admit a pod.

OpenShift sets a user, a group and an SELinux label of the namespace's own ranges, so a pod that names one is refused.
What it would set by itself and Pod Security asks for (drop ALL, no privilege escalation, seccomp) must be written here.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

VOLUMES: Final = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
)
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
_IDS_OF_POD: Final = ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "seLinuxOptions")
_IDS: Final = ("runAsUser", "runAsGroup", "seLinuxOptions")
_SECCOMP: Final = {"type": "RuntimeDefault"}
_ADDED: Final = frozenset({"NET_BIND_SERVICE"})


def violations(spec: Mapping[str, Any]) -> list[str]:
    """Reasons to refuse a pod of this spec: the field, and what is wrong with it."""
    return [*_of_pod(spec), *(one for container in _containers(spec) for one in _of_container(*container, spec))]


def pods(objects: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The specs of pods in manifests, by kind and name of what makes them."""
    return {
        f"{one['kind']}/{one['metadata']['name']}": one["spec"]["template"]["spec"]
        for one in objects
        if "template" in one.get("spec", {})
    }


def _of_pod(spec: Mapping[str, Any]) -> Iterator[str]:
    context = spec.get("securityContext") or {}
    yield from (f"{name}: is not allowed" for name in _HOST if spec.get(name))
    yield from (f"securityContext.{name}: the cluster assigns it" for name in _IDS_OF_POD if name in context)
    if context.get("sysctls"):
        yield "securityContext.sysctls: are not allowed"
    for volume in spec.get("volumes", ()):
        for kind in volume.keys() - {"name"} - VOLUMES:
            yield f"volumes[{volume['name']}]: {kind} is not allowed"


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for one in spec.get(kind, ()):
            yield f"{kind}[{one['name']}]", one


def _of_container(at: str, container: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    context, of_pod = container.get("securityContext") or {}, spec.get("securityContext") or {}
    capabilities = context.get("capabilities") or {}
    yield from (f"{at}.securityContext.{name}: the cluster assigns it" for name in _IDS if name in context)
    if context.get("allowPrivilegeEscalation") is not False:
        yield f"{at}.securityContext.allowPrivilegeEscalation: must be false"
    if context.get("privileged"):
        yield f"{at}.securityContext.privileged: is not allowed"
    if "ALL" not in capabilities.get("drop", ()):
        yield f"{at}.securityContext.capabilities.drop: must have ALL"
    if added := sorted({*capabilities.get("add", ())} - _ADDED):
        yield f"{at}.securityContext.capabilities.add: {', '.join(added)} is not allowed"
    if context.get("procMount", "Default") != "Default":
        yield f"{at}.securityContext.procMount: must be Default"
    if context.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
        yield f"{at}.securityContext.runAsNonRoot: must be true"
    if context.get("seccompProfile", of_pod.get("seccompProfile")) != _SECCOMP:
        yield f"{at}.securityContext.seccompProfile: must be RuntimeDefault"
    if any(port.get("hostPort") for port in container.get("ports", ())):
        yield f"{at}.ports: a hostPort is not allowed"
