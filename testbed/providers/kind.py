"""A cluster of kind: its one node is a container of Docker, where this machine has a Docker that lets it."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from testbed import cache, docker, kwok, machine, process
from testbed.api import Api
from testbed.errors import ClusterError, sentence
from testbed.layout import folder_of
from testbed.phases import Phases, say
from testbed.providers import folder as folders
from testbed.providers import kind_config, kind_nodes
from testbed.providers.kind_tool import Container, Tool
from testbed.providers.protocol import Part
from testbed.versions import KUBERNETES

_TEXTS = frozenset({".log", ".txt", ".json", ".yaml"})
_ANEW = "see that Docker has memory and disk enough; `python -m testbed down`, then `up` again"


class Kind:
    """The provider `kind`."""

    NAME = "kind"

    def __init__(self, cluster: str, *, kubernetes: str | None = None, node: bool | None = None) -> None:
        """`kubernetes` is what is asked for; None takes what is up, else what kind has. There always is a real node."""
        self.cluster = cluster
        self.phases = Phases()
        self._wanted_version = kubernetes
        self._wanted_node = node
        self._folder = folder_of(cluster)
        self._config = self._folder / "kubeconfig"
        self._tool = Tool(cluster, self._folder)

    def up(self) -> None:
        """Raise the cluster, or heal what is broken of it."""
        if self._wanted_node is False:
            raise ClusterError("a cluster of kind has a real node", cure="`--provider local up --no-node` does without")
        with folders.held(self.cluster, self.NAME):
            containers = self._tool.containers()
            self._check(containers)
            if not (containers and self._is_healed(containers)):
                self._create(instead_of=containers)
            kwok.heal(self._folder, self.kubeconfig())
            say(str(self.phases))

    def down(self) -> None:
        """Leave nothing of it. A cluster of kind that the testbed did not raise is left alone."""
        with folders.held(self.cluster, self.NAME):
            process.kill_all(self._folder)
            if folders.raised_by(self.cluster):
                self._delete()
                say("Docker keeps the images that it pulled or built, and the network kind that clusters of kind share")
            folders.remove(self._folder)

    def status(self) -> Sequence[Part]:
        """The containers that are its nodes, and the processes that the testbed started beside them."""
        if folders.raised_by(self.cluster) is None:
            return []
        containers = self._tool.containers() or [Container(f"{self.cluster}-control-plane", "gone", "")]
        nodes = [
            Part(one.name, one.state, one.image if one.is_running else "`python -m testbed up` starts it again")
            for one in containers
        ]
        return [*nodes, *folders.processes(self._folder)]

    def kubeconfig(self) -> Path:
        """The file that lets kubectl and everything else reach it."""
        if not self._config.exists():
            raise ClusterError(
                f"there is no cluster {self.cluster}", cure="`python -m testbed up` (or `make cluster`) raises it"
            )
        return self._config

    def programs(self) -> Sequence[Path]:
        """The folders of kubectl and helm."""
        self.kubeconfig()
        versions = [kind_config.version_of(one.image) for one in self._tool.containers()]
        return folders.programs(folders.nearest(next(filter(None, versions), "")))

    def load(self, archive: Path) -> None:
        """Bring the images of an archive to the node."""
        self.kubeconfig()
        answer = self._tool.kind("load", "image-archive", str(archive.absolute()))
        if answer.returncode:
            raise ClusterError(
                f"{archive} could not be loaded: {docker.last(answer)}", cure="give it what `docker save` writes"
            )

    def logs(self) -> dict[str, str]:
        """Logs of the node's components and of the testbed's own processes, or why they cannot be had."""
        found = folders.logs(self._folder)
        if self._config.exists():
            with tempfile.TemporaryDirectory() as folder:
                answer = self._tool.kind("export", "logs", folder)
                if answer.returncode:
                    found["kind-export-logs"] = answer.stderr
                for path in sorted(Path(folder).rglob("*")):
                    name = path.relative_to(folder).with_suffix("").as_posix()
                    # pods/ holds what containers/ does; the journal and the like are no texts
                    if path.suffix in _TEXTS and path.is_file() and "/pods/" not in name:
                        found[name] = path.read_text(errors="replace")
        return found

    def _check(self, containers: Sequence[Container]) -> None:
        """Refuse a cluster that is not ours, and one of another version."""
        if containers and folders.raised_by(self.cluster) is None:
            raise ClusterError(
                f"kind has a cluster {self.cluster} that the testbed did not raise",
                cure=f"another --name; or, if nobody needs that one, `kind delete cluster --name {self.cluster}`",
            )
        for container in containers:
            there = kind_config.version_of(container.image)
            wanted = self._wanted_version
            if there and wanted and kind_config.minor(there) != kind_config.minor(wanted):
                raise ClusterError(
                    f"the cluster {self.cluster} is there with Kubernetes {there}, not {kind_config.minor(wanted)}",
                    cure="`python -m testbed down` first, or give this one another --name",
                )

    def _is_healed(self, containers: Sequence[Container]) -> bool:
        """Start what stands still; whether the cluster answers then."""
        if still := [one.name for one in containers if not one.is_running]:
            say(f"starting {sentence(still)}")
            docker.ask("start", *still)  # what comes of it is seen below
        try:
            with self.phases.phase("kind cluster"):
                self._settle(containers, renewed=True)
        except ClusterError as error:
            say(f"the cluster is broken and is made anew: {error.what}")
            return False
        return True

    def _create(self, *, instead_of: Sequence[Container]) -> None:
        if why := machine.docker_obstacle():
            raise ClusterError(f"kind cannot run here: {why}", cure="use `--provider local`")
        folders.claim(self.cluster, self.NAME)
        if instead_of:
            process.kill_all(self._folder)
            self._delete()
        version = self._wanted_version or KUBERNETES[0]
        with self.phases.phase("node image"):
            self._tool.have_image(kind_config.image(version))
        with self.phases.phase("kind cluster"):
            file = self._folder / "kind.yaml"
            cache.write(file, yaml.safe_dump(kind_config.cluster(version), sort_keys=False))
            self._tool.logged("create", "cluster", f"--config={file}", f"--kubeconfig={self._config}", cure=_ANEW)
            self._settle(self._tool.containers())

    def _settle(self, containers: Sequence[Container], *, renewed: bool = False) -> None:
        answer = self._tool.kind("get", "kubeconfig")
        if answer.returncode:
            raise ClusterError(f"kind does not say how to reach {self.cluster}: {docker.last(answer)}", cure=_ANEW)
        cache.write(self._config, answer.stdout, mode=0o600)
        api = Api(self._config)
        try:
            kind_nodes.settle(api, [one.name for one in containers], renewed=renewed)
        finally:
            api.close()

    def _delete(self) -> None:
        cure = "see that Docker answers, and call this again"
        self._tool.logged("delete", "cluster", f"--kubeconfig={self._config}", cure=cure)
