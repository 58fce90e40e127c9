"""A real kube-scheduler with extenders, configured as in the guide, and its own metrics."""

import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from bench import programs
from bench.histogram import Totals, totals
from bench.programs import Extender
from fairlead.render.cluster_facts import percentage
from fairlead.render.extenders import bind_timeout_s
from fairlead.render.scheduler_settings import SchedulerDefaults
from testbed import build
from testbed.layout import free_ports
from testbed.supervisor import answers
from testbed.versions import program

_DURATION: Final = "scheduler_scheduling_algorithm_duration_seconds"
_READY_S: Final = 60.0
_NO_PROFILE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Wiring:
    """The extenders that a policy needs: a gate that filters, and if it scores, one that prioritizes."""

    scores: bool = False
    whole_nodes: bool = False
    hold_s: int = 0
    """Longest time for which binds of members of a group are held; 0 for a scheduler that binds by itself."""

    def entries(self, extender: Extender) -> list[dict[str, Any]]:
        """Return the extenders of the scheduler's configuration."""
        about: dict[str, Any] = {
            "urlPrefix": extender.url,
            "nodeCacheCapable": not self.whole_nodes,
            "httpTimeout": "1s" if not self.whole_nodes else "30s",
        }
        if (folder := extender.certificates) is not None:
            files = {"caFile": "ca.crt", "certFile": "scheduler.crt", "keyFile": "scheduler.key"}
            about |= {"enableHTTPS": True, "tlsConfig": {key: f"{folder}/{file}" for key, file in files.items()}}
        gate = {**about, "filterVerb": "filter", "preemptVerb": "preempt", "ignorable": False}
        scores = [{**about, "prioritizeVerb": "prioritize", "weight": 1}] if self.scores else []
        binds = [{**about, "bindVerb": "bind", "httpTimeout": f"{bind_timeout_s(self.hold_s)}s"}] if self.hold_s else []
        return [gate, *scores, *binds]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler that runs."""

    port: int
    pid: int

    def algorithm(self) -> Totals:
        """Return how long it took to find nodes for pods."""
        with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/metrics", context=_UNKNOWN) as answer:
            return totals(answer.read().decode(), _DURATION)


@contextmanager
def scheduler_running(
    folder: Path,
    kubeconfig: Path,
    name: str,
    entries: Sequence[dict[str, Any]],
    many: int,
    *,
    gogc: int = SchedulerDefaults().gogc,
    node_sample: str = SchedulerDefaults().node_sample,
    profile: Mapping[str, Any] = _NO_PROFILE,
) -> Iterator[Scheduler]:
    """Run a scheduler for that many nodes, with settings that rendered schedulers have."""
    (port,) = free_ports(1)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 2000, "burst": 4000},
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": percentage(node_sample, many, None),
        "podMaxBackoffSeconds": SchedulerDefaults().pod_max_backoff_seconds,
        "profiles": [{"schedulerName": name, **profile}],
        "extenders": list(entries),
    }
    file = folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [
        build.build([program("kube-scheduler")])["kube-scheduler"],
        f"--config={file}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}/scheduler-certificates",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
    ]
    with (folder / "scheduler.log").open("w") as log, programs.running(command, log, {"GOGC": str(gogc)}) as process:
        end = time.monotonic() + _READY_S
        while not answers("127.0.0.1", port, "/healthz"):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the scheduler does not start: {(folder / 'scheduler.log').read_text()[-2000:]}")
            time.sleep(0.1)
        yield Scheduler(port, process.pid)


_UNKNOWN: Final = ssl.create_default_context()
_UNKNOWN.check_hostname, _UNKNOWN.verify_mode = False, ssl.CERT_NONE
