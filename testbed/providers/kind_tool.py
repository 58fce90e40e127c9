"""Calls `kind`, for one cluster, and asks Docker for its nodes."""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testbed import build, docker, process
from testbed.errors import ClusterError
from testbed.phases import say
from testbed.versions import KIND, program

_FORMAT = "{{.Names}}\t{{.State}}\t{{.Image}}"
_STEP = re.compile(r" • ([ -~]*[\w)])")
"""What kind prints where a step begins, without the picture at its end."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container that is a node."""

    name: str
    state: str
    image: str

    @property
    def is_running(self) -> bool:
        """Tell whether it was not stopped, by a person or by a restart of the machine."""
        return self.state == "running"


class Tool:
    """kind of the version that the node images are made for: from PATH where it is that one, else our own."""

    def __init__(self, cluster: str, folder: Path) -> None:
        self.cluster = cluster
        self.log = process.log_of(folder, "kind")

    def containers(self) -> list[Container]:
        """The nodes of this cluster, running or not."""
        label = f"label=io.x-k8s.kind.cluster={self.cluster}"
        answer = docker.ask("ps", "--all", "--filter", label, "--format", _FORMAT)
        if answer.returncode:
            raise ClusterError(
                f"Docker does not answer: {docker.last(answer)}", cure="start it, or use `--provider local`"
            )
        return sorted(
            (Container(*line.split("\t")) for line in answer.stdout.splitlines() if line), key=lambda one: one.name
        )

    def kind(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Ask kind something about this cluster."""
        return _call(self._command, *arguments, "--name", self.cluster)

    def logged(self, *arguments: str, cure: str) -> None:
        """Have kind do something with this cluster, tell its steps, and keep all that it writes."""
        command = [self._command, *arguments, "--name", self.cluster]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        error = ""
        with self.log.open("a") as file, _started(command, file) as process:
            for line in process.stderr or ():
                file.write(line)
                if step := _STEP.match(line):
                    say(f"  {step[1]}")
                elif not error and docker.is_error(line):
                    error = line.strip()
        if process.returncode:
            what = f"`kind {' '.join(arguments)}` failed"
            raise ClusterError(f"{what}: {error}" if error else what, log=self.log, cure=cure)

    def have_image(self, image: str) -> None:
        """Pull a node image unless it is there, with Docker's own progress: it has some 400 MB."""
        if docker.ask("image", "inspect", image).returncode == 0:
            return
        say(f"pulling {image}, about 400 MB")
        if not docker.pull(image):
            cure = "see that Docker can pull from Docker Hub or from a mirror of it, or use `--provider local`"
            raise ClusterError(f"Docker cannot pull {image}", cure=cure)

    @functools.cached_property
    def _command(self) -> str:
        """A kind of another version brings a Kubernetes that is not ours, or cannot load images into our nodes."""
        there = shutil.which("kind")
        if there and _call(there, "version").stdout.split()[1:2] == [f"v{KIND}"]:
            return there
        return str(build.build([program("kind")])["kind"])


def _environment() -> dict[str, str]:
    # of two engines, kind must not ask the other for the nodes than `docker` does
    return {**os.environ, "KIND_EXPERIMENTAL_PROVIDER": "docker"}


def _started(command: Sequence[str], output: IO[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )


def _call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
