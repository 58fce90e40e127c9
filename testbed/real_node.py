"""One real node: containerd, kubelet and kube-proxy in the sandbox, and CoreDNS on it."""

import ipaddress
import os
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import IO

from testbed import cache, certs, images, kubeconfig, node_config, process
from testbed.api import Api, wait_for
from testbed.errors import ClusterError
from testbed.layout import Layout
from testbed.node_config import DNS_IMAGE, NODE, PAUSE_IMAGE, PLUGIN_FOLDERS, POD_IMAGE, SOCKET
from testbed.phases import Phases
from testbed.process import Component
from testbed.sandbox import Sandbox
from testbed.supervisor import Supervisor

_MANIFESTS = Path(__file__).parent / "manifests"


def serves_cri(plugins: str, log: Path) -> bool:
    """Tell from containerd's list of plugins whether it serves the kubelet; an error says why it never will."""
    states = [line.split()[-1] for line in plugins.splitlines() if line.startswith("io.containerd.grpc.v1 ")]
    if states == ["ok"]:
        return True
    if states:
        own = log.read_text(errors="replace").rpartition("starting containerd")[2] if log.exists() else ""
        if "too many open files" in own:
            raise ClusterError(
                "its CRI plugin did not start, because all inotify instances of this machine are used;"
                " `sysctl fs.inotify.max_user_instances=1024`, as root, allows more"
            )
        raise ClusterError("its CRI plugin did not start")
    return False


