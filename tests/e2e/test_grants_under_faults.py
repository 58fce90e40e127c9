"""Replicas are stopped and killed, packets are late, 500 pods are bound at once: no card holds more than it has.

`FAIRLEAD_CHAOS_SEEDS=20` runs as many seeds as the decision page tells of, and compares with replicas without a ledger.
"""

import logging
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from extender import Stage
from support.grants.card_watch import CardWatch
from support.grants.late_packets import late_packets, through
from support.process.serving import MakeServing, Serving
from testbed.api import wait_for
from testbed.errors import ClusterError
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

LOG = logging.getLogger(__name__)
SEEDS = int(os.environ.get("FAIRLEAD_CHAOS_SEEDS", "1"))
IS_LONG = "FAIRLEAD_CHAOS_SEEDS" in os.environ
MEM, COUNT = "example.org/gpu-mem", "example.org/gpu-count"
NODES, CARDS, SIZE, AMOUNT = 20, 8, 30, 10
PODS = 500
AT_ONCE = 64
TRIES = 12
_FAULT_S = 0.5
_STOPPED_S = (0.3, 2.5)
_DELETED = 0.05


@dataclass(slots=True, eq=False)
class Binds:
    """Pods that are bound as a scheduler does, by two replicas, until each has a node or was refused often enough."""

    stage: Stage
    replicas: list[Serving]
    nodes: list[str]
    seed: int
    failed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Make the pods, and bind all of them at once."""
        resources = {MEM: str(AMOUNT)}
        container = {"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}
        spec = {"schedulerName": self.stage.name, "automountServiceAccountToken": False, "containers": [container]}
        names = [f"p-{number}" for number in range(PODS)]
        self.stage.api.create_all(self.stage.path, [{"metadata": {"name": name}, "spec": spec} for name in names])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(self._bind, name) for name in names]:
                done.result()

    def _bind(self, name: str) -> None:
        chance = random.Random(f"{self.seed} {name}")  # noqa: S311  a test
        path = f"{self.stage.path}/{name}"
        uid = self.stage.api.get(path)["metadata"]["uid"]
        for number in range(TRIES):
            args = {"PodName": name, "PodNamespace": self.stage.name, "PodUID": uid, "Node": chance.choice(self.nodes)}
            try:
                why = chance.choice(self.replicas).call("bind", args).get("Error", "")
            except (OSError, ValueError) as error:  # it is stopped, killed, or starts
                why = str(error) or type(error).__name__
            if not why:
                if chance.random() < _DELETED:
                    self.stage.api.delete(path, gracePeriodSeconds="0")
                return
            with self._lock:
                self.failed += 1
            condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
            try:
                self.stage.api.patch(
                    f"{path}/status", {"status": {"conditions": [{**condition, "message": f"{number}: {why}"}]}}
                )
            except ClusterError:
                return
            time.sleep(chance.uniform(0, 0.2))


@contextmanager
def faults(replicas: list[Serving], seed: int) -> Iterator[None]:
    """Stop or kill a replica every half second."""
    end, chance = threading.Event(), random.Random(seed)  # noqa: S311  a test

    def work() -> None:
        while not end.wait(_FAULT_S):
            one = chance.choice(replicas)
            if chance.random() < 0.5:
                with one.stopped():
                    end.wait(chance.uniform(*_STOPPED_S))
            else:
                one.kill()
                one.start()

    thread = threading.Thread(target=work, name="faults", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def overbooked(
    stage: Stage, make_serving: MakeServing, nodes: list[str], folder: Path, seed: int, *, program: str = ""
) -> CardWatch:
    """What a watch has counted while the pods were bound."""
    kubeconfig = make_serving().kubeconfig
    server = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    with ExitStack() as stack:
        port = stack.enter_context(late_packets(server.port or 443, seed))
        replicas = [make_serving(through(kubeconfig, port, folder / f"kubeconfig-{number}")) for number in range(2)]
        for one in replicas:
            one.program = program or one.program
            one.put(
                "gpu",
                binding={"deviceShare": [{"name": "gpu", "shares": [{"resource": MEM}], "layout": {"count": COUNT}}]},
            )
            one.start()
        watch = stack.enter_context(CardWatch(stage.api, stage.path, MEM, SIZE))
        binds = Binds(stage, replicas, nodes, seed)
        with faults(replicas, seed):
            binds.run()
        time.sleep(3)  # packets may be that late
        last = stage.api.get(stage.path, limit="1")["metadata"]["resourceVersion"]
        wait_for("the watch to have seen all", lambda: watch.reached(last) or None)
        for one in replicas:
            one.kill()
    stage.api.delete(stage.path, gracePeriodSeconds="0")
    LOG.info(
        "seed %d%s: %d bound, %d refused, a card held %d of %d, overbooked %d times",
        *(seed, f" {program}", watch.bound, binds.failed, watch.most, SIZE, watch.overbooked),
    )
    return watch


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_card_is_granted_twice(
    stage: Stage, make_serving: MakeServing, kwok_nodes: MakeNodes, tmp_path: Path, seed: int
) -> None:
    nodes = kwok_nodes(NODES, equal(extended={MEM: str(CARDS * SIZE), COUNT: str(CARDS)}))
    found = overbooked(stage, make_serving, nodes, tmp_path, seed)
    assert found.overbooked == 0
    assert found.without_grant == 0
    assert found.bound > PODS // 10, "it has to be tried"


if IS_LONG:  # it compares, and proves nothing about the product

    def test_without_the_ledger_cards_are_granted_twice(
        stage: Stage, make_serving: MakeServing, kwok_nodes: MakeNodes, tmp_path: Path
    ) -> None:
        nodes = kwok_nodes(NODES, equal(extended={MEM: str(CARDS * SIZE), COUNT: str(CARDS)}))
        counts = list[int]()
        for seed in range(SEEDS):
            found = overbooked(stage, make_serving, nodes, tmp_path, seed, program="support.grants.without_ledger")
            counts.append(found.overbooked)
            wait_for("the pods to go", lambda: not stage.api.items(stage.path) or None)
        assert sum(counts) > SEEDS
