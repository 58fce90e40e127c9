"""Attacks by sources of values: policies of a scheduler of their own, while the calls of another one are counted."""

import http.client
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import yaml

from bench import cluster, programs, webhook
from bench.apiserver import ApiServer
from bench.programs import Extender
from support.hostile_sources import prometheus as server
from testbed.api import Object, wait_for
from testbed.layout import free_ports

NODES: Final = 1000
TIMEOUT_S: Final = 1.0
"""Of the scheduler whose calls are counted."""
PACE_S: Final = 0.2
WARM_UP: Final = 60
"""Calls in the time in which a replica that has just started may still wait for values."""
_LOOK_EACH: Final = 5  # calls
VICTIM: Final = cluster.SCHEDULER
_ATTACKER: Final = "evil"
_ENTRIES: Final = 16  # of a policy at most
_FOREIGN_METRICS: Final = 60_000


def policy(name: str, scheduler: str, data: Sequence[Object], **spec: Any) -> Object:
    """A policy with these data, for pods of a scheduler."""
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": name}}
    return kind | {"spec": {"schedulerName": scheduler, "data": [*data], **spec}}


def _prometheus(name: str, query: str, interval: str = "5s", **more: Any) -> Object:
    return {"name": name, "prometheus": {"query": query, "nodeLabel": "node", "interval": interval}, **more}


_MEASURED: Final = policy(
    "victim",
    VICTIM,
    [_prometheus("load", server.GOOD, "15s", maxAge="60s")],
    filters=[{"name": "load", "expression": "data.load < 0.9"}],
)
"""It refuses nodes without a usable value."""


def _queries(*kinds: str, policies: int = 3) -> list[Object]:
    """Policies each of whose entries has a query of its own, of these kinds in turn."""
    numbers = range(policies * _ENTRIES)
    entries = [_prometheus(f"d{one % _ENTRIES}", f"{kinds[one % len(kinds)]}_{one}") for one in numbers]
    return [policy(f"evil-{at}", _ATTACKER, entries[at * _ENTRIES : (at + 1) * _ENTRIES]) for at in range(policies)]


def _tables(policies: int = 32) -> list[Object]:
    """Policies that all read one query, each entry with a factor and an age of its own."""

    def entry(at: int, one: int) -> Object:
        factor, age = 1.0 + at + one / 100, f"{10 + at * _ENTRIES + one}s"
        return _prometheus(f"d{one}", "tables", maxAge=age, factor=factor)

    return [policy(f"evil-{at:02}", _ATTACKER, [entry(at, one) for one in range(_ENTRIES)]) for at in range(policies)]


def _metrics() -> list[Object]:
    usage = {"nodeMetrics": {"resource": "cpu", "interval": "10s"}}
    return [policy("evil-metrics", _ATTACKER, [{"name": "usage", **usage}])]


@dataclass(frozen=True, slots=True)
class Attack:
    """Policies, and what shows that they do what they are for."""

    policies: Callable[[], Sequence[Object]]
    kinds: tuple[str, ...]
    """Kinds of queries that must have been asked."""
    requests: int
    """How often, each."""


ATTACKS: Final[Mapping[str, Attack]] = {
    "large replies": Attack(lambda: _queries("big"), ("big",), 48),
    "compressed replies and white space": Attack(
        lambda: _queries("bomb", "members", "blanks"), ("bomb", "members", "blanks"), 16
    ),
    "queries that hang": Attack(lambda: _queries("hang"), ("hang",), 20),
    "replies that were not asked for": Attack(lambda: _queries("poison"), ("poison",), 50),
    "tables": Attack(_tables, ("tables",), 2),
    "metrics API": Attack(_metrics, ("metrics",), 1),
}


@dataclass(frozen=True, slots=True)
class CallsMade:
    """Calls of one time, and their outcomes."""

    took_ms: tuple[float, ...]
    lost: tuple[str, ...]
    """Why a call gave other nodes than all of them."""
    rss: int
    """Most memory of the server meanwhile, in bytes."""