class RealNode:
    """The node of a local cluster."""

    PROGRAMS = ("kubelet", "kube-proxy", "coredns")
    COMPONENTS = ("containerd", "kubelet", "kube-proxy")

    def __init__(self, layout: Layout, programs: Mapping[str, Path], supervisor: Supervisor) -> None:
        self._layout = layout
        self._programs = programs
        self._supervisor = supervisor
        self._sandbox = Sandbox(layout.folder)
        self._folder = layout.folder / "node"

    def enter(self) -> None:
        """Make the namespaces, which the control plane lives in as well."""
        self._sandbox.up(ipaddress.IPv4Network(self._layout.network), self._programs["pod"], NODE)

    def up(self, phases: Phases) -> None:
        """Raise the node, or heal what is broken of it."""
        api = Api(self._layout.kubeconfig)
        with phases.phase("container runtime"):
            self._configure()
            containerd = Component("containerd", ["containerd", "--config", f"{self._folder}/containerd.toml"])
            self._supervisor.ensure(containerd, self._serves_pods)
            self._load_own_images()
        with phases.phase("real node"):
            self._supervisor.ensure(self._kubelet(), lambda: self._is_ready(api), within_s=60)
            proxy = [str(self._programs["kube-proxy"]), f"--config={self._folder}/proxy.yaml"]
            self._supervisor.ensure(Component("kube-proxy", proxy), self._services_answer)
        with phases.phase("CoreDNS"):
            self._apply("coredns.yaml")
            wait_for("CoreDNS to answer", self._names_resolve, timeout_s=180)
        api.close()

    def load(self, archive: Path) -> None:
        """Import the images of an archive."""
        with archive.open("rb") as file:
            answer = self._ctr("images", "import", "-", stdin=file)
        if answer.returncode:
            raise ClusterError(
                f"{archive} could not be loaded: {answer.stderr.decode(errors='replace').strip()}",
                cure="give it what `docker save` or `buildah push IMAGE docker-archive:FILE` writes",
            )

    def _configure(self) -> None:
        plugins = next((folder for folder in PLUGIN_FOLDERS if Path(folder, "bridge").exists()), None)
        if plugins is None:
            raise ClusterError(
                f"there are no CNI plugins in {', '.join(PLUGIN_FOLDERS)}",
                cure="install the package containernetworking-plugins",
            )
        authority = certs.Authority(self._layout.folder / "pki")
        kubelet = authority.issue(
            "kubelet", f"system:node:{NODE}", organizations=["system:nodes"], hosts=[NODE, self._layout.host]
        )
        proxy = authority.issue("kube-proxy", "system:kube-proxy")
        for user, pair in (("kubelet", kubelet), ("kube-proxy", proxy)):
            kubeconfig.write(
                self._folder / f"{user}.kubeconfig",
                server=self._layout.server,
                authority=authority,
                user=user,
                pair=pair,
            )
        files = {
            "containerd.toml": node_config.containerd(self._folder, plugins, self._snapshotter()),
            "cni/10-testbed.conflist": node_config.network(),
            "resolv.conf": "",
            "kubelet.yaml": node_config.kubelet(self._folder, authority.certificate, kubelet, self._sandbox.cgroup),
            "proxy.yaml": node_config.proxy(self._folder / "kube-proxy.kubeconfig"),
        }
        for name, text in files.items():
            cache.write(self._folder / name, text)

    def _snapshotter(self) -> str:
        """`native` where this machine's own disk is an overlay, which cannot lie on another."""
        self._inside(
            "mkdir",
            "-p",
            "/var/lib/probe/lower",
            "/var/lib/probe/upper",
            "/var/lib/probe/work",
            "/var/lib/probe/merged",
        )
        options = "lowerdir=/var/lib/probe/lower,upperdir=/var/lib/probe/upper,workdir=/var/lib/probe/work"
        mounted = (
            self._inside("mount", "-t", "overlay", "-o", options, "overlay", "/var/lib/probe/merged").returncode == 0
        )
        if mounted:
            self._inside("umount", "/var/lib/probe/merged")
        self._inside("rm", "-rf", "/var/lib/probe")
        return "overlayfs" if mounted else "native"

    def _load_own_images(self) -> None:
        """The images that the node cannot do without, unless it has them."""
        there = self._ctr("images", "list", "-q").stdout.decode().split()
        for tag, program, command in (
            (PAUSE_IMAGE, "pod", ["pause"]),
            (POD_IMAGE, "pod", []),
            (DNS_IMAGE, "coredns", []),
        ):
            if tag not in there:
                file = self._folder / "image.tar"
                cache.write(file, images.archive(tag, self._programs[program], command=command))
                self.load(file)
                file.unlink()

    def _serves_pods(self) -> bool:
        """Tell whether containerd serves the kubelet. It goes on without its CRI plugin where that did not start."""
        listed = self._ctr("plugins", "list", "id==cri")
        log = process.log_of(self._layout.folder, "containerd")
        return listed.returncode == 0 and serves_cri(listed.stdout.decode(), log)

    def _kubelet(self) -> Component:
        return Component(
            "kubelet",
            [
                str(self._programs["kubelet"]),
                f"--config={self._folder}/kubelet.yaml",
                f"--kubeconfig={self._folder}/kubelet.kubeconfig",
                f"--hostname-override={NODE}",
                f"--node-ip={self._layout.host}",
                "--node-labels=fairlead.dev/testbed=real",
            ],
        )

    def _is_ready(self, api: Api) -> bool:
        """Tell whether the node says so since this kubelet runs: what the last one said may still stand there."""
        kubelet = process.find(self._layout.folder, "kubelet")
        if kubelet is None:
            return False
        conditions = api.get(f"/api/v1/nodes/{NODE}").get("status", {}).get("conditions", [])
        return any(
            one["type"] == "Ready"
            and one["status"] == "True"
            and datetime.fromisoformat(one["lastHeartbeatTime"]).timestamp() >= int(kubelet.create_time())
            for one in conditions
        )

    def _names_resolve(self) -> bool:
        """Tell whether a name of the cluster is known, asked through kube-proxy as pods do."""
        return (
            self._inside(str(self._programs["pod"]), "resolve", "kubernetes.default.svc.cluster.local").returncode == 0
        )

    def _services_answer(self) -> bool:
        """Tell whether the API server can be reached from the node at its Service's address."""
        answer = self._inside(str(self._programs["pod"]), "get", "http://10.96.0.1:443/")
        return b"HTTP request to an HTTPS server" in answer.stdout

    def _apply(self, manifest: str) -> None:
        command = [
            str(self._programs["kubectl"]),
            f"--kubeconfig={self._layout.kubeconfig}",
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=fairlead-testbed",
            "-f",
            str(_MANIFESTS / manifest),
        ]
        # without the user's environment, whose proxy knows nothing of addresses on this machine
        answer = subprocess.run(command, env={"HOME": str(self._folder)}, capture_output=True, text=True, check=False)
        if answer.returncode:
            raise ClusterError(f"{manifest} could not be applied: {answer.stderr.strip()}", cure="call `up` again")

    def _ctr(self, *arguments: str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[bytes]:
        return self._inside("ctr", f"--address={SOCKET}", "--namespace=k8s.io", *arguments, stdin=stdin)

    def _inside(self, *command: str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[bytes]:
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(self._folder)}
        return subprocess.run(
            [*self._sandbox.enter(), *command],
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=environment,
        )
