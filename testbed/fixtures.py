"""pytest fixtures. Clusters are raised once a run, when the first test asks for one, and are gone when it ends."""

import hashlib
import itertools
import os
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import build, cache, node_template, nodes, process, prometheus, sandbox
from testbed import control_plane as control_plane_of
from testbed.api import Api, Object
from testbed.cert_manager import CertManager
from testbed.device_plugin import DevicePlugin
from testbed.errors import ClusterError
from testbed.karpenter import Karpenter
from testbed.layout import Layout, folder_of, free_ports, load
from testbed.metrics_server import MetricsServer
from testbed.node_template import Template
from testbed.node_template_file import default_template
from testbed.providers import Local, Provider, choose
from testbed.supervisor import Supervisor, answers
from testbed.versions import KUBERNETES, program

_CHECKOUT = Path(__file__).parents[1]
_SCHEDULER_READY_S = 60


@dataclass(slots=True)
class Cluster:
    """A cluster that tests share."""

    provider: Provider
    kubernetes: str
    api: Api = field(init=False)

    def __post_init__(self) -> None:
        self.api = Api(self.kubeconfig)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.provider.kubeconfig()

    @property
    def folder(self) -> Path:
        """Folder of the logs of components that tests start."""
        return folder_of(self.provider.cluster)

    @property
    def audit_log(self) -> Path:
        """Audit log of its API server; `audit.py` reads it."""
        if not isinstance(self.provider, Local):
            pytest.skip("only the API server that is a process here keeps an audit log for us")
        return Layout(self.provider.cluster, self.kubernetes).audit_log


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A kube-scheduler of its own."""

    process: str
    log: Path

    def says(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")


Kubectl = Callable[..., str]
StartScheduler = Callable[..., Scheduler]
MakeNodes = Callable[..., list[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the version of Kubernetes."""
    parser.addoption(
        "--kubernetes",
        choices=KUBERNETES,
        default=os.environ.get("FAIRLEAD_KUBERNETES", KUBERNETES[0]),
        help="version of the clusters that tests run on",
    )


@pytest.fixture(scope="session")
def kubernetes_version(pytestconfig: pytest.Config) -> str:
    """The version of the clusters that tests run on."""
    return str(pytestconfig.getoption("--kubernetes"))


@pytest.fixture(scope="session")
def this_run() -> Iterator[str]:
    """Prefix of the names of this run's clusters, which no other run of this checkout has meanwhile."""
    name = hashlib.sha256(str(_CHECKOUT).encode()).hexdigest()[:6] + os.environ.get("PYTEST_XDIST_WORKER", "")
    with cache.locked(f"tests-{name}", doing="running the tests of this checkout"):
        yield name


