"""Scrapes of a release by a real Prometheus, as the chart's ServiceMonitors describe them."""

import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from support.chart.chart import NAMESPACE
from support.kube.service_account import token_of
from testbed import prometheus
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster
from testbed.sandbox import Sandbox

HOME, ACCOUNT = "default", "prometheus"
READERS: Sequence[Object] = [{"name": ACCOUNT, "namespace": HOME}]
"""Value `metrics.readers` for the account of these scrapes."""
_FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
_CAPITAL = re.compile("[A-Z]")
_NO_LABEL = re.compile("[^a-zA-Z0-9_]")


@dataclass(frozen=True, slots=True)
class Target:
    """State of a target of a scrape."""

    labels: Mapping[str, str]
    health: str
    error: str


@dataclass(frozen=True, slots=True)
class Scrapes:
    """A Prometheus that scrapes with a token and without one."""

    port: int
    enter: Sequence[str]

    def targets(self, job: str) -> list[Target]:
        """Return the targets of a job."""
        active = self._asked("targets?state=active")["activeTargets"]
        of_job = [one for one in active if one["scrapePool"] == job]
        return [Target(one["labels"], one["health"], one["lastError"]) for one in of_job]

    def are(self, job: str, pods: Collection[str], health: str, error: str) -> bool:
        """Return whether the targets of a job are these pods, all so. Raises ClusterError, which says what they are."""
        found = self.targets(job)
        states = {(one.health, one.error) for one in found}
        if {one.labels["pod"] for one in found} == {*pods} and states == {(health, error)}:
            return True
        raise ClusterError(str([(one.labels.get("pod"), one.health, one.error) for one in found]))

    def series(self, query: str) -> list[Mapping[str, str]]:
        """Return the labels of the series of a query's result."""
        return [one["metric"] for one in self._asked(f"query?{urlencode({'query': query})}")["result"]]

    def _asked(self, what: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}"
        command = [*self.enter, sys.executable, "-c", _FETCH, url]
        answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def scrapes(cluster: Cluster, folder: Path, monitors: Sequence[Object], files: Mapping[str, str]) -> Iterator[Scrapes]:
    """Scrape what these ServiceMonitors select: the job of each name with a token, and `NAME without` without one.

    The server runs in the network of the node, as only there pods are reached.

    `files` has the contents of the Secrets and ConfigMaps that they refer to, by `NAME/KEY`.
    """
    api, path = cluster.api, f"/api/v1/namespaces/{HOME}/serviceaccounts"
    api.create(path, {"metadata": {"name": ACCOUNT}})
    try:
        (folder / "token").write_text(token_of(cluster, HOME, ACCOUNT))
        token = {"authorization": {"credentials_file": str(folder / "token")}}
        jobs = []
        for one in monitors:
            job = _scrape_of(api, one, folder, files)
            jobs += [{**job, **token}, {**job, "job_name": f"{job['job_name']} without"}]
        enter = Sandbox(cluster.folder).enter_network()
        with prometheus.running(folder, [], jobs=jobs, enter=enter) as server:
            yield Scrapes(server.port, enter)
    finally:
        api.delete(f"{path}/{ACCOUNT}")


def _scrape_of(api: Api, monitor: Object, folder: Path, files: Mapping[str, str]) -> Object:
    """Return the configuration of a scrape, as the Prometheus operator writes it.

    But its targets are found here: Debian's Prometheus knows nothing of Kubernetes.
    """
    (endpoint,) = monitor["spec"]["endpoints"]
    relabel = [{_snake(key): value for key, value in one.items()} for one in endpoint.get("relabelings", ())]
    tls = {_snake(key): value for key, value in endpoint.get("tlsConfig", {}).items() if key != "ca"}
    if (ca := endpoint.get("tlsConfig", {}).get("ca")) is not None:
        (reference,) = ca.values()
        (folder / "ca.crt").write_text(files[f"{reference['name']}/{reference['key']}"])
        tls["ca_file"] = str(folder / "ca.crt")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    targets = wait_for("the pods to be endpoints", lambda: _targets(api, wanted, endpoint["port"]))
    return {
        "job_name": monitor["metadata"]["name"],
        "scheme": endpoint.get("scheme", "http"),
        "tls_config": tls,
        "static_configs": targets,
        "relabel_configs": relabel,
    }


def _targets(api: Api, wanted: Mapping[str, str], port_name: str) -> list[Object]:
    """Return the pods behind the Service with these labels. Raises ClusterError while others are behind it."""
    (service,) = api.items(f"/api/v1/namespaces/{NAMESPACE}/services", labelSelector=_selector(wanted))
    pods = api.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=_selector(service["spec"]["selector"]))
    labels = {one["metadata"]["name"]: one["metadata"]["labels"] for one in pods}
    of_service = {"kubernetes.io/service-name": service["metadata"]["name"]}
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    found = {
        endpoint["targetRef"]["name"]: f"{endpoint['addresses'][0]}:{port['port']}"
        for one in api.items(path, labelSelector=_selector(of_service))
        if one["addressType"] == "IPv4"
        for port in one["ports"]
        if port["name"] == port_name
        for endpoint in one["endpoints"] or ()
    }
    if found.keys() != labels.keys() or any("deletionTimestamp" in one["metadata"] for one in pods):
        raise ClusterError(f"{sorted(found)} are endpoints, {sorted(labels)} are pods")
    return [{"targets": [found[name]], "labels": _labels_of_target(name, labels[name])} for name in sorted(found)]


def _labels_of_target(name: str, labels: Mapping[str, str]) -> Mapping[str, str]:
    of_pod = {f"__meta_kubernetes_pod_label_{_NO_LABEL.sub('_', key)}": value for key, value in labels.items()}
    return {"namespace": NAMESPACE, "pod": name, **of_pod}


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)
