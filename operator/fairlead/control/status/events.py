"""Events: one for each transition of a policy's `Ready`, and one for each thing that somebody had changed."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from fairlead.api.names import API_VERSION, KIND
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.kube.errors import ClusterError, ConflictError, ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Resource

EVENTS: Final = Resource("events.k8s.io", "v1", "events")
NAMESPACE: Final = "default"
"""Of events about what has no namespace."""
_NOTE_MAX: Final = 1000
_POSTING: Final = "events cannot be posted"
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def ready_event(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Type, reason and note of the event about a status that became another; None: there is nothing to say."""
    old, new = _ready(before), _ready(after)
    if new is None or (old is not None and (old["status"], old["reason"]) == (new["status"], new["reason"])):
        return None
    if new["status"] == "True":
        return "Normal", new["reason"], new["message"]
    passing = condition_status(after, "Reconciling") == "True"
    return "Normal" if passing else "Warning", new["reason"], new["message"]


def condition_status(status: Mapping[str, Any], kind: str) -> str:
    """The status of a condition."""
    return next((one["status"] for one in status.get("conditions", ()) if one["type"] == kind), "")


def _ready(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((one for one in status.get("conditions", ()) if one["type"] == "Ready"), None)


@dataclass(slots=True, eq=False)
class EventRecorder:
    """Posts them."""

    client: Client
    instance: str
    """Which replica."""
    missing_permissions: MissingPermissions
    _refused: Mapping[str, Any] | None = None
    """The last one that we were not allowed to post: whether we are by now only posting tells."""

    async def record(
        self, policy: Mapping[str, Any], kind: str, reason: str, note: str, action: str, now: datetime
    ) -> None:
        """One event. That it cannot be posted changes nothing."""
        metadata = policy["metadata"]
        text = f"{metadata['uid']} {reason} {note} {now.isoformat()}"
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name']}.{hashlib.sha256(text.encode()).hexdigest()[:16]}",
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

    async def retry_refused(self) -> None:
        """Post what was refused."""
        if self._refused is not None:
            await self._post(self._refused)

    async def _post(self, event: Mapping[str, Any]) -> None:
        try:
            with suppress(ConflictError):  # it is there: an answer was lost
                await self.client.create(ObjectRef(EVENTS, NAMESPACE), event, _decode)
        except ClusterError as error:
            self.missing_permissions.record(_POSTING, error)
            if isinstance(error, ForbiddenError):
                self._refused = event
        else:
            self.missing_permissions.clear(_POSTING)
            self._refused = None
