"""Ground of the demo: a cluster, its programs, and the installed chart."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from demo import measured
from demo.nodes import nodes as wanted_nodes
from testbed import build, docker, images, layout, machine, nodes, operator_image, sandbox
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.layout import folder_of
from testbed.providers import Kind, Local, Provider
from testbed.versions import program

CHECKOUT = Path(__file__).parents[1]
NAMESPACE = "fairlead-system"
OPERATOR = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/fairlead"
_CHART = CHECKOUT / "charts" / "fairlead"
_WITHIN_S = 240.0
_Archive = Callable[[], Path]
Hear = Callable[[str], None]
"""Called with progress messages while the demo waits."""


@dataclass
class Ground:
    """Cluster that the demo uses."""

    provider: Provider
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = folder_of(self.provider.cluster)

    def up(self) -> None:
        """Start the cluster, or repair it."""
        if isinstance(self.provider, Local) and (why := sandbox.obstacle()):
            raise ClusterError(
                f"the demo needs a node that runs pods, which is not possible on this machine: {why}",
                cure="run it as root on Debian or Ubuntu, or on a machine where Docker can start privileged containers",
            )
        self.provider.up()

    def make_nodes(self) -> list[Object]:
        """Create the demo's nodes, and return them."""
        made = wanted_nodes()
        nodes.ensure(self.folder, self.kubeconfig, made)
        return made

    def node_names(self) -> list[str]:
        """Return the names of all nodes of the cluster."""
        return [str(one["metadata"]["name"]) for one in self.api.items("/api/v1/nodes")]

    @cached_property
    def load(self) -> measured.Load | None:
        """Return the load of nodes that Prometheus measures; None if the demo has no Prometheus here."""
        if measured.obstacle(self.provider):
            return None
        if isinstance(self.provider, Local):
            found = layout.load(self.provider.cluster)
            return measured.LoadBeside(found) if found else None
        return measured.LoadInPods(self.api, self.kubectl, self._start_kubectl, OPERATOR)

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self.provider.kubeconfig()

    @cached_property
    def api(self) -> Api:
        """Return a client for the API server."""
        return Api(self.kubeconfig)

    @cached_property
    def kubernetes(self) -> str:
        """Return the version of Kubernetes."""
        return str(self.api.get("/version")["gitVersion"]).removeprefix("v")

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl, and return its output. Raises ClusterError with its message if it fails."""
        return self._call("kubectl", arguments, stdin)

    def helm(self, *arguments: str) -> str:
        """Run helm, and return its output. Raises ClusterError with its message if it fails."""
        return self._call("helm", arguments, "")

    def fairlead(self, *arguments: str) -> str:
        """Run this checkout's `fairlead`, with the kubeconfig's permissions, and return its output."""
        command = [sys.executable, "-m", "fairlead", *arguments]
        return self._run([*command, "--kubeconfig", str(self.kubeconfig)], "", dict(os.environ))

    def bring_images(self) -> str:
        """Load the operator's and, if needed, the scheduler's image into the cluster; return the operator's tag."""
        scheduler = f"registry.k8s.io/kube-scheduler:v{self.kubernetes}"
        with self._operator_image() as (tag, archive):
            if not self._has(tag):
                self.provider.load(archive())
        if isinstance(self.provider, Local) and not self._has(scheduler):
            made = build.build([program("kube-scheduler", self.kubernetes)])["kube-scheduler"]
            with tempfile.NamedTemporaryFile(suffix=".tar") as file:
                file.write(images.of_kubernetes(scheduler, made))
                file.flush()
                self.provider.load(Path(file.name))
        return tag

    def install(self, tag: str) -> None:
        """Install or upgrade the chart with that image."""
        repository, _, version = tag.rpartition(":")
        values: Object = {"image": {"registry": "", "repository": repository, "tag": version}}
        if self.load is not None:
            values["prometheus"] = [{"name": "default", "url": self.load.url}]
        given = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
        where = (f"--namespace={NAMESPACE}", "--create-namespace")
        self.helm("upgrade", "--install", "fairlead", str(_CHART), *where, *given)

    def wait_for_operator(self, hear: Hear) -> None:
        """Wait until all of the operator's pods are ready."""

        def ready() -> bool:
            found = self.api.get(OPERATOR)
            wanted, status = found["spec"]["replicas"], found.get("status", {})
            there = status.get("readyReplicas", 0) if status.get("updatedReplicas") == wanted else 0
            hear(f"{there} of {wanted} are ready")
            current = status.get("observedGeneration") == found["metadata"]["generation"]
            return bool(current and there == wanted == status.get("replicas"))

        wait_for("the operator's pods to be ready", ready, timeout_s=_WITHIN_S)

    def wait_for_policy(self, name: str, hear: Hear, *, condition: str = "Ready") -> None:
        """Wait until the policy has the condition Ready, or another one."""
        path = f"/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies/{name}"

        def ready() -> bool:
            found = self.api.get(path)
            conditions = found.get("status", {}).get("conditions", ())
            one = next((one for one in conditions if one["type"] == condition), None)
            if one is None or one.get("observedGeneration") != found["metadata"]["generation"]:
                return False
            hear(f"{name}: {one['reason']}: {one['message']}")
            return bool(one["status"] == "True")

        wait_for(f"the policy {name} to be ready", ready, timeout_s=_WITHIN_S)

    @contextlib.contextmanager
    def _operator_image(self) -> Iterator[tuple[str, _Archive]]:
        """Yield the image's tag, and a function that writes its archive. Without Docker it is built as in the tests."""
        if not isinstance(self.provider, Kind):
            image = operator_image.build()
            yield image.tag, lambda: image.archive
            return
        tag = f"{operator_image.NAME}:{operator_image.digest_of(CHECKOUT, ['docker'])}"
        # whatever DOCKER_DEFAULT_PLATFORM says, the image has to run on the engine's own processor
        docker.must("build", "--platform", machine.engine_platform(), "--tag", tag, str(CHECKOUT))
        _forget_older(tag)
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder, "operator.tar")

            def save() -> Path:
                docker.must("save", "--output", str(archive), tag)
                return archive

            yield tag, save

    def _has(self, tag: str) -> bool:
        found = self.api.items("/api/v1/nodes")
        return any(tag in image.get("names", ()) for node in found for image in node["status"].get("images", ()))

    def _call(self, name: str, arguments: tuple[str, ...], stdin: str) -> str:
        return self._run([self._program(name), *arguments], stdin, self._environment())

    def _start_kubectl(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [self._program("kubectl"), *arguments]
        return subprocess.Popen(command, env=self._environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=os.pathsep.join(map(str, self.provider.programs())))
        if found is None:
            raise ClusterError(f"{name} is not installed", cure="run `python -m testbed build`")
        return found

    def _environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig), "PATH": os.environ.get("PATH", ""), "HOME": str(self.folder)}

    def _run(self, command: list[str], stdin: str, environment: dict[str, str]) -> str:
        answer = subprocess.run(
            command, cwd=CHECKOUT, input=stdin, capture_output=True, text=True, check=False, env=environment
        )
        if answer.returncode:
            name = Path(command[0]).name
            raise ClusterError(f"{name} {' '.join(command[1:])}: {answer.stderr.strip() or answer.stdout.strip()}")
        return answer.stdout


def _forget_older(tag: str) -> None:
    """Remove the operator's images of older sources: each has some 300 MB."""
    tags = docker.must("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", operator_image.NAME).splitlines()
    if older := [one for one in tags if one != tag]:
        docker.must("image", "rm", *older)
