"""Cost of the operator while nothing happens, and the time until an edit of a policy serves everywhere.

Two replicas beside a control plane with 100 nodes that live, as nodes do; their scheduler is one that others run, so
that no node has to. Takes three minutes: `python -m bench.rest`. Processor time is that of the whole process.
"""

import argparse
import asyncio
import http.client
import os
import ssl
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import psutil
import yaml

from bench import page
from bench.measure import MILLI, Measured
from bench.report import Line, Target, judged
from fairlead.control.loop.controller import now
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.authority import LEAF_LIFE, read
from fairlead.pki.identities import AUTHORITY_SECRET, OPERATOR
from fairlead.pki.issuing import issue_leaf
from fairlead.pki.tls_context import load_pair
from fairlead.render.object_names import LEASE
from fairlead.replica_state import PATH, decode
from testbed import node_template, nodes
from testbed.api import Api, Object, wait_for
from testbed.layout import free_ports
from testbed.node_template_file import default_template
from testbed.providers import Local

CRD: Final = Path(__file__).parents[1] / "crds" / "fairlead.dev_schedulerextenderpolicies.yaml"
NAMESPACE: Final = "fairlead-system"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_POLICIES: Final = "/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}"
_SETTINGS: Final = "schedulers: [{name: fairlead, management: ConfigOnly}]"
_LABELS: Final = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "operator"}
TARGETS: Final = {
    "rest-leader-processor": Target("%", below=2),
    "rest-leader-resident": Target("MiB", below=150),
    "rest-other-processor": Target("%", below=2),
    "rest-other-resident": Target("MiB", below=150),
    "edit-served-everywhere-p99": Target("ms", below=1000),
}
_SETTLED_S: Final = 30.0
_LOOK_S: Final = 0.005
Asked = http.client.HTTPSConnection


@dataclass(frozen=True, slots=True)
class Replica:
    """One, and the address that the leader asks it at."""

    name: str
    address: str
    port: int
    process: psutil.Process


def main() -> int:
    """Measure, print and write."""
    given = _parser().parse_args()
    provider = Local("bench-rest", node=False)
    try:
        provider.up()
        kubeconfig = provider.kubeconfig()
        made = node_template.make(given.nodes, default_template(), seed=1)
        nodes.ensure(kubeconfig.parent, kubeconfig, made)
        with closing(Api(kubeconfig)) as api, _replicas(api, kubeconfig) as both:
            lines = [*_measured(api, kubeconfig, both, given)]
    finally:
        provider.down()
    for line in lines:
        print(line, flush=True)
    about = f"Two replicas and {given.nodes} nodes; at rest over {given.seconds:g} s, {given.edits} edits of a policy."
    page.put("At rest", [about, page.when_and_where(), "", *page.rows(lines)])
    return 0


def _measured(api: Api, kubeconfig: Path, both: Sequence[Replica], given: argparse.Namespace) -> Iterator[Line]:
    _put(api, 0)
    context = asyncio.run(_context(kubeconfig))
    asked = [http.client.HTTPSConnection(one.address, one.port, context=context, timeout=5) for one in both]
    _served(asked, api.get(f"{_POLICIES}/bench")["metadata"]["generation"])
    time.sleep(_SETTLED_S)
    leader = api.get(_LEASE)["spec"]["holderIdentity"].partition("_")[0]
    before = [_processor_s(one) for one in both]
    begun = time.monotonic()
    time.sleep(given.seconds)
    lasted = time.monotonic() - begun
    for one, spent in zip(both, before, strict=True):
        role = "leader" if one.name == leader else "other"
        yield _line(f"rest-{role}-processor", "%", [100 * (_processor_s(one) - spent) / lasted])
        yield _line(f"rest-{role}-resident", "MiB", [one.process.memory_info().rss / 2**20])
    for connection in asked:  # idle for so long they are closed by now, or soon; they are opened again
        connection.close()
    took = [_edit(api, asked, number) for number in range(1, given.edits + 1)]
    yield _line("edit-served-everywhere-p50", "ms", [median(took)])
    yield _line("edit-served-everywhere-p99", "ms", [quantiles(took, n=100, method="inclusive")[98]])


def _line(name: str, unit: str, values: Sequence[float]) -> Line:
    return judged(Measured(name, unit, median(values), min(values)), TARGETS.get(name))


