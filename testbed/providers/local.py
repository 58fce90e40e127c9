"""A cluster of processes on this machine, with one real node where this machine can have one."""

import dataclasses
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testbed import build, control_plane, kwok, packages, process, sandbox
from testbed import layout as layouts
from testbed.api import Api
from testbed.errors import ClusterError
from testbed.layout import Layout
from testbed.phases import Phases, say
from testbed.providers import folder as folders
from testbed.providers.protocol import Part
from testbed.real_node import RealNode
from testbed.supervisor import Supervisor, answers
from testbed.versions import KUBERNETES, program


class Local:
    """The provider `local`."""

    NAME = "local"

    def __init__(
        self, cluster: str, *, kubernetes: str | None = None, node: bool | None = None, gates: bool = False
    ) -> None:
        """`kubernetes` and `node` are what is asked for; None takes what is up, else the newest and what can be had.

        `gates`: with Kubernetes' own groups of pods, which are off by default.
        """
        self.cluster = cluster
        self.phases = Phases()
        self._wanted_version = kubernetes
        self._wanted_node = node
        self._gates = gates
        self._folder = layouts.folder_of(cluster)

    def up(self) -> None:
        """Raise the cluster, or heal what is broken of it."""
        with folders.held(self.cluster, self.NAME):
            layout = self._settle()
            folders.claim(self.cluster, self.NAME)
            names = [*control_plane.PROGRAMS, "kubectl", "pod", *(RealNode.PROGRAMS if layout.has_node else ())]
            with self.phases.phase("programs"):
                programs = build.build(program(name, layout.kubernetes) for name in names)
            with self.phases.phase("control plane"):
                layout = self._raise_control_plane(layout, programs)
            if layout.has_node:
                self._node(layout, programs).up(self.phases)
            kwok.heal(self._folder, layout.kubeconfig)
            say(str(self.phases))

    def down(self) -> None:
        """Leave nothing of it."""
        with folders.held(self.cluster, self.NAME):
            self._clear()

    def status(self) -> Sequence[Part]:
        """Its parts; none when it is down."""
        layout = layouts.load(self.cluster)
        running = process.running(self._folder)
        if layout is None:
            lost = [Part("layout.json", "lost", "`up` raises the cluster anew, `down` removes it")] if running else []
            return [*lost, *folders.processes(self._folder)]
        names = [
            *(("sandbox",) if layout.has_node else ()),
            *control_plane.PROGRAMS,
            *(RealNode.COMPONENTS if layout.has_node else ()),
            *(("kwok",) if kwok.is_wanted(self._folder) else ()),
        ]
        names += sorted(running.keys() - {*names})
        return [
            folders.part(name, running[name])
            if name in running
            else Part(
                name, "dead", f"`python -m testbed up` starts it again; its log: {process.log_of(self._folder, name)}"
            )
            for name in names
        ]

    def kubeconfig(self) -> Path:
        """The file that lets kubectl and everything else reach it."""
        return self._layout().kubeconfig

    def server(self) -> str:
        """The URL of the API server."""
        return self._layout().server

    def programs(self) -> Sequence[Path]:
        """The folders of kubectl and helm."""
        return folders.programs(self._layout().kubernetes)

    def load(self, archive: Path) -> None:
        """Bring the images of an archive to the real node."""
        layout = self._layout()
        if not layout.has_node:
            raise ClusterError(
                f"{self.cluster} has no real node to load images into",
                cure="raise it as root on Debian or Ubuntu: `python -m testbed down`, then `up`",
            )
        self._node(layout, {}).load(archive)

    def logs(self) -> dict[str, str]:
        """Logs of each component, by its name, and of each pod of the real node."""
        return folders.logs(self._folder) | folders.pod_logs(self._folder)

    def _layout(self) -> Layout:
        layout = layouts.load(self.cluster)
        if layout is None:
            raise ClusterError(
                f"there is no cluster {self.cluster}", cure="`python -m testbed up` (or `make cluster`) raises it"
            )
        return layout

    def _settle(self) -> Layout:
        """Decide what the cluster is: what it was, or anew."""
        if self._wanted_node and (why := sandbox.obstacle()):
            raise ClusterError(f"there can be no real node here: {why}", cure="`up --no-node` does without")
        layout = layouts.load(self.cluster)
        if layout is None:
            if (self._folder / "etcd").exists():
                say(f"{self.cluster} has lost its layout.json: what there is of it is removed, and it is raised anew")
            self._clear()  # also what a start that was cut off may have left
            node = sandbox.is_possible() if self._wanted_node is None else self._wanted_node
            if node:
                packages.ensure(packages.NODE)
            layout = Layout(self.cluster, self._wanted_version or KUBERNETES[0], gates=self._gates)
            return (
                dataclasses.replace(layout, network=str(sandbox.free_network()))
                if node
                else layouts.with_free_ports(layout)
            )
        self._check(layout)
        return layout

    def _check(self, layout: Layout) -> None:
        """Refuse to make what is there into something else."""
        there = ""
        if self._wanted_version not in (None, layout.kubernetes):
            there = f"runs Kubernetes {layout.kubernetes}, not {self._wanted_version}"
        elif self._wanted_node not in (None, layout.has_node):
            there = "has a real node" if layout.has_node else "has no real node"
        elif self._gates and not layout.gates:
            there = "has no groups of Kubernetes' own"
        if there:
            raise ClusterError(
                f"the cluster {self.cluster} {there}",
                cure="`python -m testbed down` first, or give this one another --name",
            )

    def _raise_control_plane(self, layout: Layout, programs: dict[str, Path]) -> Layout:
        layout = self._make_room(layout)
        layout.save()
        if not control_plane.has_authority(layout):  # what runs believes in one that is lost
            process.kill_all(self._folder)
        if layout.has_node:
            self._node(layout, programs).enter()
        supervisor = self._supervisor(layout)
        keys = control_plane.make_keys(layout)
        api = Api(layout.kubeconfig)
        supervisor.ensure(control_plane.etcd(layout, programs), lambda: True)
        supervisor.ensure(control_plane.apiserver(layout, programs, keys), lambda: api.text("/readyz") == "ok")
        supervisor.ensure(
            control_plane.controller_manager(layout, programs, keys), lambda: answers(layout.host, layout.manager_port)
        )
        supervisor.ensure(control_plane.scheduler(layout, programs), lambda: True)
        accounts = "/api/v1/namespaces/default/serviceaccounts/default"
        supervisor.wait(
            "kube-controller-manager", lambda: api.exists(accounts), within_s=30
        )  # without it no pod can be made
        api.close()
        return layout

    def _make_room(self, layout: Layout) -> Layout:
        """Move the cluster where somebody else has taken its ports or its network meanwhile."""
        running = process.running(self._folder)
        if layout.has_node:
            if "sandbox" in running or sandbox.is_network_free(layout.network):
                return layout
            return dataclasses.replace(layout, network=str(sandbox.free_network()))
        ports = {
            "etcd": (layout.etcd_port, layout.etcd_peer_port),
            "kube-apiserver": (layout.api_port,),
            "kube-controller-manager": (layout.manager_port,),
        }
        if all(layouts.is_free(port) for name, own in ports.items() if name not in running for port in own):
            return layout
        process.kill_all(self._folder)
        return layouts.with_free_ports(layout)

    def _supervisor(self, layout: Layout) -> Supervisor:
        return Supervisor(self._folder, sandbox.Sandbox(self._folder).enter if layout.has_node else list)

    def _node(self, layout: Layout, programs: dict[str, Path]) -> RealNode:
        return RealNode(layout, programs, self._supervisor(layout))

    def _clear(self) -> None:
        process.kill_all(self._folder)
        if sandbox.is_possible():
            sandbox.Sandbox(self._folder).down()
        _unmount_below(self._folder)
        folders.remove(self._folder)


def _unmount_below(folder: Path) -> None:
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except FileNotFoundError:
        return
    for point in sorted((line.split()[4] for line in lines), reverse=True):
        if Path(point).is_relative_to(folder):
            subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)
