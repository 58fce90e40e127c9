"""Brake: the time from an edit of `mode` to Disabled or Shadow until no replica applies the policy any more.

A real etcd and API server, and two replicas of the operator, which are asked as a scheduler asks them. Every other
edit also has a rule that does not compile, as edits in an incident may have.
"""

import http.client
import itertools
import json
import ssl
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from bench.measure import MILLI, Benchmark, Benchmarks, Size
from bench.operating import POLICIES, Asked, asking, replicas_running, wait_until_served, write_certificate
from bench.report import main
from bench.stage import NAME, stage_running
from testbed.api import wait_for
from testbed.node_template import equal

_CLUSTER: Final = "bench-brake"
_NODES: Final = 3
_POLICY: Final = "brake"
_SETTINGS: Final = f"schedulers: [{{name: {NAME}, management: ConfigOnly}}]"
_LOOK_S: Final = 0.002
_PERCENT: Final = 0.99


def _spec(mode: str, *, is_broken: bool = False) -> dict[str, Any]:
    broken = {"name": "broken", "expression": "node.metadata.lables['pool'] == 'a'"}
    filters = [{"name": "none", "expression": "node.metadata.name == 'no such node'"}]
    return {"schedulerName": NAME, "mode": mode, "filters": [*filters, *([broken] if is_broken else [])]}


@cache
def _measured(size: Size) -> Sequence[float]:
    """Return the time of each edit in milliseconds."""
    with stage_running(_NODES, equal(cpu="4", pods=10), name=_CLUSTER) as running:
        nodes = [str(one["metadata"]["name"]) for one in running.api.items("/api/v1/nodes")]
        kubeconfig = running.kubeconfig
        with (
            replicas_running(running.api, kubeconfig, 2, settings=_SETTINGS) as replicas,
            tempfile.TemporaryDirectory() as name,
        ):
            write_certificate(kubeconfig, NAME, Path(name))
            context = ssl.create_default_context(cafile=str(Path(name, "ca.crt")))
            context.load_cert_chain(Path(name, "scheduler.crt"), Path(name, "scheduler.key"))
            callers = [
                http.client.HTTPSConnection(one.address, one.port, context=context, timeout=5) for one in replicas
            ]
            states = asking(kubeconfig, replicas)
            about = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
            running.api.create(POLICIES, {**about, "metadata": {"name": _POLICY}, "spec": _spec("Enforce")})
            found, path = [], f"{POLICIES}/{_POLICY}"
            for turn, mode in zip(range(size.rounds), itertools.cycle(("Disabled", "Shadow"))):
                wait_until_served(states, running.api.patch(path, {"spec": _spec("Enforce")}))
                wait_for("it to be applied", lambda: not any(_passes(one, nodes) for one in callers))
                edit = {"spec": _spec(mode, is_broken=turn % 4 > 1)}
                begun = time.perf_counter()
                running.api.patch(path, edit)
                while not all(_passes(one, nodes) for one in callers):
                    time.sleep(_LOOK_S)
                found.append((time.perf_counter() - begun) * MILLI)
    return found


def _passes(replica: Asked, nodes: Sequence[str]) -> bool:
    """Report whether a replica lets a pod pass."""
    pod = {"metadata": {"name": "x", "namespace": "default", "uid": "u"}, "spec": {"schedulerName": NAME}}
    body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": nodes})
    replica.request("POST", "/filter", body, {"Content-Type": "application/json"})
    return bool(json.loads(replica.getresponse().read())["NodeNames"])


def slowest(size: Size) -> list[float]:
    """Return the 99th percentile in seconds."""
    found = sorted(_measured(size))
    return [found[min(len(found) - 1, int(_PERCENT * len(found)))] / MILLI]


BENCHMARKS: Final[Benchmarks] = {"brake-everywhere-p99": Benchmark("s", slowest)}

if __name__ == "__main__":
    main(BENCHMARKS)