def _processor_s(one: Replica) -> float:
    times = one.process.cpu_times()
    return float(times.user + times.system)


def _put(api: Api, number: int) -> Object:
    rules = [
        {"name": "pool", "expression": f"node.metadata.labels[?'pool'].orValue('') != 'none-{number}'"},
        {"name": "room", "expression": "allocatable['cpu'] - requested['cpu'] >= 0.0"},
    ]
    spec = {"schedulerName": "fairlead", "filters": rules, "scores": [{"name": "even", "expression": "1.0"}]}
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "bench"}}
    return api.apply(f"{_POLICIES}/bench", {**kind, "spec": spec})


def _edit(api: Api, both: Sequence[Asked], number: int) -> float:
    """Milliseconds from the moment at which somebody sends it."""
    begun = time.monotonic()
    made = _put(api, number)
    _served(both, made["metadata"]["generation"])
    took = (time.monotonic() - begun) * MILLI
    time.sleep(0.3)  # what the leader writes about it is none of the next one's time
    return took


def _served(both: Sequence[Asked], generation: int) -> None:
    """Once each replica has it."""
    for one in both:
        wait_for("it to serve", lambda one=one: _serving(one) == str(generation), every_s=_LOOK_S)  # type: ignore[misc]


def _serving(one: Asked) -> str:
    one.request("GET", PATH)
    found = decode(one.getresponse().read()).policies.get("bench")
    return found.serving if found is not None else ""


async def _context(kubeconfig: Path) -> ssl.SSLContext:
    """Context of the leader."""
    async with Client(from_kubeconfig([kubeconfig])) as client:
        secret = await Secrets(client, NAMESPACE).get(AUTHORITY_SECRET)
        if secret is None:
            raise RuntimeError("there is no authority")
        authority = read(secret.data)
    context = ssl.create_default_context(cadata=authority.server_ca_bundle.decode())
    pair = issue_leaf(authority.signing, OPERATOR, "client", now(), LEAF_LIFE)
    load_pair(context, pair.certificate, pair.key)
    return context


@contextmanager
def _replicas(api: Api, kubeconfig: Path) -> Iterator[Sequence[Replica]]:
    """Two processes, and what the API server knows of the pods that they would be."""
    api.create(_CRDS, yaml.safe_load(CRD.read_text()))
    wait_for("the kind", lambda: api.exists(_POLICIES))
    api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    wait_for("a service account", lambda: api.exists(account))
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        settings = Path(folder, "settings.yaml")
        settings.write_text(_SETTINGS)
        yield [
            stack.enter_context(_replica(api, kubeconfig, settings, f"127.0.0.{2 + number}", port))
            for number in range(2)
        ]


@contextmanager
def _replica(api: Api, kubeconfig: Path, settings: Path, address: str, port: int) -> Iterator[Replica]:
    name = f"fairlead-{address.rpartition('.')[2]}"
    _pod(api, name, address)
    probes, admission = free_ports(2)
    listen = {"listen": f"{address}:{port}", "probes": f"127.0.0.1:{probes}", "admission": f"127.0.0.1:{admission}"}
    given = [f"--{option}={value}" for option, value in listen.items()]
    command = [sys.executable, "-m", "fairlead", "operate", f"--settings={settings}", f"--kubeconfig={kubeconfig}"]
    pod = {"POD_NAME": name, "POD_UID": uuid.uuid4().hex, "POD_NAMESPACE": NAMESPACE, "POD_IP": address}
    with (settings.parent / f"{name}.log").open("w") as log:
        process = psutil.Popen([*command, *given, "--drain=0s"], env=os.environ | pod, stdout=log, stderr=log)
        try:
            wait_for(f"{name} to be ready", lambda: _answers(probes))
            yield Replica(name, address, port, process)
        finally:
            process.kill()
            process.wait()


def _answers(probes: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", probes, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


def _pod(api: Api, name: str, address: str) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"}
    api.create(_PODS, {"metadata": {"name": name, "labels": _LABELS}, "spec": spec})
    ready = [{"type": "Ready", "status": "True"}]
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": ready}
    api.patch(f"{_PODS}/{name}/status", {"status": status})


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.rest", description=__doc__)
    made.add_argument("--nodes", type=int, default=100)
    made.add_argument("--seconds", type=float, default=120.0)
    made.add_argument("--edits", type=int, default=50)
    return made


if __name__ == "__main__":
    sys.exit(main())