@pytest.fixture(scope="session")
def control_plane(kubernetes_version: str, this_run: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster of processes, without any real node."""
    provider = Local(f"test-plane-{this_run}", kubernetes=kubernetes_version, node=False)
    with raised(provider, kubernetes_version, pytestconfig) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster(kubernetes_version: str, this_run: str, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster with a real node, where this machine can have one."""
    name = f"test-cluster-{this_run}"
    provider = choose(name, os.environ.get("FAIRLEAD_PROVIDER"), kubernetes=kubernetes_version)
    if isinstance(provider, Local) and (why := sandbox.obstacle()):
        pytest.skip(f"no real node here: {why}")
    with raised(provider, kubernetes_version, pytestconfig) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def prometheus_program() -> Path:
    """The server of Prometheus."""
    if why := prometheus.obstacle():
        pytest.skip(why)
    return prometheus.program()


@contextmanager
def raised(provider: Provider, version: str, config: pytest.Config) -> Iterator[Cluster]:
    """A cluster that is up meanwhile, and whose logs are kept when a test fails."""
    provider.down()  # what a run that was killed may have left
    config.stash.setdefault(RAISED, []).append(provider)
    try:
        try:
            provider.up()
        except ClusterError:
            keep_logs(provider, config.rootpath / LOGS / "raising")  # there is nothing to keep once it is down
            raise
        cluster = Cluster(provider, version)
        yield cluster
        cluster.api.close()
    finally:
        provider.down()
        config.stash[RAISED].remove(provider)


@contextmanager
def raised_with_groups(name: str, version: str, config: pytest.Config) -> Iterator[Cluster]:
    """A cluster of processes of its own that serves Kubernetes' own groups of pods; older versions skip the test."""
    if tuple(map(int, version.split("."))) < (1, 37):
        pytest.skip("Kubernetes has PodGroup as a beta from 1.37 on")
    with raised(Local(name, kubernetes=version, node=False, gates=True), version, config) as cluster:
        yield cluster


def keep_logs(provider: Provider, folder: Path) -> None:
    """Save what every component of a cluster wrote."""
    for name, text in provider.logs().items():
        file = folder / provider.cluster / f"{name}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


LOGS = Path("build/test-logs")
RAISED = pytest.StashKey[list[Provider]]()


@pytest.fixture
def ground(request: pytest.FixtureRequest) -> Cluster:
    """The cluster that this test is about: the one with a real node if it asks for it, else the control plane."""
    found: Cluster = request.getfixturevalue("cluster" if "cluster" in request.fixturenames else "control_plane")
    return found


@pytest.fixture
def namespace(ground: Cluster) -> Iterator[str]:
    """A fresh namespace."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    ground.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    ground.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def kubectl(ground: Cluster) -> Kubectl:
    """Call kubectl; what it printed."""
    command = build.build([program("kubectl", ground.kubernetes)])["kubectl"]
    return caller(command, ground.kubeconfig)


@pytest.fixture
def helm(ground: Cluster) -> Kubectl:
    """Call helm; what it printed."""
    return caller(build.build([program("helm")])["helm"], ground.kubeconfig)


def caller(command: Path, kubeconfig: Path, *, inside: Sequence[str] = ()) -> Kubectl:
    """Calls a program for the administrator of a cluster; `aside`: with what it says beside its output.

    `inside` is a command to put before it, such as that which enters a network.
    """

    def call(*arguments: str, stdin: str = "", aside: bool = False) -> str:
        answer = subprocess.run(
            [*inside, str(command), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={"KUBECONFIG": str(kubeconfig), "PATH": os.environ.get("PATH", ""), "HOME": str(kubeconfig.parent)},
        )
        if answer.returncode:
            raise ClusterError(
                f"{command.name} {' '.join(arguments)}: {answer.stderr.strip() or answer.stdout.strip()}"
            )
        return answer.stdout + answer.stderr if aside else answer.stdout

    return call


@pytest.fixture
def kwok_nodes(ground: Cluster) -> Iterator[MakeNodes]:
    """Make kwok nodes for this test alone: `kwok_nodes(50)`, or with a template and a seed; their names."""

    def make(count: int, template: Template | None = None, *, seed: int = 0) -> list[str]:
        wanted = node_template.make(count, template or default_template(), seed=seed)
        nodes.ensure(ground.folder, ground.kubeconfig, wanted)
        return [str(node["metadata"]["name"]) for node in wanted]

    yield make
    nodes.ensure(ground.folder, ground.kubeconfig, [])


def _layout(cluster: Cluster, otherwise: str) -> Layout:
    """Return where the processes of a cluster are; a cluster of another kind skips the test, and says why."""
    layout = load(cluster.provider.cluster) if isinstance(cluster.provider, Local) else None
    if layout is None:
        pytest.skip(otherwise)
    return layout


@pytest.fixture(scope="module")
def metrics_server(cluster: Cluster) -> Iterator[MetricsServer]:
    """A metrics-server that measures the real node; it takes half a minute until it serves the first values."""
    made = MetricsServer(_layout(cluster, "metrics-server runs beside a cluster of processes only"), cluster.api)
    made.up()
    yield made
    made.down()


@pytest.fixture(scope="module")
def cert_manager(cluster: Cluster) -> Iterator[CertManager]:
    """cert-manager's controllers and its definitions; gone when the tests of the module end."""
    made = CertManager(
        _layout(cluster, "cert-manager's controllers run beside a cluster of processes only"),
        cluster.api,
    )
    made.up()
    yield made
    made.down()


@pytest.fixture(scope="module")
def karpenter(cluster: Cluster) -> Iterator[Karpenter]:
    """Karpenter without NodePools, which a test puts; it and its nodes are gone when the tests of the module end."""
    made = Karpenter(_layout(cluster, "Karpenter runs beside a cluster of processes only"), cluster.api)
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture
def device_plugin(cluster: Cluster) -> Iterator[DevicePlugin]:
    """A device plugin of the real node, which a test starts; its cards are well, and it is gone when the test ends."""
    made = DevicePlugin(_layout(cluster, "a kubelet that is a process here is needed for a device plugin"), cluster.api)
    yield made
    made.down()


@pytest.fixture
def scheduler(ground: Cluster) -> Iterator[StartScheduler]:
    """Start a real kube-scheduler with a configuration (a KubeSchedulerConfiguration; the kubeconfig is filled in).

    It has the feature gates of its cluster, unless others are given.
    """
    with ExitStack() as started:
        yield lambda config, gates=None: _start_scheduler(ground, config, gates, started)


_numbers = itertools.count(1)


def _start_scheduler(ground: Cluster, config: Object, gates: Iterable[str] | None, started: ExitStack) -> Scheduler:
    if gates is None:
        layout = load(ground.provider.cluster)
        gates = control_plane_of.GATES if layout is not None and layout.gates else ()
    name = f"test-scheduler-{next(_numbers)}"
    document: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(ground.kubeconfig), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
    }
    file = ground.folder / f"{name}.yaml"
    cache.write(file, yaml.safe_dump(document | config))
    (port,) = free_ports(1)
    command = [
        str(build.build([program("kube-scheduler", ground.kubernetes)])["kube-scheduler"]),
        f"--config={file}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={ground.folder}/pki/{name}",
        "-v=4",
        *gates,
    ]
    supervisor = Supervisor(ground.folder, list)
    started.callback(file.unlink)
    started.callback(lambda: process.kill(found for found in [process.find(ground.folder, name)] if found))
    supervisor.ensure(
        process.Component(name, command), lambda: answers("127.0.0.1", port, "/readyz"), within_s=_SCHEDULER_READY_S
    )
    return Scheduler(name, process.log_of(ground.folder, name))
