"""Operator as processes beside a control plane: replicas, what the API server knows of them, and what they serve."""

import asyncio
import http.client
import os
import ssl
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import yaml

from fairlead.control.loop.controller import now
from fairlead.kube.access.login import from_kubeconfig
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.authority import LEAF_LIFE, Authority, read
from fairlead.pki.identities import AUTHORITY_SECRET, OPERATOR, scheduler_identity
from fairlead.pki.issuing import issue_leaf
from fairlead.pki.tls_context import load_pair
from fairlead.render.object_names import LEASE
from fairlead.replica_state import PATH, decode
from testbed.api import Api, Object, wait_for
from testbed.layout import free_ports

CRD: Final = Path(__file__).parents[1] / "crds" / "fairlead.dev_schedulerextenderpolicies.yaml"
NAMESPACE: Final = "fairlead-system"
POLICIES: Final = "/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}"
_SETTINGS: Final = "schedulers: [{name: fairlead, management: ConfigOnly}]"
_LABELS: Final = {"app.kubernetes.io/name": "fairlead", "app.kubernetes.io/component": "operator"}
_LOOK_S: Final = 0.005
Asked = http.client.HTTPSConnection


@dataclass(frozen=True, slots=True)
class Replica:
    """One, and the address that the leader asks it at."""

    name: str
    address: str
    port: int
    process: psutil.Process


@contextmanager
def replicas_running(
    api: Api, kubeconfig: Path, many: int, *, settings: str = _SETTINGS
) -> Iterator[Sequence[Replica]]:
    """Run so many processes, and tell the API server of the pods that they would be."""
    api.create(_CRDS, yaml.safe_load(CRD.read_text()))
    wait_for("the kind", lambda: api.exists(POLICIES))
    if not api.exists(f"/api/v1/namespaces/{NAMESPACE}"):
        api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    wait_for("a service account", lambda: api.exists(account))
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder, "settings.yaml")
        file.write_text(settings)
        yield [
            stack.enter_context(_replica(api, kubeconfig, file, f"127.0.0.{2 + number}", port))
            for number in range(many)
        ]


def leader_of(api: Api) -> str:
    """Return the name of the replica that leads, once one does."""
    holder = wait_for("a leader", lambda: api.get(_LEASE)["spec"].get("holderIdentity") or None)
    return str(holder).partition("_")[0]


def write_certificate(kubeconfig: Path, scheduler: str, folder: Path) -> None:
    """Write the certificate of a scheduler, and the authorities of replicas, as `Wiring` names the files."""
    authority = authority_of(kubeconfig)
    pair = issue_leaf(authority.signing, scheduler_identity(scheduler), "client", now(), LEAF_LIFE)
    files = {"ca.crt": authority.server_ca_bundle, "scheduler.crt": pair.certificate, "scheduler.key": pair.key}
    for name, content in files.items():
        (folder / name).write_bytes(content)


def authority_of(kubeconfig: Path) -> Authority:
    """Return the authority that the operator has made."""
    return asyncio.run(_authority(kubeconfig))


def asking(kubeconfig: Path, replicas: Sequence[Replica]) -> list[Asked]:
    """Return connections to replicas, as the leader has them."""
    authority = authority_of(kubeconfig)
    context = ssl.create_default_context(cadata=authority.server_ca_bundle.decode())
    pair = issue_leaf(authority.signing, OPERATOR, "client", now(), LEAF_LIFE)
    load_pair(context, pair.certificate, pair.key)
    return [http.client.HTTPSConnection(one.address, one.port, context=context, timeout=5) for one in replicas]


def wait_until_served(replicas: Sequence[Asked], policy: Object) -> None:
    """Return once each replica serves this generation of a policy."""
    name, generation = policy["metadata"]["name"], str(policy["metadata"]["generation"])
    for one in replicas:
        wait_for("it to serve", lambda one=one: _serving(one, name) == generation, every_s=_LOOK_S)  # type: ignore[misc]


def _serving(one: Asked, name: str) -> str:
    one.request("GET", PATH)
    found = decode(one.getresponse().read()).policies.get(name)
    return found.serving if found is not None else ""


async def _authority(kubeconfig: Path) -> Authority:
    async with Client(from_kubeconfig([kubeconfig])) as client:
        secret = await Secrets(client, NAMESPACE).get(AUTHORITY_SECRET)
        if secret is None:
            raise RuntimeError("there is no authority")
        return read(secret.data)


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
