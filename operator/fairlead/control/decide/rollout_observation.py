"""Observation of a rollout, from the objects of a scheduler; pure.

What ended because its node stopped says nothing about its configuration. Neither does what happened before a container
succeeded, which stays in the pod's status as long as the pod lives.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.render.object_names import CONFIG_HASH


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutObservation:
    """Observed state of a rollout."""

    config: str = ""
    """Configuration hash of the Deployment; empty if there is none."""
    pending_reason: str = ""
    """What the rollout waits for; empty once all pods have this hash and are ready."""
    failure: str = ""
    """Why a pod of this hash can never start; empty if none fails so."""
    has_lease: bool = False
    """True if one of the pods of this hash holds the Lease."""
    probe_failure: str | None = None
    """The first extender URL that did not answer the scheduler's certificate, and why; None if none was called."""
    errors: str = ""
    """Errors about calls that the scheduler or a replica reported since the rollout."""

    @property
    def missing(self) -> str:
        """Return what keeps the rollout from being verified; "" if nothing does."""
        if self.pending_reason:
            return self.pending_reason
        if not self.has_lease:
            return "none of its pods holds the Lease"
        if self.probe_failure is None:
            return "its extender URLs have not been called yet"
        return self.probe_failure or self.errors


Obj = Mapping[str, Any]
_WORDS_MAX: Final = 500
_CRASHES: Final = 2
"""Restarts of a container after which its configuration is to blame."""
_LOST: Final = "Unknown"
"""Reason of a container that its runtime found ended when it started."""
_OF_SIGNALS: Final = (137, 143, 255)
"""Exit codes of what was killed; 255 if it is not known how."""
_ERROR: Final = re.compile(r"[EF]\d{4} |(?:error|fatal error|panic)\b", re.IGNORECASE)
"""Start of a line that tells an error, as klog, cobra and Go write them."""
_HARMLESS: Final = re.compile(r"[IW]\d{4} ")


def observe_rollout(deployment: Obj | None, pods: Iterable[Obj], lease: Obj | None) -> RolloutObservation:
    """Return what the objects show, without probed URLs and logs."""
    if deployment is None:
        return RolloutObservation(pending_reason="its Deployment does not exist")
    config = deployment["metadata"].get("annotations", {}).get(CONFIG_HASH, "")
    new = [pod for pod in pods if _annotation(pod) == config and "deletionTimestamp" not in pod["metadata"]]
    holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
    return RolloutObservation(
        config=config,
        pending_reason=_pending_reason(deployment, new),
        failure=next(_failures(new), ""),
        has_lease=any(holder.startswith(f"{pod['metadata']['name']}_") for pod in new),
    )


def last_log_line(text: str) -> str:
    """Return the last line of a program's output."""
    lines = _lines(text)
    return lines[-1][-_WORDS_MAX:] if lines else ""


def cause_in(output: str) -> str:
    """Return the line of a program's output that says why it ended: its last error, else its last line that is none.

    Lines that klog marks as information or as warnings are no cause.
    """
    lines = _lines(output)
    causes = [line for line in lines if _ERROR.match(line)] or [line for line in lines if not _HARMLESS.match(line)]
    return causes[-1][-_WORDS_MAX:] if causes else ""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _annotation(pod: Obj) -> str:
    found: str = pod["metadata"].get("annotations", {}).get(CONFIG_HASH, "")
    return found


def _pending_reason(deployment: Obj, new: Sequence[Obj]) -> str:
    status, desired = deployment.get("status", {}), deployment["spec"]["replicas"]
    if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
        return "its Deployment has not been processed yet: is kube-controller-manager running?"
    failure = find_condition(status, "ReplicaFailure")
    fault = failure["message"] if failure is not None and failure["status"] == "True" else ""
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    ready = sum(is_ready(pod) for pod in new)
    if updated < desired or ready < desired or available < desired:
        why = fault or next(pending_pod_reasons(new), "")
        return f"{min(ready, updated)} of {desired} pods are ready{f': {why}' if why else ''}"
    if old := status.get("replicas", 0) - updated:
        return f"{old} old pods still exist"
    return ""


def find_condition(status: Obj, kind: str) -> Obj | None:
    """Return a condition of an object's status; None if it is missing."""
    return next((one for one in status.get("conditions", ()) if one["type"] == kind), None)


def is_condition_true(status: Obj, kind: str) -> bool:
    """Return whether a condition of an object's status is True."""
    return (find_condition(status, kind) or {}).get("status") == "True"


def is_ready(pod: Obj) -> bool:
    """Return whether a pod has the condition Ready."""
    return is_condition_true(pod["status"], "Ready")


def _containers(pod: Obj) -> Iterator[Obj]:
    yield from pod["status"].get("initContainerStatuses", [])
    yield from pod["status"].get("containerStatuses", [])


def pending_pod_reasons(pods: Iterable[Obj]) -> Iterator[str]:
    """Yield why pods are not ready, as far as their statuses say."""
    for pod in pods:
        name = pod["metadata"]["name"]
        scheduled = find_condition(pod["status"], "PodScheduled")
        if scheduled is not None and scheduled["status"] == "False":
            yield f"{name} has no node: {scheduled.get('message', '')}"
        for container in _containers(pod):
            waiting = container.get("state", {}).get("waiting", {})
            if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
                last = container.get("lastState", {}).get("terminated")
                ended = "" if last is None else f"; it ended with {_exit(last)}"
                yield f"{name}: {waiting['reason']}: {last_log_line(waiting.get('message', ''))}{ended}"


def _failures(pods: Iterable[Obj]) -> Iterator[str]:
    """Yield the errors of pods that can never start with their configuration."""
    for pod in pods:
        for container in pod["status"].get("initContainerStatuses", []):
            if not _has_succeeded(container) and (error := _error(container)):
                yield f"kube-scheduler rejects it: {error}"
        for container in pod["status"].get("containerStatuses", []):
            if (
                container.get("restartCount", 0) >= _CRASHES
                and not container.get("ready")
                and (error := _error(container))
            ):
                yield f"kube-scheduler exits with it: {error}"


def _has_succeeded(container: Obj) -> bool:
    """Return whether an init container has done its work; what its last run ended with is then the past."""
    ended = container.get("state", {}).get("terminated")
    return bool(container.get("ready")) or (ended is not None and ended["exitCode"] == 0)


def _error(container: Obj) -> str:
    """Return why a container ended, now or when it last ran; "" if it did not fail, or was killed."""
    for state in (container.get("state", {}), container.get("lastState", {})):
        ended = state.get("terminated")
        if ended is not None and ended["exitCode"] != 0 and not _was_killed(ended):
            return cause_in(ended.get("message", "")) or _exit(ended)
    return ""


def _was_killed(ended: Obj) -> bool:
    """Return whether a container did not end by itself: its node or its runtime stopped, or a signal killed it."""
    output = ended.get("message", "")
    return ended.get("reason") == _LOST or (
        ended["exitCode"] in _OF_SIGNALS and not any(map(_ERROR.match, _lines(output)))
    )


def _exit(ended: Obj) -> str:
    return f"exit code {ended['exitCode']}, {ended.get('reason', '')}"
