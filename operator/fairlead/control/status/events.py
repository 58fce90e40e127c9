"""Kubernetes Events of policies: one per transition of `Ready`, and one per corrected drift."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fairlead.api.names import API_VERSION, KIND
from fairlead.control.decide.rollout_observation import find_condition, is_condition_true
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.kube.errors import ClusterError, ConflictError, ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource, decode_object

EVENTS: Final = Resource("events.k8s.io", "v1", "events")
NAMESPACE: Final = "default"
"""Namespace of events about cluster-scoped objects."""
_NOTE_MAX: Final = 1000
_POSTING: Final = "events cannot be posted"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def ready_event(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return type, reason and note of the event about a changed status; None if `Ready` did not change."""
    old, new = find_condition(before, "Ready"), find_condition(after, "Ready")
    if new is None or (old is not None and (old["status"], old["reason"]) == (new["status"], new["reason"])):
        return None
    if new["status"] == "True":
        return "Normal", new["reason"], new["message"]
    return "Normal" if is_condition_true(after, "Reconciling") else "Warning", new["reason"], new["message"]


@dataclass(slots=True, eq=False)
class EventRecorder:
    """Recorder of events, which posts them."""

    client: Client
    instance: str
    """Name of this replica."""
    missing_permissions: MissingPermissions
    _refused: Mapping[str, Any] | None = None
    """The last event that was forbidden; posting it again is the only way to find out whether it is allowed now."""
    _last: int = 0
    """Number in the name of the last event."""

    async def record(
        self, policy: Mapping[str, Any], kind: str, reason: str, note: str, action: str, now: datetime
    ) -> None:
        """Post an event. A failure to post has no other effect."""
        metadata = policy["metadata"]
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{self._number(now):016x}",
                "namespace": NAMESPACE,
            },
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": "fairlead.dev/operator",
            "reportingInstance": self.instance,
            "action": action,
            "reason": reason,
            "type": kind,
            "note": note[:_NOTE_MAX],
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        }
        await self._post(event)

    def _number(self, now: datetime) -> int:
        """Return the time in nanoseconds, later than that of any event before.

        Events of this API have no lastTimestamp, by which kubectl sorts, so that it shows them in the order of their
        names.
        """
        self._last = max((now - _EPOCH) // timedelta(microseconds=1) * 1000, self._last + 1)
        return self._last

    async def retry_refused(self) -> None:
        """Post the event that was forbidden again, if there is one."""
        if self._refused is not None:
            await self._post(self._refused)

    async def _post(self, event: Mapping[str, Any]) -> None:
        try:
            with suppress(ConflictError):  # it exists: the response was lost
                await self.client.create(ObjectRef(EVENTS, NAMESPACE), event, decode_object)
        except ClusterError as error:
            self.missing_permissions.record(_POSTING, error)
            if isinstance(error, ForbiddenError):
                self._refused = event
        else:
            self.missing_permissions.clear(_POSTING)
            self._refused = None
