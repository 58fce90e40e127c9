"""Figures of a release while it runs: its processes, its histograms, and the objects in etcd."""

import base64
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from fairlead.control.decide.decide import CONFIG_MAPS_KEPT
from fairlead.grants.ledger import LABEL, NODE
from fairlead.render.object_names import SCHEDULER_LABEL
from support.chart.chart import NAMESPACE
from support.chart.release import OPERATOR, PODS, Release
from support.drills.figures import filter_calls
from support.soak.histograms import HistogramSample
from support.soak.processes import FOLLOWER, LEADER, ProcessSample
from testbed.api import Api
from testbed.errors import ClusterError
from testbed.layout import Layout
from testbed.sandbox import Sandbox

SCHEDULERS: Final = f"{SCHEDULER_LABEL},app.kubernetes.io/component=scheduler"
_CONFIG_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_CONFIGURATION: Final = "pod.yaml"
"""In the ConfigMap of a scheduler's configuration."""
_APPS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}"
_KEPT_REPLICA_SETS: Final = 4
"""Of a Deployment: three old ones, and that of now."""
_ASK: Final = """
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1], data=sys.argv[2].encode()) as answer:
    sys.stdout.write(answer.read().decode())
"""


@dataclass(slots=True)
class Observation:
    """Samples since a soak began."""

    release: Release
    cgroup: str
    """Control group of the node's containers: other clusters of this machine may have pods with the same addresses."""
    begun: float = field(default_factory=time.monotonic)
    processes: list[ProcessSample] = field(default_factory=list)
    histograms: list[HistogramSample] = field(default_factory=list)

    def at_s(self) -> float:
        """Return the time since it began."""
        return time.monotonic() - self.begun

    def look(self) -> list[ProcessSample]:
        """Take a sample, and return that of the processes."""
        api, leader = self.release.api, self.release.leader()
        operators = [one["metadata"]["name"] for one in api.items(PODS, labelSelector=OPERATOR)]
        schedulers = {
            one["status"]["podIP"]: (one["metadata"]["labels"]["fairlead.dev/scheduler"], one["metadata"]["name"])
            for one in api.items(PODS, labelSelector=SCHEDULERS)
            if one["status"].get("podIP")
        }
        pods = {("POD_NAME", name): (LEADER if name == leader else FOLLOWER, name) for name in operators}
        pods |= {("POD_IP", ip): (f"scheduler {name}", pod) for ip, (name, pod) in schedulers.items()}
        found = [*_processes(self.at_s(), self.cgroup, pods)]
        self.processes += found
        for name in operators:
            with suppress(ClusterError):  # it is just being started
                page = api.text(f"{PODS}/{name}:8080/proxy/metrics")
                self.histograms.append(HistogramSample(self.at_s(), name, filter_calls(page)))
        return found


def _processes(at_s: float, cgroup: str, pods: Mapping[tuple[str, str], tuple[str, str]]) -> Iterator[ProcessSample]:
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            keys = ((variable, environment.get(variable, "")) for variable in ("POD_NAME", "POD_IP"))
            role, pod = next((pods[key] for key in keys if key in pods), ("", ""))
            if not role or cgroup not in Path(f"/proc/{process.pid}/cgroup").read_text():
                continue
            links = [_target(link) for link in Path(f"/proc/{process.pid}/fd").iterdir()]
            sockets = sum(link.startswith("socket:") for link in links)
            yield ProcessSample(
                at_s=at_s,
                role=role,
                pod=pod,
                pid=process.pid,
                rss=process.memory_info().rss,
                files=len(links) - sockets,
                sockets=sockets,
            )
        except (psutil.Error, OSError):
            continue  # it has ended


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""  # closed meanwhile


def keys(layout: Layout) -> Mapping[str, int]:
    """Return the number of objects in etcd, by kind."""
    begin, end = (base64.b64encode(key).decode() for key in (b"/registry/", b"/registry0"))
    asked = json.dumps({"key": begin, "range_end": end, "keys_only": True})
    command = [*Sandbox(layout.folder).enter_network(), sys.executable, "-c", _ASK]
    url = f"http://127.0.0.1:{layout.etcd_port}/v3/kv/range"
    answer = subprocess.run([*command, url, asked], capture_output=True, text=True, check=True).stdout
    return Counter(_kind(base64.b64decode(one["key"]).decode()) for one in json.loads(answer).get("kvs", ()))


def _kind(key: str) -> str:
    _, _, kind, *rest = key.split("/")
    return f"{kind}/{rest[0]}" if "." in kind else kind


@dataclass(frozen=True, slots=True)
class Living:
    """Objects that belong to something that lives, and of which there may be more than when all began."""

    counts: Mapping[str, int]
    grants: int
    """Entries of the ledger that has most."""

    def more_than(self, before: "Living") -> Mapping[str, int]:
        """Return how many there are more, by kind."""
        return {kind: max(0, count - before.counts[kind]) for kind, count in self.counts.items()}


def living(api: Api) -> Living:
    """Look for ledgers of nodes, and for what is kept of the former configurations and templates of Deployments."""
    nodes = {one["metadata"]["name"] for one in api.items("/api/v1/nodes")}
    ledgers = api.items(_CONFIG_MAPS, labelSelector=LABEL)
    configurations = Counter(
        one["metadata"]["labels"][SCHEDULER_LABEL]
        for one in api.items(_CONFIG_MAPS, labelSelector=SCHEDULER_LABEL)
        if _CONFIGURATION in (one.get("data") or ())
    )
    deployments = {one["metadata"]["uid"] for one in api.items(f"{_APPS}/deployments")}
    replica_sets = Counter(
        owner["uid"]
        for one in api.items(f"{_APPS}/replicasets")
        for owner in one["metadata"].get("ownerReferences", ())
        if owner["uid"] in deployments
    )
    return Living(
        {
            "configmaps": sum(one["metadata"]["annotations"].get(NODE) in nodes for one in ledgers)
            + sum(min(count, CONFIG_MAPS_KEPT) for count in configurations.values()),
            "replicasets": sum(min(count, _KEPT_REPLICA_SETS) for count in replica_sets.values()),
        },
        max((len(one.get("data") or {}) for one in ledgers), default=0),
    )
