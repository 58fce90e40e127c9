"""Published affinity: what a pod costs more, how soon new pods have it, and what the scheduler asks then.

A real etcd, API server, kube-scheduler and two replicas of the operator. The cost is the processor time of the API
server for a pod that is created and not kept, less that of a pod in a namespace where nothing is ever added. What it
costs to be asked about the pods of another scheduler is told apart.
"""

import random
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from statistics import quantiles
from typing import Final

from bench import programs, publishing, stage
from bench.measure import MILLI, Benchmark, Benchmarks, Size
from bench.operating import NAMESPACE, POLICIES, asking, replicas_running, wait_until_served
from bench.publishing import pod, policy, publish, unpublish, values_of
from bench.report import main
from bench.scheduler import Wiring, scheduler_running
from bench.stage import NAME, PODS, Stage, stage_running
from testbed import process
from testbed.api import wait_for
from testbed.layout import folder_of
from testbed.node_template import equal

_CLUSTER: Final = "bench-publish"
_NODES, _ALLOWED = 210, 10
_MANY: Final = 10
_POOL: Final = "example.org/pool"
_NEVER: Final = "kube-system"
"""Namespace whose pods get nothing: the API server does not look at what is published."""
_NEW: Final = f"{PODS}?dryRun=All"
"""Path at which a pod is created and not kept."""
_TICK_MS: Final = 10.0
"""Processor time of another process is told in such steps."""
_WATCHED_S: Final = 3.0
_SETTINGS: Final = "publishedAffinity: {enabled: true}\nschedulers: [{name: fairlead, management: ConfigOnly}]"


@cache
def _measured(size: Size) -> Mapping[str, Sequence[float]]:
    """Return all samples, by the name of the benchmark."""
    shrink = size.nodes / Size().nodes
    nodes = equal(cpu="64", pods=250, labels={_POOL: "theirs"})
    with stage_running(max(3, round(shrink * _NODES)), nodes, name=_CLUSTER) as running:
        allowed = max(1, round(shrink * _ALLOWED))
        for node in running.api.items("/api/v1/nodes")[:allowed]:
            running.api.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": {_POOL: "ours"}}})
        running.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        publishing.install(running.api, NAMESPACE)
        found = dict(_creations(running, size))
        unpublish(running.api, NAME)
        with tempfile.TemporaryDirectory() as name:
            found |= _asked(running, Path(name), size)
        unpublish(running.api, NAME)
        running.delete_pods()
        return found | {"publish-acts": _acts(running, size)}


