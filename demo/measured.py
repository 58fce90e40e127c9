"""Measured load: a Prometheus beside the demo's node, and a page with the load of nodes that it scrapes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3

from testbed import cache, layout, prometheus, sandbox
from testbed.api import wait_for
from testbed.errors import ClusterError
from testbed.layout import Layout
from testbed.process import Component
from testbed.providers import Local, Provider
from testbed.supervisor import Supervisor

_PORT, _PAGE_PORT = 9090, 9091
_OK = 200
_PAGE = "load.txt"
"""Its ending tells Prometheus that it is text."""


def obstacle(provider: Provider) -> str:
    """Return why the demo has no Prometheus on this cluster; "" if it has one."""
    if isinstance(provider, Local):
        return prometheus.obstacle()
    return "the demo starts a Prometheus only beside a cluster of its own processes"


@dataclass(frozen=True, slots=True)
class Load:
    """Load of nodes, which Prometheus measures. It goes on after the demo, until its cluster is deleted."""

    layout: Layout

    @property
    def url(self) -> str:
        """Return the URL of Prometheus, for the operator's pods and for this machine."""
        return f"http://{self.layout.host}:{_PORT}"

    @property
    def page(self) -> Path:
        """Return the file that is scraped."""
        return self._folder / "page" / _PAGE

    def up(self, load: Mapping[str, float]) -> None:
        """Start Prometheus, or find it running, and wait until it has this load of nodes."""
        self.set(load)
        # on loopback, whose name it finds without asking a name server: none answers there
        command = [sys.executable, "-m", "http.server", "--bind=127.0.0.1", f"--directory={self.page.parent}"]
        page = Component("load", [*command, str(_PAGE_PORT)])
        listen = f"{self.layout.host}:{_PORT}"
        server = prometheus.component(self._folder, f"127.0.0.1:{_PAGE_PORT}", listen, path=f"/{_PAGE}")
        supervisor = Supervisor(self.layout.folder, sandbox.Sandbox(self.layout.folder).enter)
        supervisor.ensure(page, lambda: True)
        supervisor.ensure(server, self._is_ready)
        wait_for("Prometheus to measure the load", lambda: self._measured() == load or None)

    def set(self, load: Mapping[str, float]) -> None:
        """Change the load of nodes."""
        cache.write(self.page, "".join(f'load{{node="{node}"}} {value}\n' for node, value in load.items()))

    def _is_ready(self) -> bool:
        return _get(f"{self.url}/-/ready").status == _OK

    def _measured(self) -> dict[str, float]:
        found = _get(f"{self.url}/api/v1/query?query=load").json()["data"]["result"]
        return {one["metric"]["node"]: float(one["value"][1]) for one in found}

    @property
    def _folder(self) -> Path:
        return self.layout.folder / "prometheus"


def of_cluster(provider: Provider) -> Load | None:
    """Return the load of the nodes of a running cluster; None if the demo has no Prometheus there."""
    found = None if obstacle(provider) else layout.load(provider.cluster)
    return Load(found) if found else None


def _get(url: str) -> urllib3.BaseHTTPResponse:
    try:
        return urllib3.request("GET", url, retries=False, timeout=5.0)
    except urllib3.exceptions.HTTPError as error:
        raise ClusterError(f"{url} does not answer: {error}") from error