@dataclass(slots=True)
class Drill:
    """A server whose sources are hostile, and the scheduler that must not notice."""

    extender: Extender
    policies: Path
    prometheus: str
    api: ApiServer
    _body: bytes = field(
        default_factory=lambda: webhook.body(
            b"null", msgspec.json.encode([cluster.name(at) for at in range(NODES)]), VICTIM
        )
    )

    @contextmanager
    def under(self, attack: Attack) -> Iterator[Callable[[], bool]]:
        """Attack meanwhile; yield what tells whether all queries were asked since."""
        before = self._asked()

        def is_carried_out() -> bool:
            now = self._asked()
            return all(now.get(kind, 0) - before.get(kind, 0) >= attack.requests for kind in attack.kinds)

        files = [(self.policies / f"{one['metadata']['name']}.yaml", yaml.safe_dump(one)) for one in attack.policies()]
        try:
            for file, text in files:
                file.with_suffix(".new").write_text(text)
                file.with_suffix(".new").replace(file)
            yield is_carried_out
        finally:
            for file, _ in files:
                file.unlink(missing_ok=True)
            wait_for("the attack to be over", lambda: "evil" not in self._page("readyz"))

    def calls(self, least: int, until: Callable[[], bool] = lambda: True, most: int = 300) -> CallsMade:
        """Call as a scheduler does, so often at least and until this holds. Raises AssertionError if it never does."""
        context = programs.client_context(self.extender.certificates or Path())
        process, rss = psutil.Process(self.extender.pid), 0
        took, lost = list[float](), list[str]()
        connection: http.client.HTTPSConnection | None = None
        while len(took) < least or not until():
            assert len(took) < most, f"the attack was not carried out: {self._asked()}"
            began = time.monotonic()
            if connection is None:
                address = self.extender.url.removeprefix("https://")
                connection = http.client.HTTPSConnection(address, context=context, timeout=TIMEOUT_S)
            try:
                connection.request("POST", "/filter", self._body, {"Content-Type": "application/json"})
                reply = json.loads(connection.getresponse().read())
            except OSError as error:
                lost.append(f"{type(error).__name__}: {error}")
                connection.close()
                connection = None
            else:
                if len(reply.get("NodeNames") or ()) != NODES:
                    why = next(iter((reply.get("FailedNodes") or {}).values()), "")
                    lost.append(reply.get("Error") or why or "nodes are missing")
            ended = time.monotonic()
            took.append(1000 * (ended - began))
            rss = max(rss, process.memory_info().rss)
            if len(took) % _LOOK_EACH == 0 and "\nready\n" not in self._page("readyz"):
                lost.append("it is not ready")
            # A pace, which no condition ends: so many calls come to a replica.
            time.sleep(max(0.0, began + PACE_S - ended))
        if connection is not None:
            connection.close()
        return CallsMade(tuple(took), tuple(lost), rss)

    def _asked(self) -> Mapping[str, int]:
        with urllib.request.urlopen(f"{self.prometheus}/asked") as answer:  # noqa: S310  our own
            found: dict[str, int] = json.loads(answer.read())
        return found | {"metrics": self.api.asked["node-metrics"]}

    def _page(self, name: str) -> str:
        try:
            with urllib.request.urlopen(f"{self.extender.probes}/{name}") as answer:  # noqa: S310  our own
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()


@contextmanager
def drill(cores: Sequence[int] = ()) -> Iterator[Drill]:
    """Run a hostile Prometheus on these cores, a hostile metrics API, and a server that a victim's policy asks."""
    api = ApiServer()
    api.have("nodes", (_node(at) for at in range(NODES)))
    metrics = b",".join(map(_usage, range(_FOREIGN_METRICS)))
    api.pages["node-metrics"] = [b'{"kind":"NodeMetricsList","metadata":{},"items":[%b]}' % metrics]
    with tempfile.TemporaryDirectory() as name, api.serving(), _prometheus_running(cores) as prometheus:
        folder = Path(name)
        settings = folder / "settings.yaml"
        settings.write_text(yaml.safe_dump({"prometheus": [{"name": "default", "url": prometheus}]}))
        kubeconfig = api.kubeconfig(folder / "kubeconfig")
        with programs.fairlead_running(folder, [_MEASURED], kubeconfig, settings) as extender:
            made = Drill(extender, folder / "policies", prometheus, api)
            made.calls(WARM_UP)
            yield made


@contextmanager
def _prometheus_running(cores: Sequence[int]) -> Iterator[str]:
    (port,) = free_ports(1)
    given = {"port": port, "nodes": [cluster.name(at) for at in range(NODES)], "cores": [*cores]}
    with subprocess.Popen([sys.executable, server.__file__], stdin=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(given).encode())
            process.stdin.close()
            url = f"http://127.0.0.1:{port}"
            wait_for("the hostile Prometheus", lambda: _answers(f"{url}/asked"))
            yield url
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310  our own
            return True
    except OSError:
        return False


def _node(at: int) -> bytes:
    about = {"name": cluster.name(at), "uid": f"uid-{at}", "resourceVersion": "1"}
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return msgspec.json.encode({"metadata": about, "spec": {}, "status": {"capacity": amounts, "allocatable": amounts}})


def _usage(at: int) -> bytes:
    """Usage of a node that does not exist, in what a list of metrics-server has for each node."""
    about = {"name": f"none-{at}", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"x": "y" * 60}}
    usage = {"cpu": "1" * 20 + "n", "memory": "1" * 20 + "Ki"}
    return msgspec.json.encode(
        {"metadata": about, "timestamp": "2026-01-01T00:00:00Z", "window": "20s", "usage": usage}
    )
