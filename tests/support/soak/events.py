"""Edits, kills, rotations and restarts that a release lives through during a soak."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psutil

from fairlead.pki.identities import AUTHORITY_SECRET
from fairlead.pki.rotation import ROTATE
from support.chart.chart import NAMESPACE
from support.chart.release import Release, processes
from support.kube.crd import POLICIES
from support.soak.schedule import Disturbance
from testbed import process
from testbed.api import Object, wait_for
from testbed.errors import ClusterError

LOG = logging.getLogger(__name__)
_AUTHORITY: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets/{AUTHORITY_SECRET}"
_ENDS_WITHIN_S: Final = 5.0
"""By then it has answered what it was asked. For its watches, which do not end, it would wait for a minute."""
_BACK_WITHIN_S: Final = 180.0
_KIND: Final = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
PolicySpec = Mapping[str, Any]


@dataclass(slots=True)
class Happening:
    """All that has happened so far."""

    release: Release
    policies: Sequence[tuple[str, Callable[[int], PolicySpec]]]
    """Names, and the spec of each edit."""
    done: Counter[Disturbance] = field(default_factory=Counter)
    _edits: int = 0
    _rotated_from: str = ""
    """The certificate of the authority that is being replaced."""
    _rotates_since: float = 0.0

    def make(self, step: Disturbance) -> str:
        """Have it happen; return what is told of it."""
        ways = {
            Disturbance.EDIT: self._edit,
            Disturbance.KILL: self._kill,
            Disturbance.ROTATE: self._rotate,
            Disturbance.RESTART: self._restart,
        }
        return ways[step]()

    def look(self) -> None:
        """See whether a rotation is over."""
        if not self._rotated_from:
            return
        data = self.release.api.get(_AUTHORITY)["data"]
        if {*data} == {"tls.crt", "tls.key"} and data["tls.crt"] != self._rotated_from:
            LOG.info("the authority was rotated within %.0f s", time.monotonic() - self._rotates_since)
            self._rotated_from = ""
            self.done[Disturbance.ROTATE] += 1

    @property
    def is_rotating(self) -> bool:
        """Return whether a rotation is not over yet."""
        return bool(self._rotated_from)

    def _edit(self) -> str:
        self._edits += 1
        name, spec_of = self.policies[self._edits % len(self.policies)]
        body: Object = {**_KIND, "metadata": {"name": name}, "spec": spec_of(self._edits)}
        wait_for("the edit to be taken", lambda: self.release.api.apply(f"{POLICIES}/{name}", body))
        self.done[Disturbance.EDIT] += 1
        return f"edit {self._edits}, of {name}"

    def _kill(self) -> str:
        leader, its_own = wait_for("a leader that runs", self._leading)
        for one in its_own:
            one.kill()
        self.done[Disturbance.KILL] += 1
        return f"{leader} killed with -9"

    def _is_up(self) -> bool:
        self.release.cluster.provider.up()
        return True

    def _leading(self) -> tuple[str, Sequence[psutil.Process]] | None:
        leader = self.release.leader()
        try:
            return (leader, processes(leader)) if leader else None
        except AssertionError:  # its container is just being started again
            return None

    def _rotate(self) -> str:
        if self._rotated_from:
            return "the authority is still being rotated: not begun again"
        before = self.release.api.get(_AUTHORITY)["data"]["tls.crt"]
        self.release.api.patch(_AUTHORITY, {"metadata": {"annotations": {ROTATE: "now"}}})
        self._rotated_from, self._rotates_since = before, time.monotonic()
        return "rotation of the authority asked for"

    def _restart(self) -> str:
        begun = time.monotonic()
        server = process.find(self.release.cluster.folder, "kube-apiserver")
        if server is None:
            raise ClusterError("there is no API server to restart")
        server.terminate()
        try:
            server.wait(_ENDS_WITHIN_S)
        except psutil.TimeoutExpired:
            process.kill([server])
        gone = time.monotonic()
        wait_for("the control plane", self._is_up, timeout_s=_BACK_WITHIN_S)
        self.done[Disturbance.RESTART] += 1
        return f"the API server ended within {gone - begun:.1f} s, and was back {time.monotonic() - gone:.1f} s later"
