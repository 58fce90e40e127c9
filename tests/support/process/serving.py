"""`fairlead serve` as a real process, and the wiring of a scheduler that asks it."""

import http.client
import itertools
import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import fairlead
from fairlead.cli.main import main
from fairlead.process.health import FRESH_S
from fairlead.render.extenders import bind_timeout_s
from testbed import process
from testbed.api import Object, wait_for
from testbed.layout import free_ports
from testbed.process import Component
from testbed.supervisor import Supervisor

_HOST = "127.0.0.1"
_SOURCE = Path(fairlead.__file__).parents[1]
_TESTS = Path(__file__).parents[2]
_READY_S = 60
_numbers = itertools.count(1)


def certificates(folder: Path) -> Path:
    """Certificates that `fairlead certs` made."""
    if main(["certs", "--out", str(folder)]):
        raise AssertionError("fairlead certs failed")
    return folder


@dataclass(slots=True)
class Serving:
    """One `fairlead serve` with policies of its own, on ports that it keeps when it is started again."""

    cluster: Path
    """The folder of the cluster, where its log lies beside those of the cluster's components."""
    kubeconfig: Path
    namespace: str
    """Of the last good policies; also the scheduler whose policies these are."""
    certs: Path
    policies: Path
    name: str = field(default_factory=lambda: f"test-serve-{next(_numbers)}")
    ports: list[int] = field(default_factory=lambda: free_ports(2))
    settings: Path | None = None
    log_level: str = "INFO"
    program: str = "fairlead"
    """Module that is run."""
    timeout: str = "1s"
    """The scheduler's `httpTimeout`."""

    def start(self) -> None:
        """Start it, and wait until it says that it is ready."""
        Supervisor(self.cluster, list).ensure(self._component(), self.is_ready, within_s=_READY_S)

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        process.kill(found for found in [process.find(self.cluster, self.name)] if found)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop it meanwhile: it answers no call."""
        found = process.find(self.cluster, self.name)
        assert found is not None
        found.suspend()
        try:
            yield
        finally:
            found.resume()

    def is_ready(self) -> bool:
        """Return whether it answers the scheduler."""
        return self._probe("readyz")[0] == http.client.OK

    def readyz(self) -> str:
        """Return its page /readyz."""
        return self._probe("readyz")[1]

    def says(self, *texts: str) -> str:
        """Return its page /readyz, once all of these texts are in it."""

        def look() -> str | None:
            said = self.readyz()
            return said if all(text in said for text in texts) else None

        return wait_for(f"/readyz to say {texts}", look)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's values with these labels."""
        time.sleep(FRESH_S)  # what was told to somebody else may be that old
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = (line for line in self._probe("metrics")[1].splitlines() if line.startswith((f"{name}{{", f"{name} ")))
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(label in line for label in wanted))

    def log(self) -> str:
        """Return its log so far."""
        return process.log_of(self.cluster, self.name).read_text()

    def write(self, name: str, text: str) -> None:
        """Write a file of policies, as whoever edits a ConfigMap does: at once."""
        new = self.policies / f".{name}.new"
        new.write_text(text)
        new.replace(self.policies / f"{name}.yaml")

    def put(self, name: str, **spec: Any) -> None:
        """Write a policy for our pods."""
        whole = {"schedulerName": self.namespace} | spec
        document = {"kind": "SchedulerExtenderPolicy", "metadata": {"name": name}, "spec": whole}
        self.write(name, yaml.safe_dump({"apiVersion": "fairlead.dev/v1alpha1"} | document))

    def edit(self, change: Callable[[], None]) -> None:
        """Change policies, and wait until others serve than before."""
        before = self._generation()
        change()
        wait_for("the edit to serve", lambda: self._generation() not in ("", before))

    def entries(self, *, binds: bool = True, gate: bool = True, hold_s: int = 0) -> list[Object]:
        """The entries of a scheduler's `extenders` that decision 1 of the design names; `hold_s`: of groups."""
        common = {
            "enableHTTPS": True,
            "tlsConfig": {
                "caFile": f"{self.certs}/ca.crt",
                "certFile": f"{self.certs}/scheduler.crt",
                "keyFile": f"{self.certs}/scheduler.key",
            },
            "httpTimeout": "1s",
            "nodeCacheCapable": True,
        }
        url = f"https://{_HOST}:{self.ports[0]}"
        filters = {"filterVerb": "filter", "preemptVerb": "preempt"}
        bind = {"bindVerb": "bind"} if binds else {}
        fail = {"urlPrefix": url, **filters, **({} if hold_s else bind)}
        held = {"urlPrefix": url, **bind, "httpTimeout": f"{bind_timeout_s(hold_s)}s"}
        ignore = {"urlPrefix": f"{url}/ignore", **filters, "ignorable": True}
        scores = {"urlPrefix": url, "prioritizeVerb": "prioritize", "weight": 1}
        return [common | entry for entry in ([fail] if gate else []) + [ignore, scores] + ([held] if hold_s else [])]

    def call(self, verb: str, body: Mapping[str, object]) -> Any:
        """Ask it what a scheduler asks, with the scheduler's certificate."""
        with self.connected() as call:
            return call(verb, body)

    @contextmanager
    def connected(self) -> Iterator[Callable[[str, Mapping[str, object]], Any]]:
        """Keep a connection for calls, as a scheduler does."""
        context = ssl.create_default_context(cafile=f"{self.certs}/ca.crt")
        context.load_cert_chain(f"{self.certs}/scheduler.crt", f"{self.certs}/scheduler.key")
        connection = http.client.HTTPSConnection(_HOST, self.ports[0], context=context, timeout=30)

        def call(verb: str, body: Mapping[str, object]) -> Any:
            connection.request("POST", f"/{verb}", json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())

        try:
            yield call
        finally:
            connection.close()

    def _generation(self) -> str:
        return next((line for line in self.readyz().splitlines() if "] policies: " in line), "")

    def _probe(self, page: str) -> tuple[int, str]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{_HOST}:{self.ports[1]}/{page}", timeout=15) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def _component(self) -> Component:
        server = {"cert": "server.crt", "key": "server.key"}
        command = [
            *(sys.executable, "-m", self.program, "serve"),
            *(f"--policies={self.policies}", f"--namespace={self.namespace}", f"--kubeconfig={self.kubeconfig}"),
            *(f"--listen={_HOST}:{self.ports[0]}", f"--probes={_HOST}:{self.ports[1]}"),
            *(f"--tls-{part}={self.certs}/{file}" for part, file in server.items()),
            *(f"--client-ca={self.certs}/ca.crt", f"--timeout={self.timeout}"),
            *([] if self.settings is None else [f"--settings={self.settings}"]),
        ]
        environment = {"PYTHONPATH": f"{_SOURCE}:{_TESTS}", "PYTHONDONTWRITEBYTECODE": "1", "LOG_LEVEL": self.log_level}
        return Component(self.name, command, environment)


MakeServing = Callable[..., Serving]
"""Makes one that is not started yet: `make_serving()`, or with another kubeconfig."""
