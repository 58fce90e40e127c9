"""Scene of the wake-ups: a cluster with two replicas and a real scheduler, and its pods.

The scheduler has the extenders that the operator publishes for it, and calls the replica that does not lead: so the
leader hears of rejected pods by its polls, turns of groups come by their publication, and bind calls of members are
passed on. The replica that leads is at most as slow.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from bench import operating
from bench.scheduler import scheduler_running
from bench.stage import NAME, PODS, Stage, stage_running
from fairlead.control.loop.waker import NAME as WAKE_UP
from fairlead.control.loop.waker import PAUSE_S, WOKEN
from fairlead.groups.turns import NO_TURNS, Turns, read_turns, turns_name
from fairlead.render.object_names import ObjectNames
from testbed.api import Object, wait_for

CLUSTER: Final = "bench-wakeups"
NODES: Final = "/api/v1/nodes"
CAUSE: Final = "example.org/cause"
"""Label of pods by which the policy of a cause matches them."""
GROUP: Final = "example.org/group"
LOOK_S: Final = 0.02
_POLL_S: Final = 1.0
"""Pause between two polls of the leader while pods are rejected: a wake-up that is due comes by then."""
_LONGEST_S: Final = 120.0
_CONFIG_MAPS: Final = f"/api/v1/namespaces/{operating.NAMESPACE}/configmaps"
_WAKE_UP: Final = f"/apis/storage.k8s.io/v1/namespaces/{operating.NAMESPACE}/csistoragecapacities/{WAKE_UP}"
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Scene:
    """Scene in which pods of one cause at a time wait for it."""

    stage: Stage
    replicas: Sequence[operating.Asked]
    nodes: Sequence[str]
    """Names of the nodes."""
    numbers: Iterator[int] = field(default_factory=count)

    def put(self, cause: str, **spec: Any) -> None:
        """Have a policy for the pods of a cause, and return when it serves."""
        whole = {"schedulerName": NAME, "match": {"podSelector": {"matchLabels": {CAUSE: cause}}}} | spec
        about = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": cause}}
        made = self.stage.api.apply(f"{operating.POLICIES}/{cause}", {**about, "spec": whole})
        operating.wait_until_served(self.replicas, made)

    def put_values(self, name: str, **document: Any) -> None:
        """Have a document of measured values."""
        about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        self.stage.api.apply(f"{_CONFIG_MAPS}/{name}", {**about, "data": {"values.json": json.dumps(document)}})

    def label(self, node: str, **labels: str | None) -> None:
        """Give a node labels, or take them away; the keys are those of this module."""
        named = {f"example.org/{key}": value for key, value in labels.items()}
        self.stage.api.patch(f"{NODES}/{node}", {"metadata": {"labels": named}})

    def pod(
        self, cause: str, group: str = "", *, on: str = "", selector: Mapping[str, str] = _NONE, cpu: str = "1"
    ) -> str:
        """Make a pod, and return its name."""
        name = f"{cause}-{next(self.numbers)}"
        container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
        spec: Object = {
            "schedulerName": NAME,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "nodeSelector": dict(selector),
            "containers": [container],
        }
        labels = {CAUSE: cause} | ({GROUP: group} if group else {})
        about = {"name": name, "labels": labels}
        self.stage.api.create(PODS, {"metadata": about, "spec": spec | ({"nodeName": on} if on else {})})
        return name

    def rejected_pod(self, cause: str) -> str:
        """Make a pod that finds no node, wait until no wake-up came lately, and return its name.

        Replicas may not have heard yet of what keeps it from its node; a pod that has found one is no use.
        """
        while True:
            name = self.pod(cause)
            wait_for(f"{name} to be tried", lambda name=name: self.is_bound(name) or self.says(name), every_s=LOOK_S)  # type: ignore[misc]
            if not self.is_bound(name):
                self.wait_until_quiet()
            if not self.is_bound(name):
                return name

    def wait_until_quiet(self, pause_s: float = PAUSE_S) -> None:
        """Return once the pause after the last wake-up is over, at any moment between two polls of the leader."""
        wait_for(
            "no wake-up", lambda: time.time() - self._woken_at() > pause_s + _POLL_S, every_s=LOOK_S, timeout_s=60.0
        )
        time.sleep(random.uniform(0.0, _POLL_S))  # noqa: S311  no secret

    def says(self, name: str) -> str:
        """Return what the scheduler says of a pod that has no node; "" if nothing."""
        conditions = self.stage.api.get(f"{PODS}/{name}").get("status", {}).get("conditions", [])
        return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")

    def wait_until_said(self, text: str, *names: str) -> None:
        """Return once the scheduler says this of one of the pods."""
        wait_for(f"{names}: {text}", lambda: any(text in self.says(one) for one in names), every_s=LOOK_S)

    def is_bound(self, name: str) -> bool:
        """Return whether a pod has a node."""
        return bool(self.stage.api.get(f"{PODS}/{name}")["spec"].get("nodeName"))

    def bound_at(self, *names: str) -> float:
        """Wait until all of these pods have a node, and return when they had."""
        waiting = [*names]

        def are_bound() -> bool:
            while waiting and self.is_bound(waiting[-1]):
                waiting.pop()
            return not waiting

        wait_for(f"{names} to be bound", are_bound, every_s=LOOK_S, timeout_s=_LONGEST_S)
        return time.time()

    def turns(self) -> Turns:
        """Return what the holder publishes."""
        return read_turns(self.stage.api.get(f"{_CONFIG_MAPS}/{turns_name(NAME)}")).value or NO_TURNS

    def clear(self) -> None:
        """Delete all pods."""
        self.stage.delete_pods()

    def _woken_at(self) -> float:
        if not self.stage.api.exists(_WAKE_UP):
            return 0.0
        said = self.stage.api.get(_WAKE_UP)["metadata"]["annotations"][WOKEN]
        return datetime.fromisoformat(said).timestamp()


@contextmanager
def scene_running(many: int, folder: Path | None = None) -> Iterator[Scene]:
    """Run a cluster with so many nodes, two replicas and the scheduler, which has a policy with groups."""
    with (
        stage_running(many, name=CLUSTER) as stage,
        operating.replicas_running(stage.api, stage.kubeconfig, 2) as replicas,
        tempfile.TemporaryDirectory() as name,
    ):
        nodes = [str(one["metadata"]["name"]) for one in stage.api.items(NODES)]
        scene = Scene(stage, operating.asking(stage.kubeconfig, replicas), nodes)
        group = f"pod.metadata.labels[?'{GROUP}'].orValue('')"
        scene.put("groups", binding={"gang": [{"name": "jobs", "group": group, "size": "2", "holdFor": "30s"}]})
        leader = operating.leader_of(stage.api)
        called = next(one for one in replicas if one.name != leader)
        entries = _entries(stage, called, folder or Path(name))
        with scheduler_running(folder or Path(name), stage.kubeconfig, NAME, entries, many):
            yield scene


def _entries(stage: Stage, replica: operating.Replica, folder: Path) -> list[dict[str, Any]]:
    """Return the extenders that the operator publishes for the scheduler, at the address of a replica."""
    operating.write_certificate(stage.kubeconfig, NAME, folder)
    files = {
        key: str(folder / file)
        for key, file in (("caFile", "ca.crt"), ("certFile", "scheduler.crt"), ("keyFile", "scheduler.key"))
    }
    tls = {**files, "serverName": f"fairlead.{operating.NAMESPACE}.svc"}
    made = []
    for one in wait_for("the configuration", lambda: _published(stage)):
        path = one["urlPrefix"].partition("//")[2].partition("/")[2]
        url = f"https://{replica.address}:{replica.port}/{path}".rstrip("/")
        made.append({**one, "urlPrefix": url, "tlsConfig": tls})
    return made


def _published(stage: Stage) -> list[dict[str, Any]] | None:
    """Return the published extenders, once those are among them that groups need."""
    path = f"{_CONFIG_MAPS}/{ObjectNames(NAME, operating.NAMESPACE).object_name}"
    if not stage.api.exists(path):
        return None
    found = list(yaml.safe_load(stage.api.get(path)["data"]["config.yaml"])["extenders"])
    return found if any(one.get("bindVerb") for one in found) else None
