"""Measured load: a Prometheus and a page with the load of nodes that it scrapes.

Both are processes beside the node of a cluster of the testbed's own, and pods of a cluster of kind.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import urllib3

from testbed import cache, prometheus, sandbox
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.layout import Layout, free_ports
from testbed.process import Component
from testbed.providers import Local, Provider
from testbed.supervisor import Supervisor
from testbed.versions import PROMETHEUS

_PORT, _PAGE_PORT = 9090, 9091
_OK = 200
_PAGE = "load.txt"
"""Its ending tells Prometheus that it is text."""
_NAMESPACE: Final = "demo-load"
_MANIFEST: Final = Path(__file__).with_name("prometheus.yaml")


class Load(Protocol):
    """Load of nodes, which Prometheus measures. It goes on after the demo, until its cluster is deleted."""

    @property
    def url(self) -> str:
        """Return the URL of Prometheus for the operator's pods."""

    @property
    def how_to_edit(self) -> str:
        """Return a sentence that says how to change the load."""

    def up(self, load: Mapping[str, float]) -> None:
        """Start Prometheus, or find it running, and wait until it has this load of nodes."""

    def set(self, load: Mapping[str, float]) -> None:
        """Change the load of nodes."""

    def url_here(self) -> AbstractContextManager[str]:
        """Yield the URL of Prometheus for this machine."""


@dataclass(frozen=True, slots=True)
class LoadBeside:
    """Prometheus and the page as processes beside the node of a cluster of the testbed's own."""

    layout: Layout

    @property
    def url(self) -> str:
        """Return the URL of Prometheus, for the operator's pods and for this machine."""
        return f"http://{self.layout.host}:{_PORT}"

    @property
    def page(self) -> Path:
        """Return the file that is scraped."""
        return self._folder / "page" / _PAGE

    @property
    def how_to_edit(self) -> str:
        """Return a sentence that says how to change the load."""
        home = Path.home()
        page = f"~/{self.page.relative_to(home)}" if self.page.is_relative_to(home) else self.page
        return f"The load of the nodes is in {page}: edit it to see pods move."

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
        supervisor.ensure(server, lambda: _get(f"{self.url}/-/ready").status == _OK)
        wait_for("Prometheus to measure the load", lambda: self._measured() == load or None)

    def set(self, load: Mapping[str, float]) -> None:
        """Change the load of nodes."""
        cache.write(self.page, _page(load))

    def url_here(self) -> AbstractContextManager[str]:
        """Yield the URL of Prometheus for this machine."""
        return nullcontext(self.url)

    def _measured(self) -> dict[str, float]:
        return _values(_get(f"{self.url}/api/v1/query?query=load").json())

    @property
    def _folder(self) -> Path:
        return self.layout.folder / "prometheus"


@dataclass(frozen=True, slots=True)
class LoadInPods:
    """Prometheus and the page as pods of the cluster."""

    api: Api
    kubectl: Callable[..., str]
    start_kubectl: Callable[..., subprocess.Popen[bytes]]
    """Start a kubectl that runs until it is stopped."""
    operator: str
    """Path of the operator's Deployment, whose image has Python for the page."""

    @property
    def url(self) -> str:
        """Return the URL of Prometheus for the operator's pods."""
        return f"http://prometheus.{_NAMESPACE}.svc:{_PORT}"

    @property
    def how_to_edit(self) -> str:
        """Return a sentence that says how to change the load."""
        edit = f"kubectl edit configmap load --namespace {_NAMESPACE}"
        return f"Change the load of the nodes with `{edit}` to see pods move; the page follows within about a minute."

    def up(self, load: Mapping[str, float]) -> None:
        """Start Prometheus, or find it running, and wait until it has this load of nodes."""
        image = self.api.get(self.operator)["spec"]["template"]["spec"]["containers"][0]["image"]
        manifest = _MANIFEST.read_text().replace("OPERATOR_IMAGE", image).replace("vPROMETHEUS", f"v{PROMETHEUS}")
        self.kubectl("apply", "-f", "-", stdin=manifest)
        self.set(load)
        for name in ("load", "prometheus"):
            self.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={_NAMESPACE}", "--timeout=300s")
        wait_for("Prometheus to measure the load", lambda: self._measured() == load or None)

    def set(self, load: Mapping[str, float]) -> None:
        """Change the load of nodes, and have the kubelet bring it to the page at once."""
        metadata = {"name": "load", "namespace": _NAMESPACE}
        page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_PAGE: _page(load)}}
        path = f"/api/v1/namespaces/{_NAMESPACE}"
        written = self.api.apply(f"{path}/configmaps/load", page)["metadata"]["resourceVersion"]
        for pod in self.api.items(f"{path}/pods", labelSelector="app=load"):
            note = {"metadata": {"annotations": {"demo/load": written}}}
            self.api.patch(f"{path}/pods/{pod['metadata']['name']}", note)

    @contextmanager
    def url_here(self) -> Iterator[str]:
        """Yield the URL of Prometheus for this machine, through `kubectl port-forward`."""
        (port,) = free_ports(1)
        url = f"http://127.0.0.1:{port}"
        forward = ("port-forward", "service/prometheus", f"{port}:{_PORT}", f"--namespace={_NAMESPACE}")
        with self.start_kubectl(*forward) as process:
            try:
                wait_for("kubectl port-forward", lambda: _get(f"{url}/-/ready").status == _OK, timeout_s=30)
                yield url
            finally:
                process.terminate()

    def _measured(self) -> dict[str, float]:
        proxy = f"/api/v1/namespaces/{_NAMESPACE}/services/prometheus:{_PORT}/proxy"
        return _values(self.api.get(f"{proxy}/api/v1/query", query="load"))


def obstacle(provider: Provider) -> str:
    """Return why the demo has no Prometheus on this cluster; "" if it has one."""
    return prometheus.obstacle() if isinstance(provider, Local) else ""


def _page(load: Mapping[str, float]) -> str:
    return "".join(f'load{{node="{node}"}} {value}\n' for node, value in load.items())


def _values(answer: Object) -> dict[str, float]:
    return {one["metric"]["node"]: float(one["value"][1]) for one in answer["data"]["result"]}


def _get(url: str) -> urllib3.BaseHTTPResponse:
    try:
        return urllib3.request("GET", url, retries=False, timeout=5.0)
    except urllib3.exceptions.HTTPError as error:
        raise ClusterError(f"{url} does not answer: {error}") from error
