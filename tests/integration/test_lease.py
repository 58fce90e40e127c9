"""Replicas as processes on a real API server: one leads, and whatever becomes of it, another one does."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.api import wait_for
from testbed.fixtures import Cluster

_REPLICA = """
import sys, threading, time
from pathlib import Path
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.leader_election.election import LeaseTimings
from fairlead.kube.leader_election.elector import LEASES, Elector

class Task:
    stopped = True
    def start(self): print("begin", flush=True); self.stopped = False
    def stop(self): print("end", flush=True); self.stopped = True

config, namespace, me, lease_s, act_s, retry_s = sys.argv[1:]
elector = Elector(
    lambda: from_kubeconfig([Path(config)]), LEASES.named(namespace, "leader"), me, Task(),
    terms=LeaseTimings(float(lease_s), float(act_s), float(retry_s)),
)
elector.start()
for line in sys.stdin:
    if line.strip() == "stop":
        break
    end = time.monotonic() + float(line)  # the main thread is busy and gives no turn that it need not give
    while time.monotonic() < end:
        sum(range(1000))
    print("done", flush=True)
elector.stop(20)
"""


@dataclass
class Replica:
    name: str
    process: "subprocess.Popen[str]"
    log: Path

    def said(self) -> list[str]:
        return self.log.read_text().split()

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()


Start = Callable[..., Replica]


@pytest.fixture
def start(control_plane: Cluster, namespace: str, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as started:

        def begin(name: str, *terms: float) -> Replica:
            log = tmp_path / name
            command = [sys.executable, "-c", _REPLICA, str(control_plane.kubeconfig), namespace, name]
            with log.open("w") as out:
                process = subprocess.Popen(
                    [*command, *map(str, terms)],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    text=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                )
            started.callback(process.wait)
            started.callback(process.kill)
            if process.stdin:
                started.enter_context(process.stdin)
            return Replica(name, process, log)

        yield begin


def test_a_leader_that_is_killed_is_followed_by_another_one(
    start: Start, control_plane: Cluster, namespace: str
) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/leader"

    def holder() -> str:
        return str(control_plane.api.get(path)["spec"]["holderIdentity"])

    first = start("first", 15, 10, 2)
    wait_for("somebody to lead", lambda: first.said() == ["begin"])
    second = start("second", 120, 10, 2)  # nobody would wait for this one's Lease to end
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    assert holder() == "first"
    wait_for("another one to lead", lambda: second.said() == ["begin"])
    assert holder() == "second"
    third = start("third", 15, 10, 2)
    second.tell("stop")
    wait_for("one that is asked to stop lets others lead at once", lambda: third.said() == ["begin"])
    assert second.said() == ["begin", "end"]
    assert control_plane.api.get(path)["spec"]["leaseTransitions"] == 2


def test_a_leader_whose_main_thread_is_busy_leads_on(start: Start, control_plane: Cluster) -> None:
    busy = start("busy", 10, 7, 0.5)
    wait_for("somebody to lead", lambda: busy.said() == ["begin"])
    waiting = start("waiting", 10, 7, 0.5)
    busy.tell("14")
    wait_for("it to be done", lambda: "done" in busy.said())
    assert (busy.said(), waiting.said()) == (["begin", "done"], [])


def test_a_leader_that_was_stopped_for_a_while_leads_no_more(start: Start) -> None:
    stopped = start("stopped", 6, 4, 0.2)
    wait_for("somebody to lead", lambda: stopped.said() == ["begin"])
    other = start("other", 6, 4, 0.2)
    stopped.process.send_signal(signal.SIGSTOP)
    wait_for("another one to lead", lambda: other.said() == ["begin"])
    stopped.process.send_signal(signal.SIGCONT)
    wait_for("it to know", lambda: stopped.said() == ["begin", "end"])
    assert other.said() == ["begin"]


def test_of_many_that_start_at_once_one_leads(start: Start) -> None:
    replicas = [start(f"replica-{number}", 10, 7, 0.2) for number in range(5)]

    def leading() -> list[str]:
        return [one.name for one in replicas if one.said() == ["begin"]]

    wait_for("somebody to lead", lambda: leading() or None)
    for one in replicas:
        one.tell("1")  # each has seen the Lease many times by then
    wait_for("all to have had their turns", lambda: all("done" in one.said() for one in replicas))
    assert len([one for one in replicas if "begin" in one.said()]) == 1
