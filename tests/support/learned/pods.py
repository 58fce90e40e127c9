"""Statuses of pods that tell outcomes, for tests that write them in place of a kubelet."""

from datetime import UTC, datetime
from typing import Any


def failed_now(container: str) -> dict[str, Any]:
    """Return the status of a pod whose container, of this ID, has failed at once."""
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    ended = {"exitCode": 1, "startedAt": at, "finishedAt": at, "containerID": f"containerd://{container}"}
    status = {"name": "main", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    return {"containerStatuses": [status | {"state": {"terminated": ended}}]}