def _creations(running: Stage, size: Size) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield how many milliseconds more a creation costs, with one policy and with many."""
    matched = {"podSelector": {"matchLabels": {"app": "web"}}}
    publish(running.api, NAME, [policy("one", NAME, _POOL, "ours")])
    others = (NAME, "other")
    one = _costs(running, size, 1, {"publish-create": others[0], "publish-create-others": others[1]})
    yield from one.items()
    publish(running.api, NAME, [policy(f"p-{at}", NAME, f"{_POOL}-{at}", "ours", match=matched) for at in range(_MANY)])
    yield from _costs(running, size, _MANY, {f"publish-create-{_MANY}": NAME}).items()


def _costs(running: Stage, size: Size, many: int, kinds: Mapping[str, str]) -> Mapping[str, Sequence[float]]:
    """Return the samples of each kind of pods, of which the values are the schedulers."""
    wait_for("pods to have it", lambda: len([*values_of(running.api.create(_NEW, pod(NAME)))]) == many or None)
    api_server = process.find(folder_of(_CLUSTER), "kube-apiserver")
    if api_server is None:
        raise RuntimeError("there is no API server")
    batch = 4 * size.rounds

    def cost(where: str, scheduler: str) -> float:
        before = programs.processor_s(api_server.pid)
        for _ in range(batch):
            running.api.create(where, pod(scheduler))
        return (programs.processor_s(api_server.pid) - before) * MILLI / batch

    never = f"/api/v1/namespaces/{_NEVER}/pods?dryRun=All"
    nothing, kept = list[float](), {name: list[float]() for name in kinds}
    for number in range(max(1, 2 * size.rounds // 5)):
        asked = {"": (never, NAME), **{name: (_NEW, scheduler) for name, scheduler in kinds.items()}}
        order = random.Random(number).sample([*asked], len(asked))  # noqa: S311  an order
        found = {name: cost(*asked[name]) for name in order}
        nothing.append(max(_TICK_MS / batch, found[""]))
        for name, samples in kept.items():
            samples.append(max(_TICK_MS / batch, found[name] - found[""]))
    return kept | {"publish-create-nothing": nothing}


def _asked(running: Stage, folder: Path, size: Size) -> Mapping[str, Sequence[float]]:
    """Return the names in a call of filter, and the calls for a pod that has no node, both before and published."""
    rule = policy("pool", NAME, _POOL, "ours")
    found, nowhere = dict[str, Sequence[float]](), stage.pod(-1)
    nowhere["metadata"]["name"] = "nowhere"
    nowhere["spec"]["nodeSelector"] = {_POOL: "theirs"}
    with (
        programs.fairlead_running(folder, [rule], running.kubeconfig) as own,
        scheduler_running(folder, running.kubeconfig, NAME, Wiring().entries(own), running.nodes),
    ):
        for published in ("-before", ""):
            if not published:
                publish(running.api, NAME, [rule])
                wait_for("pods to have it", lambda: [*values_of(running.api.create(_NEW, pod(NAME)))] or None)
            begun = _counted(own)
            for number in range(size.rounds):
                body = stage.pod(number)
                running.api.create(PODS, body)
                wait_for("a node", lambda body=body: _node_of(running, body))  # type: ignore[misc]
            placed = _counted(own)
            running.api.create(PODS, nowhere)
            time.sleep(_WATCHED_S * size.rounds / Size().rounds)
            calls, _ = _counted(own)
            found[f"publish-names{published}"] = [(placed[1] - begun[1]) / (placed[0] - begun[0])]
            found[f"publish-names-calls-for-no-node{published}"] = [calls - placed[0]]
            running.delete_pods()
    return found


def _node_of(running: Stage, body: Mapping[str, Mapping[str, object]]) -> object:
    return running.api.get(f"{PODS}/{body['metadata']['name']}")["spec"].get("nodeName")


def _counted(own: programs.Extender) -> tuple[float, float]:
    """Return the calls of filter so far, and the names in them."""
    time.sleep(1.0)  # its page of metrics may be that old
    text = own.metrics()
    names = ("fairlead_webhook_request_duration_seconds_count", "fairlead_webhook_candidates_total")
    calls, asked = (
        sum(float(one) for one in re.findall(rf'^{name}{{[^}}]*verb="filter"[^}}]*}} (\S+)', text, re.MULTILINE))
        for name in names
    )
    return calls, asked


def _acts(running: Stage, size: Size) -> Sequence[float]:
    """Return the milliseconds from the edit served by each replica until new pods have what it says."""
    took, many = list[float](), max(1, min(2, size.rounds // 2))
    with replicas_running(running.api, running.kubeconfig, many, settings=_SETTINGS) as both, ExitStack() as stack:
        running.api.apply(f"{POLICIES}/bench", policy("bench", NAME, _POOL, "ours"))
        asked = [stack.enter_context(closing(one)) for one in asking(running.kubeconfig, both)]
        wait_for("pods to have it", lambda: [*values_of(running.api.create(_NEW, pod(NAME)))] or None)
        for number in range(size.rounds):
            wait_until_served(asked, running.api.apply(f"{POLICIES}/bench", policy("bench", NAME, _POOL, f"{number}")))
            served = time.monotonic()
            wait_for(
                "new pods to have it",
                lambda value=f"{number}": [*values_of(running.api.create(_NEW, pod(NAME)))] == [value] or None,  # type: ignore[misc]
                every_s=0.005,
            )
            took.append((time.monotonic() - served) * MILLI)
    return [quantiles(took, n=100, method="inclusive")[98]]


_UNITS: Final = {
    "publish-create-nothing": "ms",
    "publish-create": "ms",
    f"publish-create-{_MANY}": "ms",
    "publish-create-others": "ms",
    "publish-acts": "ms",
    "publish-names": "nodes",
    "publish-names-before": "nodes",
    "publish-names-calls-for-no-node": "calls",
    "publish-names-calls-for-no-node-before": "calls",
}
BENCHMARKS: Final[Benchmarks] = {
    name: Benchmark(unit, lambda size, name=name: _measured(size)[name])  # type: ignore[misc]
    for name, unit in _UNITS.items()
}

if __name__ == "__main__":
    main(BENCHMARKS)
