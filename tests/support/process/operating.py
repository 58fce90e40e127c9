"""`fairlead operate` as a real process beside a cluster, and those who talk to it with its authority's certificates."""

import asyncio
import http.client
import itertools
import json
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import fairlead
from fairlead.control.loop.controller import now
from fairlead.control.reconcile.object_client import ref_of
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.authority import LEAF_LIFE, Authority, read
from fairlead.pki.identities import OPERATOR, REPLICAS, scheduler_identity
from fairlead.pki.issuing import issue_leaf
from fairlead.pki.tls_context import load_pair
from fairlead.process.cluster_claim import CLAIM
from fairlead.replica_state import PATH, ReplicaState, decode
from support.kube.crd import POLICIES
from support.render.scheduler_bindings import chart_bindings
from testbed import process
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster
from testbed.layout import free_ports
from testbed.process import Component
from testbed.supervisor import Supervisor

HOST = "127.0.0.1"
_SOURCE = Path(fairlead.__file__).parents[1]
_READY_S = 60
_CLAIM = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{CLAIM.name}"
_numbers = itertools.count(1)


@dataclass(slots=True)
class Operating:
    """One replica, which leads nothing."""

    cluster: Cluster
    namespace: str
    """Of the operator; also the scheduler whose policies the test makes."""
    folder: Path
    settings: str = ""
    name: str = field(default_factory=lambda: f"test-operate-{next(_numbers)}")
    ports: list[int] = field(default_factory=lambda: free_ports(3))
    admits: bool = True
    """Whether the API server may ask it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside what it is always told."""
    host: str = HOST
    arguments: Sequence[str] = ()
    """Further ones."""

    def start(self) -> None:
        """Start it, and wait until it says that it is ready."""
        for one in chart_bindings(self.namespace):
            if not self.cluster.api.exists(path := ref_of(one).path):  # as the chart does; they go with the namespace
                self.cluster.api.apply(path, one)
        Supervisor(self.cluster.folder, list).ensure(self._component(), self.is_ready, within_s=_READY_S)

    def show_pod(self) -> None:
        """Have a pod for it, at whose address the leader asks it: from then on it leads, and counts its own answer."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        labels = dict(one.split("=") for one in REPLICAS.split(","))
        spec = {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"}
        self.cluster.api.create(path, {"metadata": {"name": self.name, "labels": labels}, "spec": spec})
        ready = [{"type": "Ready", "status": "True"}]
        status = {"phase": "Running", "podIP": self.host, "podIPs": [{"ip": self.host}], "conditions": ready}
        self.cluster.api.patch(f"{path}/{self.name}/status", {"status": status})

    def listens(self) -> set[int]:
        """The ports that somebody can connect to."""
        (found,) = (one for one in [process.find(self.cluster.folder, self.name)] if one)
        return {one.laddr.port for one in found.net_connections("tcp") if one.status == psutil.CONN_LISTEN}

    def kill(self) -> None:
        """Kill it as `kill -9` does. Its claim, for which operators of other tests would wait a minute, goes, too."""
        process.kill(found for found in [process.find(self.cluster.folder, self.name)] if found)
        api = self.cluster.api
        if api.exists(_CLAIM) and api.get(_CLAIM)["spec"].get("holderIdentity") == self.namespace:
            api.delete(_CLAIM)

    def is_ready(self) -> bool:
        """Return whether it answers the scheduler."""
        return self.probe("readyz")[0] == http.client.OK

    def probe(self, page: str) -> tuple[int, str]:
        """Return the page of a probe."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://{self.host}:{self.ports[1]}/{page}", timeout=15) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def authority(self) -> Authority:
        """The one that the replica has made."""

        async def found() -> Authority:
            async with Client(from_kubeconfig([self.cluster.kubeconfig])) as client:
                secret = await Secrets(client, self.namespace).get("fairlead-ca")
                assert secret is not None
                return read(secret.data)

        return asyncio.run(found())

    def context(self, name: str) -> ssl.SSLContext:
        """Return the TLS context of a caller of this name."""
        authority = self.authority()
        context = ssl.create_default_context(cadata=authority.server_ca_bundle.decode())
        pair = issue_leaf(authority.signing, name, "client", now(), LEAF_LIFE)
        load_pair(context, pair.certificate, pair.key)
        return context

    def ask(self, name: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        """Return the answer to a caller of this name."""
        connection = http.client.HTTPSConnection(self.host, self.ports[0], context=self.context(name), timeout=30)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, sent, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def state(self) -> ReplicaState:
        """Return its state, as the leader reads it."""
        status, body = self.ask(OPERATOR, PATH)
        assert status == http.client.OK, body
        return decode(body)

    def until(self, what: str, holds: Callable[[ReplicaState], bool]) -> ReplicaState:
        """Its state, once that is so."""

        def look() -> ReplicaState | None:
            state = self.state()
            return state if holds(state) else None

        return wait_for(what, look)

    def put(self, name: str, **spec: Any) -> None:
        """Apply a policy for our pods, and wait until it serves."""
        api, path = self.cluster.api, f"{POLICIES}/{name}"
        whole = {"schedulerName": self.namespace} | spec
        if api.exists(path):
            made = api.patch(path, {"spec": whole})
        else:
            kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
            made = api.create(POLICIES, {**kind, "metadata": {"name": name}, "spec": whole})
        generation = str(made["metadata"]["generation"])
        self.until("the policy to be known", lambda one: _generation(one, name) == generation)

    def entries(self) -> list[Object]:
        """The gates of a scheduler's `extenders`, with a certificate of its own."""
        authority = self.authority()
        pair = issue_leaf(authority.signing, scheduler_identity(self.namespace), "client", now(), LEAF_LIFE)
        files = {"ca.crt": authority.server_ca_bundle, "tls.crt": pair.certificate, "tls.key": pair.key}
        for file, content in files.items():
            (self.folder / file).write_bytes(content)
        names = zip(("caFile", "certFile", "keyFile"), files, strict=True)
        common = {
            "enableHTTPS": True,
            "tlsConfig": {key: str(self.folder / file) for key, file in names},
            "httpTimeout": "1s",
            "nodeCacheCapable": True,
            "filterVerb": "filter",
            "preemptVerb": "preempt",
        }
        url = f"https://{self.host}:{self.ports[0]}"
        return [common | {"urlPrefix": url}, common | {"urlPrefix": f"{url}/ignore", "ignorable": True}]

    def _component(self) -> Component:
        file = self.folder / "settings.yaml"
        file.write_text(self.settings)
        listen, probes, admission = (f"{self.host}:{port}" for port in self.ports)
        admission = admission if self.admits else ""
        command = [
            *(sys.executable, "-m", "fairlead", "operate", f"--settings={file}"),
            *(f"--listen={listen}", f"--probes={probes}", f"--admission={admission}"),
            *(f"--kubeconfig={self.cluster.kubeconfig}", "--drain=0s", "--log-format=console"),
            *self.arguments,
        ]
        pod = {"POD_NAMESPACE": self.namespace, "POD_NAME": self.name, "POD_IP": self.host}
        environment = {"PYTHONPATH": str(_SOURCE), "PYTHONDONTWRITEBYTECODE": "1", **pod, **self.environment}
        return Component(self.name, command, environment)


def _generation(state: ReplicaState, name: str) -> str:
    found = state.policies.get(name)
    return found.generation if found is not None and (found.serving or found.reason != "Compiled") else ""
