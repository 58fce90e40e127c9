"""Pods that flood, anywhere in the cluster."""

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from support.chart.release import OPERATOR, Release
from support.drills import flood
from testbed.api import wait_for
from testbed.errors import ClusterError

_PODS: Mapping[str, Mapping[str, int]] = {
    "speaks": {"idle": 0, "body": 4, "chunks": 1, "handshake": 8, "metrics": 1},
    "waits": {"idle": 1, "slow": 8, "half": 32},
}
"""What each does, and how many connections of each kind it has at once: few bodies, for the more of one address are
refused unread. `idle` is a share.
"""


@dataclass(frozen=True, slots=True)
class Flooder:
    """Some of them."""

    release: Release
    path: str
    names: tuple[str, ...]

    def counts(self) -> Mapping[str, int]:
        """Outcomes of all connections so far, and the number of silent ones."""
        found: dict[str, int] = {"open": 0, "most": 0}
        for name in self.names:
            lines = self.release.api.text(f"{self.path}/{name}/log").splitlines()
            written = [line for line in lines if line.startswith("{")]  # asyncio says on the other stream what it meets
            if not written:
                raise ClusterError(f"{name} does not flood: {lines[-1:]}")
            one = json.loads(written[-1])
            for key, count in (("open", one["open"]), ("most", one["most"]), *one["counts"].items()):
                found[key] = found.get(key, 0) + count
        return found


@contextmanager
def flooders(release: Release, image: str, *, idle: int, cpu: str | None) -> Iterator[Flooder]:
    """Pods with addresses of their own, each with so much `cpu`, and with `idle` silent connections."""
    targets = [one["status"]["podIP"] for one in release.pods(OPERATOR)]
    made = Flooder(release, "/api/v1/namespaces/flood/pods", tuple(_PODS))
    release.api.create("/api/v1/namespaces", {"metadata": {"name": "flood"}})
    wait_for("its service account", lambda: release.api.exists("/api/v1/namespaces/flood/serviceaccounts/default"))
    try:
        for name, kinds in _PODS.items():
            settings = {"targets": targets, **kinds, "idle": idle * kinds["idle"]}
            release.api.create(made.path, _pod(name, image, settings, cpu))
        wait_for("the flood to begin", lambda: bool(made.counts()))
        yield made
    finally:
        for name in made.names:
            release.api.delete(f"{made.path}/{name}", gracePeriodSeconds="0")
        release.api.delete("/api/v1/namespaces/flood")
        wait_for("the flood to be over", lambda: not release.api.exists("/api/v1/namespaces/flood"))


def _pod(name: str, image: str, settings: Mapping[str, Any], cpu: str | None) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": {"cpu": "10m"}}
    if cpu is not None:
        resources["limits"] = {"cpu": cpu}
    container = {
        "name": "flood",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["python", "-c", inspect.getsource(flood), json.dumps(settings)],
        "resources": resources,
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "nodeSelector": {"fairlead.dev/testbed": "real"},
        "containers": [container],
    }
    return {"metadata": {"name": name}, "spec": spec}
