"""Calls `kind` and `docker`, for one cluster."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import build, process
from testbed.errors import ClusterError
from testbed.versions import program

_FORMAT = "{{.Names}}\t{{.State}}\t{{.Image}}"


@dataclass(frozen=True, slots=True)
class Container:
    """A container that is a node."""

    name: str
    state: str
    image: str

    @property
    def is_running(self) -> bool:
        """Whether it was not stopped, by a person or by a restart of the machine."""
        return self.state == "running"


class Tool:
    """kind from PATH where there is one, else our own."""

    def __init__(self, cluster: str, folder: Path) -> None:
        self.cluster = cluster
        self.log = process.log_of(folder, "kind")

    def containers(self) -> list[Container]:
        """The nodes of this cluster, running or not."""
        label = f"label=io.x-k8s.kind.cluster={self.cluster}"
        answer = self.docker("ps", "--all", "--filter", label, "--format", _FORMAT)
        if answer.returncode:
            raise ClusterError(f"Docker does not answer: {last(answer)}", cure="start it, or use `--provider local`")
        return sorted(
            (Container(*line.split("\t")) for line in answer.stdout.splitlines() if line), key=lambda one: one.name
        )

    def kind(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Ask kind something about this cluster."""
        return _call(self._command(), *arguments, "--name", self.cluster)

    def logged(self, *arguments: str, cure: str) -> None:
        """Have kind do something with this cluster, and keep what it says."""
        self._keep(self.kind(*arguments), arguments, cure)

    def build_image(self, version: str, image: str) -> None:
        """Make a node image from the published programs of a Kubernetes version."""
        arguments = ("build", "node-image", f"v{version}", "--image", image)
        cure = "leave out --kubernetes, which takes what kind has"
        self._keep(_call(self._command(), *arguments), arguments, cure)

    def docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Ask Docker something."""
        return _call("docker", *arguments)

    def _command(self) -> str:
        return shutil.which("kind") or str(build.build([program("kind")])["kind"])

    def _keep(self, answer: subprocess.CompletedProcess[str], arguments: Sequence[str], cure: str) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a") as file:
            file.write(answer.stdout + answer.stderr)
        if answer.returncode:
            raise ClusterError(f"`kind {' '.join(arguments)}` failed", log=self.log, cure=cure)


def last(answer: subprocess.CompletedProcess[str]) -> str:
    """The last thing a command said."""
    lines = [line for line in answer.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {answer.returncode}"


def _call(*command: str) -> subprocess.CompletedProcess[str]:
    # of two engines, kind must not ask the other for the nodes than `docker` does
    environment = {**os.environ, "KIND_EXPERIMENTAL_PROVIDER": "docker"}
    try:
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise ClusterError(f"there is no {command[0]} command", cure="install it, or use `--provider local`") from error
