"""A node that the scheduler knows before the mirror does: who is asked about it cannot tell, and nobody else minds."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from extender import Stage
from support.process.serving import MakeServing
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes


class Relay:
    """Between a client and a server. What the server says is held back while it is closed."""

    def __init__(self, host: str, port: int) -> None:
        self.server = host, port
        self.open = threading.Event()
        self.open.set()
        self.sockets = [socket.create_server(("127.0.0.1", 0))]
        self.port: int = self.sockets[0].getsockname()[1]
        self.threads: list[threading.Thread] = []
        self._start(self._accept)

    def close(self) -> None:
        self.open.set()
        for one in self.sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for one in self.sockets:
            one.close()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        self.threads.append(threading.Thread(target=target, args=args))
        self.threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.sockets[0].accept()
                server = socket.create_connection(self.server)
                self.sockets += client, server
                self._start(self._pass_on, client, server, None)
                self._start(self._pass_on, server, client, self.open)

    def _pass_on(self, one: socket.socket, other: socket.socket, gate: threading.Event | None) -> None:
        with suppress(OSError):
            while said := one.recv(1 << 16):
                if gate:
                    gate.wait()
                other.sendall(said)
            other.shutdown(socket.SHUT_WR)


@pytest.fixture
def relay(ground: Cluster) -> Iterator[Relay]:
    server = urlsplit(yaml.safe_load(ground.kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    made = Relay(str(server.hostname), server.port or 443)
    yield made
    made.close()


def _to(new: str) -> Object:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [new]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def test_a_node_of_this_moment_is_refused_by_filters_that_are_for_the_pod(
    ground: Cluster, stage: Stage, relay: Relay, make_serving: MakeServing, kwok_nodes: MakeNodes, tmp_path: Path
) -> None:
    kwok_nodes(2)
    document = yaml.safe_load(ground.kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
    through = tmp_path / "kubeconfig"
    through.write_text(yaml.safe_dump(document))
    serving = make_serving(through)
    serving.put(
        "picky",
        filters=[{"name": "any", "expression": "true"}],
        match={"podSelector": {"matchLabels": {"is": "picky"}}},
    )
    serving.start()
    stage.start(*serving.entries(binds=False))
    relay.open.clear()
    new = kwok_nodes(3)[-1]
    stage.make_pod("easy", affinity=_to(new))
    assert stage.placed("easy") == new
    assert serving.metric("fairlead_webhook_unknown_nodes_total") == 0
    stage.make_pod("picky", affinity=_to(new), labels={"is": "picky"})
    assert "1 node is not known yet" in stage.refusal("picky")
    assert serving.metric("fairlead_webhook_unknown_nodes_total") >= 1
    relay.open.set()
    wait_for("the mirror to know the node", lambda: "] nodes: 3\n" in serving.readyz())
    ground.api.patch(f"/api/v1/nodes/{new}", {"metadata": {"labels": {"known": "now"}}})  # an event to try again at
    assert stage.placed("picky") == new
